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
    """A blocked read. Its thread sleeps until the read is served, or `tell` sets a function to call then."""

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
        self._on_served: Callable[[], None] | None = None
        # Held until the read is served. Releasing a lock is one step that no signal can interrupt. An Event
        # takes several steps: interrupted between them, the reader would sleep for ever.
        self._gate = threading.Lock()
        self._gate.acquire()

    def sleep(self) -> bool:
        """Return when the read is served, its time is over, or it has to run again; True for the last."""
        seconds = self.seconds_left_or_none()
        if seconds is None:
            self._gate.acquire()
        else:
            self._gate.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))
        return self.has_to_run_again()

    def seconds_left_or_none(self) -> float | None:
        """How long to sleep; None for ever."""
        ends = [at for at in (self._ends_s, self._retry_s) if at is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def has_to_run_again(self) -> bool:
        """Tell whether the time for another attempt has come (Waiter.retry_ms)."""
        now_s = time.monotonic()
        is_over = self.is_served or (self._ends_s is not None and now_s >= self._ends_s)
        return not is_over and self._retry_s is not None and now_s >= self._retry_s

    def keep_waiting(self, retry_ms: int) -> None:
        """See Waiter."""
        self._retry_s = _after(retry_ms)

    def tell(self, on_served: Callable[[], None]) -> None:
        """Set a function to call when the read is served. Any thread may call it, even twice."""
        self._on_served = on_served
        if self.is_served:
            on_served()  # the read was served before the function was set

    def wake(self) -> None:
        """See Waiter. The thread that added the entries shapes them: later they may be trimmed."""
        if self.is_served:
            return  # the thread that served it was interrupted before it could take it out of the queue
        try:
            if self.error is None:
                self.reply = self._shape(self.reply)
        except Exception as error:  # noqa: BLE001 - it belongs to the reader, not to the thread that adds
            self.error = error
        self.is_served = True
        self._gate.release()
        if self._on_served is not None:
            self._on_served()
