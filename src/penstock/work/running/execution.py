"""Where attempts run: async functions in an event loop, plain ones in threads or in child processes."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

from penstock.work.feed import Entry, log
from penstock.work.handler import Handler
from penstock.work.message import Source
from penstock.work.running.attempts import Attempt, given_back, not_begun
from penstock.work.running.children import CannotStart, Child
from penstock.work.settlement import Outcome

Done = Callable[[list[Outcome]], None]
CANCEL_SECONDS_MAX = 5.0
START_PAUSE_SECONDS = 5.0


class Execution(Protocol):
    """Runs attempts of one handler, several at a time."""

    def start(self, source: Source, entries: list[Entry], done: Done) -> None:
        """Run an attempt; call `done` with its outcomes, from any thread."""

    def end(self) -> None:
        """End everything that still runs. `done` is called for attempts that can be stopped."""


class Loop:
    """An event loop in a thread of its own, shared by all async handlers of a worker."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._given: list[tuple[Attempt, Done]] = []  # to be started by the loop
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="penstock-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def start(self, attempt: Attempt, done: Done) -> None:
        """Start an attempt soon. Waking the loop takes a system call, so one call starts many."""
        with self._lock:
            self._given.append((attempt, done))
            is_first = len(self._given) == 1
        if is_first:
            self._loop.call_soon_threadsafe(self._start_given)

    def _start_given(self) -> None:
        with self._lock:
            given, self._given = self._given, []
        for attempt, done in given:
            task = self._loop.create_task(self._attempt(attempt, done))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attempt(self, attempt: Attempt, done: Done) -> None:
        done(await attempt.run_async())

    def cancel(self) -> None:
        """Cancel all attempts, and wait for them; not for a handler that does not let itself be cancelled."""
        ended = asyncio.run_coroutine_threadsafe(self._cancel(), self._loop)
        with suppress(TimeoutError):
            ended.result(CANCEL_SECONDS_MAX)

    async def _cancel(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def end(self) -> None:
        self.cancel()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CANCEL_SECONDS_MAX)
        if not self._thread.is_alive():
            self._loop.close()


class InLoop:
    """Attempts of an async function."""

    def __init__(self, handler: Handler[Any], loop: Loop) -> None:
        self._handler = handler
        self._loop = loop

    def start(self, source: Source, entries: list[Entry], done: Done) -> None:
        self._loop.start(Attempt(self._handler, source, entries), done)

    def end(self) -> None:
        self._loop.cancel()


class InThreads:
    """Attempts of a plain function. A thread cannot be stopped: its entries are given back as they are.

    The threads are daemons: a handler that never returns does not keep the process from ending.
    """

    def __init__(self, handler: Handler[Any], concurrency: int) -> None:
        self._handler = handler
        self._given: queue.SimpleQueue[tuple[Source, list[Entry]] | None] = queue.SimpleQueue()
        self._running: dict[int, tuple[list[Entry], Done]] = {}
        self._lock = threading.Lock()
        self._concurrency = concurrency
        for _ in range(concurrency):
            threading.Thread(target=self._work, name="penstock-work", daemon=True).start()

    def start(self, source: Source, entries: list[Entry], done: Done) -> None:
        with self._lock:
            self._running[id(entries)] = (entries, done)
        self._given.put((source, entries))

    def _work(self) -> None:
        while (given := self._given.get()) is not None:
            source, entries = given
            outcomes = Attempt(self._handler, source, entries).run()
            with self._lock:
                found = self._running.pop(id(entries), None)
            if found is not None:
                found[1](outcomes)

    def end(self) -> None:
        with self._lock:
            left = list(self._running.values())
            self._running.clear()
        for entries, done in left:
            done(given_back(entries))
        for _ in range(self._concurrency):
            self._given.put(None)


class InChildren:
    """Attempts of a plain function in child processes, which are started once and used again.

    If a child cannot start, its entry is given back for a while: the attempt has not begun.
    """

    def __init__(self, handler: Handler[Any], concurrency: int) -> None:
        self._handler = handler
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="penstock-child")
        self._free: queue.SimpleQueue[Child | None] = queue.SimpleQueue()  # None: start one
        self._all: set[Child] = set()
        self._lock = threading.Lock()
        self._ended = False
        for _ in range(concurrency):
            self._free.put(self._new())

    def _new(self) -> Child:
        """Start a child. Raises: CannotStart."""
        child = Child(self._handler)
        with self._lock:
            if not self._ended:
                self._all.add(child)
                return child
        child.kill()
        raise CannotStart("the worker ends")

    def start(self, source: Source, entries: list[Entry], done: Done) -> None:
        self._pool.submit(self._run, source, entries, done)

    def _run(self, source: Source, entries: list[Entry], done: Done) -> None:
        child = self._free.get()
        try:
            child = child or self._new()
            outcomes = child.run(source, entries)
        except CannotStart as error:
            log.error("stream=%s %s", source.stream, error)
            outcomes = not_begun(entries, START_PAUSE_SECONDS, "no child process could start")
        if self._ended:
            outcomes = given_back(entries)
        elif child is not None and not child.is_usable:
            with self._lock:
                self._all.discard(child)
            child = None
        self._free.put(child)
        done(outcomes)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            children = list(self._all)
        for child in children:
            child.process.kill()
        self._pool.shutdown(wait=True)
        for child in children:
            child.kill()
