"""Where the engine's time comes from: the system, or a test's hand.

This is the only file of core and engine that may look at a clock.
"""

from __future__ import annotations

from time import time

_time = time  # a C global: no look-up of a module's attribute for every command


class Clock:
    """Milliseconds since 1970, which may stand still or step back."""

    def now_ms(self) -> int:
        raise NotImplementedError


class SystemClock(Clock):
    """The machine's wall clock."""

    def now_ms(self) -> int:
        return int(_time() * 1000)


class ManualClock(Clock):
    """A clock that a test sets."""

    def __init__(self, now_ms: int = 0) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms
