"""Fits the columns of a batch to the columns of the lake.

Many readers assume that all files have the columns of the first one. So a column never changes its type, and
a batch without a column gets it with nulls. New columns are allowed: readers that merge schemas by name see
them at once, others after older files are compacted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from penstock.spark.lake.manifest import ArchiveError

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


def fit(frame: DataFrame, known: Mapping[str, Any] | None) -> DataFrame:
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
        else:
            _check_same(field, mine)
            columns.append(F.col(quoted(mine.name)))
    columns += [F.col(quoted(field.name)) for field in own.values()]
    return frame.select(*columns)


def _check_same(there: StructField, mine: StructField) -> None:
    if there.name != mine.name:
        raise ArchiveError(
            f"column {mine.name}: the lake spells it {there.name}. Use that spelling, because some readers"
            " distinguish case and some do not"
        )
    old, new = there.dataType.simpleString(), mine.dataType.simpleString()
    if old != new:
        raise ArchiveError(
            f"column {mine.name} is {new}, but {old} in the lake: cast it to {old}, rename it, or archive"
            " into another directory. Nothing was written"
        )


def data_schema(schema: Mapping[str, Any], partition_by: Sequence[str]) -> StructType:
    """The columns inside the files, without those in the names of directories."""
    whole = StructType.fromJson(dict(schema))
    return StructType([field for field in whole if field.name not in partition_by])


def quoted(name: str) -> str:
    """A column name in backquotes, so that Spark takes it literally."""
    return "`" + name.replace("`", "``") + "`"
