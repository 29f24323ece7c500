"""A blocked read of the embedded database, as the engine sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter


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
        self.timeout_ms = blocked.timeout_ms  # 0: no limit
        self.is_served = False
        self._shape = shape
        self._on_served: Callable[[], None] | None = None
        # Held until the read is served. Releasing a lock is one step that no signal can interrupt. An Event
        # takes several steps: interrupted between them, the reader would sleep for ever.
        self._gate = threading.Lock()
        self._gate.acquire()

    def sleep(self) -> None:
        """Return when the read is served or its time is over."""
        seconds = min(self.timeout_ms / 1000, threading.TIMEOUT_MAX) if self.timeout_ms else -1
        self._gate.acquire(timeout=seconds)

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
