# cython: wraparound=False
"""Stream nodes: many entries packed into one listpack.

The first entry's field names are written once; later entries with the same names in the same order store
values only, and ids as distances from the node's key (the first entry's id):

    key 1700000000000-0
    +------+---------+--------+------+-------+---+
    | live | deleted | fields | temp | humid | 0 |      header; a walk backwards stops at the 0
    +------+---------+--------+------+-------+---+
    | SAME | +0 ms   | +0 seq | 21   | 63    | 5 |      entry  (5 = pieces to step back to SAME)
    | SAME | +17 ms  | +0 seq | 22   | 62    | 5 |
    | 0    | +18 ms  | +0 seq | 1    | door  | open | 6 |      other names: their number, then pairs
    +------+---------+--------+------+-------+---+

Each box is one listpack element. Deleting an entry sets a flag and updates two counters; its bytes stay as a
tombstone. So a delete does not copy half a node. When `live` reaches zero, the whole node is removed.

Invariants
  N1  live + deleted equals the entries physically present, and live is at least 1.
  N2  ids strictly rise inside a node, tombstones included, and the first is the node's key. Distances
      wrap at 64 bits: a later millisecond may have a smaller seq.
  N3  an entry carries SAME exactly when its names equal the header's; pieces to step back is the number
      of its elements before that one.
  N4  a node holds at most `entries_max` entries. When any entry but the first was added, the node's bytes
      plus the raw bytes of that entry were below `bytes_max` (stream.py decides when to begin a new node).

The bytearray of the tail node is longer than its listpack (L1). Because of this room, an append is one walk
over the fields and one pass of writing, without a resize per element (benchmarks/core.py, "xadd").
"""

from __future__ import annotations

from penstock.core import listpack, memory
from penstock.core.frame import Frame
from penstock.errors import CorruptData

FLAG_DELETED = 1
FLAG_SAME_FIELDS = 2

_DELETED = FLAG_DELETED
_SAME_FIELDS = FLAG_SAME_FIELDS
_END = listpack.END
_COUNT_UNKNOWN = listpack.COUNT_UNKNOWN
_EMPTY_BYTES = listpack.HEADER_BYTES + 1
_OVERHEAD_MAX = listpack.ELEMENT_OVERHEAD_MAX
_LIVE_AT = listpack.HEADER_BYTES  # the first element counts the live entries
_SMALL_MAX = 127  # the largest integer that takes one byte and its backlen
_FIXED_BYTES_MAX = 64  # an upper bound for flags, two distances, two counts and the end byte
_ROOM_BYTES_MIN = 128


def begin(node: bytearray, frame: Frame, first: int, raw_bytes: int) -> None:
    """Write a new header for the fields from piece `first` on, without the first entry.

    `raw_bytes` is the total length of those pieces.
    """
    fields = (frame.count - first) // 2
    memory.store32(node, 0, _EMPTY_BYTES)
    memory.store16(node, 4, 0)
    reserve(node, bytes_bound(fields, raw_bytes))
    at = listpack.put_int(node, _LIVE_AT, 0)
    at = listpack.put_int(node, at, 0)
    at = listpack.put_int(node, at, fields)
    for i in range(fields):
        at = _put_piece(node, at, frame, first + 2 * i)
    at = listpack.put_int(node, at, 0)
    _finish(node, at, fields + 4)


def append_entry(
    node: bytearray, ms_delta: int, seq_delta: int, frame: Frame, first: int, raw_bytes: int
) -> bool:
    """Append one entry from the pieces of a frame: name, value, name, value, ...

    `raw_bytes` is the total length of those pieces. Returns True if the entries before it had to
    move. Cost: O(bytes of the entry), amortised.
    """
    fields = (frame.count - first) // 2
    reserve(node, bytes_bound(fields, raw_bytes))
    moved = 0
    if node[_LIVE_AT] < _SMALL_MAX:
        node[_LIVE_AT] += 1  # both numbers take one byte: the usual case
    else:
        moved = listpack.replace_int(node, _LIVE_AT, live_count(node) + 1)
    same = _has_header_fields(node, frame, first, fields)
    end = memory.load32(node, 0) - 1
    flags = _SAME_FIELDS if same else 0
    at = memory.put_small_numbers(node, end, flags, ms_delta, seq_delta)
    if at == 0:
        at = listpack.put_int(node, end, flags)
        at = listpack.put_int(node, at, ms_delta)
        at = listpack.put_int(node, at, seq_delta)
    if not same:
        at = listpack.put_int(node, at, fields)
    # `while` stays in C; a range whose step is known only at run time would be a Python object.
    step = 2 if same else 1
    piece = first + step - 1
    while piece < frame.count:
        at = _put_piece(node, at, frame, piece)
        piece += step
    pieces = fields + 3 if same else 2 * fields + 4
    at = listpack.put_int(node, at, pieces)
    _finish(node, at, pieces + 1)
    return moved != 0


