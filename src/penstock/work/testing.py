"""app.test(): all handlers in memory, in the caller's thread, by a clock that is set by hand.

    with app.test() as t:
        charge.send(order)
        t.run()
        assert not t.dead("orders")

The same commands run as in production, on a database in memory. Handlers run one after the other; plain
functions with processes=True run in this process; rate limits and `wait` are ignored.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import penstock
from penstock.engine.clock import ManualClock
from penstock.work.backend import Backend, EmbeddedBackend
from penstock.work.feed import Entry, Feed, Place
from penstock.work.names import dead_key
from penstock.work.running.attempts import Attempt
from penstock.work.running.schedule import send_next
from penstock.work.running.worker import feeds_for
from penstock.work.settlement import Outcome

if TYPE_CHECKING:
    from penstock.work.app import App

START_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC
_TURNS_MAX = 100_000


class TestRun:
    """One test of an App."""

    __test__ = False  # pytest would collect it by its name

    def __init__(self, app: App) -> None:
        self._app = app
        self.clock = ManualClock(START_MS)
        self.database = penstock.open(clock=self.clock)
        self._backend = EmbeddedBackend(self.database)
        self._before: Backend | None = None
        self._feeds: list[Feed] = []
        self._threads = ThreadPoolExecutor(1)

    def __enter__(self) -> TestRun:
        self._before = self._app.use(self._backend)
        self._feeds = self.feeds("test")
        return self

    def __exit__(self, *_: object) -> None:
        self._app.use(self._before)
        self._threads.shutdown()
        self.database.close()

    def feeds(self, consumer: str, backend: Backend | None = None) -> list[Feed]:
        """The feeds of a worker with this name; for tests of what happens between several workers."""
        used = backend or self._backend
        place = Place(used, used, self._app.group, consumer, self.now)
        feeds = [
            feed for handler in self._app.handlers.values() for feed in feeds_for(place, handler)
        ]
        for feed in feeds:
            feed.prepare()
        return feeds

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self.clock.at_ms / 1000

    def advance(self, seconds: float) -> None:
        """Let time pass; entries of schedules are sent for the times that pass."""
        until = self.now() + seconds
        for handler, schedule in self._app.schedules:
            at = self.now()
            while (due := schedule.next_after(at)) <= until:
                self._at(at, lambda h=handler, s=schedule, a=at: send_next(h, s, a))
                at = due
        self.clock.at_ms = round(until * 1000)

    def _at(self, seconds: float, act: Any) -> None:
        """Do something as if it were another time."""
        real = self.clock.at_ms
        self.clock.at_ms = round(seconds * 1000)
        act()
        self.clock.at_ms = real

    def run(self) -> int:
        """Run handlers until nothing is due; return the number of attempts. Retries wait for `advance`."""
        attempts = 0
        for _ in range(_TURNS_MAX):
            done = sum(self._run_some(feed) for feed in self._feeds)
            if not done:
                return attempts
            attempts += done
        raise RuntimeError("the handlers keep sending entries to each other")

    def _run_some(self, feed: Feed) -> int:
        batch = feed.handler.options.batch
        entries = feed.take(batch or 1).entries or feed.take(1, alone=True).entries
        if not entries:
            return 0
        groups = [entries]
        if batch is not None and any(entry.attempt > 1 for entry in entries):
            groups = [[entry] for entry in entries]
        for group in groups:
            feed.settle(self.attempt(feed, group))
        return len(groups)

    def attempt(self, feed: Feed, entries: list[Entry]) -> list[Outcome]:
        """Run the handler for taken entries; return the outcomes without settling them."""
        made = Attempt(feed.handler, feed.source, entries)
        if not feed.handler.is_async:
            return made.run()
        # In another thread, because the test itself may run in an event loop.
        return self._threads.submit(asyncio.run, made.run_async()).result()

    def dead(self, stream: str) -> list[dict[str, str]]:
        """The dead letters of a stream, as texts."""
        return self.entries(dead_key(stream))

    def entries(self, stream: str) -> list[dict[str, str]]:
        """The entries of a stream, as texts."""
        return [
            {name.decode(): value.decode(errors="replace") for name, value in fields.items()}
            for _, fields in self.database.xrange(stream)
        ]

    def pending(self, stream: str) -> int:
        """How many entries are not settled."""
        return int(self.database.xpending(stream, self._app.group)["pending"])
