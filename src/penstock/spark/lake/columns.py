"""Columns of a lake: what a batch brings, against what is there already.

Plain readers take the columns of one file for those of all. So a column keeps its type for ever, and a
batch that lacks one gets it, full of nulls. A new column is taken: who reads the union by name sees it at
once, others when older files are compacted.
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

# By arithmetic, for a date of Spark's own would be that of the session's time zone. What has no time, as an
# id beyond the year 9999, gets the last day: pandas reads no directory of nulls beside one of dates.
_DAY_OF_TIMESTAMP = (
    f"coalesce(date_from_unix_date(cast(floor(unix_seconds({TIMESTAMP}) / 86400) as int)),"
    " date'9999-12-31')"
)


def with_partitions(frame: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """The frame with the columns that it is partitioned by. Raises: ArchiveError."""
    for name in partition_by:
        if name.startswith(("_", ".")):
            raise ArchiveError(
                f"partition column {name}: readers skip directories that begin with {name[0]!r}; give"
                " it another name"
            )
        if name in frame.columns:
            continue
        if name != DAY or TIMESTAMP not in frame.columns:
            source = f" and no {TIMESTAMP} to make it of" if name == DAY else ""
            raise ArchiveError(
                f"partition column {name}: the frame has no such column{source}; its columns are"
                f" {', '.join(frame.columns)}"
            )
        frame = frame.withColumn(DAY, F.expr(_DAY_OF_TIMESTAMP)).withMetadata(DAY, {_DERIVED: True})
    if set(frame.columns) <= set(partition_by):
        raise ArchiveError("every column is a partition: nothing is left to write into files")
    return frame


def is_derived(field: StructField) -> bool:
    """Whether a column was made of others here, and did not come with the rows."""
    return bool((field.metadata or {}).get(_DERIVED))


def fit(frame: DataFrame, known: Mapping[str, Any] | None) -> DataFrame:
    """The frame with the lake's columns in their order, then its new ones. Raises: ArchiveError."""
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
            f"column {mine.name}: the lake has it as {there.name}; spell it so, for some readers tell"
            " them apart and some do not"
        )
    old, new = there.dataType.simpleString(), mine.dataType.simpleString()
    if old != new:
        raise ArchiveError(
            f"column {mine.name} is {new} now, and {old} in the lake: cast it to {old}, give it another"
            " name, or archive into another directory; nothing was written"
        )


def data_schema(schema: Mapping[str, Any], partition_by: Sequence[str]) -> StructType:
    """The columns that are in the files, and not in the names of directories."""
    whole = StructType.fromJson(dict(schema))
    return StructType([field for field in whole if field.name not in partition_by])


def quoted(name: str) -> str:
    """A column's name as Spark takes it literally."""
    return "`" + name.replace("`", "``") + "`"