def _put_piece(node: bytearray, at: int, frame: Frame, piece: int) -> int:
    behind = memory.put_short_string(node, at, frame.spans, piece, frame.buffer)
    if behind:
        return behind
    start = memory.span_start(frame.spans, piece)
    return listpack.put_string(node, at, frame.buffer, start, memory.span_size(frame.spans, piece))


def bytes_bound(fields: int, raw_bytes: int) -> int:
    """An upper bound for the bytes of a header or an entry with these fields."""
    return raw_bytes + 2 * fields * _OVERHEAD_MAX + _FIXED_BYTES_MAX


def node_bound(frame: Frame, first: int, raw_bytes: int) -> int:
    """An upper bound for the bytes that `begin` and the first `append_entry` need together."""
    fields = (frame.count - first) // 2
    names_bytes = 0
    for i in range(fields):
        names_bytes += frame.size(first + 2 * i)
    return _EMPTY_BYTES + bytes_bound(fields, names_bytes) + bytes_bound(fields, raw_bytes)


def reserve(node: bytearray, more: int) -> None:
    """Lengthen the bytearray so that `more` bytes fit after the listpack."""
    listpack.check_room(node, more)
    lengthen(node, memory.load32(node, 0) + more)


def lengthen(node: bytearray, size: int) -> None:
    """Make the bytearray at least `size` bytes long; its contents stay."""
    missing = size - len(node)
    if missing > 0:
        # Doubling: a stream with one small entry stays small, one that fills nodes stops growing.
        memory.grow(node, len(node) + max(missing, len(node), _ROOM_BYTES_MIN))


def _finish(node: bytearray, at: int, elements: int) -> None:
    """Write the end byte and update the header's counts."""
    node[at] = _END
    memory.store32(node, 0, at + 1)
    count = memory.load16(node, 4)
    memory.store16(node, 4, min(count + elements, _COUNT_UNKNOWN))


def _has_header_fields(node: bytearray, frame: Frame, first: int, fields: int) -> bool:
    """Compare the frame's names with the header's."""
    if node[_LIVE_AT] <= _SMALL_MAX and node[_LIVE_AT + 2] <= _SMALL_MAX:
        at = _LIVE_AT + 4  # two elements of two bytes: the usual case
    else:
        at = listpack.skip(node, listpack.skip(node, _LIVE_AT))
    if listpack.get_int(node, at) != fields:
        return False
    at = listpack.skip(node, at)
    piece = first
    while piece < frame.count:
        if memory.is_short_string(node, at, frame.spans, piece, frame.buffer):
            at += 2 + (node[at] & 0x3F)
            piece += 2
            continue
        start = memory.span_start(frame.spans, piece)
        size = memory.span_size(frame.spans, piece)
        if not listpack.equals(node, at, frame.buffer, start, size):
            return False
        at = listpack.skip(node, at)
        piece += 2
    return True


def live_count(node: bytearray) -> int:
    """The number of entries that are not deleted."""
    return listpack.get_int(node, _LIVE_AT)


def entry_count(node: bytearray) -> int:
    """The number of entries, tombstones included."""
    live = node[_LIVE_AT]
    deleted = node[_LIVE_AT + 2]
    if live <= _SMALL_MAX and deleted <= _SMALL_MAX:
        return live + deleted  # each an element of two bytes: the usual case
    deleted_at = listpack.skip(node, _LIVE_AT)
    return listpack.get_int(node, _LIVE_AT) + listpack.get_int(node, deleted_at)


def sealed(node: bytearray) -> bytearray:
    """A copy without spare bytes, for a node that takes no more entries."""
    return node[: listpack.total_bytes(node)]


_NO_NODE = bytearray()


def new_cursor() -> NodeCursor:
    """A cursor that is not in a node yet; bypasses `type.__call__`."""
    made = NodeCursor.__new__(NodeCursor)
    made._reset()
    return made


