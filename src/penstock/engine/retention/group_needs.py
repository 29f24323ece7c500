"""What the groups of a stream still need: the first entry of each that is not acknowledged or not read.

All figures are counted in the stream, unlike the lag of XINFO, which is computed from counters and is unknown
after some deletions.
"""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.groups.group import Group
from penstock.core.rax.items import items_of
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.core.stream_parts import nodes_in

ORPHANS_LOOKED_AT_MAX = 10_000


def first_needed(group: Group) -> StreamID:
    """Everything below this id was read and acknowledged by the group."""
    unread = _next_id(group)
    pending = group.pending_edge_or_none(False)
    return unread if pending is None else min(pending, unread)


def seen_ms_or_none(group: Group) -> int | None:
    """When a consumer of the group was last seen; None if it has no consumers."""
    return max((consumer.seen_ms for _, consumer in items_of(group.consumers)), default=None)


def unread_count(stream: Stream, group: Group) -> int:
    """The entries behind the group's position, counted. Cost: O(nodes on the shorter side of it)."""
    start = _next_id(group)
    if start == stream_id.SMALLEST:
        return stream.length
    if stream.length == 0 or start > stream.last_id:
        return 0
    lag = group.lag_or_none(stream)
    if lag is not None and lag * 2 > stream.length:
        return stream.length - _count(stream, stream_id.SMALLEST, group.last_id)
    return _count(stream, start, stream_id.LARGEST)


def oldest_unread_or_none(stream: Stream, group: Group) -> StreamID | None:
    """The first entry that the group has not read."""
    cursor = stream.cursor(_next_id(group), stream_id.LARGEST, False)
    return cursor.id if cursor.advance() else None


def orphan_count_or_none(stream: Stream, group: Group) -> int | None:
    """Pending rows whose entries are gone; None if the group has too many rows to look at."""
    if group.pending.count > ORPHANS_LOOKED_AT_MAX:
        return None
    return sum(not stream.contains(record.entry_id()) for record in group.pending)


def _next_id(group: Group) -> StreamID:
    last = group.last_id
    return last if last == stream_id.LARGEST else last.next()


def _count(stream: Stream, start: StreamID, end: StreamID) -> int:
    return sum(found.count for found in nodes_in(stream, start, end))
