"""Metrics of a running pipeline for Prometheus: `penstock pipeline run --metrics PORT`."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.metrics.histogram import Histogram
from penstock.metrics.listener import BIND_DEFAULT, Answer, readiness
from penstock.metrics.text import CONTENT_TYPE, COUNTER, GAUGE, HISTOGRAM, Page
from penstock.metrics.threaded import ThreadedListener

if TYPE_CHECKING:
    from penstock.spark.pipeline.progress import BatchRecord

BATCH_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class _Output:
    """The figures of one output since the start."""

    def __init__(self) -> None:
        self.read = self.rows = self.late = 0
        self.lag: int | None = None
        self.pending: int | None = None
        self.seconds = Histogram(BATCH_SECONDS)


class PipelineMetrics:
    """Takes the record of each batch; answers GET /metrics, /healthz and /readyz in a `with` block."""

    def __init__(self, pipeline: str, port: int, bind: str = BIND_DEFAULT) -> None:
        """Port 0 takes a free one. Raises: ConfigError if the port cannot be used."""
        self.waits_for = (
            "Spark is starting"  # what comes before the first batch; empty if it may come
        )
        self._pipeline = pipeline
        self._outputs: dict[str, _Output] = {}
        self._lock = threading.Lock()

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
            output = self._outputs.setdefault(record.output, _Output())
            output.read += record.read
            output.rows += record.rows
            output.late += record.late
            output.lag, output.pending = record.lag, record.pending
            output.seconds.note(record.seconds)

    def text(self) -> str:
        """The metrics now."""
        page = Page()
        read = page.family("penstock_pipeline_read_total", COUNTER, "Entries read.")
        rows = page.family("penstock_pipeline_written_total", COUNTER, "Rows written.")
        late = page.family("penstock_pipeline_late_total", COUNTER, "Groups that came too late.")
        lag = page.family("penstock_pipeline_lag", GAUGE, "Entries after the last batch.")
        pending = page.family("penstock_pipeline_pending", GAUGE, "Pending entries of the group.")
        seconds = page.family("penstock_pipeline_batch_seconds", HISTOGRAM, "Time of a batch.")
        with self._lock:
            for name, output in self._outputs.items():
                labels = {"pipeline": self._pipeline, "output": name}
                read.add(output.read, **labels)
                rows.add(output.rows, **labels)
                late.add(output.late, **labels)
                if output.lag is not None:
                    lag.add(output.lag, **labels)
                if output.pending is not None:
                    pending.add(output.pending, **labels)
                seconds.add_histogram(output.seconds, **labels)
        return page.text()
