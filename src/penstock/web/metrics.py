"""Metrics of the dashboard for Prometheus: `penstock ui --metrics PORT`.

They are served on a port of their own, without the password of the dashboard, and by default only on this
machine.
"""

from __future__ import annotations

import logging
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.metrics.histogram import Histogram
from penstock.metrics.listener import Answer, HttpListener, listening_socket, readiness
from penstock.metrics.text import CONTENT_TYPE, COUNTER, GAUGE, HISTOGRAM, Page
from penstock.web.board import Board
from penstock.web.http.auth import App, Message, Receive, Scope, Send
from penstock.web.watch.thresholds import BAD, WARN

_PAGE_BYTES = resource.getpagesize()
_LOG = logging.getLogger("penstock.web")


class Requests:
    """The requests that were answered."""

    def __init__(self) -> None:
        self.codes: Counter[int] = Counter()
        self.seconds = Histogram()


class RequestCounter:
    """ASGI middleware that counts requests. A websocket is no request."""

    def __init__(self, app: App, requests: Requests) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._requests.codes[message["status"]] += 1
                self._requests.seconds.note(time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, send_counted)


class DashboardMetrics:
    """What a scrape returns. `open_pages` counts pages with and without a websocket."""

    def __init__(self, boards: Sequence[Board], open_pages: Callable[[], tuple[int, int]]) -> None:
        self._boards = boards
        self._open_pages = open_pages
        self._started = time.monotonic()
        self._listener: HttpListener | None = None
        self.requests = Requests()

    async def listen(self, port: int, bind: str) -> None:
        """Answer on a port. Raises: OSError if it is in use."""
        routes = {"/metrics": self._metrics, "/healthz": self._health, "/readyz": self._ready}
        self._listener = HttpListener(routes, _log_error)
        await self._listener.start([listening_socket(port, bind)])

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _metrics(self) -> Answer:
        return Answer(self.text(), content_type=CONTENT_TYPE)

    async def _health(self) -> Answer:
        return Answer("ok\n")

    async def _ready(self) -> Answer:
        """503 and one line for each server that does not answer."""
        down = [f"{one.name}: {one.health.problem}" for one in self._boards if one.health.problem]
        return readiness(down)

    def text(self) -> str:
        """The metrics now."""
        page = Page()
        page.gauge(
            "penstock_ui_uptime_seconds",
            "Time since the start.",
            round(time.monotonic() - self._started, 3),
        )
        page.gauge("penstock_ui_memory_bytes", "Resident memory.", resident_bytes())
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu = page.family("penstock_ui_cpu_seconds_total", COUNTER, "CPU time.")
        cpu.add(used.ru_utime, mode="user")
        cpu.add(used.ru_stime, mode="system")
        connected, waiting = self._open_pages()
        pages = page.family("penstock_ui_pages", GAUGE, "Pages in memory.")
        pages.add(connected, state="connected")
        pages.add(waiting, state="waiting")
        requests = page.family("penstock_ui_requests_total", COUNTER, "Requests by status code.")
        for code, count in sorted(self.requests.codes.items()):
            requests.add(count, code=str(code))
        page.family(
            "penstock_ui_request_seconds", HISTOGRAM, "Time until an answer begins."
        ).add_histogram(self.requests.seconds)
        self._add_servers(page)
        return page.text()

    def _add_servers(self, page: Page) -> None:
        up = page.family("penstock_ui_server_up", GAUGE, "1 if the server answers.")
        streams = page.family("penstock_ui_streams", GAUGE, "Known streams.")
        groups = page.family("penstock_ui_groups", GAUGE, "Known groups.")
        sweep = page.family("penstock_ui_sweep_seconds", GAUGE, "Time to look at all streams once.")
        problems = page.family("penstock_ui_problems", GAUGE, "What is wrong now, by level.")
        commands = page.family("penstock_ui_commands_total", COUNTER, "Commands sent, by kind.")
        failures = page.family("penstock_ui_failures_total", COUNTER, "Sends that found no server.")
        for board in self._boards:
            name = board.name
            up.add(int(not board.health.problem), server=name)
            streams.add(len(board.catalogue), server=name)
            groups.add(sum(len(one.groups) for one in board.catalogue.all_facts()), server=name)
            sweep.add(round(board.catalogue.sweep_seconds, 6), server=name)
            levels = Counter(problem.level for problem in board.problems())
            for level in (BAD, WARN):
                problems.add(levels[level], server=name, level=level)
            commands.add(board.server.reads, server=name, kind="read")
            commands.add(board.server.writes, server=name, kind="write")
            failures.add(board.server.failures, server=name)


def resident_bytes() -> int:
    """The memory of this process, or its peak where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _log_error(path: str, error: Exception) -> None:
    _LOG.error("cannot answer %s: %s", path, error, exc_info=error)
