"""Decodes a stream node: the segments of its listpack and the role of each element.

    live | deleted | fields | name ... | 0          the header, Redis's master entry
    flags | ms | seq | value ... | pieces           an entry with the header's names
    flags | ms | seq | fields | name value ... | pieces

The terms are those of docs/formats/stream-node.md; `pieces` is Redis's lp-count. The id of an entry is the
node's key plus its two distances, each half modulo 2**64.

Some errors do not make the rest unreadable: wrong counters, wrong piece counts, a first entry whose id is not
the key. They are marked as damage where they occur, and decoding continues. Ids that do not increase are
reported in `MappedEntry.rises` and are not damage: Redis 7.0 writes them after XSETID below a tombstone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core import listpack, memory, stream_id, stream_node
from penstock.core.stream_id import StreamID
from penstock.inspect import segments as parts
from penstock.inspect.segments import NO_ENTRY, Damage, Element, Role, Segment, SegmentKind

_KNOWN_FLAGS = stream_node.FLAG_DELETED | stream_node.FLAG_SAME_FIELDS
_FIXED_PIECES = 3  # flags and two distances


@dataclass(slots=True)
class MappedEntry:
    """An entry or a tombstone. `whole` is False if damage cuts it off."""

    id: StreamID
    deleted: bool
    same_fields: bool
    offset: int
    length: int = 0
    rises: bool = True
    whole: bool = False
    fields: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class NodeMap:
    """A decoded node, up to the first damage. `live` and `deleted` are the numbers in the header."""

    master: StreamID
    size: int
    segments: list[Segment]
    live: int = 0
    deleted: int = 0
    names: list[bytes] = field(default_factory=list)
    names_bytes: int = 0
    entries: list[MappedEntry] = field(default_factory=list)

    @property
    def damages(self) -> list[tuple[int, str]]:
        """Offsets and reasons of all damage."""
        return parts.damages(self.segments)

    def summary(self) -> NodeSummary:
        """The facts for a row of a table, without the segments."""
        last_id = self.entries[-1].id if self.entries else None
        return NodeSummary(
            self.master, last_id, self.size, self.live, self.deleted, tuple(self.damages)
        )


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """The facts of a node for a table. A NodeMap takes about a hundred times as much memory."""

    master: StreamID
    last_id: StreamID | None
    size: int
    live: int
    deleted: int
    damages: tuple[tuple[int, str], ...]


def node_map(data: bytes | bytearray, master: StreamID) -> NodeMap:
    """Decode a node with this key. Never raises, for any bytes."""
    lp = bytearray(data)
    made = NodeMap(master, len(lp), [])
    try:
        made.segments += parts.header_segments(lp)
        _Walk(lp, made).run()
    except Damage as damage:
        made.segments.append(parts.damage_segment(lp, damage))
    return made


def flags_text(flags: int) -> str:
    """The names of the flags that are set."""
    named = ((stream_node.FLAG_SAME_FIELDS, "SAME"), (stream_node.FLAG_DELETED, "deleted"))
    return ", ".join(name for bit, name in named if flags & bit) or "none"


def text_of(value: int | bytes) -> bytes:
    """An element as a client would receive it."""
    return b"%d" % value if isinstance(value, int) else value


class _Walk:
    """Walks the elements once and records their roles."""

    def __init__(self, lp: bytearray, made: NodeMap) -> None:
        self._lp = lp
        self._made = made
        self._at = listpack.HEADER_BYTES
        self._number = 0  # of the next element
        self._entry = NO_ENTRY
        self._deleted = 0  # tombstones found

    def run(self) -> None:
        made = self._made
        self._header()
        while not parts.is_at_end(self._lp, self._at):
            self._entry += 1
            self._read_entry()
        counters = made.live, made.deleted
        found = len(made.entries) - self._deleted, self._deleted
        for role, stated, counted in zip(
            (Role.HEADER_LIVE, Role.HEADER_DELETED), counters, found, strict=True
        ):
            if stated != counted:
                self._mark(role, f"{role}: the header says {stated}, there are {counted}")
        made.segments += parts.end_segments(self._lp, self._at, made.segments, self._number)

    def _header(self) -> None:
        made = self._made
        made.live = self._integer(Role.HEADER_LIVE)
        made.deleted = self._integer(Role.HEADER_DELETED)
        for _ in range(self._count(Role.HEADER_FIELDS)):
            element = self._take(Role.HEADER_NAME)
            made.names.append(text_of(element.value))
            made.names_bytes += element.size
        if self._integer(Role.HEADER_END) != 0:
            self._mark(Role.HEADER_END, "the header does not end with zero")

    def _read_entry(self) -> None:
        made = self._made
        start = self._at
        first = self._number
        flags = self._integer(Role.FLAGS)
        if flags & ~_KNOWN_FLAGS:
            raise self._drop_to(start, f"an entry with the flags {flags}, of which 1 and 2 exist")
        ms = memory.advance(made.master.ms, self._integer(Role.MS))
        seq = memory.advance(made.master.seq, self._integer(Role.SEQ))
        same = bool(flags & stream_node.FLAG_SAME_FIELDS)
        deleted = bool(flags & stream_node.FLAG_DELETED)
        entry = MappedEntry(stream_id.make(ms, seq), deleted, same, start)
        if made.entries:
            entry.rises = made.entries[-1].id < entry.id
        elif entry.id != made.master:
            self._mark(Role.MS, f"the first entry is {entry.id}, not the key {made.master}")
        made.entries.append(entry)
        self._deleted += deleted
        try:
            self._read_fields(entry)
            pieces = self._number - first
            stated = self._integer(Role.PIECES)
            if stated != pieces:
                self._mark(Role.PIECES, f"pieces: the entry says {stated}, there are {pieces}")
            entry.whole = True
        finally:
            entry.length = self._at - start

    def _read_fields(self, entry: MappedEntry) -> None:
        if entry.same_fields:
            for name in self._made.names:
                entry.fields.append((name, text_of(self._take(Role.VALUE).value)))
            return
        for _ in range(self._count(Role.FIELDS)):
            name = text_of(self._take(Role.NAME).value)
            entry.fields.append((name, text_of(self._take(Role.VALUE).value)))

    # --- Elements ------------------------------------------------------------------------------------------

    def _take(self, role: Role) -> Element:
        """Read the next element and add its segments."""
        if parts.is_at_end(self._lp, self._at):
            raise Damage(self._at, f"the listpack ends where {role} is expected")
        element = parts.element_at(self._lp, self._at)
        segments = self._made.segments
        segments += parts.element_segments(self._lp, element, self._number, role, self._entry)
        parts.check_backlen(self._lp, element)
        segments.append(parts.backlen_segment(element, self._number, role, self._entry))
        self._at = element.behind
        self._number += 1
        return element

    def _integer(self, role: Role) -> int:
        start = self._at
        value = self._take(role).value
        if not isinstance(value, int):
            raise self._drop_to(start, f"a string instead of {role}, which must be an integer")
        return value

    def _count(self, role: Role) -> int:
        """Read a number of fields, which cannot exceed the number of remaining bytes."""
        start = self._at
        count = self._integer(role)
        if not 0 <= count <= len(self._lp) - self._at:
            raise self._drop_to(start, f"{role}: {count} of them do not fit")
        return count

    def _drop_to(self, offset: int, reason: str) -> Damage:
        """Remove the segments from `offset` on, because their meaning is not certain."""
        segments = self._made.segments
        while segments and segments[-1].offset >= offset:
            segments.pop()
        self._at = offset
        return Damage(offset, reason)

    def _mark(self, role: Role, reason: str) -> None:
        """Mark the last element with this role as damaged."""
        segments = self._made.segments
        for place in range(len(segments) - 1, -1, -1):
            segment = segments[place]
            if segment.role is role and segment.kind is SegmentKind.ENCODING:
                segments[place] = segment._replace(kind=SegmentKind.DAMAGE, label=reason)
                return
