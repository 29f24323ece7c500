"""Writes the batches of a pipeline's queries to their targets.

    main         one read and one persisted batch: bronze, silver, reject, upsert tables
    NAME         the windows that closed in a batch: the table, and the stream if there is one

Targets are written one after the other, so a slow one holds up the others of its query. After a crash Spark
repeats the batch, and each target knows what it has:

    bronze, silver    the position in the newest manifest or commit: a batch at or below it is dropped
    TABLE             the same
    reject            the number of the batch beside the stream, which stands for its end in the checkpoint
    NAME              the number of the batch in the newest manifest or commit
    NAME.stream       the number of the batch beside the stream; and the watermark where it joined the query
    [[output]]        a record in the database; a function gets a repeated batch again (sections.py)

joining.py has brought all outputs of a query to the same position, so each has a whole batch or nothing of
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.formats import TablePlace, TableWriting
from penstock.spark.lake.manifest import Manifest
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import BRONZE, SILVER, lake_path
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.outputs import PipelineOutput, PipelineQuery, table_of
from penstock.spark.pipeline.positions import Checkpoint, Ids, after, has_all, ids_of
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.id_filter import between
from penstock.spark.pipeline.targets.failed_sql import failed_measure, failed_sql
from penstock.spark.pipeline.targets.output_error import OutputError
from penstock.spark.pipeline.targets.preparing import Preparation
from penstock.spark.pipeline.targets.sections import section_write
from penstock.spark.pipeline.targets.upserts import silver_rows, upsert
from penstock.spark.runtime.causes import cause_of
from penstock.spark.source.data_source import NAME
from penstock.spark.source.offsets import Offset

Write = Callable[[DataFrame, int], int]


class BatchWrites:
    """The function for foreachBatch of one query. Notes the rows of each output, and the one that failed."""

    def __init__(
        self, pipeline: Pipeline, query: PipelineQuery, watermarks: Mapping[str, int | None]
    ) -> None:
        self.failed = ""
        self._pipeline = pipeline
        self._query = query
        self._preparation = Preparation(pipeline, query)
        self._rows: dict[int, dict[str, int]] = {}
        self._duplicates: dict[int, int] = {}
        self._writes = {
            output.name: _write_of(pipeline, query, output, watermarks) for output in query.outputs
        }

    def begin(self, spark: SparkSession) -> None:
        """Call it once, before the query starts."""
        self._preparation.begin(spark)

    def duplicates_of(self, batch: int) -> int:
        """The duplicates of a batch. Forgets it."""
        return self._duplicates.pop(batch, 0)

    def rows_of(self, batch: int) -> dict[str, int]:
        """The rows that a batch wrote to each output. Forgets the batches before it."""
        found = self._rows.get(batch, {})
        for number in [one for one in self._rows if one <= batch]:
            del self._rows[number]
        return found

    def __call__(self, frame: DataFrame, batch: int) -> None:
        # With several targets the batch is read, decoded and aggregated once.
        is_kept = len(self._writes) > 1
        rows = {}
        self.failed = self._query.name
        kept = None
        try:
            made = self._preparation.rows(frame, batch)
            kept = made.persist(StorageLevel.MEMORY_AND_DISK) if is_kept else made
            marked = self._preparation.marked(kept, batch)
            for name, write in self._writes.items():
                self.failed = name
                rows[name] = write(marked, batch)
            self.failed = ""
        except (PySparkException, Py4JError) as error:
            problem = self._failed_sql(error, frame.sparkSession, batch)
            raise OutputError(str(problem or cause_of(error))) from None
        finally:
            if is_kept and kept is not None:
                kept.unpersist()
        self._rows[batch] = rows
        self._duplicates[batch] = self._preparation.duplicates

    def _failed_sql(self, error: Exception, spark: SparkSession, batch: int) -> Problem | None:
        """The SQL of the file that is the cause of an error."""
        pipeline, table = self._pipeline, self._query.outputs[0]

        def bounds() -> tuple[Ids, Ids]:
            log = Checkpoint(LakeFiles(spark), self._query.checkpoint)
            before, planned = log.batch(batch - 1), log.batch(batch)
            assert planned is not None
            return {} if before is None else ids_of(before.end), ids_of(planned.end)

        def entries() -> DataFrame:
            since, until = bounds()
            return frames.stored_entries(spark, pipeline, after(since), until)

        def silver() -> DataFrame:
            place = TablePlace(lake_path(pipeline, SILVER))
            return between(silver_rows(spark, pipeline, place), *bounds())

        if table.aggregate is None or not pipeline.decides_rows:
            return failed_sql(pipeline, error, entries, table)
        return failed_measure(pipeline, error, silver, table)


def _write_of(
    pipeline: Pipeline,
    query: PipelineQuery,
    output: PipelineOutput,
    watermarks: Mapping[str, int | None],
) -> Write:
    if output.section is not None:
        return _section_write(pipeline, query, output, watermarks)
    if output.aggregate is None:
        make = _table_write if output.folder else _reject_write
        return make(pipeline, query, output)
    if output.folder:
        return _gold_write(pipeline, output)
    return _windows_write(pipeline, query, output, watermarks[output.name])


def _section_write(
    pipeline: Pipeline,
    query: PipelineQuery,
    output: PipelineOutput,
    watermarks: Mapping[str, int | None],
) -> Write:
    if output.aggregate is None:
        return section_write(pipeline, query, output, lambda frame: frames.silver(frame, pipeline))
    after_ms = watermarks[output.name]
    return section_write(pipeline, query, output, lambda frame: windows_after(frame, after_ms))


def _table_write(pipeline: Pipeline, query: PipelineQuery, output: PipelineOutput) -> Write:
    archive = table_of(pipeline, output).writer(output.partition_by)

    def write(frame: DataFrame, batch: int) -> int:
        files = LakeFiles(frame.sparkSession)
        log = Checkpoint(files, query.checkpoint)
        now = log.batch(batch)
        assert now is not None
        owners = [one for one in (log.query, *former_queries(files, query)) if one is not None]
        if output.table is not None:
            rows = frames.silver(frame, pipeline)
            return upsert(output.folder, output.table, rows, owners, now.end)
        return add_to_table(archive, pipeline, output, TableBatch(frame, owners, now.end))

    return write


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Rows for a table, the queries that may own it, and the position after the rows."""

    rows: DataFrame
    owners: list[str]
    end: Offset


