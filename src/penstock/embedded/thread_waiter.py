"""A blocking read of the embedded database, as the engine sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter


class ThreadWaiter(Waiter):
    """A blocked read whose thread sleeps until it is served."""

    def __init__(
        self,
        command: Command,
        blocked: Blocked,
        keyspace: Keyspace,
        shape: Callable[[Any], Any],
    ) -> None:
        super().__init__(command, blocked, keyspace)
        self.timeout_ms = blocked.timeout_ms  # 0: for ever
        self.is_served = False
        self._shape = shape
        # Held until the reader is served. Releasing a lock is one step that no signal can interrupt; an Event
        # takes several, and a reader that nobody wakes would sleep for ever.
        self._gate = threading.Lock()
        self._gate.acquire()

    def sleep(self) -> None:
        """Return when the reader was served or its time is over."""
        seconds = min(self.timeout_ms / 1000, threading.TIMEOUT_MAX) if self.timeout_ms else -1
        self._gate.acquire(timeout=seconds)

    def wake(self) -> None:
        """See Waiter. The thread that added the entries shapes them: a moment later they may be trimmed."""
        if self.is_served:
            return  # the thread that served it was interrupted before it could say so
        try:
            if self.error is None:
                self.reply = self._shape(self.reply)
        except Exception as error:  # noqa: BLE001 - the reader's, not the adder's: hand it over
            self.error = error
        self.is_served = True
        self._gate.release()
