"""Worker: runs all handlers of an App in this process until it is stopped.

Threads of each stream: one takes, one settles, and one waits for new entries. Beside them: one that renews
all leases, one with the event loop for async handlers, and those that run plain functions. The renewal has
connections of its own, so it waits for no other thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from penstock.errors import CommandError, ConfigError, ConnectionLost, DatabaseClosed
from penstock.metrics.histogram import Histogram
from penstock.work.backend import Backend
from penstock.work.feed import Feed, Place, log
from penstock.work.handler import Handler
from penstock.work.keyed import KeyedFeed
from penstock.work.message import Source
from penstock.work.names import consumer_name
from penstock.work.options import Limiter
from penstock.work.running.execution import Execution, InChildren, InLoop, InThreads, Loop
from penstock.work.running.gate import Gate
from penstock.work.running.lane import Lane, Setting
from penstock.work.running.schedule import keep_sending

if TYPE_CHECKING:
    from penstock.work.app import App

CONCURRENCY_DEFAULT = 10
ASYNC_CONCURRENCY_DEFAULT = 100
END_SECONDS_MAX = 10.0
RENEWALS_PER_LEASE = 3
_NOT_STARTED = "the worker has not started"


class Worker:
    """Start it, then stop it once. `stop` may be called by a signal handler's thread."""

    def __init__(self, app: App, concurrency: int | None = None) -> None:
        """`concurrency`: for handlers that do not set their own. Raises: ConfigError."""
        if not app.handlers:
            raise ConfigError("the App has no handlers")
        self._app = app
        self._concurrency = concurrency
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._ended = threading.Event()
        self._gate = Gate()
        self._loop: Loop | None = None
        self._executions: list[Execution] = []
        self._lanes: list[Lane] = []
        self._threads: list[threading.Thread] = []
        self.consumer = consumer_name()

    def start(self) -> None:
        """Check the streams, then start. Raises: CommandError, ConnectionLost."""
        backend = self._app.backend
        renewing = backend.another()
        place = Place(backend, renewing, self._app.group, self.consumer, time.monotonic)
        settings = {
            handler.stream: Setting(backend, self._gate, self._stopping, _limiter_or_none(handler))
            for handler in self._app.handlers.values()
        }
        feeds = [
            (feed, handler)
            for handler in self._app.handlers.values()
            for feed in feeds_for(place, handler)
        ]
        for feed, _ in feeds:
            feed.prepare()
        for feed, handler in feeds:
            default = ASYNC_CONCURRENCY_DEFAULT if handler.is_async else CONCURRENCY_DEFAULT
            concurrency = handler.options.concurrency or self._concurrency or default
            self._executions.append(self._execution(handler, concurrency))
            self._lanes.append(
                Lane(settings[handler.stream], feed, self._executions[-1], concurrency)
            )
        self._threads.append(
            threading.Thread(
                target=self._renew_all, args=(renewing,), name="penstock-renew", daemon=True
            )
        )
        for handler, schedule in self._app.schedules:
            given = (handler, schedule, time.time, self._stopping)
            name = f"penstock-{handler.stream}-schedule"
            made = threading.Thread(target=keep_sending, args=given, name=name, daemon=True)
            self._threads.append(made)
        for thread in self._threads:
            thread.start()
        for lane in self._lanes:
            lane.start()
        self._started.set()
        log.info("worker=%s group=%s streams=%d", self.consumer, self._app.group, len(feeds))

    def _execution(self, handler: Handler[Any], concurrency: int) -> Execution:
        if handler.is_async:
            self._loop = self._loop or Loop()
            return InLoop(handler, self._loop)
        if handler.options.processes:
            return InChildren(handler, concurrency)
        return InThreads(handler, concurrency)

    def begin_stop(self) -> None:
        """Take no more entries."""
        self._stopping.set()
        self._gate.stop()
        for lane in self._lanes:
            lane.begin_stop()

    def stop(self, drain: float = 30, now: threading.Event | None = None) -> bool:
        """Stop: finish what runs within `drain` seconds, give back the rest. True if all was finished.

        `now`: if it is set meanwhile, give back at once.
        """
        self.begin_stop()
        deadline = time.monotonic() + drain
        left = list(self._lanes)
        while left and time.monotonic() < deadline and not (now is not None and now.is_set()):
            left = [lane for lane in left if not lane.drain(min(deadline, time.monotonic() + 0.1))]
        for lane in self._lanes:
            lane.end_taking()
        for execution in self._executions:
            execution.end()
        for lane in self._lanes:
            lane.end(END_SECONDS_MAX)
        self._ended.set()
        if self._loop is not None:
            self._loop.end()
        log.info("worker=%s stopped", self.consumer)
        return not left

    def reasons_not_ready(self) -> list[str]:
        """Why it takes no entries now."""
        if self._stopping.is_set():
            return ["the worker is stopping"]
        if not self._started.is_set():
            return [_NOT_STARTED]
        failures = [(lane.feed.stream, lane.take_failure) for lane in self._lanes]
        return [f"{stream}: {failure}" for stream, failure in failures if failure]

    def outcome_counts(self) -> list[tuple[str, str, int]]:
        """How often attempts ended in which way: (stream, outcome, count)."""
        return [
            (lane.feed.stream, outcome, count)
            for lane in self._lanes
            for outcome, count in sorted(lane.feed.counts.items())
        ]

    def held_counts(self) -> list[tuple[str, int]]:
        """How many entries this worker holds: (stream, count)."""
        return [(lane.feed.stream, lane.feed.held()) for lane in self._lanes]

    def durations(self) -> list[tuple[str, Histogram]]:
        """How long attempts took: (stream, histogram)."""
        return [(lane.feed.stream, lane.seconds) for lane in self._lanes]

    def problems(self) -> list[str]:
        """Why this worker does not do its work, in lines; a server that is away is no problem of it."""
        if self._stopping.is_set():
            return []
        if not self._started.is_set():
            return [_NOT_STARTED]
        found = [problem for lane in self._lanes if (problem := lane.problem())]
        ended = [thread.name for thread in self._threads if not thread.is_alive()]
        return [*found, *(f"the thread {name} has ended" for name in ended)]

    def _renew_all(self, renewing: Backend) -> None:
        """Renew leases until the worker has ended; also while it drains."""
        with closing(renewing):
            self._renew_until_ended()

    def _renew_until_ended(self) -> None:
        seconds = min(lane.feed.handler.options.lease for lane in self._lanes) / RENEWALS_PER_LEASE
        while not self._ended.wait(seconds):
            for lane in self._lanes:
                try:
                    lane.feed.renew()
                except DatabaseClosed:
                    return
                except (CommandError, ConnectionLost) as error:
                    log.error("stream=%s cannot renew: %s", lane.feed.stream, error)
                except Exception:  # noqa: BLE001 - the leases of the other streams must be renewed
                    log.exception("stream=%s cannot renew", lane.feed.stream)


def _limiter_or_none(handler: Handler[Any]) -> Limiter | None:
    rate = handler.options.rate
    return None if rate is None else Limiter(rate, time.monotonic())


def feeds_for(place: Place, handler: Handler[Any]) -> Sequence[Feed]:
    """The feeds of a handler: one for each of its streams."""
    sources = [Source(place.group, stream, handler.route) for stream in handler.streams()]
    if handler.options.key is None:
        return [Feed(place, handler, source) for source in sources]
    partitions = [KeyedFeed(place, handler, source) for source in sources]
    for one in partitions:
        one.partitions = partitions
    return partitions
