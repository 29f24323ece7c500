"""Counts durations in buckets, cheaply: one search and three additions for each."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

# Upper limits in seconds: from a quick disk or command to one that clients notice.
SECONDS = (
    *(0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.0025, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)


class Histogram:
    """Durations since the start. One thread at a time calls `note`; others may read."""

    __slots__ = ("_counts", "bounds", "total")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.total = 0.0
        self._counts = [0] * (len(bounds) + 1)  # the last one: longer than all limits

    def note(self, seconds: float, times: int = 1) -> None:
        """Count a duration. A negative one counts as 0: its clock was set back."""
        seconds = max(0.0, seconds)
        self._counts[bisect_left(self.bounds, seconds)] += times
        self.total += seconds * times

    def cumulated(self) -> list[int]:
        """For each limit the number of durations up to it, then the number of all."""
        return list(accumulate(self._counts))
