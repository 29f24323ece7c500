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
        self._shape = shape
        self.served = threading.Event()

    def wake(self) -> None:
        # Shaped here, by the thread that added the entries: a moment later they may be trimmed.
        try:
            if self.error is None:
                self.reply = self._shape(self.reply)
        except Exception as error:  # noqa: BLE001 - the reader's, not the adder's: hand it over
            self.error = error
        finally:
            self.served.set()
