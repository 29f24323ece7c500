"""Computes the table and the checkpoint of an aggregate again, from the new silver.

A streaming query keeps its open windows as state in its checkpoint, and only a streaming query can write it.
So the work is divided at the watermark that the query would have after all rows of silver:

    windows that end at or before it    one Spark job writes them to the table
    rows of later windows               a streaming query reads them from a directory and keeps their windows

The query's first batch commits the closed windows. Then its checkpoint is changed to continue at the position
of bronze: the offsets of its directory are replaced by the offset of the source.

    CHECKPOINT/offsets/N    a version, then JSON: the watermark, and the offset of the source

Every valid row counts, also one that was too late for its window when it arrived.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.lake.archive import ArchiveWriter
from penstock.spark.lake.columns import quoted
from penstock.spark.lake.files import LakeFiles, write_parquet
from penstock.spark.pipeline.definition.file import Aggregate
from penstock.spark.pipeline.rows import frames
from penstock.spark.source.offsets import Offset

_WINDOW = "_window_of_row"


@dataclass(frozen=True, slots=True)
class NewAggregate:
    """Where the new version of an aggregate is built: its table, its checkpoint, a directory for rows."""

    aggregate: Aggregate
    partition_by: tuple[str, ...]
    table: str
    checkpoint: str
    feed: str


def build_windows(files: LakeFiles, rows: DataFrame, new: NewAggregate, offset: Offset) -> None:
    """Write the closed windows of valid rows to the table, and keep the open ones in the checkpoint."""
    spark, one = rows.sparkSession, new.aggregate
    watermark_ms = _watermark_ms(spark, rows, one)
    closed = windows_until(frames.windows(rows, one), watermark_ms)
    write_parquet(_rows_of_open_windows(rows, one, watermark_ms), new.feed, ())
    archive = ArchiveWriter(new.table, new.partition_by)

    def write(frame: DataFrame, batch: int) -> None:
        if (
            batch == 0
        ):  # no window closes in the first batch, but Spark must compute it to store its state
            frame.write.format("noop").mode("append").save()
        archive(frames.with_day(closed if batch == 0 else frame), batch)

    stream = spark.readStream.schema(rows.schema).parquet(new.feed)
    query = (
        frames.windows(stream, one)
        .writeStream.outputMode("append")
        .option("checkpointLocation", new.checkpoint)
        .trigger(availableNow=True)
        .foreachBatch(write)
        .start()
    )
    query.awaitTermination()
    continue_at(files, new.checkpoint, offset)
    files.delete(new.feed)


def windows_until(windows: DataFrame, watermark_ms: int) -> DataFrame:
    """The windows that are closed at a watermark."""
    return windows.where(F.col("window_end") <= F.lit(_moment(watermark_ms)))


def _rows_of_open_windows(rows: DataFrame, one: Aggregate, watermark_ms: int) -> DataFrame:
    """The rows of windows that end after a watermark."""
    with_window = rows.withColumn(_WINDOW, F.window(quoted(one.time), one.window))
    ends_later = F.col(_WINDOW)["end"] > F.lit(_moment(watermark_ms))
    return with_window.where(ends_later).drop(_WINDOW)


def _watermark_ms(spark: SparkSession, rows: DataFrame, one: Aggregate) -> int:
    """The watermark of a query that has read all rows, by Spark's own rule for the delay."""
    newest = rows.agg(F.max(F.unix_millis(F.col(quoted(one.time))))).collect()[0][0]
    java: Any = spark._jvm
    text = java.org.apache.spark.unsafe.types.UTF8String.fromString(one.watermark)
    delay = java.org.apache.spark.sql.catalyst.util.IntervalUtils.stringToInterval(text)
    logical = java.org.apache.spark.sql.catalyst.plans.logical
    return 0 if newest is None else max(0, newest - logical.EventTimeWatermark.getDelayMs(delay))


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def continue_at(files: LakeFiles, checkpoint: str, offset: Offset) -> None:
    """Let the query of a checkpoint continue at an offset of the source, after its last batch.

    Spark reads the offsets of the last two batches, so all batches get this one.
    """
    for name in files.names(f"{checkpoint}/offsets"):
        path = f"{checkpoint}/offsets/{name}"
        *head, _ = files.read(path).rstrip("\n").split("\n")
        files.create(path, "\n".join([*head, json.dumps(offset.to_json())]))
    files.delete(f"{checkpoint}/sources")
