"""Prepares a batch of `main` for its outputs: the columns of lookups, and the marks of duplicates.

rows      before the batch is kept in memory: joins lookups
marked    after that: marks duplicates, which needs the rows twice
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.lake.files import LakeFiles
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.outputs import PipelineQuery
from penstock.spark.pipeline.positions import Checkpoint, Ids, ids_of
from penstock.spark.pipeline.targets.duplicates import Duplicates
from penstock.spark.pipeline.targets.pinned_lookups import PinnedLookups


class Preparation:
    """Prepares the batches of one query. Batches of an aggregate need none."""

    def __init__(self, pipeline: Pipeline, query: PipelineQuery) -> None:
        is_main = query.aggregate is None
        self._pipeline = pipeline
        self._query = query
        self._has_lookups = is_main and bool(pipeline.lookups)
        self._lookups: PinnedLookups | None = None
        self._duplicates: Duplicates | None = None
        if is_main and pipeline.dedup is not None:
            self._duplicates = Duplicates(pipeline, pipeline.dedup)

    @property
    def duplicates(self) -> int:
        """The duplicates of the last batch."""
        return 0 if self._duplicates is None else self._duplicates.found

    def begin(self, spark: SparkSession) -> None:
        """Note which batches earlier runs have begun. Call it before the query starts."""
        if self._has_lookups and self._lookups is None:
            begun = Checkpoint(LakeFiles(spark), self._query.checkpoint).planned
            self._lookups = PinnedLookups(self._pipeline, begun)

    def rows(self, frame: DataFrame, batch: int) -> DataFrame:
        """The rows with all columns."""
        return frame if self._lookups is None else self._lookups.joined(frame, batch)

    def marked(self, rows: DataFrame, batch: int) -> DataFrame:
        """The rows, with duplicates marked."""
        if self._duplicates is None:
            return rows
        log = Checkpoint(LakeFiles(rows.sparkSession), self._query.checkpoint)
        start, end = log.batch(batch - 1), log.batch(batch)
        assert end is not None
        return self._duplicates.marked(
            rows, {} if start is None else ids_of(start.end), ids_of(end.end)
        )


def marked_once(pipeline: Pipeline, rows: DataFrame, start: Ids, end: Ids) -> DataFrame:
    """The rows after one position up to another, with duplicates marked."""
    if pipeline.dedup is None:
        return rows
    return Duplicates(pipeline, pipeline.dedup).marked(rows, start, end)