class NodeCursor:
    """Walks the entries of one node, tombstones included, in either direction.

    Open: open. Move: first, last, next, previous, enter (True while there is an entry). The entry: ms, seq,
    deleted, field_count, fields, mapping. Its bytes: node, place, names_at (if same_fields), pieces_at (its
    names and values that `fields` and `mapping` have not read). Change: mark_deleted.
    """

    __slots__ = (
        "_entries_at",
        "_header_fields",
        "_left",
        "_names",
        "deleted",
        "field_count",
        "master_ms",
        "master_seq",
        "ms",
        "names_at",
        "node",
        "pieces_at",
        "place",
        "same_fields",
        "seq",
    )

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.node = _NO_NODE
        self.master_ms = 0
        self.master_seq = 0
        self.ms = 0
        self.seq = 0
        self.deleted = False
        self.place = 0
        self.pieces_at = 0
        self._left = 0
        self._names: list[bytes] | None = None

    def open(self, node: bytearray, master_ms: int, master_seq: int) -> None:
        """Open a node with this key; the cursor is before its first entry."""
        self.node = node
        self.master_ms = master_ms
        self.master_seq = master_seq
        self._names = None
        at = listpack.skip(node, listpack.skip(node, _LIVE_AT))
        self._header_fields = listpack.get_int(node, at)
        self.names_at = listpack.skip(node, at)
        self._entries_at = self._behind(self.names_at, self._header_fields + 1)
        self.place = 0

    def enter(self, at: int) -> bool:
        """Go to the entry at a position that `place` returned. The node must not have changed since."""
        return self._enter(at)

    def first(self) -> bool:
        """Go to the first entry."""
        return self._enter(self._entries_at)

    def last(self) -> bool:
        """Go to the last entry."""
        return self._enter_before(memory.load32(self.node, 0) - 1)

    def next(self) -> bool:
        """Go to the entry after this one."""
        at = self._behind(self.pieces_at, self._left + 1)  # and the count of pieces
        found = memory.plain_entry(self.node, at)
        if found == 0:
            return self._enter(at)
        self.place = at
        self.deleted = False
        self.same_fields = True
        self.ms = memory.advance(self.master_ms, found >> 28)
        self.seq = memory.advance(self.master_seq, (found >> 4 & 0xFFFFFF ^ 0x800000) - 0x800000)
        self.field_count = self._left = self._header_fields
        self.pieces_at = at + (found & 15)
        return True

    def previous(self) -> bool:
        """Go to the entry before this one."""
        return self._enter_before(self.place)

    def _enter_before(self, at: int) -> bool:
        """Step back over the entry that ends before `at`."""
        if at <= self._entries_at:
            self.place = 0
            return False
        at = listpack.previous_at(self.node, at)
        for _ in range(listpack.get_int(self.node, at)):
            at = listpack.previous_at(self.node, at)
        return self._enter(at)

    def _behind(self, at: int, count: int) -> int:
        """The position behind `count` elements from `at` on. Raises: CorruptData."""
        behind = memory.skip_elements(self.node, at, count)
        if behind == 0:
            raise CorruptData("a stream's node: an element is damaged or runs past the end", at)
        return behind

    def _enter(self, at: int) -> bool:
        """Read the fixed part of the entry at `at`."""
        node = self.node
        if node[at] == _END:
            self.place = 0
            return False
        self.place = at
        flags = listpack.get_int(node, at)
        self.deleted = flags & _DELETED != 0
        self.same_fields = flags & _SAME_FIELDS != 0
        at = listpack.skip(node, at)
        self.ms = memory.advance(self.master_ms, listpack.get_int(node, at))
        at = listpack.skip(node, at)
        self.seq = memory.advance(self.master_seq, listpack.get_int(node, at))
        at = listpack.skip(node, at)
        if self.same_fields:
            self.field_count = self._header_fields
            self._left = self.field_count
        else:
            self.field_count = listpack.get_int(node, at)
            self._left = 2 * self.field_count
            at = listpack.skip(node, at)
        self.pieces_at = at
        return True

    def fields(self) -> list[bytes]:
        """All names and values of the entry in order, flat."""
        flat: list[bytes] = []
        if self.same_fields:
            for name in self._header_names():
                flat.append(name)
                flat.append(self._next_piece())
        else:
            while self._left > 0:
                flat.append(self._next_piece())
        return flat

    def mapping(self) -> dict[bytes, bytes]:
        """The entry's fields as a dictionary; if a name occurs twice, the last value counts."""
        found: dict[bytes, bytes] = {}
        if self.same_fields:
            for name in self._header_names():
                found[name] = self._next_piece()
        else:
            while self._left > 0:
                name = self._next_piece()
                found[name] = self._next_piece()
        return found

    def _next_piece(self) -> bytes:
        """The next name or value that is stored in the entry itself."""
        piece = listpack.get_bytes(self.node, self.pieces_at)
        self.pieces_at = listpack.skip(self.node, self.pieces_at)
        self._left -= 1
        return piece

    def _header_names(self) -> list[bytes]:
        """The header's names, decoded once for all entries that share them."""
        if self._names is None:
            self._names = []
            at = self.names_at
            for _ in range(self._header_fields):
                self._names.append(listpack.get_bytes(self.node, at))
                at = listpack.skip(self.node, at)
        return self._names

    def mark_deleted(self) -> bool:
        """Turn the entry into a tombstone. If it is the last live one, change nothing and return False.

        The cursor stays on the entry.
        """
        live = live_count(self.node)
        if live <= 1:
            return False
        flags = _DELETED | _SAME_FIELDS if self.same_fields else _DELETED
        listpack.put_int(self.node, self.place, flags)
        self.deleted = True
        deleted_at = listpack.skip(self.node, _LIVE_AT)
        deleted = listpack.get_int(self.node, deleted_at) + 1
        # A counter that changes its width moves everything after it, including this cursor.
        moved = listpack.replace_int(self.node, deleted_at, deleted)
        moved += listpack.replace_int(self.node, _LIVE_AT, live - 1)
        if moved:
            self.place += moved
            self.pieces_at += moved
            self.names_at += moved
            self._entries_at += moved
        return True
