"""Lets Spark check [dedup], [[lookup]] and [[table]]: tables that exist, their columns, and types of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import NullType, StructField, StructType

from penstock.spark.lake.columns import quoted
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.shaping import Lookup
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.lookups import Kinds, cause_without_url, read_table, table_of
from penstock.spark.runtime.causes import cause_of

Add = Callable[[KeyPath, str], None]


class ShapeCheck:
    """Checks one pipeline. `add` takes each problem."""

    def __init__(self, pipeline: Pipeline, spark: SparkSession, add: Add) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._add = add

    def table_of(self, lookup: Lookup, kinds: Kinds) -> DataFrame:
        """An empty DataFrame of the table. If it cannot be read, its columns are void."""
        path: KeyPath = ("lookup", self._pipeline.lookups.index(lookup))
        where = "jdbc" if lookup.jdbc else "path"
        try:
            table = read_table(self._spark, lookup)
            if self._has_columns(path, lookup, table) and self._has_types(path, lookup):
                return table_of(self._spark, lookup, kinds).limit(0)
        except (PySparkException, Py4JError) as error:
            cause = cause_without_url(cause_of(error), lookup)
            self._add((*path, where), f"lookup {lookup.name}: {cause}")
        keys = [StructField(f"_key_{at}", kinds[name]) for at, name in enumerate(lookup.on)]
        values = [StructField(name, NullType()) for name in lookup.columns]
        return self._spark.createDataFrame([], StructType([*keys, *values]))

    def keys(self, frame: DataFrame) -> None:
        """Check that the columns of keys can be compared, and `order_by` ordered."""
        dedup = self._pipeline.dedup
        if dedup is not None:
            self._comparable(("dedup", "key"), frame, dedup.key)
        for at, table in enumerate(self._pipeline.tables):
            self._comparable(("table", at, "key"), frame, table.key)
            if table.order_by in frame.columns:
                order = partial(frame.orderBy, quoted(table.order_by))
                self._try(("table", at, "order_by"), order)

    def _comparable(self, path: KeyPath, frame: DataFrame, key: tuple[str, ...]) -> None:
        if set(key) - set(frame.columns) or not key:
            return  # reported by definition/shaping_rules.py
        columns = [quoted(name) for name in key]
        self._try(path, lambda: frame.groupBy(*columns).agg(F.max(F.xxhash64(*columns))))

    def _try(self, path: KeyPath, act: Callable[[], object]) -> None:
        try:
            act()
        except PySparkException as error:
            self._add(path, f"{path[-1]}: {cause_of(error)}")

    def _has_columns(self, path: KeyPath, lookup: Lookup, table: DataFrame) -> bool:
        known = {name.lower() for name in table.columns}
        wanted: tuple[tuple[str, Mapping[str, str]], ...]
        wanted = (("on", lookup.on), ("columns", lookup.columns))
        is_complete = True
        for key, names in wanted:
            for name in names.values():
                if name.lower() not in known:
                    text = f"the table has no column {name}; it has {', '.join(table.columns)}"
                    self._add((*path, key), f"lookup {lookup.name}: {text}")
                    is_complete = False
        return is_complete

    def _has_types(self, path: KeyPath, lookup: Lookup) -> bool:
        is_valid = True
        for name, text in lookup.types.items():
            try:
                frames.parse_type(self._spark, text)
            except PySparkException as error:
                cause = cause_of(error)
                self._add((*path, "types", name), f"{text!r} is not a type for a column: {cause}")
                is_valid = False
        return is_valid
