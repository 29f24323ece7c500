"""Numbers over time: a ring of samples, rates from counters, and the points of a sparkline.

A rate is computed only from two consecutive samples, which are about a second apart or more: pages and the
background look at different times, and entries come in bursts. A rate is unknown if the counter went down,
because then the stream was deleted and created again. A sum of rates leaves out unknown ones, and is
unknown if all are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan, nan

SAMPLES_MAX = 60
GAP_SECONDS_MIN = 0.9  # between two samples


class Series:
    """The newest samples of several numbers, oldest first. Cost: 8 bytes per number, no objects."""

    __slots__ = ("_next", "_values", "size", "width")

    def __init__(self, width: int, size: int = SAMPLES_MAX) -> None:
        self.width = width
        self.size = size
        self._values = array("d")
        self._next = 0  # the oldest row when the ring is full

    def __len__(self) -> int:
        return len(self._values) // self.width

    def add(self, *row: float | None) -> None:
        """Add a sample. None stands for an unknown number."""
        values = array("d", [nan if value is None else value for value in row])
        assert len(values) == self.width
        if len(self) < self.size:
            self._values += values
            return
        start = self._next * self.width
        self._values[start : start + self.width] = values
        self._next = (self._next + 1) % self.size

    def rows(self) -> Iterator[tuple[float | None, ...]]:
        """All samples, oldest first."""
        for number in range(len(self)):
            start = (self._next + number) % len(self) * self.width
            yield tuple(
                None if isnan(value) else value
                for value in self._values[start : start + self.width]
            )

    def last(self) -> tuple[float | None, ...] | None:
        """The newest sample."""
        if not self._values:
            return None
        start = (self._next - 1) % len(self) * self.width
        return tuple(
            None if isnan(value) else value for value in self._values[start : start + self.width]
        )


class Meter:
    """Rates of entries added to and read from a stream, from its counters."""

    __slots__ = ("_added", "_at", "_reads", "series")

    def __init__(self) -> None:
        self.series = Series(2)
        self._at: float | None = None
        self._added: int | None = None
        self._reads: Mapping[bytes, int | None] = {}

    def note(self, at: float, added: int | None, reads: Mapping[bytes, int | None]) -> None:
        """Record the counters: entries ever added, and entries ever delivered to each group."""
        if self._at is not None:
            seconds = at - self._at
            if seconds < GAP_SECONDS_MIN:
                return
            rates = [_rate(self._reads.get(group), read, seconds) for group, read in reads.items()]
            self.series.add(_rate(self._added, added, seconds), sum_of_known(rates))
        self._at, self._added, self._reads = at, added, reads

    @property
    def rate_in(self) -> float | None:
        row = self.series.last()
        return row[0] if row else None

    @property
    def rate_out(self) -> float | None:
        row = self.series.last()
        return row[1] if row else None

    def points_in(self, width: int = 100, height: int = 20) -> str:
        """The rate in as the points of an SVG polyline."""
        return points([row[0] for row in self.series.rows()], width, height)


def _rate(before: int | None, after: int | None, seconds: float) -> float | None:
    if before is None or after is None or after < before:
        return None
    return (after - before) / seconds


def sum_of_known(values: Iterable[float | None]) -> float | None:
    """The sum of the known values, or None if there are values and none is known."""
    given = list(values)
    known = [value for value in given if value is not None]
    return sum(known) if known or not given else None


def points(values: Sequence[float | None], width: int, height: int) -> str:
    """`0,20 50,0 100,20`: the largest value is at the top, unknown values are left out."""
    top = max((value for value in values if value is not None), default=0) or 1
    step = width / max(len(values) - 1, 1)
    return " ".join(
        f"{number * step:.1f},{height - value / top * height:.1f}"
        for number, value in enumerate(values)
        if value is not None
    )


def rate_text(rate: float | None) -> str:
    """`1,234/s`, `0.5/s`, or a dash if the rate is unknown."""
    if rate is None:
        return "-"
    return f"{rate:,.0f}/s" if rate >= 10 or rate == 0 else f"{rate:.1f}/s"
