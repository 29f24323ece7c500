"""Where a policy cuts a stream now: whole nodes at its head go, and nothing else.

    nodes     [ 100 entries ] [ 100 ] [ 100 ] [ 41 ]
    length 150    goes          stays                  at least 150 entries stay
    age 1h        goes          goes    stays          the last entry of a node that goes is older

`acked` lets a node go if every group has read and acknowledged all of it. Without `force`, a policy with
`acked` removes nothing else. Limits without `acked` hold whatever groups still need, as XTRIM does.

Bytes are those of the nodes. They are measured at 64 nodes, half of them at each end of the stream.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.core import listpack, stream_id, stream_node
from penstock.core.groups.group import Group
from penstock.core.rax.items import items_of
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.core.stream_parts import NodeInRange
from penstock.engine.retention.group_needs import first_needed
from penstock.engine.retention.policy import Policy

IdleTime = Callable[[bytes, Group], int]

_SAMPLES_AT_EACH_END = 32


class Cut:
    """What a policy removes: `entries` and `bytes` below `min_id`, or nothing if that is None.

    `more`: there may be more behind these nodes. `holder`: the group that keeps `acked`, or limits without
    `force`, from removing more; None if no group does.
    """

    __slots__ = ("bytes", "entries", "holder", "min_id", "more", "nodes")

    def __init__(self) -> None:
        self.min_id: StreamID | None = None
        self.entries = 0
        self.bytes = 0
        self.nodes = 0
        self.more = False
        self.holder: bytes | None = None


def cut_of(stream: Stream, policy: Policy, now_ms: int, nodes_max: int, idle_of: IdleTime) -> Cut:
    """Look at up to `nodes_max` nodes. `idle_of` tells for how long nobody has read a group."""
    cut = Cut()
    if stream.length == 0:
        return cut
    needed = _needed_or_none(stream, policy, idle_of, cut) if policy.acked else None
    limited = not policy.acked or policy.force
    too_old = stream_id.SMALLEST
    if limited and policy.age_ms is not None:
        too_old = stream_id.make(max(0, now_ms - policy.age_ms), 0)
    excess = 0
    excess_bytes = 0
    if limited and policy.length_max is not None:
        excess = stream.length - policy.length_max
    if limited and policy.bytes_max is not None:
        excess_bytes = stream_bytes(stream) - policy.bytes_max
    walk = stream.nodes.iterator()
    walk.seek("^")
    more = walk.next()
    while more:
        if cut.nodes == nodes_max:
            cut.more = True
            break
        node: bytearray = walk.value
        live = stream_node.live_count(node)
        size = listpack.total_bytes(node)
        behind = _behind(walk.key, node)
        more = walk.next()
        if not (
            (needed is not None and behind <= needed)
            or behind <= too_old
            or cut.entries + live <= excess
            or cut.bytes + size <= excess_bytes
        ):
            break
        cut.min_id = behind
        cut.entries += live
        cut.bytes += size
        cut.nodes += 1
    return cut


def stream_bytes(stream: Stream) -> int:
    """The bytes of a stream's nodes, measured at some of them."""
    nodes = stream.nodes.count
    sampled = 0
    size = 0
    for edge in ("^", "$"):
        walk = stream.nodes.iterator()
        walk.seek(edge)
        most = nodes - sampled if edge == "$" else nodes
        for _ in range(min(_SAMPLES_AT_EACH_END, most)):
            if not (walk.next() if edge == "^" else walk.previous()):
                break
            size += listpack.total_bytes(walk.value)
            sampled += 1
    return size * nodes // sampled if sampled else 0


def _needed_or_none(stream: Stream, policy: Policy, idle_of: IdleTime, cut: Cut) -> StreamID | None:
    """Everything below this id was acknowledged by all groups; None if there are no groups."""
    needed: StreamID | None = None
    for name, group in items_of(stream.groups):
        if policy.idle_group_ms is not None and idle_of(name, group) >= policy.idle_group_ms:
            continue
        first = first_needed(group)
        if needed is None or first < needed:
            needed = first
            cut.holder = name
    return needed


def _behind(key: bytes, node: bytearray) -> StreamID:
    """The id behind the last entry of a node."""
    last = NodeInRange(stream_id.from_key(key), node, 0).last_id()
    return last if last == stream_id.LARGEST else last.next()
