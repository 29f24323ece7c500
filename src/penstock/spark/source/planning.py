"""Plans: which ids a batch covers, and how they are cut into partitions.

Pure functions: stream_state.py fetches the facts.

A range is half-open: behind `after`, up to and including `end`. Ranges of consecutive batches meet
without a gap, and a range that was written down once always means the same entries: nothing is ever added
in the middle of a stream.

Data loss. A trim takes entries from the head of a stream and leaves no trace in max-deleted-entry-id. A
reader at (id, n), where n entries were ever added up to id, has missed some if the stream now begins
behind id and more than n are gone:

    n = 4 read      added 9, length 3: 6 are gone, 2 of them unread
    [1 2 3 4 5 6] 7 8 9
           ^id    ^first

Single deletions (XDEL) count as gone too, so that the number may be too high, but only behind a head that
was cut.

A stream to which fewer entries were ever added than were read is another one under the same name.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from penstock.core.stream_id import MAX64, SMALLEST, StreamID
from penstock.errors import PenstockError
from penstock.spark.source.offsets import Position

K = TypeVar("K", bound=Hashable)

ENTRIES_PER_PARTITION = (
    250_000  # a task of Spark costs as much as 50,000 entries, wherever they come from
)
PARTITIONS_MAX = 65_536


class DataLoss(PenstockError):
    """Entries that should have been read are not there any more."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """What XINFO STREAM says; of a missing key, that of a stream that never had an entry."""

    length: int = 0
    first: StreamID | None = None
    last: StreamID = SMALLEST
    added: int | None = 0

    @property
    def removed(self) -> int | None:
        """How many entries are gone."""
        return None if self.added is None else self.added - self.length

    @property
    def beginning(self) -> Position:
        """Right before the first entry that is still there: if that one goes, it shows."""
        before = self.last if self.first is None else self.first.previous()
        return Position(before, self.removed)

    @property
    def end(self) -> Position:
        """Behind the last entry that was ever added."""
        return Position(self.last, self.added)


@dataclass(frozen=True, slots=True)
class IdRange:
    """What lies behind `after` up to `end`; `n` entries were added up to `after`; `count` are inside."""

    after: StreamID
    end: StreamID
    n: int | None = None
    count: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it can hold nothing."""
        return self.end <= self.after

    @property
    def words(self) -> tuple[str, str]:
        """The two bounds as XRANGE takes them."""
        start = "-" if self.after == SMALLEST else f"({self.after}"
        return start, str(self.end)


def range_between(start: Position, end: Position) -> IdRange:
    """What a batch between two positions reads."""
    count = None
    if start.n is not None and end.n is not None:
        count = max(end.n - start.n, 0)
    return IdRange(start.id, end.id, start.n, count)


def lost_or_none(name: str, start: Position, state: StreamState) -> str | None:
    """What is missing behind a position, in words, or None if nothing is."""
    if state.last < start.id:
        return (
            f"stream {name} ends at {state.last}, and {start.id} was read before: it was deleted or"
            " replaced; all that was added before that is missing"
        )
    if start.n is None or state.added is None or state.removed is None:
        return None
    if state.added < start.n:
        return (
            f"stream {name} has had {state.added} entries, and {start.n} were read up to {start.id}: it was"
            " deleted or replaced; what was added before that and is not in it is missing"
        )
    if state.removed <= start.n:
        return None
    if state.first is not None and state.first.previous() <= start.id:
        return None  # nothing is missing at the head; what is gone was deleted one by one
    until = f"before {state.first}" if state.first is not None else f"up to {state.last}"
    return (
        f"stream {name}: up to {state.removed - start.n} entries after {start.id} and {until} were"
        " removed before they were read"
    )


def loss_text(lost: str) -> str:
    """What an error says of it, and what to do."""
    return (
        f"{lost}. Trim less, or read sooner; set failOnDataLoss=false to go on with what is there,"
        " or use a new checkpoint"
    )


def share_limit(waiting: Mapping[K, int], limit: int) -> dict[K, int]:
    """Share a limit among streams by what waits in each: none starves, together never more than the limit."""
    total = sum(waiting.values())
    if total <= limit:
        return dict(waiting)
    shares = {key: min(count, count * limit // total) for key, count in waiting.items()}
    left = limit - sum(shares.values())
    # The emptiest first: a stream with one entry would wait for ever beside a large one.
    for key in sorted(waiting, key=lambda one: shares[one]):
        if left and shares[key] < waiting[key]:
            shares[key] += 1
            left -= 1
    return shares


def plan_parts(counts: Mapping[K, int | None], wanted: int | None) -> dict[K, int]:
    """Into how many parts each range is cut, so that together there are at least those wanted."""
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
    """Cut a range into equal spans of time, behind its first entry; for servers that cannot count."""
    low, high = max(first, whole.after).ms, whole.end.ms
    cuts: list[StreamID] = []
    for part in range(1, parts):
        cut = StreamID(low + (high - low) * part // parts, MAX64)
        if whole.after < cut < whole.end and (not cuts or cuts[-1] < cut):
            cuts.append(cut)
    return cut_at(IdRange(whole.after, whole.end, whole.n), [(cut, None) for cut in cuts])


def cut_at(whole: IdRange, cuts: Sequence[tuple[StreamID, int | None]]) -> list[IdRange]:
    """Cut a range behind some of its ids, in order; each comes with the entries of the part that it ends."""
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
