"""When to retry after a failure. Without a pause, a full disk would be tried ten times a second.

rewrites      at once after the first two failures, then after 1, 2, 4 ... minutes, at most an hour (as Redis)
fresh bases   after 1, 2, 4 ... seconds, at most 10, because writes are refused until one succeeds
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Backoff:
    """Counts consecutive failures and the pause after each. The clock is in seconds and never steps back."""

    def __init__(
        self,
        first_s: float,
        longest_s: float,
        free: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`free`: the number of failures without a pause."""
        self._first_s = first_s
        self._longest_s = longest_s
        self._free = free
        self._clock = clock
        self._failures = 0
        self._until_s = float("-inf")

    def is_due(self) -> bool:
        """Tell whether there is no pause, or it is over."""
        return self._clock() >= self._until_s

    def note_failure(self) -> None:
        """Start the next pause."""
        doublings = self._failures - self._free
        self._failures += 1
        if doublings >= 0:
            # The exponent is bounded, because a float would overflow after a month of failures.
            pause_s = min(self._first_s * 2.0 ** min(doublings, 60), self._longest_s)
            self._until_s = self._clock() + pause_s

    def note_success(self) -> None:
        """End the pause. The next failure counts as the first one."""
        self._failures = 0
        self._until_s = float("-inf")


def rewrites(clock: Callable[[], float] = time.monotonic) -> Backoff:
    """For automatic rewrites of the log."""
    return Backoff(first_s=60.0, longest_s=3600.0, free=2, clock=clock)


def fresh_bases(clock: Callable[[], float] = time.monotonic, at_once: bool = False) -> Backoff:
    """For fresh bases after the log has failed. `at_once`: that failure itself causes no pause."""
    return Backoff(first_s=1.0, longest_s=10.0, free=1 if at_once else 0, clock=clock)
