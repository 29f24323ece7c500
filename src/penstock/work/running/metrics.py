"""Metrics of a worker for Prometheus, and its health checks."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from penstock.metrics.listener import BIND_DEFAULT, Answer, readiness
from penstock.metrics.text import CONTENT_TYPE, COUNTER, GAUGE, HISTOGRAM, Page
from penstock.metrics.threaded import ThreadedListener

if TYPE_CHECKING:
    from penstock.work.running.worker import Worker


def text_of(worker: Worker) -> str:
    """The metrics now."""
    page = Page()
    outcomes = page.family("penstock_work_outcomes_total", COUNTER, "Attempts by their outcome.")
    for stream, outcome, count in worker.outcome_counts():
        outcomes.add(count, stream=stream, outcome=outcome)
    held = page.family("penstock_work_held", GAUGE, "Entries that this worker holds.")
    for stream, count in worker.held_counts():
        held.add(count, stream=stream)
    seconds = page.family("penstock_work_attempt_seconds", HISTOGRAM, "Time of attempts.")
    for stream, histogram in worker.durations():
        seconds.add_histogram(histogram, stream=stream)
    return page.text()


class MetricsServer:
    """Answers GET /metrics, /healthz and /readyz until it is closed."""

    def __init__(self, worker: Worker, port: int, bind: str = BIND_DEFAULT) -> None:
        """Raises: ConfigError if the port is in use."""

        async def metrics() -> Answer:
            return Answer(text_of(worker), content_type=CONTENT_TYPE)

        async def health() -> Answer:
            problems = worker.problems()
            if problems:
                return Answer("\n".join([*problems, ""]), HTTPStatus.SERVICE_UNAVAILABLE)
            return Answer("ok\n")

        async def ready() -> Answer:
            return readiness(worker.reasons_not_ready())

        routes = {"/metrics": metrics, "/healthz": health, "/readyz": ready}
        self._listener = ThreadedListener(routes, port, bind)
        self.port = self._listener.port

    def close(self) -> None:
        self._listener.close()
