"""Reads times and durations as people type them.

start, end                  the first entry; new entries only
1700000000000-3             an id; without -3, the first id of that millisecond
@1700000000000              milliseconds since 1970
2024-05-01T12:00            ISO 8601, in UTC unless it has an offset
10m, 1h30m, 2d              that long ago by the server's clock, which also generates the ids
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from penstock.core import stream_id
from penstock.core.stream_id import StreamID
from penstock.errors import InvalidID
from penstock.human.show import EPOCH

MS_PER_UNIT = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}

# Up to twelve digits: no duration needs more, and no sum exceeds what a server accepts.
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d|w)", re.ASCII)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_ID = re.compile(r"\d+(?:-\d+)?", re.ASCII)
_MS = re.compile(r"@(\d{1,20})", re.ASCII)


class Edge(Enum):
    """An end of the stream."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Ago:
    """A duration before now."""

    duration_ms: int

    def at(self, now_ms: int) -> StreamID:
        """The first id of that millisecond."""
        return StreamID(max(now_ms - self.duration_ms, 0), 0)


Moment = Edge | Ago | StreamID


def parse_duration(text: str) -> int:
    """Milliseconds of `5m`, `1h30m`, `250ms`. Raises: ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration: write 250ms, 30s, 5m, 1h30m, 2d, 1w")
    return round(sum(float(count) * MS_PER_UNIT[unit] for count, unit in _PART.findall(text)))


def parse_moment(text: str) -> Moment:
    """Read one of the forms in the table above. Raises: ValueError."""
    if text in ("start", "end"):
        return Edge(text)
    try:
        if _ID.fullmatch(text):
            return stream_id.parse(text.encode())
        if found := _MS.fullmatch(text):
            return StreamID(int(found[1]), 0)
    except (InvalidID, OverflowError):
        raise ValueError(f"{text!r}: both parts of an id are at most 2^64-1") from None
    if _DURATION.fullmatch(text):
        return Ago(parse_duration(text))
    return _parse_date(text)


def _parse_date(text: str) -> StreamID:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write start, end, an id, @milliseconds,"
            " 2024-05-01T12:00 (UTC), or 10m for ten minutes ago"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # timestamp() would return a rounded float, and the exact millisecond matters.
    ms = (moment - EPOCH) // timedelta(milliseconds=1)
    if ms < 0:
        raise ValueError(f"{text!r} is before 1970, the time of the smallest id")
    return StreamID(ms, 0)
