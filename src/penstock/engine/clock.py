"""The engine's source of time: the system, or a test.

In core and engine only this file and wall_clock.py may read a clock.
"""

from __future__ import annotations

from penstock.engine import wall_clock

_US_PER_MS = 1000


class Clock:
    """Two readings in microseconds: the date, and a time that never goes back.

    The date is for users and data: ids, expiry, idle times of pending entries. All intervals of the server
    use the steady time, because an operator may set the date back.
    """

    __slots__ = ()

    def now_us(self) -> int:
        """Microseconds since 1970; may stand still or go back."""
        raise NotImplementedError

    def steady_us(self) -> int:
        """Microseconds since some moment; never goes back."""
        raise NotImplementedError


class SystemClock(Clock):
    """The machine's wall clock."""

    __slots__ = ()

    def now_us(self) -> int:
        return wall_clock.now_us()

    def steady_us(self) -> int:
        return wall_clock.steady_us()


class ManualClock(Clock):
    """A clock that a test sets, in milliseconds. `step` changes the date alone."""

    __slots__ = ("_stepped_ms", "at_ms")

    def __init__(self, now_ms: int = 0) -> None:
        self.at_ms = now_ms
        self._stepped_ms = 0

    def now_us(self) -> int:
        return self.at_ms * _US_PER_MS

    def steady_us(self) -> int:
        return (self.at_ms - self._stepped_ms) * _US_PER_MS

    def step(self, ms: int) -> None:
        """Move the date forward or back without passing time."""
        self.at_ms += ms
        self._stepped_ms += ms


class Instant:
    """The time of the running command: read once, constant until it ends."""

    __slots__ = ("_clock", "ms", "us")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.us = 0
        self.ms = 0

    def steady_us(self) -> int:
        """The steady time now; not cached, because it is rarely used."""
        return self._clock.steady_us()

    def rewind(self) -> None:
        """Set the time to 1970 until the clock is read again: until then nothing expires."""
        self.us = 0
        self.ms = 0

    def advance(self) -> None:
        """Read the clock."""
        us = self._clock.now_us()
        self.us = max(0, us)  # ids cannot represent a time before 1970
        self.ms = self.us // _US_PER_MS
