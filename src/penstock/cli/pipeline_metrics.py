"""Metrics of a running pipeline for Prometheus: `penstock pipeline run --metrics PORT`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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

BATCH_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(slots=True)
class _Output:
    """The figures of one output since the start, and its last batch."""

    last: BatchRecord
    last_s: float = 0.0
    read: int = 0
    rows: int = 0
    late: int = 0
    seconds: Histogram = field(default_factory=lambda: Histogram(BATCH_SECONDS))


class PipelineMetrics:
    """Takes the record of each batch; answers GET /metrics, /healthz and /readyz in a `with` block."""

    def __init__(
        self, pipeline: str, port: int, bind: str = BIND_DEFAULT, lag_of: LagOf | None = None
    ) -> None:
        """Port 0 takes a free one. `lag_of` counts the entries after a position, in a thread of its own.

        Raises: ConfigError if the port cannot be used.
        """
        self.waits_for = (
            "Spark is starting"  # what comes before the first batch; empty if it may come
        )
        self._pipeline = pipeline
        self._outputs: dict[str, _Output] = {}
        self._lock = threading.Lock()
        self._lag_of = lag_of
        one_scrape = asyncio.Lock()

        async def metrics() -> Answer:
            async with one_scrape:  # a thread of its own asks the server
                return Answer(await asyncio.to_thread(self.text), content_type=CONTENT_TYPE)

        async def health() -> Answer:
            return Answer("ok\n")

        async def ready() -> Answer:
            return readiness([self.waits_for] if self.waits_for else [])

        routes = {"/metrics": metrics, "/healthz": health, "/readyz": ready}
        self._listener = ThreadedListener(routes, port, bind)
        self.port = self._listener.port

    def __enter__(self) -> PipelineMetrics:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    def take(self, record: BatchRecord) -> None:
        """Count a batch."""
        with self._lock:
            output = self._outputs.setdefault(record.output, _Output(record))
            output.read += record.read
            output.rows += record.rows
            output.late += record.late
            output.last, output.last_s = record, time.time()
            output.seconds.note(record.seconds)

    def text(self) -> str:
        """The metrics now. Asks the server how many entries wait."""
        page = Page()
        read = page.family("penstock_pipeline_read_total", COUNTER, "Entries read.")
        rows = page.family("penstock_pipeline_written_total", COUNTER, "Rows written.")
        late = page.family("penstock_pipeline_late_total", COUNTER, "Groups that came too late.")
        lag = page.family("penstock_pipeline_lag", GAUGE, "Entries that wait for a batch now.")
        pending = page.family("penstock_pipeline_pending", GAUGE, "Pending entries of the group.")
        last = page.family(
            "penstock_pipeline_last_batch_timestamp_seconds", GAUGE, "End of the last batch."
        )
        seconds = page.family("penstock_pipeline_batch_seconds", HISTOGRAM, "Time of a batch.")
        with self._lock:
            found = {name: replace(output) for name, output in self._outputs.items()}
        lags: dict[str, int | None] = {}  # outputs of one query wait for the same entries
        for name, output in found.items():
            labels = {"pipeline": self._pipeline, "output": name}
            read.add(output.read, **labels)
            rows.add(output.rows, **labels)
            late.add(output.late, **labels)
            query = output.last.query or name
            if query not in lags:
                lags[query] = self._lag_or_none(output.last)
            waiting = lags[query]
            if waiting is not None:
                lag.add(waiting, **labels)
            if output.last.pending is not None:
                pending.add(output.last.pending, **labels)
            last.add(output.last_s, **labels)
            seconds.add_histogram(output.seconds, **labels)
        return page.text()

    def _lag_or_none(self, last: BatchRecord) -> int | None:
        """The entries that wait after a batch now, or what the batch told."""
        if self._lag_of is None or last.end is None:
            return last.lag
        return self._lag_of(last.end)
