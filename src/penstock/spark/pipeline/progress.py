"""Progress reports: one record for each batch of each output.

Spark calls a listener for each batch, in a thread that must not block. The listener makes a record and passes
it on. The runner of the pipeline shows and publishes it.

The name of a query, PIPELINE/OUTPUT, makes it an output of a pipeline. Queries written in Python can be
watched in the same way:

    frame.writeStream.queryName("shop/orders")...
    spark.streams.addListener(ProgressListener("shop", print))
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import redis
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from penstock.errors import PenstockError
from penstock.spark.connection import PATIENT, Limits, Servers, StreamName, stream_of
from penstock.spark.place import Place
from penstock.spark.source.bounds import streams_of
from penstock.spark.source.offsets import Offset, OffsetError, parse_offset
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.stream_state import state_of

log = logging.getLogger(__name__)

METRIC = "penstock"  # the observed metric with the number of rows that a query writes
METRICS_ENTRIES_MAX = 10_000
ERROR_LENGTH_MAX = 1000
SOURCES_MAX = 20  # streams that a record names
# Each stream takes one request per batch. With more streams `pending` is not reported.
PENDING_STREAMS_MAX = 100
# The pause after a failure: a server that is down must not delay the pipeline.
RETRY_SECONDS = 10


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch. `lag`: entries after its end when it started. `late`: groups dropped after the watermark.

    `duplicates`: rows that [dedup] left out of silver.
    `query` is the query that wrote the output, and `source` its streams (`names_text`). `ends` are the last
    ids that were read from these streams, separated by commas.
    """

    pipeline: str
    output: str
    batch: int
    at: str
    read: int
    rows: int
    rows_per_second: float
    seconds: float
    lag: int | None = None
    pending: int | None = None
    late: int = 0
    duplicates: int = 0
    query: str = ""
    source: str = ""
    ends: str = ""
    end: Offset | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """All values except the offset."""
        names = (one for one in self.__slots__ if one != "end")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Ended:
    """A query has ended. `error` is Spark's error text if it failed."""

    output: str
    error: str = ""


