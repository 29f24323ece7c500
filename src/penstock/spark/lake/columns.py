"""Fits the columns of a batch to the columns of the lake.

Many readers assume that all files have the columns of the first one. So a column has the
same type in all files, and a batch without a column gets it with nulls. New columns are allowed: readers that
merge schemas by name see them at once, others after older files are compacted.

A batch with a narrower type is converted. For a wider type (column_types.py) a Parquet lake is rewritten
first (widening.py). Table formats take some changes by themselves: see TYPE_CHANGES.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructField, StructType

from penstock.spark.lake.column_types import (
    TypeConflict,
    TypeTest,
    converted,
    is_promoted,
    is_same,
    only_adds_fields,
    wider_field,
)
from penstock.spark.lake.formats import DELTA, ICEBERG, PARQUET
from penstock.spark.lake.manifest import ArchiveError

# Whether a table of this format gives older rows the new type by itself.
TYPE_CHANGES: Mapping[str, TypeTest] = {
    PARQUET: is_same,
    DELTA: only_adds_fields,
    ICEBERG: partial(only_adds_fields, simple=is_promoted),
}

DAY = "day"
TIMESTAMP = "_timestamp"
_DERIVED = "derived"  # in a column's metadata, and so in the schema of a manifest

# By arithmetic, because a cast to date would use the session's time zone. A row without a time, such as an id
# after the year 9999, gets the last day: pandas cannot read a directory of nulls next to directories of
# dates.
_DAY_OF_TIMESTAMP = (
    f"coalesce(date_from_unix_date(cast(floor(unix_seconds({TIMESTAMP}) / 86400) as int)),"
    " date'9999-12-31')"
)


def with_partitions(frame: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """Check the partition columns and add `day` if it is missing. Raises: ArchiveError."""
    for name in partition_by:
        if name.startswith(("_", ".")):
            raise ArchiveError(
                f"partition column {name}: readers skip directories that start with {name[0]!r}; rename"
                " the column"
            )
        if name in frame.columns:
            continue
        if name != DAY or TIMESTAMP not in frame.columns:
            source = f" and no {TIMESTAMP} to derive it from" if name == DAY else ""
            raise ArchiveError(
                f"partition column {name}: the frame has no such column{source}; its columns are"
                f" {', '.join(frame.columns)}"
            )
        frame = frame.withColumn(DAY, F.expr(_DAY_OF_TIMESTAMP)).withMetadata(DAY, {_DERIVED: True})
    if set(frame.columns) <= set(partition_by):
        raise ArchiveError("every column is a partition column: no column is left for the files")
    return frame


def is_derived(field: StructField) -> bool:
    """Whether `with_partitions` added the column."""
    return bool((field.metadata or {}).get(_DERIVED))


def fit(frame: DataFrame, known: Mapping[str, Any] | None, form: str = PARQUET) -> DataFrame:
    """The frame with the lake's columns in order, followed by new ones. Raises: ArchiveError."""
    if known is None:
        return frame
    there = StructType.fromJson(dict(known))
    own = {field.name.lower(): field for field in frame.schema}
    columns = []
    for field in there:
        mine = own.pop(field.name.lower(), None)
        if mine is None:
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        kind = wider_field(field, mine)
        if not TYPE_CHANGES[form](field.dataType, kind):
            new, old = mine.dataType.simpleString(), field.dataType.simpleString()
            raise TypeConflict((mine.name,), new, old)
        columns.append(_fitted(kind, mine))
    columns += [F.col(quoted(field.name)) for field in own.values()]
    return frame.select(*columns)


def merged_schema(known: Mapping[str, Any], made: StructType) -> StructType:
    """The lake's columns, each with the wider of both types, then new ones. Raises: ArchiveError."""
    own = {field.name.lower(): field for field in made}
    fields = []
    for field in StructType.fromJson(dict(known)):
        mine = own.pop(field.name.lower(), None)
        kind = field.dataType if mine is None else wider_field(field, mine)
        fields.append(StructField(field.name, kind, metadata=field.metadata))
    return StructType([*fields, *own.values()])


def has_other_types(known: Mapping[str, Any], schema: StructType) -> bool:
    """Whether a column has another type than in `schema`."""
    types = {field.name: field.dataType for field in schema}
    return any(
        field.name in types and not is_same(field.dataType, types[field.name])
        for field in StructType.fromJson(dict(known))
    )


def takes_types(known: Mapping[str, Any], schema: StructType, form: str) -> bool:
    """Whether a table of this format gives older rows the types of `schema` by itself."""
    types = {field.name: field.dataType for field in schema}
    return all(
        TYPE_CHANGES[form](field.dataType, types[field.name])
        for field in StructType.fromJson(dict(known))
        if field.name in types
    )


def _fitted(kind: DataType, mine: StructField) -> Column:
    column = F.col(quoted(mine.name))
    if is_same(kind, mine.dataType):
        return column
    return converted(column, mine.dataType, kind).alias(mine.name)


def data_schema(schema: Mapping[str, Any], partition_by: Sequence[str]) -> StructType:
    """The columns inside the files, without those in the names of directories."""
    whole = StructType.fromJson(dict(schema))
    return StructType([field for field in whole if field.name not in partition_by])


def quoted(name: str) -> str:
    """A column name in backquotes, so that Spark takes it literally."""
    return "`" + name.replace("`", "``") + "`"
