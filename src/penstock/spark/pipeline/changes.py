"""Changes of a file between runs that the silver table can take.

a new column, a new field of a struct    null in older rows
a column that is gone                    null in new rows
a wider type                             the files are rewritten before the queries start
a narrower type                          new rows get the type of the table
any other type                           refused; --from-archive computes the table again

Delta and Iceberg tables take new columns and new fields, and are not computed again. Iceberg takes the wider
types that its readers find in older files (column_types.py), Delta takes none.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from penstock.spark.lake.column_types import TypeConflict
from penstock.spark.lake.columns import merged_schema, takes_types, with_partitions
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.formats import PARQUET
from penstock.spark.lake.manifest import ArchiveError, Manifest
from penstock.spark.lake.widening import widen
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import SILVER, lake_path
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.rows import frames

Note = Callable[[str], None]


def remedy(pipeline: Pipeline) -> str:
    """What to do about a change that a table cannot take."""
    if pipeline.archive.format != PARQUET:
        return "archive into another directory"
    return (
        f"compute it again from the archive: penstock pipeline run {pipeline.file} --from-archive"
    )


def silver_schema(pipeline: Pipeline, spark: SparkSession) -> StructType:
    """The columns that the file gives silver."""
    made = frames.silver(frames.no_rows(spark, pipeline), pipeline)
    return with_partitions(made, pipeline.archive.partition_by).schema


def column_problems(pipeline: Pipeline, spark: SparkSession, newest: Manifest) -> list[Problem]:
    """Columns of silver with types that do not go with those of the table, each at its line."""
    found = []
    for field in silver_schema(pipeline, spark):
        try:
            made = merged_schema(newest.schema, StructType([field]))
            form = pipeline.archive.format
            if form != PARQUET and not takes_types(newest.schema, made, form):
                raise _wider(pipeline, newest, field)
        except TypeConflict as error:
            text = (
                f"column {'.'.join(error.path)} is {error.new}, but {error.old} in silver: use {error.old} or"
                f" another name, or {remedy(pipeline)}"
            )
            found.append(pipeline.problem(_key_of(pipeline, error.path), text))
        except ArchiveError as error:
            found.append(pipeline.problem(_key_of(pipeline, (field.name,)), str(error)))
    return found


def _wider(pipeline: Pipeline, newest: Manifest, field: StructField) -> ArchiveError:
    old = StructType.fromJson(dict(newest.schema))[field.name].dataType.simpleString()
    return ArchiveError(
        f"column {field.name} is {field.dataType.simpleString()}, but {old} in silver, and a table in the"
        f" format {pipeline.archive.format} does not take this type: use {old} or another name, or"
        f" {remedy(pipeline)}"
    )


def _key_of(pipeline: Pipeline, path: tuple[str, ...]) -> KeyPath:
    """The key that gives a column, or a part of it, its type."""
    column = path[0]
    if pipeline.payload is not None and column == pipeline.payload.field:
        return ("payload", "schema", *path[1:2])
    return ("columns" if column in pipeline.columns else "schema", column)


def widen_silver(pipeline: Pipeline, spark: SparkSession, note: Note) -> None:
    """Rewrite the files of silver if the file gives a column a wider type."""
    if pipeline.archive.format != PARQUET:
        return

    def on_bytes(done: int, total: int, _files: int) -> None:
        note(f"silver: {done * 100 // max(total, 1)}% rewritten with wider types")

    folder = lake_path(pipeline, SILVER)
    widen(LakeFiles(spark), spark, folder, silver_schema(pipeline, spark), on_bytes)