class ProgressListener(StreamingQueryListener):
    """Calls `take` with a record for each batch of a pipeline, and `take_end` when a query ends."""

    def __init__(
        self,
        pipeline: str,
        take: Callable[[BatchRecord], None],
        take_end: Callable[[Ended], None] | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._take = take
        self._take_end = take_end
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Remember the name of a run: the other events have only its id."""
        if event.name and event.name.startswith(f"{self._pipeline}/"):
            self._names[str(event.runId)] = event.name.partition("/")[2]

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A batch is finished and in the checkpoint."""
        output = self._names.get(str(event.progress.runId))
        if output is not None:
            self._take(record_of(self._pipeline, output, event.progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """No new entries: nothing to report."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The query failed, was stopped, or has read all entries (AvailableNow)."""
        output = self._names.pop(str(event.runId), None)
        if output is not None and self._take_end is not None:
            self._take_end(Ended(output, event.exception or ""))


def counted(frame: DataFrame) -> DataFrame:
    """The frame, with a metric that counts the rows of its query."""
    return frame.observe(METRIC, F.count(F.lit(1)).alias("rows"))


def record_of(pipeline: str, output: str, progress: StreamingQueryProgress) -> BatchRecord:
    """The record of a progress report of Spark."""
    source = progress.sources[0]
    end = _offset_or_none(source.endOffset)
    observed = progress.observedMetrics.get(METRIC)
    seconds = progress.batchDuration / 1000
    streams = [] if end is None else list(end.streams.items())[:SOURCES_MAX]
    return BatchRecord(
        pipeline=pipeline,
        output=output,
        batch=progress.batchId,
        at=progress.timestamp,
        read=progress.numInputRows,
        rows=progress.numInputRows if observed is None else int(observed["rows"]),
        rows_per_second=round(progress.numInputRows / seconds, 1) if seconds else 0.0,
        seconds=seconds,
        lag=lag_or_none(end, _offset_or_none(source.latestOffset)),
        late=sum(one.numRowsDroppedByWatermark for one in progress.stateOperators),
        query=output,
        source=names_text([name for name, _ in streams]),
        ends=",".join(str(at.id) for _, at in streams),
        end=end,
    )


def names_text(names: list[str]) -> str:
    """Names separated by commas, or a JSON array if a name has a comma or is not UTF-8."""
    text = ",".join(names)
    is_plain = text.count(",") < max(len(names), 1) and not text.startswith("[")
    return text if is_plain and _is_utf8(text) else json.dumps(names)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def lag_or_none(end: Offset | None, latest: Offset | None) -> int | None:
    """The number of entries between two offsets, or None if unknown."""
    if end is None or latest is None:
        return None
    lag = 0
    for name, at in latest.streams.items():
        read = end.streams.get(name)
        if at.n is None or (read is not None and read.n is None):
            return None
        lag += max(0, at.n - (read.n or 0 if read is not None else 0))
    return lag


def _offset_or_none(text: str | None) -> Offset | None:
    try:
        given = json.loads(text or "null")
        return parse_offset(given) if isinstance(given, dict) else None
    except (ValueError, OffsetError):
        return None  # a source of another kind


class Metrics:
    """Adds the pending entries to records, and publishes records to a stream.

    A failure never stops the pipeline: the step is tried again after RETRY_SECONDS. Of the records that could
    not be published, the newest of each output is kept: without it, the dashboard would not know that its
    entries were read.
    """

    def __init__(self, place: Place, group: str, stream: str, limits: Limits = PATIENT) -> None:
        self._place = place
        self._group = group
        self._stream = stream
        self._servers = Servers(place, limits)
        self._unsent: dict[tuple[str, str], BatchRecord] = {}
        self._again_at = 0.0

    def complete(self, record: BatchRecord) -> BatchRecord:
        """Add the group's pending entries to a record, and publish it."""
        self._unsent[record.pipeline, record.output] = record
        return self.publish_unsent().get((record.pipeline, record.output), record)

    def publish_unsent(self) -> dict[tuple[str, str], BatchRecord]:
        """Publish the newest records that are not published yet. Returns them, completed."""
        found: dict[tuple[str, str], BatchRecord] = {}
        if time.monotonic() < self._again_at:
            return found
        try:
            for key, record in list(self._unsent.items()):
                found[key] = replace(record, pending=self.pending_or_none(record.end))
                self._publish(found[key])
                del self._unsent[key]
        except (redis.RedisError, OSError, LookupError) as error:
            log.warning("metrics: %s", error)
            self._again_at = time.monotonic() + RETRY_SECONDS
        return found

    def publish_failure(self, pipeline: str, output: str, error: str) -> None:
        """Publish that a pipeline was stopped by an error. The dashboard shows it until the next batch."""
        self._try_to_add(
            ["pipeline", pipeline, "output", output, "error", error[:ERROR_LENGTH_MAX]]
        )

    def publish_run(
        self, pipeline: str, what: Literal["started", "ended"], queries: Collection[str] = ()
    ) -> None:
        """Publish that a run starts or ends. The dashboard then knows which batches should come."""
        named = ["queries", ",".join(queries)] if queries else []
        self._try_to_add(["pipeline", pipeline, "run", what, *named])

    def _try_to_add(self, words: list[str]) -> None:
        try:
            self._add(words)
        except (redis.RedisError, OSError, LookupError) as problem:
            log.warning("metrics: %s", problem)

    def pending_or_none(self, offset: Offset | None) -> int | None:
        """The pending entries of the group."""
        if not self._group or offset is None or len(offset.streams) > PENDING_STREAMS_MAX:
            return None
        pending = 0
        for name in offset.streams:
            stream = stream_of(self._place, name)
            try:
                pending += int(self._servers.ask(stream, "XPENDING", stream.key, self._group)[0])
            except redis.ResponseError as error:
                if "NOGROUP" not in str(error):
                    raise
        return pending

    def lag_or_none(self, offset: Offset | None) -> int | None:
        """The number of entries after an offset now."""
        if offset is None:
            return None
        try:
            streams = {name: stream_of(self._place, name) for name in offset.streams}
            return lag_or_none(offset, self._end_of(streams))
        except (redis.RedisError, PenstockError, OSError, LookupError):
            return None

    def end_or_none(self, options: SourceOptions) -> Offset | None:
        """The end of all streams of a source now."""
        try:
            return self._end_of(streams_of(self._servers, options))
        except (redis.RedisError, PenstockError, OSError, LookupError):
            return None

    def _end_of(self, streams: Mapping[str, StreamName]) -> Offset:
        return Offset({name: state_of(self._servers, one).end for name, one in streams.items()})

    def close(self) -> None:
        """Close the connections."""
        self._servers.close()

    def _publish(self, record: BatchRecord) -> None:
        self._add(
            [
                word
                for name, value in record.to_json().items()
                if value is not None
                for word in (name, str(value))
            ]
        )

    def _add(self, fields: list[str]) -> None:
        if self._stream:
            key = self._stream.encode("utf-8", "surrogateescape")
            words = ("XADD", self._stream, "MAXLEN", "~", METRICS_ENTRIES_MAX, "*")
            self._servers.ask(StreamName(key), *words, *fields)
