"""Lookups: columns of a static table, joined to the rows by a key.

`table_of` reads the table: the key in the types of the rows, and the columns that rows get. `PendingLookups`
joins each table as soon as the columns in its `on` exist: before [columns], or after the last of them. A key
that occurs twice in the table would double rows, so `check_unique` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from penstock.errors import PenstockError
from penstock.spark.lake.columns import quoted
from penstock.spark.lake.files import literal
from penstock.spark.pipeline.definition.shaping import Lookup

Kinds = Mapping[str, DataType]
TableOf = Callable[[Lookup, Kinds], DataFrame]


class LookupFailed(PenstockError):
    """A table that cannot be used. The text names the lookup and says why."""


class PendingLookups:
    """The lookups that are not joined yet. `get` returns the table of a lookup for rows of some types."""

    def __init__(self, lookups: Sequence[Lookup], get: TableOf) -> None:
        self._waiting = list(lookups)
        self._get = get

    def join_ready(self, rows: DataFrame) -> DataFrame:
        """Join the lookups whose columns exist, in the order of the file."""
        for lookup in list(self._waiting):
            kinds = {field.name: field.dataType for field in rows.schema}
            if set(lookup.on) <= set(kinds):
                rows = _joined(rows, lookup, self._get(lookup, kinds))
                self._waiting.remove(lookup)
        return rows


def table_of(spark: SparkSession, lookup: Lookup, kinds: Kinds) -> DataFrame:
    """The table: its key as `_key_0` ..., and the columns under our names. Raises: PySparkException."""
    # The key has the type of the rows, so that the text 7 in a CSV file matches the number 7.
    keys = [
        F.col(quoted(theirs)).try_cast(kinds[ours]).alias(_key(number))
        for number, (ours, theirs) in enumerate(lookup.on.items())
    ]
    values = []
    for ours, theirs in lookup.columns.items():
        column, kind = F.col(quoted(theirs)), lookup.types.get(ours)
        values.append((column if kind is None else column.try_cast(kind)).alias(ours))
    made = read_table(spark, lookup).select(*keys, *values)
    return made.where(reduce(lambda a, b: a & b, (F.col(one).isNotNull() for one in _keys(lookup))))


def cause_without_url(cause: str, lookup: Lookup) -> str:
    """An error text without the url of the database, which may have a password."""
    return cause.replace(lookup.jdbc, "its url") if lookup.jdbc else cause


def check_unique(table: DataFrame, lookup: Lookup) -> None:
    """Check that each key occurs once. Raises: LookupFailed, with a key that does not."""
    twice = table.groupBy(*_keys(lookup)).count().where("count > 1").limit(1).collect()
    if twice:
        *values, count = twice[0]
        shown = ", ".join(
            f"{name} = {value}" for name, value in zip(lookup.on.values(), values, strict=True)
        )
        raise LookupFailed(
            f"lookup {lookup.name}: the table has {count} rows with {shown}, which would double rows of the"
            " pipeline: remove all but one of them, or add a column to `on`"
        )


def read_table(spark: SparkSession, lookup: Lookup) -> DataFrame:
    """The whole table, with its own names. Raises: PySparkException."""
    if lookup.jdbc:
        options = {"url": lookup.jdbc, "dbtable": lookup.table, **lookup.options}
        return spark.read.format("jdbc").options(**options).load()
    given = {"header": "true"} if lookup.format == "csv" else {}
    reader = spark.read.format(lookup.format).options(**{**given, **lookup.options})
    return reader.load(literal(lookup.path))


def _joined(rows: DataFrame, lookup: Lookup, table: DataFrame) -> DataFrame:
    """The rows with the columns of a table, null without a match, and the lookup's flag."""
    pairs = zip(lookup.on, _keys(lookup), strict=True)
    matches = [F.col(quoted(ours)) == F.col(theirs) for ours, theirs in pairs]
    found = table.withColumn(lookup.flag, F.lit(True))
    made = rows.join(found, reduce(lambda a, b: a & b, matches), "left")
    kept = (*rows.columns, *lookup.columns, lookup.flag)
    return made.select(*(F.col(quoted(name)) for name in kept))


def _keys(lookup: Lookup) -> list[str]:
    return [_key(number) for number in range(len(lookup.on))]


def _key(number: int) -> str:
    return f"_key_{number}"
