"""Runs a pipeline: the query `main` and one for each aggregate, all watched by one thread.

Each query reads the source on its own and has its own position. `main` writes bronze, silver and the rejects
from one read (targets/), so these advance together, as fast as the slowest of them. Reports of Spark's
listener go through a queue to the thread that called `run_pipeline`. That thread publishes and shows them,
trims the source, and stops all queries at the first error.

Trimming waits for the slowest query: an entry is removed when every query has it in a finished batch.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import redis
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError
from penstock.spark.lake.compaction import finish_compaction
from penstock.spark.lake.files import DEFAULT_SYSTEM, LakeFiles
from penstock.spark.lake.local_files import LOCAL
from penstock.spark.lake.lock import held
from penstock.spark.lake.trimming import trim_archived
from penstock.spark.pipeline.changes import Note, widen_silver
from penstock.spark.pipeline.check import check_pipeline
from penstock.spark.pipeline.definition.file import Pipeline, PipelineFileError
from penstock.spark.pipeline.definition.rules import (
    CHECKPOINTS,
    MAIN,
    RUNS,
    SILVER,
    lake_path,
)
from penstock.spark.pipeline.joining import Joined, join_outputs
from penstock.spark.pipeline.operate.history import RunHistory
from penstock.spark.pipeline.outputs import PipelineQuery, frame_of, note_state, queries_of
from penstock.spark.pipeline.progress import BatchRecord, Ended, Metrics, ProgressListener
from penstock.spark.pipeline.rebuild.from_archive import rebuild, rebuilt_directories
from penstock.spark.pipeline.rebuild.swap import Swap
from penstock.spark.pipeline.rows.functions import define_functions
from penstock.spark.pipeline.rows.silver_stream import TABLE_CHANGED
from penstock.spark.pipeline.targets.batches import BatchWrites
from penstock.spark.runtime.causes import cause_of
from penstock.spark.source.data_source import register
from penstock.spark.source.offsets import Offset

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
STARTS_MAX = 10
STARTING_MAX = 2  # each starts a Python process, which takes most of a core for a second
LAST_REPORT_SECONDS_MAX = 30  # how long to wait for the last report of a query that has ended

WRITERS = 8
ROW_GROUP_BYTES = 128 << 20  # Parquet's default

# Spark gives the Python worker of a source ten seconds to start, however busy the machine is.
_SLOW_START = "Timed out while waiting for the Python worker to connect back"
_PASSING = (_SLOW_START, TABLE_CHANGED)  # errors after which a query is started again
_STARTING = ("Initializing", "Getting offsets")

_SETTINGS = {
    # A row whose SQL fails, in a division or a cast, is rejected and does not stop the query.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # as in all other maps of fields
    # A task writes several partitions at once, instead of sorting all rows by partition first. It sorts the
    # rest if there are more partitions.
    "spark.sql.maxConcurrentOutputFileWriters": str(WRITERS),
    # Each writer keeps a row group: all of a task together keep as much as one does by default.
    "parquet.block.size": str(ROW_GROUP_BYTES // WRITERS),
    # The rows of a batch are kept for a few writes only: compressing them costs more than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # A path of a pipeline that has no scheme is on this machine, as the lock of the lake is.
    DEFAULT_SYSTEM: f"{LOCAL}///",
    # How often each output looks for new entries. Spark's 10 ms would keep several queries busy.
    "spark.sql.streaming.pollingDelay": "200ms",
}

Watch = Callable[[BatchRecord], None]


class PipelineFailed(PenstockError):
    """An output has failed, and all were stopped. A new run continues from the checkpoints."""

    def __init__(self, output: str, cause: str) -> None:
        super().__init__(f"output {output}: {cause}")
        self.output = output
        self.cause = cause


class PipelineRunning(PenstockError):
    """Another process runs this pipeline, or another one with the same lake."""


@dataclass(slots=True)
class OutputSummary:
    """The totals of an output in one run."""

    batches: int = 0
    read: int = 0
    rows: int = 0
    late: int = 0
    duplicates: int = 0
    lag: int | None = None


@dataclass(slots=True)
class Summary:
    """The totals of a run."""

    pipeline: str
    outputs: dict[str, OutputSummary]
    seconds: float = 0.0
    pending: int | None = None
    trimmed: int = 0


def run_pipeline(
    pipeline: Pipeline,
    spark: SparkSession,
    once: bool = False,
    watch: Watch | None = None,
    stop: threading.Event | None = None,
) -> Summary:
    """Run until all existing entries are read (`once`), or until `stop` is set.

    Raises: PipelineFileError, before anything runs; PipelineFailed, when an output fails.
    """
    session = pipeline_session(spark)
    files = LakeFiles(session)
    with _checked_and_held(pipeline, session, is_rebuilt=False):
        Swap(files, pipeline).discard(rebuilt_directories(pipeline, files))
        widen_silver(pipeline, session, log.info)
        note_state(pipeline, session)
        history = RunHistory(files, lake_path(pipeline, RUNS), once)
        try:
            with history.recorded():
                if pipeline.decides_rows and pipeline.aggregates:
                    finish_compaction(files, files.qualify(lake_path(pipeline, SILVER)))
                joined = join_outputs(pipeline, session)
                return _Run(joined, session, once, watch).run(stop or threading.Event(), history)
        finally:
            # Java may have ended, the disk may be full. The next run notes the state before it starts.
            with suppress(Py4JError, PenstockError):
                note_state(pipeline, session)


def rebuild_pipeline(
    pipeline: Pipeline,
    spark: SparkSession,
    note: Note | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Compute silver and the aggregates again from bronze. `run_pipeline` continues where bronze ends.

    `note` gets a line of text for each step.

    Raises: PipelineFileError, before anything runs; RebuildError, if the tables are unchanged.
    """
    session = pipeline_session(spark)
    with _checked_and_held(pipeline, session, is_rebuilt=True):
        wanted = stop or threading.Event()
        rebuild(pipeline, session, note or log.info, wanted, LakeFiles(session))


