"""Asks servers about streams: state, the k-th id of a range, equal parts of a range.

penstock's server answers from its index (PENSTOCK SPLITS). Plain Redis has no such command, so a read-only
script walks the range and returns only ids. Each call walks a bounded number of entries, so that other
clients are not blocked for long. The walk takes 3 us per entry on Redis, five times as long as reading it.
Ranges with more than WALK_ENTRIES_MAX entries are therefore split by time.
"""

from __future__ import annotations

import redis

from penstock.client.xinfo import GroupInfo, group_infos, stream_info
from penstock.core.stream_id import StreamID, parse
from penstock.spark.connection import Servers, StreamName
from penstock.spark.source.offsets import Position
from penstock.spark.source.planning import IdRange, StreamState, cut_at, cut_by_time

WALK_CALL_ENTRIES_MAX = 10_000
WALK_ENTRIES_MAX = 50_000
SPLIT_WAYS = 64

_WALK = """
local start, seen, last, left = ARGV[1], 0, '', tonumber(ARGV[4])
local step, most, cuts = tonumber(ARGV[3]), tonumber(ARGV[5]), {}
while seen < most do
  local page = redis.call('XRANGE', KEYS[1], start, ARGV[2], 'COUNT', math.min(100, most - seen))
  local size = #page
  if size == 0 then break end
  while left <= size do cuts[#cuts + 1] = page[left][1]; left = left + step end
  left = left - size
  seen = seen + size
  last = page[size][1]
  start = '(' .. last
end
return {seen, last, left, cuts}
"""


def state_of(servers: Servers, stream: StreamName) -> StreamState:
    """The answer of XINFO STREAM."""
    try:
        reply = servers.ask(stream, "XINFO", "STREAM", stream.key)
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return StreamState(is_missing=True)
        raise
    info = stream_info(reply)
    first = None if info.first is None else info.first.id
    return StreamState(info.length, first, info.last_id, info.entries_added)


def groups_of(servers: Servers, stream: StreamName) -> list[GroupInfo]:
    """The answer of XINFO GROUPS; an empty list for a missing key."""
    try:
        reply = servers.ask(stream, "XINFO", "GROUPS", stream.key)
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return []
        raise
    return group_infos(reply)


def group_in_use_or_none(servers: Servers, stream: StreamName, group: str) -> str | None:
    """Why the position of a group must not be set, or None: other consumers use the group."""
    try:
        groups = groups_of(servers, stream)
    except redis.ResponseError as error:
        if "WRONGTYPE" in str(error):
            return None  # reading the key reports this
        raise
    for info in groups:
        if info.name == group.encode() and (info.consumers or info.pending):
            return (
                f"the group {group} of the stream {stream.text} has consumers ({info.consumers})"
                f" and pending entries ({info.pending}). Mode exclusive sets the position of its group,"
                " so these consumers would miss entries. Use a group of its own, or mode=shared"
            )
    return None


def count_or_none(servers: Servers, stream: StreamName, ids: IdRange) -> int | None:
    """How many entries a range has, or None on plain Redis, which would have to walk them."""
    if ids.count is not None or not servers.is_native(stream):
        return ids.count
    found = servers.ask(stream, "PENSTOCK", "SPLITS", stream.key, *ids.words, 1)
    return int(found[0][2]) if found else 0


def counted(servers: Servers, stream: StreamName, at: Position, state: StreamState) -> Position:
    """The position with the entry count up to it, if penstock's server knows: needed to detect a trim."""
    if at.n is not None or state.added is None or not at.id < state.last:
        return at
    after = count_or_none(servers, stream, IdRange(at.id, state.last))
    return at if after is None else Position(at.id, state.added - after)


def kth_id(servers: Servers, stream: StreamName, whole: IdRange, k: int) -> StreamID | None:
    """The id of the k-th entry of a range, counted from 1, or None if the range has fewer."""
    if servers.is_native(stream):
        return _kth_by_splits(servers, stream, whole, k)
    _, cuts = _walk(servers, stream, whole, (k, k))
    return cuts[0] if cuts else None


def cut(servers: Servers, stream: StreamName, whole: IdRange, parts: int) -> list[IdRange]:
    """Split a range into parts with about the same number of entries."""
    if servers.is_native(stream):
        start, end = whole.words
        found = servers.ask(stream, "PENSTOCK", "SPLITS", stream.key, start, end, parts)
        # The server says only where to split. The bounds of the range stay, whatever was deleted since.
        cuts = [(parse(last), int(count)) for _, last, count in found]
        total = sum(count for _, count in cuts if count)
        known = IdRange(whole.after, whole.end, whole.n, total)
        return cut_at(known, cuts[:-1])
    if parts == 1:
        return [whole]
    if whole.count is None or whole.count > WALK_ENTRIES_MAX:
        first = state_of(servers, stream).first
        return cut_by_time(whole, first or whole.after, parts)
    step = -(-whole.count // parts)
    seen, ids = _walk(servers, stream, whole, (step, whole.count))
    known = IdRange(whole.after, whole.end, whole.n, seen)
    return cut_at(known, [(one, step) for one in ids[: parts - 1] if one < whole.end])


def _kth_by_splits(servers: Servers, stream: StreamName, whole: IdRange, k: int) -> StreamID | None:
    """Narrow the range to the part with the k-th entry, until that entry is the last of a part."""
    start, end = whole.words
    while True:
        parts = servers.ask(stream, "PENSTOCK", "SPLITS", stream.key, start, end, SPLIT_WAYS)
        for first, last, count in parts:
            if k == count:
                return parse(last)
            if k < count:
                start, end = first, last
                break
            k -= count
        else:
            return None


def _walk(
    servers: Servers, stream: StreamName, whole: IdRange, pace: tuple[int, int]
) -> tuple[int, list[StreamID]]:
    """Count entries up to a maximum, and collect the id of every step-th. `pace` is (step, maximum)."""
    step, most = pace
    start, end = whole.words
    seen, left = 0, step
    cuts: list[StreamID] = []
    while seen < most:
        call = min(WALK_CALL_ENTRIES_MAX, most - seen)
        words = ("EVAL", _WALK, 1, stream.key, start, end, step, left, call)
        count, last, left, found = servers.ask(stream, *words)
        cuts.extend(parse(one) for one in found)
        seen += count
        if count < call:
            break
        start = f"({last.decode()}"
    return seen, cuts
