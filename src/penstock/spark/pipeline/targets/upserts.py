"""Writes the rows of silver to an upsert table: the batches of `main`, and what a new table has missed."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.lake.columns import quoted
from penstock.spark.lake.formats import TablePlace
from penstock.spark.lake.manifest import Manifest
from penstock.spark.lake.upsert import UpsertBatch, Upserts, UpsertWriter
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.shaping import UpsertTable
from penstock.spark.pipeline.positions import has_all, ids_of
from penstock.spark.pipeline.rows import frames
from penstock.spark.replay import archived
from penstock.spark.source.offsets import Offset


def upserts_of(table: UpsertTable) -> Upserts:
    """The definition of a table, as the lake needs it."""
    return Upserts(table.key, table.order_by, table.delete_when, table.buckets)


def silver_rows(spark: SparkSession, pipeline: Pipeline, place: TablePlace) -> DataFrame:
    """The rows of a silver table, with the columns that the file gives it. New ones are null."""
    rows = archived(spark, place)
    wanted = frames.silver(frames.no_rows(spark, pipeline), pipeline).schema
    return rows.select(
        *(
            F.col(quoted(one.name))
            if one.name in rows.columns
            else F.lit(None).cast(one.dataType).alias(one.name)
            for one in wanted
        )
    )


def upsert(
    folder: str, table: UpsertTable, rows: DataFrame, owners: Sequence[str], end: Offset
) -> int:
    """Write rows of silver up to a position, unless the table has them. Returns the keys written."""

    def is_done(newest: Manifest | None) -> bool:
        return newest is not None and has_all(newest.position, end)

    writer = UpsertWriter(folder, upserts_of(table))
    return writer.write(UpsertBatch(rows, owners, ids_of(end)), is_done)
