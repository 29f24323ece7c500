"""Runs a pipeline: one streaming query for each output, watched from one thread.

Every query reads the source for itself and keeps its own place in it, so that an output that is slow, new
or deleted holds up no other, and a batch that is run again after a crash is the same batch. What Spark's
listener reports goes through one queue to the thread that called `run_pipeline`; there it is published,
shown and trimmed by, and there the first error stops all queries.

Trimming waits for the slowest: an entry goes when every output has it in a finished batch.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

import redis
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError
from penstock.spark.lake.archive import archive_writer
from penstock.spark.lake.lock import held
from penstock.spark.lake.trimming import trim_archived
from penstock.spark.pipeline.check import check_pipeline
from penstock.spark.pipeline.file import Pipeline, PipelineFileError
from penstock.spark.pipeline.outputs import Output, frame_of, note_state, outputs_of
from penstock.spark.pipeline.progress import BatchRecord, Ended, Metrics, ProgressListener, counted
from penstock.spark.pipeline.rules import CHECKPOINTS, lake_path
from penstock.spark.runtime.causes import cause_of
from penstock.spark.source.data_source import NAME, register
from penstock.spark.source.offsets import Offset

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
STARTS_MAX = 10
LAST_WORD_SECONDS_MAX = 30  # how long a query's last report may take after its end

# Spark gives a source's Python ten seconds to start, whatever the machine has to do.
_SLOW_START = "Timed out while waiting for the Python worker to connect back"
_STARTING = ("Initializing", "Getting offsets")

_SETTINGS = {
    # A row on which SQL fails, by a division or a cast, is a row for the rejects and no reason to stop.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # as in every other map of fields
    # Each output asks for news so often; Spark's 10 ms are for one query that has a machine to itself.
    "spark.sql.streaming.pollingDelay": "200ms",
}

Watch = Callable[[BatchRecord], None]


class PipelineFailed(PenstockError):
    """An output has failed, and all were stopped; a new run goes on where they were."""

    def __init__(self, output: str, cause: str) -> None:
        super().__init__(f"output {output}: {cause}")
        self.output = output


class PipelineRunning(PenstockError):
    """Another process runs this pipeline, or one with the same lake."""


class OutputError(PenstockError):
    """What went wrong while a batch was written, short enough to cross into Java and back."""


@dataclass(slots=True)
class OutputSummary:
    """What an output did in one run."""

    batches: int = 0
    read: int = 0
    rows: int = 0
    late: int = 0
    lag: int | None = None


@dataclass(slots=True)
class Summary:
    """What a run did, by output."""

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
    """Run until all there is has been read (`once`), or until `stop` is set.

    Raises: PipelineFileError, before anything runs; PipelineFailed, when an output fails.
    """
    session = pipeline_session(spark)
    problems = check_pipeline(pipeline, session)
    if problems:
        raise PipelineFileError(problems)
    # Two runs of one pipeline would write the same batches.
    busy = PipelineRunning(f"{pipeline.archive.path}: another run writes there")
    with held(lake_path(pipeline, CHECKPOINTS), busy):
        note_state(pipeline, session)
        try:
            return _Run(pipeline, session, once, watch).run(stop or threading.Event())
        finally:
            with suppress(Py4JError):  # Java may be what has ended
                note_state(pipeline, session)


def pipeline_session(spark: SparkSession) -> SparkSession:
    """A session of the same application with the settings of a pipeline; what the user has set stays."""
    session = spark.newSession()
    chosen = dict(spark.sparkContext.getConf().getAll())
    for name, value in _SETTINGS.items():
        session.conf.set(name, chosen.get(name, value))
    register(session)
    return session


class _Run:
    """One run, in the thread that waits for it."""

    def __init__(
        self, pipeline: Pipeline, spark: SparkSession, once: bool, watch: Watch | None
    ) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._once = once
        self._watch = watch
        self._outputs = outputs_of(pipeline)
        self._to_start = deque(self._outputs)
        self._starting: StreamingQuery | None = None
        self._starts = dict.fromkeys((one.name for one in self._outputs), 0)
        self._queries: dict[str, StreamingQuery] = {}
        self._silent_since: dict[str, float] = {}
        self._inbox: queue.SimpleQueue[BatchRecord | Ended] = queue.SimpleQueue()
        self._ends: dict[str, Offset] = {}
        self._summary = Summary(pipeline.name, {one.name: OutputSummary() for one in self._outputs})
        place = pipeline.source.place
        group = pipeline.source.options.get("group", "")
        self._metrics = Metrics(place, group, pipeline.metrics)
        self._trimmer = Trimmer(pipeline)

    def run(self, stop: threading.Event) -> Summary:
        """Start all, wait, stop all."""
        began = time.monotonic()
        listener = ProgressListener(self._pipeline.name, self._inbox.put, self._inbox.put)
        self._spark.streams.addListener(listener)
        try:
            self._wait(stop)
        finally:
            self._stop_all()
            self._spark.streams.removeListener(listener)
            self._metrics.close()
        self._summary.seconds = round(time.monotonic() - began, 3)
        return self._summary

    def _start_next(self) -> None:
        """One after the other: all at once they would take from each other the time that Spark gives them."""
        if self._starting is not None and _is_starting(self._starting):
            return
        self._starting = None
        if self._to_start:
            output = self._to_start.popleft()
            self._starts[output.name] += 1
            self._starting = self._queries[output.name] = self._query(output)

    def _query(self, output: Output) -> StreamingQuery:
        frame = counted(frame_of(self._spark, self._pipeline, output))
        writer = (
            frame.writeStream.queryName(f"{self._pipeline.name}/{output.name}")
            .outputMode("append")
            .option("checkpointLocation", output.checkpoint)
        )
        if self._once:
            writer = writer.trigger(availableNow=True)
        if output.folder:
            write = archive_writer(output.folder, output.partition_by)
            return writer.foreachBatch(_shortly(write)).start()
        options = {**self._pipeline.source.sink_login, "stream": output.stream}
        return writer.format(NAME).options(**options).start()

    def _wait(self, stop: threading.Event) -> None:
        """Until every query has said its last word, or one has failed, or it is enough."""
        running = {one.name for one in self._outputs}
        while running and not stop.is_set():
            self._start_next()
            word: BatchRecord | Ended | None
            try:
                word = self._inbox.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                word = self._unreported_or_none(running)
            if isinstance(word, BatchRecord):
                self._note(word)
            elif word is not None and not self._started_again(word):
                running.discard(word.output)
        self._sum_up()

    def _unreported_or_none(self, running: set[str]) -> Ended | None:
        """A query that ended some time ago without a word: Spark may lose a report."""
        waiting = {one.name for one in self._to_start}
        for name in running:
            query = self._queries.get(name)
            if query is None or name in waiting or query.isActive:
                self._silent_since.pop(name, None)
                continue
            since = self._silent_since.setdefault(name, time.monotonic())
            if time.monotonic() - since >= LAST_WORD_SECONDS_MAX:
                return Ended(name)
        return None

    def _started_again(self, end: Ended) -> bool:
        """Whether a query ended because it could not begin in time. Raises: PipelineFailed."""
        error = end.error or self._queries[end.output].exception()
        if not error:
            return False
        if _SLOW_START not in str(error) or self._starts[end.output] == STARTS_MAX:
            raise PipelineFailed(end.output, cause_of(error))
        log.info("output %s did not start in time: once more", end.output)
        self._to_start.append(next(one for one in self._outputs if one.name == end.output))
        return True

    def _note(self, record: BatchRecord) -> None:
        record = self._metrics.complete(record)
        mine = self._summary.outputs[record.output]
        mine.batches += 1
        mine.read += record.read
        mine.rows += record.rows
        mine.late += record.late
        mine.lag = record.lag
        if record.pending is not None:
            self._summary.pending = record.pending
        if record.end is not None:
            self._ends[record.output] = record.end
            self._summary.trimmed += self._trimmer.trim(self._ends, len(self._outputs))
        if self._watch is not None:
            self._watch(record)

    def _sum_up(self) -> None:
        while not self._inbox.empty():  # of batches that were finished when it was enough
            word = self._inbox.get()
            if isinstance(word, BatchRecord):
                self._note(word)
        for name, end in self._ends.items():
            self._summary.outputs[name].lag = self._metrics.lag_or_none(end)

    def _stop_all(self) -> None:
        for query in self._queries.values():
            try:
                query.stop()
            except (PySparkException, Py4JError) as error:
                log.warning("%s did not stop: %s", query.name, cause_of(error))


def _is_starting(query: StreamingQuery) -> bool:
    return query.isActive and query.status["message"].startswith(_STARTING)


class Trimmer:
    """Takes out of the source what every output has."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._place = pipeline.source.place
        self._mode = pipeline.archive.trim
        self._done: Offset | None = None

    def trim(self, ends: dict[str, Offset], outputs: int) -> int:
        """Trim up to the smallest end, once all outputs have one; how many entries went."""
        if self._mode == "never" or len(ends) < outputs:
            return 0
        safe = smallest(list(ends.values()))
        if safe == self._done:
            return 0
        try:
            gone = trim_archived(self._place, safe, cast(Literal["archived", "acked"], self._mode))
        except (redis.RedisError, OSError) as error:
            log.warning("trim: %s; tried again after the next batch", error)
            return 0
        self._done = safe
        return sum(gone.values())


def smallest(offsets: list[Offset]) -> Offset:
    """The streams that all of these have, each at the smallest position."""
    first, *others = offsets
    found = dict(first.streams)
    for other in others:
        found = {
            name: min(at, other.streams[name], key=lambda one: one.id)
            for name, at in found.items()
            if name in other.streams
        }
    return Offset(found)


def _shortly(write: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """The same, but its errors are one line: Spark matches their texts, and fails on long ones itself."""

    def act(frame: DataFrame, batch: int) -> None:
        try:
            write(frame, batch)
        except (PySparkException, Py4JError) as error:
            raise OutputError(cause_of(error)) from None

    return act


def summary_json(summary: Summary) -> dict[str, Any]:
    """A summary for JSON."""
    outputs = {
        name: {key: getattr(one, key) for key in one.__slots__}
        for name, one in summary.outputs.items()
    }
    head = {"pipeline": summary.pipeline, "seconds": summary.seconds, "pending": summary.pending}
    return {**head, "trimmed": summary.trimmed, "outputs": outputs}
