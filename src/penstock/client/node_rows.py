# cython: wraparound=False
"""Decodes stream nodes into rows: listpacks from PENSTOCK NODES, or from a loaded Stream.

core/stream_node.py draws a node. Its header holds the field names of nearly all entries, so names are looked
up once per node, and only the values of such entries are walked.

The bytes are not trusted. The walk only goes forward and never leaves the node: each element must end before
the node does. Anything else raises CorruptData; the caller discards the rows added so far. Backlens are not
checked, because a forward walk does not need them.

    rows of the range    start <= id <= end, without tombstones
    detected damage      wrong sizes or counts in the header, elements beyond the end, wrong piece counts

Cost: about 10 ns per value, compiled.
"""

from __future__ import annotations

from penstock.client.rows import FieldNames, Rows
from penstock.core import listpack, memory, stream_id
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import CorruptData

_HEADER_BYTES = listpack.HEADER_BYTES
_END = listpack.END
_AS_INTEGER = 1 << 40  # as in columns.py
_DELETED = 1
_SAME_FIELDS = 2
_FIXED_PIECES = 3
_INTEGER_TEXT_BYTES = 20


class NodeRows:
    """Walks nodes. Call `open` for each node, then `run` until it returns True."""

    __slots__ = (
        "_at",
        "_buffer",
        "_deleted",
        "_end",
        "_found",
        "_header_names",
        "_last_ms",
        "_last_seq",
        "_live",
        "_master_ms",
        "_master_seq",
        "_names",
        "_rows",
        "_start",
        "_start_ms",
        "_start_seq",
        "_values_bytes",
        "is_open",
    )

    def __init__(self, rows: Rows, start: StreamID = SMALLEST, end: StreamID = LARGEST) -> None:
        self._rows = rows
        self._start_ms = start.ms
        self._start_seq = start.seq
        self._last_ms = end.ms
        self._last_seq = end.seq
        self._buffer = bytearray()
        self._start = 0
        self._names: FieldNames | None = None
        self.is_open = False

    def open(self, buffer: bytearray, start: int, size: int, master: StreamID) -> None:
        """Start with the node of `size` bytes at `start`. Raises: CorruptData."""
        self._buffer = buffer
        self._start = start
        self._master_ms = master.ms
        self._master_seq = master.seq
        self._at = start + _HEADER_BYTES
        self._end = start + size - 1
        self._found = self._deleted = 0
        if size < _HEADER_BYTES + 1 or start < 0 or size > len(buffer) - start:
            raise CorruptData(f"a node of {size} bytes", 0)
        if memory.load32(buffer, start) != size or buffer[self._end] != _END:
            self._refuse(f"{size} bytes that are no listpack")
        try:
            self._open_header()
        except IndexError as error:
            raise CorruptData(str(error), self._at - start) from error
        self.is_open = True

    def _open_header(self) -> None:
        self._live = self._integer()
        self._found_deleted_too(self._integer())
        fields = self._integer()
        if fields < 0 or fields > self._end - self._at:
            self._refuse(f"a header of {fields} fields")
        names: list[bytes] = []
        for _ in range(fields):
            at = self._at
            self._step()
            names.append(listpack.get_bytes(self._buffer, at))
        if self._integer() != 0:
            self._refuse("a header that does not end with zero")
        self._header_names = self._rows.names_of(names)
        self._names = self._header_names

    def _found_deleted_too(self, deleted: int) -> None:
        if self._live < 0 or deleted < 0:
            self._refuse(f"{self._live} live and {deleted} deleted entries")
        self._deleted = deleted

    def run(self) -> bool:
        """Add the entries of the node. Returns False if the batch is full. Raises: CorruptData."""
        try:
            return self._run()
        except IndexError as error:
            raise CorruptData(str(error), self._at - self._start) from error

    def _run(self) -> bool:
        rows = self._rows
        buffer = self._buffer
        while self._at < self._end:
            entry_at = self._at
            flags = self._integer()
            if flags & ~(_DELETED | _SAME_FIELDS):
                self._refuse(f"an entry with unknown flags {flags}")
            ms = memory.advance(self._master_ms, self._integer())
            seq = memory.advance(self._master_seq, self._integer())
            if flags & _SAME_FIELDS:
                names = self._header_names
                pieces = names.count + _FIXED_PIECES
                self._same_values(names.count)
            else:
                names = self._own_values()
                pieces = 2 * names.count + _FIXED_PIECES + 1
            if self._integer() != pieces:
                self._refuse(f"an entry that does not have the {pieces} pieces it should have")
            if flags & _DELETED:
                self._deleted -= 1
                continue
            self._found += 1
            if stream_id.compare(ms, seq, self._start_ms, self._start_seq) < 0:
                continue
            if stream_id.compare(ms, seq, self._last_ms, self._last_seq) > 0:
                self.is_open = False
                return True
            if not rows.has_room(self._values_bytes, names):
                self._at = entry_at
                self._found -= 1
                return False
            rows.add(ms, seq, buffer, names)
        self.is_open = False
        if self._found != self._live or self._deleted != 0:
            self._refuse("live and deleted entries are not as many as the header says")
        return True

    def _same_values(self, count: int) -> None:
        """Note the places of the values of an entry with the header's names."""
        rows = self._rows
        buffer = self._buffer
        end = self._end
        at = self._at
        rows.reserve_spans(count)
        spans = rows.spans
        total = 0
        number = 0
        while number < count:
            lead = buffer[at]
            if lead < 0x80:
                memory.store_pair(spans, 16 * number, at, _AS_INTEGER)
                at += 2
                total += _INTEGER_TEXT_BYTES
            elif lead < 0xC0:
                lead &= 0x3F
                memory.store_pair(spans, 16 * number, at + 1, lead)
                at += 2 + lead
                total += lead
            else:
                self._at = at
                total += self._note_long(number)
                at = self._at
            if at > end:
                self._refuse("an element that runs past the end of the node")
            number += 1
        self._at = at
        self._values_bytes = total

    def _own_values(self) -> FieldNames:
        """Note the places of the values of an entry with its own names. Returns these names."""
        rows = self._rows
        buffer = self._buffer
        fields = self._integer()
        if fields < 0 or fields > self._end - self._at:
            self._refuse(f"an entry of {fields} fields")
        known = self._names
        assert known is not None
        expected = known.names
        same = known.count == fields
        at = self._at
        rows.reserve_spans(fields)
        total = 0
        number = 0
        while number < fields:
            name_at = self._at
            self._step()
            if same and not _is_element(buffer, name_at, expected[number]):
                same = False
            total += self._note_long(number)
            number += 1
        self._values_bytes = total
        if not same:
            known = rows.names_of(self._own_names(at, fields))
            self._names = known
        return known

    def _own_names(self, at: int, fields: int) -> list[bytes]:
        """The names of an entry whose elements are known to be inside the node."""
        names: list[bytes] = []
        for _ in range(fields):
            names.append(listpack.get_bytes(self._buffer, at))
            at = listpack.skip(self._buffer, listpack.skip(self._buffer, at))
        return names

    def _note_long(self, number: int) -> int:
        """Note the place of a value of any size and skip it. Returns the maximum length of its text."""
        buffer = self._buffer
        at = self._at
        self._step()
        if listpack.is_int(buffer, at):
            memory.store_pair(self._rows.spans, 16 * number, at, _AS_INTEGER)
            return _INTEGER_TEXT_BYTES
        size = listpack.string_size(buffer, at)
        memory.store_pair(self._rows.spans, 16 * number, listpack.string_at(buffer, at), size)
        return size

    def _integer(self) -> int:
        """Read the next element, which must be an integer."""
        at = self._at
        lead = self._buffer[at]
        if lead < 0x80 and at + 2 <= self._end:
            self._at = at + 2
            return lead
        self._step()
        return listpack.get_int(self._buffer, at)

    def _step(self) -> None:
        """Skip the next element, which must be inside the node."""
        if self._at >= self._end:
            self._refuse("a node that ends where an element is expected")
        at = listpack.skip(self._buffer, self._at)
        if at > self._end:
            self._refuse("an element that runs past the end of the node")
        self._at = at

    def _refuse(self, what: str) -> None:
        self.is_open = False
        raise CorruptData(
            f"the node {memory.format_pair(self._master_ms, self._master_seq).decode()}: {what}",
            self._at - self._start,
        )


def _is_element(buffer: bytearray, at: int, name: bytes) -> bool:
    """Whether an element equals this name."""
    lead = buffer[at]
    if 0x80 <= lead < 0xC0:
        return memory.is_bytes(buffer, at + 1, lead & 0x3F, name)
    return listpack.get_bytes(buffer, at) == name