def add_to_table(
    archive: TableWriting, pipeline: Pipeline, output: PipelineOutput, batch: TableBatch
) -> int:
    """Archive a batch in bronze or silver, unless the table has it. Returns the number of rows."""
    former = Checkpoint(LakeFiles(batch.rows.sparkSession), output.former)

    def left(rows: DataFrame, newest: Manifest | None) -> DataFrame | None:
        if has_all(position_of(newest, former), batch.end):
            return None
        return frames.bronze(rows) if output.name == BRONZE else frames.silver(rows, pipeline)

    return archive.append(batch.rows, batch.owners, ids_of(batch.end), left)


def former_queries(files: LakeFiles, query: PipelineQuery) -> list[str]:
    """The ids of the queries that the outputs had for themselves."""
    found = (Checkpoint(files, output.former).query for output in query.outputs)
    return [one for one in found if one is not None]


def position_of(newest: Manifest | None, former: Checkpoint) -> Ids:
    """The position of a table. One that a query of its own wrote has it in the checkpoint of that query."""
    if newest is None or newest.position:
        return {} if newest is None else newest.position
    logged = former.batch(newest.batch) if newest.query == former.query else None
    return {} if logged is None else ids_of(logged.end)


def _reject_write(pipeline: Pipeline, query: PipelineQuery, output: PipelineOutput) -> Write:
    def write(frame: DataFrame, batch: int) -> int:
        log = Checkpoint(LakeFiles(frame.sparkSession), query.checkpoint)
        rows = frames.rejects(frame, pipeline)
        return append(pipeline, output.stream, rows, str(log.query), batch)

    return write


def _gold_write(pipeline: Pipeline, output: PipelineOutput) -> Write:
    archive = table_of(pipeline, output).writer(output.partition_by)

    def write(frame: DataFrame, batch: int) -> int:
        archive(frames.with_day(frame), batch)
        return archive.rows

    return write


def _windows_write(
    pipeline: Pipeline, query: PipelineQuery, output: PipelineOutput, watermark_ms: int | None
) -> Write:
    def write(frame: DataFrame, batch: int) -> int:
        log = Checkpoint(LakeFiles(frame.sparkSession), query.checkpoint)
        rest = windows_after(frame, watermark_ms)
        return append(pipeline, output.stream, rest, str(log.query), batch)

    return write


def windows_after(frame: DataFrame, watermark_ms: int | None) -> DataFrame:
    """The windows that close after a watermark."""
    if watermark_ms is None:
        return frame
    moment = datetime.fromtimestamp(watermark_ms / 1000, UTC)
    return frame.where(F.col("window_end") > F.lit(moment))


def append(
    pipeline: Pipeline, stream: str, frame: DataFrame, write_id: str, number: int = 1
) -> int:
    """Append rows to a stream, once for each number of a write. Returns how many rows there are."""
    counted = Observation()
    writer = frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.format(NAME)
    writer = writer.mode("append").options(**pipeline.source.sink_login).option("stream", stream)
    writer.option("writeId", write_id).option("writeNumber", number).save()
    return int(counted.get["rows"])