@contextmanager
def _checked_and_held(
    pipeline: Pipeline, session: SparkSession, is_rebuilt: bool
) -> Iterator[None]:
    """Check a pipeline and hold its lock. An interrupted swap is finished first.

    Two runs of one pipeline would write the same batches. Raises: PipelineFileError, PipelineRunning.
    """
    busy = PipelineRunning(f"{pipeline.archive.path}: another run is writing there")
    checkpoints = lake_path(pipeline, CHECKPOINTS)
    swap = Swap(LakeFiles(session), pipeline)
    if swap.is_interrupted:
        with held(checkpoints, busy):
            swap.finish()
    problems = check_pipeline(pipeline, session, is_rebuilt=is_rebuilt)
    if problems:
        raise PipelineFileError(problems)
    with held(checkpoints, busy):
        yield


def pipeline_session(spark: SparkSession) -> SparkSession:
    """A new session of the same application with the settings of a pipeline. The user's settings win."""
    session = spark.newSession()
    chosen = dict(spark.sparkContext.getConf().getAll())
    for name, value in _SETTINGS.items():
        session.conf.set(name, chosen.get(name, value))
    define_functions(session)
    register(session)
    return session


class _Run:
    """One run, in the thread that called `run_pipeline`."""

    def __init__(
        self, joined: Joined, spark: SparkSession, once: bool, watch: Watch | None
    ) -> None:
        pipeline = joined.pipeline
        self._joined = joined
        self._pipeline = pipeline
        self._spark = spark
        self._once = once
        self._watch = watch
        self._all = {one.name: one for one in queries_of(pipeline)}
        self._writes = {
            name: BatchWrites(joined.pipeline_of(one), one, joined.watermarks)
            for name, one in self._all.items()
        }
        self._running = set(self._all)
        self._to_start = deque(self._all.values())
        self._starting: list[StreamingQuery] = []
        self._starts = dict.fromkeys(self._all, 0)
        self._queries: dict[str, StreamingQuery] = {}
        self._silent_since: dict[str, float] = {}
        self._inbox: queue.SimpleQueue[BatchRecord | Ended] = queue.SimpleQueue()
        self._ends: dict[str, Offset] = {}
        outputs = [output.name for one in self._all.values() for output in one.outputs]
        self._summary = Summary(pipeline.name, {name: OutputSummary() for name in outputs})
        place = pipeline.source.place
        group = pipeline.source.options.get("group", "")
        self._metrics = Metrics(place, group, pipeline.metrics)
        self._trimmer = Trimmer(pipeline)

    def run(self, stop: threading.Event, history: RunHistory) -> Summary:
        """Start all queries, wait, stop them."""
        began = time.monotonic()
        for writes in self._writes.values():
            writes.begin(self._spark)
        history.outputs = self._summary.outputs
        listener = ProgressListener(self._pipeline.name, self._inbox.put, self._inbox.put)
        self._spark.streams.addListener(listener)
        self._metrics.publish_run(self._pipeline.name, "started", self._all)
        try:
            self._wait(stop, history)
            self._metrics.publish_run(self._pipeline.name, "ended")
        except PipelineFailed as error:
            self._metrics.publish_failure(self._pipeline.name, error.output, error.cause)
            raise
        finally:
            self._stop_all()
            self._spark.streams.removeListener(listener)
            self._metrics.close()
        self._summary.seconds = round(time.monotonic() - began, 3)
        return self._summary

    def _start_next(self) -> None:
        """Start a few queries at a time: all together could exceed Spark's time limit for a start."""
        self._starting = [one for one in self._starting if _is_starting(one)]
        for query in [one for one in self._to_start if not self._must_wait(one)]:
            if len(self._starting) == STARTING_MAX:
                return
            self._to_start.remove(query)
            self._starts[query.name] += 1
            self._queries[query.name] = self._start(query)
            self._starting.append(self._queries[query.name])

    def _must_wait(self, query: PipelineQuery) -> bool:
        """With `once`, an aggregate that reads silver starts when `main` has written all of it."""
        reads_silver = query.aggregate is not None and self._pipeline.decides_rows
        return self._once and reads_silver and MAIN in self._running

    def _start(self, query: PipelineQuery) -> StreamingQuery:
        writer = (
            frame_of(self._spark, self._joined.pipeline_of(query), query)
            .writeStream.queryName(f"{self._pipeline.name}/{query.name}")
            .outputMode("append")
            .option("checkpointLocation", query.checkpoint)
        )
        if self._once:
            writer = writer.trigger(availableNow=True)
        return writer.foreachBatch(self._writes[query.name]).start()

    def _wait(self, stop: threading.Event, history: RunHistory) -> None:
        """Handle reports until all queries have ended, one has failed, or the run must stop."""
        running = self._running
        while running and not stop.is_set() and not history.is_asked_to_stop():
            self._start_next()
            report: BatchRecord | Ended | None
            try:
                report = self._inbox.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                report = self._unreported_or_none(running)
                self._metrics.publish_unsent()
            if isinstance(report, BatchRecord):
                self._note(report)
            elif report is not None and not self._restarted(report):
                running.discard(report.output)
        history.is_stopped = bool(running)
        self._sum_up()

    def _unreported_or_none(self, running: set[str]) -> Ended | None:
        """A query that ended a while ago without a report: Spark may lose one."""
        waiting = {one.name for one in self._to_start}
        for name in running:
            query = self._queries.get(name)
            if query is None or name in waiting or query.isActive:
                self._silent_since.pop(name, None)
                continue
            since = self._silent_since.setdefault(name, time.monotonic())
            if time.monotonic() - since >= LAST_REPORT_SECONDS_MAX:
                return Ended(name)
        return None

    def _restarted(self, end: Ended) -> bool:
        """Restart a query that did not start in time; returns whether it did. Raises: PipelineFailed."""
        error = end.error or self._queries[end.output].exception()
        if not error:
            return False
        if not any(one in str(error) for one in _PASSING) or self._starts[end.output] == STARTS_MAX:
            raise PipelineFailed(self._writes[end.output].failed or end.output, cause_of(error))
        log.info("query %s is started again: %s", end.output, cause_of(error))
        self._to_start.append(self._all[end.output])
        return True

    def _note(self, report: BatchRecord) -> None:
        """Note a batch of a query, as a record for each of its outputs."""
        rows = self._writes[report.output].rows_of(report.batch)
        duplicates = self._writes[report.output].duplicates_of(report.batch)
        self._starts[report.output] = 0
        for output in self._all[report.output].outputs:
            record = replace(report, output=output.name, rows=rows.get(output.name, 0))
            if output.name == SILVER:
                record = replace(record, duplicates=duplicates)
            record = self._metrics.complete(record)
            mine = self._summary.outputs[record.output]
            mine.batches += 1
            mine.read += record.read
            mine.rows += record.rows
            mine.late += record.late
            mine.duplicates += record.duplicates
            mine.lag = record.lag
            if record.pending is not None:
                self._summary.pending = record.pending
            if self._watch is not None:
                self._watch(record)
        if report.end is not None:
            self._ends[report.output] = report.end
            self._summary.trimmed += self._trimmer.trim(self._ends, len(self._all))

    def _sum_up(self) -> None:
        while not self._inbox.empty():  # batches that finished before the stop
            report = self._inbox.get()
            if isinstance(report, BatchRecord):
                self._note(report)
        for name, end in self._ends.items():
            lag = self._metrics.lag_or_none(end)
            for output in self._all[name].outputs:
                self._summary.outputs[output.name].lag = lag

    def _stop_all(self) -> None:
        for query in self._queries.values():
            try:
                query.stop()
            except (PySparkException, Py4JError) as error:
                log.warning("%s did not stop: %s", query.name, cause_of(error))


