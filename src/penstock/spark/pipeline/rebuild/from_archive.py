"""Computes silver and the aggregates again from bronze: `penstock pipeline run FILE --from-archive`.

    1  write silver from the entries of bronze, part by part, next to the old one
    2  from it, write the upsert tables, and each aggregate's table and checkpoint (windows.py)
    3  note which windows the aggregates' streams have
    4  swap in all new directories (swap.py)

The new tables have the position of bronze, so the queries continue with the entries after it. Streams are
outputs that others have read already: rejects are not sent again, and an aggregate's stream gets only the
windows after the last one it has.

Until step 4 nothing is changed, and a run that is killed is undone by the next one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.core.stream_id import parse
from penstock.errors import PenstockError
from penstock.spark.lake.archive import ArchiveWriter
from penstock.spark.lake.compaction import load_finished
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.formats import TablePlace
from penstock.spark.lake.lock import held
from penstock.spark.lake.manifest import DataFile, Lake, Manifest
from penstock.spark.pipeline.changes import Note
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.joining import note_windows
from penstock.spark.pipeline.outputs import (
    RULE_FILE,
    PipelineOutput,
    outputs_of,
    queries_of,
    rule_of,
)
from penstock.spark.pipeline.positions import Checkpoint, Ids
from penstock.spark.pipeline.rebuild.entries import archived_entries
from penstock.spark.pipeline.rebuild.swap import Swap, feed_of, new_of
from penstock.spark.pipeline.rebuild.windows import NewAggregate, build_windows
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.targets.batches import position_of
from penstock.spark.pipeline.targets.failed_sql import failed_measure, failed_sql
from penstock.spark.pipeline.targets.upserts import silver_rows, upsert
from penstock.spark.replay import archived, table_of_files
from penstock.spark.runtime.causes import cause_of
from penstock.spark.source.offsets import Offset, Position

PART_BYTES = 1 << 30  # of bronze, whose Parquet is compressed


class RebuildError(PenstockError):
    """The tables cannot be computed again. They are unchanged."""


def rebuild(
    pipeline: Pipeline, spark: SparkSession, note: Note, stop: threading.Event, files: LakeFiles
) -> None:
    """Compute silver and all aggregates of a pipeline again. Raises: RebuildError."""
    _Rebuild(pipeline, spark, note, stop, files).run()


def rebuilt_directories(pipeline: Pipeline, files: LakeFiles) -> list[str]:
    """The directories that are replaced: tables other than bronze, and the checkpoints of aggregates."""
    _bronze, *others = (output for output in outputs_of(pipeline) if output.folder)
    tables = [output.folder for output in others]
    checkpoints = [output.checkpoint for output in others if output.aggregate is not None]
    return [files.qualify(path) for path in (*tables, *checkpoints)]


class _Rebuild:
    def __init__(
        self,
        pipeline: Pipeline,
        spark: SparkSession,
        note: Note,
        stop: threading.Event,
        files: LakeFiles,
    ) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._note = note
        self._stop = stop
        self._files = files
        self._bronze, self._silver, *others = (
            output for output in outputs_of(pipeline) if output.folder
        )
        self._aggregates = [output for output in others if output.aggregate is not None]
        self._tables = [output for output in others if output.table is not None]

    def run(self) -> None:
        root = self._files.qualify(self._bronze.folder)
        if not self._files.exists(root):
            raise _no_archive(root)
        busy = RebuildError(f"{root}: a compaction is running; run the pipeline again after it")
        with held(root, busy):
            lake = load_finished(self._files, root)
            if lake.newest is None:
                raise _no_archive(root)
            position = position_of(lake.newest, Checkpoint(self._files, self._bronze.former))
            if not position:
                raise RebuildError(
                    f"{root} has no position in the source, because its former checkpoint"
                    f" {self._bronze.former} is missing: restore it"
                )
            directories = rebuilt_directories(self._pipeline, self._files)
            swap = Swap(self._files, self._pipeline)
            swap.discard(directories)
            self._write_silver(root, lake, position)
            for output in self._tables:
                self._go_on(f"{output.name}: finding the newest rows")
                self._write_table(output, lake.newest.query, self._offset(position))
            for output in self._aggregates:
                self._go_on(f"{output.name}: computing windows")
                self._write_aggregate(output, self._offset(position))
            note_windows(self._pipeline, self._spark)
            self._go_on("replacing the tables")
            swap.commit(directories)

    @property
    def _new_silver(self) -> str:
        return new_of(self._files.qualify(self._silver.folder))

    def _go_on(self, text: str) -> None:
        """Announce a step. Raises: RebuildError if the user has asked to stop."""
        if self._stop.is_set():
            raise RebuildError("stopped; the tables are unchanged")
        self._note(text)

    def _write_silver(self, root: str, lake: Lake, position: Ids) -> None:
        assert lake.newest is not None
        archive = ArchiveWriter(self._new_silver, self._silver.partition_by)
        parts = parts_of(lake.files)
        for number, part in enumerate(parts):
            self._go_on(f"silver: part {number + 1} of {len(parts)}")
            entries = archived_entries(self._entries(root, lake.newest, part), self._pipeline)
            self._write_part(archive, entries, lake.newest.query, position)

    def _write_part(
        self, archive: ArchiveWriter, entries: DataFrame, query: str, position: Ids
    ) -> None:
        members = frames.members_of(self._spark, self._pipeline)
        rows = frames.silver(frames.rows_of(entries, self._pipeline, members), self._pipeline)
        try:
            archive.append(rows, [query], position, lambda made, _newest: made)
        except (PySparkException, Py4JError) as error:
            raise _failure(error, failed_sql(self._pipeline, error, lambda: entries)) from None

    def _entries(self, root: str, newest: Manifest, part: Sequence[DataFile]) -> DataFrame:
        if not part:
            return self._spark.createDataFrame([], StructType.fromJson(dict(newest.schema)))
        return table_of_files(self._spark, root, newest, [file.path for file in part])

    def _write_table(self, output: PipelineOutput, query: str, offset: Offset) -> None:
        assert output.table is not None
        rows = silver_rows(self._spark, self._pipeline, TablePlace(self._new_silver))
        upsert(new_of(self._files.qualify(output.folder)), output.table, rows, [query], offset)

    def _write_aggregate(self, output: PipelineOutput, offset: Offset) -> None:
        assert output.aggregate is not None
        checkpoint = self._files.qualify(output.checkpoint)
        new = NewAggregate(
            output.aggregate,
            output.partition_by,
            table=new_of(self._files.qualify(output.folder)),
            checkpoint=new_of(checkpoint),
            feed=feed_of(checkpoint),
        )
        silver = archived(self._spark, TablePlace(self._new_silver))
        try:
            build_windows(self._files, silver, new, offset)
        except (PySparkException, Py4JError) as error:
            problem = failed_measure(self._pipeline, error, lambda: silver, output)
            raise _failure(error, problem) from None
        rule = rule_of(self._pipeline, self._spark, output.aggregate)
        self._files.write(f"{new.checkpoint}/{RULE_FILE}", json.dumps(rule))

    def _offset(self, position: Ids) -> Offset:
        """A position as an offset, with the number of entries where the query `main` knows it."""
        main = Checkpoint(self._files, queries_of(self._pipeline)[0].checkpoint)
        done = main.batch(main.committed)
        known = {} if done is None else done.end.streams
        ids = {name: parse(text.encode()) for name, text in position.items()}
        return Offset(
            {
                name: known[name] if name in known and known[name].id == one else Position(one)
                for name, one in ids.items()
            }
        )


def parts_of(files: Sequence[DataFile], limit: int = PART_BYTES) -> list[list[DataFile]]:
    """The files in order, in parts of about `limit` bytes. There is at least one part, which may be empty."""
    parts: list[list[DataFile]] = [[]]
    filled = 0
    for file in sorted(files, key=lambda one: one.path):
        if parts[-1] and filled + file.bytes > limit:
            parts.append([])
            filled = 0
        parts[-1].append(file)
        filled += file.bytes
    return parts


def _failure(error: Exception, problem: Problem | None) -> RebuildError:
    return RebuildError(f"{problem or cause_of(error)}; the tables are unchanged")


def _no_archive(root: str) -> RebuildError:
    return RebuildError(f"{root} has no batch yet: run the pipeline without --from-archive first")
