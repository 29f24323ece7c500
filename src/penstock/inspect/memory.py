"""What the bytes of a stream are used for.

    listpack      header and end byte of each node: seven bytes
    counters      live, deleted, number of fields, the zero that ends a node's header
    names         the field names in a node's header
    flags         one element per entry
    ids           two distances per entry
    own names     number and names of fields, for entries whose names differ from the header
    values        the values of fields
    pieces        one element per entry, for walking backwards (Redis: lp-count)
    tombstones    all bytes of deleted entries
    damage        bytes that cannot be read

The parts add up to the bytes of the nodes. Each part includes the overhead of its elements: encoding, length
and backlen.

A header stores names once for all entries with the flag SAME. `names_saved` is what these entries would need
in addition to store their own names: the number of fields and every name. The bytes of a tombstone are freed
only with its node, when the last live entry of the node is deleted.

A trim drops whole nodes. An exact trim may also have to cut a node. That only turns entries into tombstones,
so it frees no more bytes than the approximate trim (`plan_trim`), except for the size of the counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.core import listpack
from penstock.core.rax.tree import Rax
from penstock.inspect.node_map import NodeMap, node_map
from penstock.inspect.segments import NO_ENTRY, Damage, Role, Segment, SegmentKind, element_at
from penstock.inspect.stored import RawNode

PARTS = (
    "listpack", "counters", "names", "flags", "ids", "own names", "values", "pieces", "tombstones",
    "damage",
)  # fmt: skip

_PART_OF_ROLE = {
    Role.NONE: "listpack",
    Role.HEADER_LIVE: "counters",
    Role.HEADER_DELETED: "counters",
    Role.HEADER_FIELDS: "counters",
    Role.HEADER_NAME: "names",
    Role.HEADER_END: "counters",
    Role.FLAGS: "flags",
    Role.MS: "ids",
    Role.SEQ: "ids",
    Role.FIELDS: "own names",
    Role.NAME: "own names",
    Role.VALUE: "values",
    Role.PIECES: "pieces",
}


@dataclass(slots=True)
class StreamMemory:
    """The bytes of some nodes, by use."""

    nodes: int = 0
    entries: int = 0
    tombstones: int = 0
    total_bytes: int = 0
    parts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    encoding_bytes: int = 0
    backlen_bytes: int = 0
    content_bytes: int = 0
    names_saved: int = 0

    @property
    def names_saved_net(self) -> int:
        """The bytes that names in headers save, minus their own size."""
        return self.names_saved - self.parts["names"]


@dataclass(frozen=True, slots=True)
class TreeMemory:
    """The rax of the nodes. `characters`: stored on its edges, instead of 16 bytes per key."""

    keys: int
    nodes: int
    characters: int


@dataclass(frozen=True, slots=True)
class Trim:
    """The effect of a trim to `length_max` entries."""

    length_max: int
    approximate: bool
    nodes_dropped: int
    entries_removed: int
    entries_left: int
    bytes_freed: int
    tombstones_made: int
    tombstones_made_bytes: int


def add_node(memory: StreamMemory, node: NodeMap) -> None:
    """Add the bytes of a node. Cost: one step per segment."""
    memory.nodes += 1
    memory.total_bytes += node.size
    gone = [entry.deleted for entry in node.entries]
    memory.tombstones += sum(gone)
    memory.entries += len(gone) - sum(gone)
    for segment in node.segments:
        memory.parts[_part_of(segment, gone)] += segment.length
        if segment.kind is SegmentKind.ENCODING:
            memory.encoding_bytes += segment.length
        elif segment.kind is SegmentKind.CONTENT:
            memory.content_bytes += segment.length
        elif segment.kind is SegmentKind.BACKLEN:
            memory.backlen_bytes += segment.length
    again = node.names_bytes + listpack.int_size(len(node.names))
    memory.names_saved += again * sum(
        entry.same_fields and entry.whole and not entry.deleted for entry in node.entries
    )


def _part_of(segment: Segment, gone: Sequence[bool]) -> str:
    # A wrong number still belongs to its part; only unreadable bytes count as damage.
    if segment.kind is SegmentKind.DAMAGE and segment.value is None:
        return "damage"
    if segment.entry != NO_ENTRY and segment.entry < len(gone) and gone[segment.entry]:
        return "tombstones"
    return _PART_OF_ROLE[segment.role]


def explain_tree(tree: Rax) -> TreeMemory:
    """Measure a rax of node keys."""
    characters = sum(len(node.characters) for node in tree.nodes())
    return TreeMemory(tree.count, tree.node_count, characters)


def plan_trim(nodes: Sequence[RawNode], length_max: int, approximate: bool) -> Trim:
    """The effect of XTRIM MAXLEN, or MAXLEN ~ if `approximate`, on a stream with these nodes.

    A node whose counters cannot be read counts as empty. Cost: reads the counters of each node, and decodes
    the node that an exact trim would cut.
    """
    counts = [counters(node.data) for node in nodes]
    length = sum(live for live, _ in counts)
    dropped = freed = removed = made = made_bytes = 0
    for node, (live, deleted) in zip(nodes, counts, strict=True):
        if length - removed <= length_max:
            break
        if length - removed - live >= length_max:
            dropped += 1
            freed += len(node.data)
            removed += live
            continue
        if not approximate:
            made = length - removed - length_max
            entries = node_map(node.data, node.master).entries
            going = [entry for entry in entries if not entry.deleted][:made]
            made_bytes = sum(entry.length for entry in going)
            freed += _counters_bytes(live, deleted) - _counters_bytes(live - made, deleted + made)
            removed += made
        break
    left = length - removed
    return Trim(length_max, approximate, dropped, removed, left, freed, made, made_bytes)


def counters(data: bytes) -> tuple[int, int]:
    """The numbers of live and deleted entries in a node's header, 0 if they cannot be read."""
    lp = bytearray(data)
    found = []
    at = listpack.HEADER_BYTES
    try:
        for _ in range(2):
            element = element_at(lp, at)
            found.append(element.value if isinstance(element.value, int) else 0)
            at = element.behind
    except (Damage, IndexError):
        return 0, 0
    live, deleted = (max(count, 0) for count in found)
    return live, deleted


def _counters_bytes(live: int, deleted: int) -> int:
    return listpack.int_size(live) + listpack.int_size(deleted)
