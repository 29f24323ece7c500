"""Where the engine's time comes from: the system, or a test's hand.

This file and wall_clock.py are the only ones of core and engine that may look at a clock.
"""

from __future__ import annotations

from penstock.engine import wall_clock


class Clock:
    """Milliseconds since 1970, which may stand still or step back."""

    __slots__ = ()

    def now_ms(self) -> int:
        raise NotImplementedError


class SystemClock(Clock):
    """The machine's wall clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        return wall_clock.now_ms()


class ManualClock(Clock):
    """A clock that a test sets."""

    __slots__ = ("at_ms",)

    def __init__(self, now_ms: int = 0) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms
