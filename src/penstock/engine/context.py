"""What a command may touch while it runs: the keys, the time, and a note of what it changed."""

from __future__ import annotations

from penstock.engine.clock import Clock
from penstock.engine.compat import Compat
from penstock.engine.keyspace import Keyspace

_NOT_READ = -(2**62)


class Context:
    """One engine's context, reused for every command.

    Read: keyspace, compat, now_ms, retrying. Note: touch.
    """

    __slots__ = ("_clock", "_now_ms", "compat", "keyspace", "retrying", "touched", "watched")

    def __init__(self, keyspace: Keyspace, clock: Clock, compat: Compat) -> None:
        self.keyspace = keyspace
        self.compat = compat
        self._clock = clock
        self._now_ms = _NOT_READ
        # A blocked command runs again: it must not block anew, nor make consumers.
        self.retrying = False
        self.touched: list[bytes] = []
        self.watched = 0  # how many readers wait; with none, nobody needs to know what was touched

    def begin(self) -> None:
        """Forget the last command."""
        self._now_ms = _NOT_READ
        if self.touched:
            self.touched = []

    def now_ms(self) -> int:
        """The time, the same for all of one command."""
        if self._now_ms == _NOT_READ:
            self._now_ms = max(0, self._clock.now_ms())  # ids cannot tell of a time before 1970
        return self._now_ms

    def touch(self, key: bytes) -> None:
        """Note that somebody who waits for this key may have something to read now."""
        if self.watched:
            self.touched.append(key)
