"""Plans which ids a batch covers, and how they are split into partitions.

The functions are pure: stream_state.py asks the server.

A range excludes `after` and includes `end`. Ranges of consecutive batches leave no gap. A stored range always
means the same entries, because entries are never added in the middle of a stream.

Data loss. A trim removes entries from the head of a stream and does not change max-deleted-entry-id. A reader
is at (id, n) if n entries were ever added up to id. It has missed entries if the stream now starts after id
and more than n entries are gone:

    n = 4 read      added 9, length 3: 6 are gone, 2 of them unread
    [1 2 3 4 5 6] 7 8 9
           ^id    ^first

Entries deleted by XDEL also count as gone, so the reported number may be too high, but only if the head was
trimmed too.

If fewer entries were ever added than were read, the stream was deleted and created again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from penstock.core.stream_id import MAX64, SMALLEST, StreamID
from penstock.errors import PenstockError
from penstock.spark.source.offsets import Position

K = TypeVar("K", bound=Hashable)

ENTRIES_PER_PARTITION = 250_000  # starting a Spark task costs as much as reading 50,000 entries
PARTITIONS_MAX = 65_536


class DataLoss(PenstockError):
    """Entries were removed before the query read them."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """What XINFO STREAM says. A missing key has the state of a stream that never had an entry."""

    length: int = 0
    first: StreamID | None = None
    last: StreamID = SMALLEST
    added: int | None = 0
    is_missing: bool = False

    @property
    def removed(self) -> int | None:
        """How many entries were trimmed or deleted."""
        return None if self.added is None else self.added - self.length

    @property
    def beginning(self) -> Position:
        """Just before the first entry: if that one is trimmed later, the loss is detected."""
        before = self.last if self.first is None else self.first.previous()
        return Position(before, self.removed)

    @property
    def end(self) -> Position:
        """After the last entry that was ever added."""
        return Position(self.last, self.added)


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids after `after` up to `end`. `n` entries were added up to `after`; the range has `count`."""

    after: StreamID
    end: StreamID
    n: int | None = None
    count: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no id is in the range."""
        return self.end <= self.after

    @property
    def words(self) -> tuple[str, str]:
        """The two bounds as arguments of XRANGE."""
        start = "-" if self.after == SMALLEST else f"({self.after}"
        return start, str(self.end)


def range_between(start: Position, end: Position) -> IdRange:
    """The range of a batch between two positions."""
    count = None
    if start.n is not None and end.n is not None:
        count = max(end.n - start.n, 0)
    return IdRange(start.id, end.id, start.n, count)


def lost_or_none(name: str, start: Position, state: StreamState) -> str | None:
    """A description of the entries lost after a position, or None if nothing is lost."""
    if state.last < start.id:
        return (
            f"stream {name} ends at {state.last}, but {start.id} has been read: it was deleted or"
            " replaced, and unread entries of the old stream are lost"
        )
    if start.n is None or state.added is None or state.removed is None:
        return None
    if state.added < start.n:
        return (
            f"stream {name} has had {state.added} entries, but {start.n} were read up to {start.id}: it was"
            " deleted or replaced, and unread entries of the old stream are lost"
        )
    if state.removed <= start.n:
        return None
    if state.first is not None and state.first.previous() <= start.id:
        return None  # the head is complete: the other entries were deleted by XDEL
    until = f"before {state.first}" if state.first is not None else f"up to {state.last}"
    return (
        f"stream {name}: up to {state.removed - start.n} entries after {start.id} and {until} were"
        " removed before they were read"
    )


def loss_text(lost: str) -> str:
    """The text of a DataLoss error: the loss, and what to do."""
    return (
        f"{lost}. Trim less or read sooner. To continue with the entries that exist, set failOnDataLoss=false"
        " or use a new checkpoint"
    )


def share_limit(waiting: Mapping[K, int], limit: int) -> dict[K, int]:
    """Share a limit among streams in proportion to their waiting entries, so that none starves."""
    total = sum(waiting.values())
    if total <= limit:
        return dict(waiting)
    shares = {key: min(count, count * limit // total) for key, count in waiting.items()}
    left = limit - sum(shares.values())
    # Smallest shares first: otherwise a stream with one entry would wait forever next to a large one.
    for key in sorted(waiting, key=lambda one: shares[one]):
        if left and shares[key] < waiting[key]:
            shares[key] += 1
            left -= 1
    return shares


def plan_parts(counts: Mapping[K, int | None], wanted: int | None) -> dict[K, int]:
    """How many parts to split each range into. In total there are at least `wanted`."""
    known = {key: 1 if count is None else count for key, count in counts.items()}
    total = sum(known.values())
    parts = {}
    for key, count in known.items():
        if wanted is None:
            number = -(-count // ENTRIES_PER_PARTITION)
        else:
            number = -(-count * wanted // total) if total else 1
        parts[key] = max(1, min(number, PARTITIONS_MAX))
    return parts


def cut_by_time(whole: IdRange, first: StreamID, parts: int) -> list[IdRange]:
    """Split a range into equal spans of time, for servers that cannot count entries."""
    low, high = max(first, whole.after).ms, whole.end.ms
    cuts: list[StreamID] = []
    for part in range(1, parts):
        cut = StreamID(low + (high - low) * part // parts, MAX64)
        if whole.after < cut < whole.end and (not cuts or cuts[-1] < cut):
            cuts.append(cut)
    return cut_at(IdRange(whole.after, whole.end, whole.n), [(cut, None) for cut in cuts])


def cut_at(whole: IdRange, cuts: Sequence[tuple[StreamID, int | None]]) -> list[IdRange]:
    """Split a range after some of its ids, in order. Each comes with the entry count of its part."""
    ranges = []
    after, n = whole.after, whole.n
    rest: int | None = whole.count
    for end, count in cuts:
        ranges.append(IdRange(after, end, n, count))
        n = None if n is None or count is None else n + count
        rest = None if rest is None or count is None else rest - count
        after = end
    if after < whole.end:
        ranges.append(IdRange(after, whole.end, n, rest))
    return ranges
