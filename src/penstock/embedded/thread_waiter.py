"""A blocked read of the embedded database, as the engine sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter


def _after(delay_ms: int) -> float:
    """The time after a delay, by the steady clock in seconds."""
    return time.monotonic() + delay_ms / 1000


class ThreadWaiter(Waiter):
    """A blocked read. Its thread sleeps until the read is served, or `tell` sets a function to call then.

    A read that claims entries also runs again when the next one may be idle enough: by its own thread, under
    the lock. Every run that finds nothing sets the time of the next one.
    """

    def __init__(
        self,
        command: Command,
        blocked: Blocked,
        keyspace: Keyspace,
        shape: Callable[[Any], Any],
    ) -> None:
        super().__init__(command, blocked, keyspace)
        self.is_served = False
        self._ends_s = _after(blocked.timeout_ms) if blocked.timeout_ms else None
        self._retry_s = None if blocked.retry_ms is None else _after(blocked.retry_ms)
        self._shape = shape
        self._on_news: Callable[[], None] | None = None
        # Held while the reader may sleep. Releasing a lock is one step that no signal can interrupt. An Event
        # takes several steps: interrupted between them, the reader would sleep for ever.
        self._gate = threading.Lock()
        self._gate.acquire()

    def sleep(self) -> bool:
        """Return when the read is served, its time is over, or it has to run again; True for the last."""
        while not self.is_over() and not self.is_due():
            seconds = self.seconds_left_or_none()
            if seconds is None:
                self._gate.acquire()
            else:
                self._gate.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))
        return not self.is_over()

    def seconds_left_or_none(self) -> float | None:
        """How long to sleep; None for ever."""
        ends = [at for at in (self._ends_s, self._retry_s) if at is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def is_over(self) -> bool:
        """Tell whether there is nothing to wait for: the read is served, or its time is over."""
        return self.is_served or (self._ends_s is not None and time.monotonic() >= self._ends_s)

    def is_due(self) -> bool:
        """Tell whether it is time for another attempt (Waiter.retry_ms)."""
        return self._retry_s is not None and time.monotonic() >= self._retry_s

    def keep_waiting(self, retry_ms: int) -> None:
        """See Waiter. Another thread may call this while the reader sleeps."""
        before, self._retry_s = self._retry_s, _after(retry_ms)
        if before is not None and self._retry_s < before:
            self._let_look()

    def tell(self, on_news: Callable[[], None]) -> None:
        """Set a function to call when the read is served or has to run earlier. Any thread may call it."""
        self._on_news = on_news
        if self.is_served:
            on_news()  # the read was served before the function was set

    def wake(self) -> None:
        """See Waiter. The thread that added the entries shapes them: later they may be trimmed."""
        if self.is_served:
            # The thread that served it was interrupted before it could take it out of the queue.
            self._let_look()
            return
        try:
            if self.error is None:
                self.reply = self._shape(self.reply)
        except Exception as error:  # noqa: BLE001 - it belongs to the reader, not to the thread that adds
            self.error = error
        self.is_served = True
        self._let_look()

    def _let_look(self) -> None:
        """Under the lock of the database: let the reader look whether it is served or has to run again."""
        try:  # noqa: SIM105 - a call of `suppress` could be interrupted itself
            self._gate.release()
        except RuntimeError:
            pass  # it is open already: the reader has not looked since then
        if self._on_news is not None:
            self._on_news()