def _is_starting(query: StreamingQuery) -> bool:
    return query.isActive and query.status["message"].startswith(_STARTING)


class Trimmer:
    """Trims entries from the source that every output has."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._place = pipeline.source.place
        self._mode = pipeline.archive.trim
        self._done: Offset | None = None

    def trim(self, ends: dict[str, Offset], outputs: int) -> int:
        """Trim up to the smallest end, once all outputs have one. Returns the entries removed."""
        if self._mode == "never" or len(ends) < outputs:
            return 0
        safe = smallest(list(ends.values()))
        if safe == self._done:
            return 0
        try:
            gone = trim_archived(self._place, safe, cast(Literal["archived", "acked"], self._mode))
        except (redis.RedisError, OSError) as error:
            log.warning("trim: %s; will try again after the next batch", error)
            return 0
        self._done = safe
        return sum(gone.values())


def smallest(offsets: list[Offset]) -> Offset:
    """The streams that all offsets have, each at its smallest position."""
    first, *others = offsets
    found = dict(first.streams)
    for other in others:
        found = {
            name: min(at, other.streams[name], key=lambda one: one.id)
            for name, at in found.items()
            if name in other.streams
        }
    return Offset(found)


def summary_json(summary: Summary) -> dict[str, Any]:
    """A summary for JSON."""
    outputs = {
        name: {key: getattr(one, key) for key in one.__slots__}
        for name, one in summary.outputs.items()
    }
    head = {"pipeline": summary.pipeline, "seconds": summary.seconds, "pending": summary.pending}
    return {**head, "trimmed": summary.trimmed, "outputs": outputs}
