"""The forked child that writes a snapshot or a base of the log while the event loop continues.

At most one child runs at a time: two would double the memory that copy-on-write costs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.persist.child import Child, ChildFailed, start_child

if TYPE_CHECKING:
    from penstock.server.server import Server

OnEnd = Callable[[str | None], None]  # receives the reason of a failure, or None


class ChildSlot:
    """Runs one child at a time. For INFO: `forks` counts the forks, `fork_us` is the time of the last one."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._child: Child | None = None
        self._on_end: OnEnd | None = None
        self._started_ms = 0
        self.forks = 0
        self.fork_us = 0

    @property
    def is_busy(self) -> bool:
        """Whether a child runs."""
        return self._child is not None

    @property
    def seconds(self) -> int:
        """How long the current child has run, or how long ago the last one started."""
        return (self._server.steady_ms() - self._started_ms) // 1000

    def works_for(self, on_end: OnEnd) -> bool:
        """Tell whether the child that runs reports to this function."""
        return self._on_end == on_end

    def start(self, work: Callable[[], None], on_end: OnEnd, keep: int | None = None) -> None:
        """Fork a child that does `work`; the loop calls `on_end` when it has ended. Raises: OSError.

        `keep`: a file that the child needs; it closes all others.
        """
        assert not self.is_busy
        began_ns = time.perf_counter_ns()
        self._child = start_child(work, keep)
        self.fork_us = (time.perf_counter_ns() - began_ns) // 1000
        self.forks += 1
        self._on_end = on_end
        self._started_ms = self._server.steady_ms()
        self._loop.add_reader(self._child.pipe, self._on_ended)

    def kill(self, on_end: OnEnd) -> None:
        """Kill the child that reports to this function, if there is one; it is called with the failure."""
        if self._child is not None and self._on_end == on_end:
            self._child.kill()
            self._on_ended()

    def reset_counts(self) -> None:
        """CONFIG RESETSTAT."""
        self.forks = self.fork_us = 0

    def _on_ended(self) -> None:
        child, on_end = self._child, self._on_end
        if child is None or on_end is None:
            return
        self._loop.remove_reader(child.pipe)
        self._child = self._on_end = None
        try:
            child.finish()
        except ChildFailed as error:
            on_end(str(error))
        else:
            on_end(None)
