"""Marks the duplicates of a batch, for [dedup].

Which rows are duplicates depends only on the batch and on silver before the batch, so a repeated batch gives
the same rows. Nothing else is stored:

    silver before the batch    rows up to the position at which the batch starts; of these, the keys of the
                               last `within`, counted back from that position, are in memory (recent_keys.py)
    the batch                  its valid rows; the driver collects their keys, SLICE_ROWS at a time

The first batch of a run reads the keys from silver. Later batches add theirs. If a batch does not follow the
one before, the keys are read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import reduce

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.core.stream_id import parse
from penstock.spark.lake.columns import DAY, TIMESTAMP, is_derived, quoted
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.formats import TablePlace
from penstock.spark.lake.manifest import load_newest_or_none
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import DUPLICATE, SILVER, lake_path
from penstock.spark.pipeline.definition.shaping import Dedup
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.id_filter import id_half, is_up_to
from penstock.spark.pipeline.rows.recent_keys import RecentKeys
from penstock.spark.replay import archived

SLICE_ROWS = 500_000
BROADCAST_ROWS_MAX = 500_000
YEAR_MAX_MS = 253_402_300_799_999

_SALT = "penstock"
_MS_MAX = 2**62  # ids may have 64 bits, and differences must fit into 64


class Duplicates:
    """Marks duplicates, batch after batch."""

    def __init__(self, pipeline: Pipeline, dedup: Dedup) -> None:
        self.found = 0
        self._pipeline = pipeline
        self._dedup = dedup
        self._keys = RecentKeys(dedup.within_ms)
        self._position: dict[str, str] | None = None

    def marked(
        self, rows: DataFrame, start: Mapping[str, str], end: Mapping[str, str]
    ) -> DataFrame:
        """The rows of a batch between two positions, with the column `_duplicate`: true or null."""
        if self._position is None or self._position != dict(start):
            self._load(rows, start)
        self._position = None  # if this batch fails, the keys are read again
        self._keys.forget_before(self._oldest_ms(start))
        valid = frames.silver(rows, self._pipeline)
        names = ("first", "second", "ms", "seq", "stream", "id")
        wanted = _hashed(valid, self._dedup.key).select(*names)
        parts = []
        with _slices(wanted, is_kept=False) as slices:
            for table in slices:
                found = table.take(self._keys.duplicates(table))
                parts.append(found.select(["stream", "id"]).rename_columns(["_stream", "_id"]))
        # Combined, because createDataFrame ignores everything after an empty chunk.
        dropped = pa.concat_tables(parts).combine_chunks()
        self.found = dropped.num_rows
        self._position = dict(end)
        if not self.found:
            return rows.withColumn(DUPLICATE, F.lit(None).cast("boolean"))
        marks = rows.sparkSession.createDataFrame(dropped).withColumn(DUPLICATE, F.lit(True))
        small = F.broadcast(marks) if self.found <= BROADCAST_ROWS_MAX else marks
        return rows.join(small, ["_stream", "_id"], "left").select(
            *(F.col(quoted(name)) for name in (*rows.columns, DUPLICATE))
        )

    def _load(self, rows: DataFrame, start: Mapping[str, str]) -> None:
        """Read the keys of silver before a batch."""
        self._keys = RecentKeys(self._dedup.within_ms)
        before = _silver_or_none(rows.sparkSession, lake_path(self._pipeline, SILVER))
        if before is None or set(self._dedup.key) - set(before.columns):
            return
        if start:
            before = _since(before, self._oldest_ms(start)).where(is_up_to(start))
        else:  # the first batch: a crash may have left it in silver
            before = before.join(rows.select("_stream", "_id"), ["_stream", "_id"], "left_anti")
        # A column may have got a wider type since then, which would change its hash.
        kinds = {field.name: field.dataType for field in rows.schema}
        casts = {name: F.col(quoted(name)).cast(kinds[name]) for name in self._dedup.key}
        keys = _hashed(before.withColumns(casts), self._dedup.key).select("first", "second", "ms")
        with _slices(keys, is_kept=True) as slices:
            for table in slices:
                self._keys.add(table)

    def _oldest_ms(self, start: Mapping[str, str]) -> int:
        newest = max((parse(one.encode()).ms for one in start.values()), default=0)
        return max(0, min(newest, _MS_MAX) - self._dedup.within_ms)


def _silver_or_none(spark: SparkSession, folder: str) -> DataFrame | None:
    files = LakeFiles(spark)
    newest = load_newest_or_none(files, files.qualify(folder))
    return None if newest is None else archived(spark, TablePlace(folder))


def _hashed(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """The keys as hashes, with id and time. A row with a null in its key is never a duplicate."""
    columns = [F.col(quoted(name)) for name in key]
    is_known = reduce(lambda a, b: a & b, (one.isNotNull() for one in columns))
    ms, seq = (id_half(number) for number in (0, 1))
    limit = F.lit(_MS_MAX)
    return rows.where(is_known).select(
        F.xxhash64(*columns).alias("first"),
        F.xxhash64(F.lit(_SALT), *columns).alias("second"),
        F.least(F.coalesce(ms.try_cast("bigint"), limit), limit).alias("ms"),
        seq.cast("decimal(20,0)").alias("seq"),
        F.col("_stream").alias("stream"),
        F.col("_id").alias("id"),
    )


def _since(silver: DataFrame, oldest_ms: int) -> DataFrame:
    """The rows that are not older. Directories of earlier days are not read."""
    if oldest_ms > YEAR_MAX_MS:
        return silver
    moment = datetime.fromtimestamp(oldest_ms / 1000, UTC)
    found = silver.where(F.col(TIMESTAMP).isNull() | (F.col(TIMESTAMP) >= F.lit(moment)))
    if not any(field.name == DAY and is_derived(field) for field in silver.schema):
        return found  # no such column, or one of the user
    first: date = moment.date()
    return found.where(F.col(DAY) >= F.lit(first))


@contextmanager
def _slices(keys: DataFrame, is_kept: bool) -> Iterator[Iterator[pa.Table]]:
    """The rows as Arrow tables of about SLICE_ROWS. All rows with one key are in the same table."""
    kept = keys.persist(StorageLevel.MEMORY_AND_DISK) if is_kept else keys
    try:
        count = max(1, -(-kept.count() // SLICE_ROWS))
        parts = (F.pmod("first", F.lit(count)) == number for number in range(count))
        yield (kept.where(part).toArrow() for part in parts)
    finally:
        if is_kept:
            kept.unpersist()
