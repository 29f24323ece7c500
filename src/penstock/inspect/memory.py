"""Where the bytes of a stream are.

    listpack      header and end byte of every node: seven bytes
    counters      live, deleted, number of fields, the zero that ends a node's header
    names         the field names that a node's header has once
    flags         one element an entry
    ids           two distances an entry
    own names     number and names of fields, of entries whose names are not the header's
    values        what somebody wanted to keep
    pieces        one element an entry, to step back over it (Redis: lp-count)
    tombstones    all of the entries that were deleted
    damage        what could not be read

The parts add up to the bytes of the nodes. Through all of them goes what an element costs beside its content:
the byte or bytes of encoding and length, and the backlen.

A header's names are there once for all entries that carry SAME. `names_saved` is what those entries would
take more with names of their own: the number of fields and every name again. Nothing of a tombstone comes
back before its node goes, when its last live entry does.

A trim drops whole nodes. Where an exact one has to cut a node, it only turns entries into tombstones: it
frees not one byte more than the approximate one (`plan_trim`), give or take a wider counter.
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
    """The bytes of some nodes, by what they are for."""

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
        """What the headers' names save, less what they take themselves."""
        return self.names_saved - self.parts["names"]


@dataclass(frozen=True, slots=True)
class TreeMemory:
    """The rax that finds the nodes. `characters` are those of its edges, in place of 16 for each key."""

    keys: int
    nodes: int
    characters: int


@dataclass(frozen=True, slots=True)
class Trim:
    """What a trim to `length_max` entries would do."""

    length_max: int
    approximate: bool
    nodes_dropped: int
    entries_removed: int
    entries_left: int
    bytes_freed: int
    tombstones_made: int
    tombstones_made_bytes: int


def add_node(memory: StreamMemory, node: NodeMap) -> None:
    """Add the bytes of one more node. Cost: a look at every segment."""
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
    # A number that is wrong still has its place: damage is what nobody can read any more.
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
    """What XTRIM MAXLEN would do to a stream of these nodes, all of it; MAXLEN ~ if `approximate`.

    A node whose counters cannot be read counts as empty. Cost: a look at each counter, and one node taken
    apart where an exact trim would cut it.
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
    """Live and deleted entries as a node's header states them; none where it cannot be read."""
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
