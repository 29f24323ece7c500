"""Splits a range of a stream into equal parts, and finds its nodes, without walking its entries.

    nodes     1-0 [ 100 live ]   4-7 [ 98 live ]   9-2 [ 41 live ]        range 2-0 .. 9-9
    in range        ..73               98                12..             183 entries

A node's header counts its live entries, so a node inside the range needs only a look at its header. Only the
nodes in which the range starts, ends or is cut are walked: a part ends between two entries, not between two
nodes.

    three parts of 61:   2-0 .. 3-9   3-10 .. 6-1   6-2 .. 9-8

Invariants
  SP1  parts are in order, do not overlap, and hold every live entry of the range.
  SP2  no part is empty, and the counts of two parts differ by at most one.
  SP3  both ids of a part are ids of live entries.

Cost: O(nodes in the range), and a walk over each node that holds an end of a part. Rejected: parts of whole
nodes, which need no walk. A node holds from one to a hundred entries, and a job takes as long as its largest
part.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core import stream_id, stream_node
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.core.stream_node import NodeCursor


class StreamPart:
    """A run of entries: its first id, its last id, and their number."""

    __slots__ = ("count", "first", "last")

    def __init__(self, first: StreamID, last: StreamID, count: int) -> None:
        self.first = first
        self.last = last
        self.count = count


class NodeInRange:
    """A node with at least one live entry in a range."""

    __slots__ = ("count", "master", "node")

    def __init__(self, master: StreamID, node: bytearray, count: int) -> None:
        self.master = master
        self.node = node  # the stream's own, with its room
        self.count = count  # live entries in the range

    def last_id(self) -> StreamID:
        """The id of the node's last entry, including tombstones and entries outside the range."""
        entry = NodeCursor()
        entry.open(self.node, self.master.ms, self.master.seq)
        entry.last()
        return stream_id.make(entry.ms, entry.seq)


def nodes_in(stream: Stream, start: StreamID, end: StreamID) -> Iterator[NodeInRange]:
    """The nodes that hold live entries from `start` to `end`. The stream must not change meanwhile."""
    if start > end:
        return
    start_key, end_key = start.key, end.key  # keys sort as ids do
    walk = stream.nodes.iterator()
    if not walk.seek("<=", start_key):
        walk.seek("^")
    more = walk.next()
    while more and walk.key <= end_key:
        key: bytes = walk.key
        node: bytearray = walk.value
        more = walk.next()
        master = stream_id.from_key(key)
        if key >= start_key and more and walk.key <= end_key:
            # The next node also starts in the range: so all of this one is in it.
            count = stream_node.live_count(node)
        else:
            count = len(_live_ids(master, node, start, end))
        if count:
            yield NodeInRange(master, node, count)


def parts_of(stream: Stream, start: StreamID, end: StreamID, parts: int) -> list[StreamPart]:
    """Up to `parts` parts of a range, equal in size give or take one entry (SP1 to SP3)."""
    nodes = list(nodes_in(stream, start, end))
    total = sum(node.count for node in nodes)
    parts = min(parts, total)
    ranks: list[int] = []  # of the first and the last entry of each part
    for part in range(parts):
        ranks += [part * total // parts, (part + 1) * total // parts - 1]
    ids: list[StreamID] = []
    passed = 0
    for node in nodes:
        if len(ids) < len(ranks) and ranks[len(ids)] < passed + node.count:
            found = _live_ids(node.master, node.node, start, end)
            while len(ids) < len(ranks) and ranks[len(ids)] < passed + node.count:
                ids.append(found[ranks[len(ids)] - passed])
        passed += node.count
    return [
        StreamPart(ids[at], ids[at + 1], ranks[at + 1] - ranks[at] + 1)
        for at in range(0, len(ids), 2)
    ]


def _live_ids(master: StreamID, node: bytearray, start: StreamID, end: StreamID) -> list[StreamID]:
    """The ids of a node's live entries in a range. Cost: a walk over the node."""
    ids: list[StreamID] = []
    entry = NodeCursor()
    entry.open(node, master.ms, master.seq)
    found = entry.first()
    while found:
        entry_id = stream_id.make(entry.ms, entry.seq)
        if entry_id > end:
            break
        if not entry.deleted and entry_id >= start:
            ids.append(entry_id)
        found = entry.next()
    return ids
