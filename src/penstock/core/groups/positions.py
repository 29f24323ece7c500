"""What is known about a position in a stream: how many entries are before it, and whether that is certain.

    ever added   1-0  2-0  3-0  4-0  5-0  6-0        entries added 6
    there now              3-0   x   5-0  6-0        4-0 was deleted, 1-0 and 2-0 were trimmed

A stream counts only what was ever added to it. So the rank of an id is certain at the ends of the stream, and
a group can count on from there as long as nothing was deleted after its position. Where it cannot, the lag is
unknown. NodeLimits.lag_rule (LAG_...) selects the rules of the different versions of Redis.
"""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.stream import LAG_COUNTS_TRIMMED, Stream
from penstock.core.stream_id import StreamID

RANK_UNKNOWN = -1

_LAG_COUNTS_TRIMMED = LAG_COUNTS_TRIMMED
_RANK_UNKNOWN = RANK_UNKNOWN
_SMALLEST = stream_id.SMALLEST


def has_tombstones_from(stream: Stream, ms: int, seq: int) -> bool:
    """Tell whether an entry at or after an id was deleted.

    With LAG_COUNTS_TRIMMED, deletions before the first entry do not count.
    """
    if stream.length == 0 or (stream.max_deleted_ms == 0 and stream.max_deleted_seq == 0):
        return False
    if stream_id.compare(ms, seq, stream.max_deleted_ms, stream.max_deleted_seq) > 0:
        return False
    if stream.limits.lag_rule != _LAG_COUNTS_TRIMMED:
        return True
    return stream.first_id() <= stream.max_deleted_id  # last: it may walk over tombstones


def starts_after(stream: Stream, entry_id: StreamID) -> bool:
    """Tell whether the first entry is after an id; False in an empty stream."""
    if stream.nodes.count > 1 and (
        stream_id.compare(entry_id.ms, entry_id.seq, stream.tail_ms, stream.tail_seq) >= 0
    ):
        return False  # every node has an entry, so the first is before the last node
    return entry_id < stream.first_id()


def rank_or_unknown(stream: Stream, entry_id: StreamID) -> int:
    """How many entries were ever added up to this id, or RANK_UNKNOWN.

    Known only where no deletion can have disturbed the count: at the ends of the stream.
    """
    if stream.entries_added == 0:
        return 0
    last = stream_id.compare(entry_id.ms, entry_id.seq, stream.last_ms, stream.last_seq)
    if stream.length == 0 and last <= 0:
        return stream.entries_added
    if (
        stream.limits.lag_rule != _LAG_COUNTS_TRIMMED
        and entry_id != _SMALLEST
        and entry_id < stream.max_deleted_id
    ):
        return _RANK_UNKNOWN
    if last == 0:
        return stream.entries_added
    if last > 0:
        return _RANK_UNKNOWN
    first = stream.first_id()
    max_deleted = stream.max_deleted_id
    if max_deleted == _SMALLEST or max_deleted < first:
        if entry_id < first:
            return stream.entries_added - stream.length
        if entry_id == first:
            return stream.entries_added - stream.length + 1
    return _RANK_UNKNOWN
