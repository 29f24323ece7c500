"""Metrics of a running pipeline for Prometheus: `penstock pipeline run --metrics PORT`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.metrics.histogram import Histogram
from penstock.metrics.listener import BIND_DEFAULT, Answer, readiness
from penstock.metrics.text import CONTENT_TYPE, COUNTER, GAUGE, HISTOGRAM, Page
from penstock.metrics.threaded import ThreadedListener

if TYPE_CHECKING:
    from penstock.spark.pipeline.progress import BatchRecord
    from penstock.spark.source.offsets import Offset

    LagOf = Callable[[Offset], int | None]
    EndOf = Callable[[], Offset | None]

BATCH_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
LAG_SECONDS = 5.0  # between two looks
LAG_AGE_SECONDS_MAX = 30.0  # an older answer says nothing about now
LAG_STREAMS_MAX = 200  # each takes one request. With more, the lag is that of the last batch
CLOSE_SECONDS_MAX = 1.0


class LagWatch:
    """Asks the server how many entries wait, in a thread of its own, so that a scrape never waits for it.

    Before its first batch a query has no position. Then the entries count that came since the first look.
    """

    def __init__(self, lag_of: LagOf, end_now: EndOf, close: Callable[[], None]) -> None:
        """`lag_of` counts the entries after a position, `end_now` tells the end of the source, and `close`
        closes their connections. Only the thread calls them."""
        self._lag_of = lag_of
        self._end_now = end_now
        self._close = close
        self._begin: Offset | None = None
        self._lock = threading.Lock()
        self._ends: dict[str, Offset | None] = {}
        self._lags: dict[str, tuple[int | None, float]] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-lag", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop. If the server does not answer, the thread is left alone."""
        self._closing.set()
        self._thread.join(CLOSE_SECONDS_MAX)

    def expect(self, query: str) -> None:
        """Watch a query that has had no batch."""
        with self._lock:
            self._ends.setdefault(query, None)

    def note(self, query: str, record: BatchRecord) -> None:
        """Take the position after a batch, and its lag until the next look."""
        with self._lock:
            self._ends[query] = record.end
            self._lags[query] = record.lag, time.monotonic()

    def lag_or_none(self, query: str) -> int | None:
        """The entries that wait for a query, or None if unknown."""
        with self._lock:
            end = self._ends.get(query)
            lag, at = self._lags.get(query, (None, 0.0))
        is_told = end is not None and len(end.streams) > LAG_STREAMS_MAX
        return lag if is_told or time.monotonic() - at < LAG_AGE_SECONDS_MAX else None

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._look()
                self._closing.wait(LAG_SECONDS)
        finally:
            self._close()

    def _look(self) -> None:
        if self._begin is None:
            self._begin = self._end_now()
        with self._lock:
            ends = dict(self._ends)
        for query, end in ends.items():
            since = self._begin if end is None else end
            if self._closing.is_set() or since is None or len(since.streams) > LAG_STREAMS_MAX:
                continue
            lag = self._lag_of(since)
            with self._lock:
                if self._ends[query] is end:  # no batch in the meantime
                    self._lags[query] = lag, time.monotonic()


@dataclass(slots=True)
class _Output:
    """The figures of one output since the start. `last_s`: the end of its last batch, or the start."""

    query: str
    last: BatchRecord | None = None
    last_s: float = field(default_factory=time.time)
    read: int = 0
    rows: int = 0
    late: int = 0
    seconds: Histogram = field(default_factory=lambda: Histogram(BATCH_SECONDS))


class PipelineMetrics:
    """Takes the record of each batch; answers GET /metrics, /healthz and /readyz in a `with` block."""

    def __init__(
        self, pipeline: str, port: int, bind: str = BIND_DEFAULT, lags: LagWatch | None = None
    ) -> None:
        """Port 0 takes a free one. Without `lags`, a lag is that of the last batch.

        Raises: ConfigError if the port cannot be used.
        """
        self.waits_for = (
            "Spark is starting"  # what comes before the first batch; empty if it may come
        )
        self._pipeline = pipeline
        self._outputs: dict[str, _Output] = {}
        self._lock = threading.Lock()
        self._lags = lags

        async def metrics() -> Answer:
            return Answer(self.text(), content_type=CONTENT_TYPE)

        async def health() -> Answer:
            return Answer("ok\n")

        async def ready() -> Answer:
            return readiness([self.waits_for] if self.waits_for else [])

        routes = {"/metrics": metrics, "/healthz": health, "/readyz": ready}
        self._listener = ThreadedListener(routes, port, bind)
        self.port = self._listener.port

    def __enter__(self) -> PipelineMetrics:
        if self._lags is not None:
            self._lags.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        if self._lags is not None:
            self._lags.close()

    def begin(self, outputs: Mapping[str, str]) -> None:
        """The run begins, so batches may come. `outputs` has the query of each output."""
        self.waits_for = ""
        with self._lock:
            for name, query in outputs.items():
                self._outputs.setdefault(name, _Output(query))
                if self._lags is not None:
                    self._lags.expect(query)

    def take(self, record: BatchRecord) -> None:
        """Count a batch."""
        query = record.query or record.output
        with self._lock:
            output = self._outputs.setdefault(record.output, _Output(query))
            output.read += record.read
            output.rows += record.rows
            output.late += record.late
            output.last, output.last_s = record, time.time()
            output.seconds.note(record.seconds)
        if self._lags is not None:
            self._lags.note(query, record)

    def text(self) -> str:
        """The metrics now."""
        page = Page()
        read = page.family("penstock_pipeline_read_total", COUNTER, "Entries read.")
        rows = page.family("penstock_pipeline_written_total", COUNTER, "Rows written.")
        late = page.family("penstock_pipeline_late_total", COUNTER, "Groups that came too late.")
        lag = page.family("penstock_pipeline_lag", GAUGE, "Entries that wait for a batch now.")
        pending = page.family("penstock_pipeline_pending", GAUGE, "Pending entries of the group.")
        last = page.family(
            "penstock_pipeline_last_batch_timestamp_seconds",
            GAUGE,
            "End of the last batch; before the first one, start of the run.",
        )
        seconds = page.family("penstock_pipeline_batch_seconds", HISTOGRAM, "Time of a batch.")
        with self._lock:
            for name, output in self._outputs.items():
                labels = {"pipeline": self._pipeline, "output": name}
                read.add(output.read, **labels)
                rows.add(output.rows, **labels)
                late.add(output.late, **labels)
                waiting = self._lag_or_none(output)
                if waiting is not None:
                    lag.add(waiting, **labels)
                if output.last is not None and output.last.pending is not None:
                    pending.add(output.last.pending, **labels)
                last.add(output.last_s, **labels)
                seconds.add_histogram(output.seconds, **labels)
        return page.text()

    def _lag_or_none(self, output: _Output) -> int | None:
        """The entries that wait after a batch now, or what the batch told."""
        if self._lags is None:
            return None if output.last is None else output.last.lag
        return self._lags.lag_or_none(output.query)
