# cython: wraparound=False
"""Packs Arrow text columns into blobs of rows (core/row_blob.py).

    temp        "21"  "22"                 dd 00000002
    wet         null  "yes"          ->       92 a4 "temp" a2 "21"
                                              94 a4 "temp" a2 "22" a3 "wet" a3 "yes"

The buffers of a column are copied once as a whole. From there, values go into the blob without Python
objects. A null value is not a field of its row. A blob is closed after the row that makes it `bytes_max` long
or longer: large enough that the cost per command does not matter, small enough that the server can do other
work in between.

Invariants
  RB1  a blob begins with array32, whose number is written when the blob is closed.
  RB2  a row is in the buffer entirely or not at all: its size is counted before its first byte is written.
"""

from __future__ import annotations

from penstock.core import memory

HEAD_BYTES = 5
_HEAD_BYTES = HEAD_BYTES
_FIRST_BYTES = 4096  # a stream of a few rows costs a few bytes
_ARRAY32 = 0xDD
_ARRAY16 = 0xDC
_FIXARRAY = 0x90
_FIXSTR = 0xA0
_STR8, _STR16, _STR32 = 0xD9, 0xDA, 0xDB


class TextColumn:
    """A text column: validity (None without nulls), 32-bit offsets and data, starting at row `first`."""

    __slots__ = ("_data", "_first", "_has_nulls", "_offsets", "_validity", "name", "size", "start")

    def __init__(
        self,
        name: bytes,
        validity: bytearray | None,
        offsets: bytearray,
        data: bytearray,
        first: int = 0,
    ) -> None:
        self.name = name
        self._has_nulls = validity is not None
        self._validity = bytearray() if validity is None else validity
        self._offsets = offsets
        self._data = data
        self._first = first
        self.start = 0
        self.size = -1

    def seek(self, row: int) -> bool:
        """Find the text of a row: sets `start` and `size`. Returns False for null, with a negative size."""
        row += self._first
        if self._has_nulls and not self._validity[row >> 3] >> (row & 7) & 1:
            self.size = -1
            return False
        self.start = memory.load32(self._offsets, 4 * row)
        self.size = memory.load32(self._offsets, 4 * row + 4) - self.start
        return True


class PairColumn:
    """Names and values per row: offsets into two text columns, starting at row `first`."""

    __slots__ = ("_first", "_has_nulls", "_offsets", "_validity", "end", "names", "start", "values")

    def __init__(
        self,
        names: TextColumn,
        values: TextColumn,
        validity: bytearray | None,
        offsets: bytearray,
        first: int = 0,
    ) -> None:
        self.names = names
        self.values = values
        self._has_nulls = validity is not None
        self._validity = bytearray() if validity is None else validity
        self._offsets = offsets
        self._first = first
        self.start = 0
        self.end = 0

    def seek(self, row: int) -> None:
        """Find the pairs of a row: from `start` up to but excluding `end`."""
        row += self._first
        if self._has_nulls and not self._validity[row >> 3] >> (row & 7) & 1:
            self.start = self.end = 0
        else:
            self.start = memory.load32(self._offsets, 4 * row)
            self.end = memory.load32(self._offsets, 4 * row + 4)


class RowBlobs:
    """Builds blobs: `add` rows, `take` full blobs, `close` the last one."""

    __slots__ = ("_buffer", "_bytes_max", "_fields_max", "_full", "_rows", "_size", "rows")

    def __init__(self, bytes_max: int, fields_max: int) -> None:
        self._bytes_max = bytes_max
        self._fields_max = fields_max
        self._buffer = bytearray(_FIRST_BYTES)
        self._size = _HEAD_BYTES
        self._rows = 0
        self._full: list[bytes] = []
        self.rows = 0  # added in total

    def add(
        self, columns: list[TextColumn], pairs: PairColumn | None, start: int, until: int
    ) -> None:
        """Add rows of these columns. Raises: ValueError for a row without fields or with too many."""
        for row in range(start, until):
            fields, room = self._measure(columns, pairs, row)
            if fields == 0:
                raise ValueError("every column is null, and an entry needs a field")
            if fields > self._fields_max:
                raise ValueError(f"{fields} fields; an entry may have {self._fields_max}")
            missing = self._size + room - len(self._buffer)
            if missing > 0:
                self._buffer.extend(bytes(missing + len(self._buffer)))
            self._put_array(2 * fields)
            for column in columns:
                if column.size >= 0:
                    self._put_name(column.name)
                    self._put_text(column._data, column.start, column.size)
            if pairs is not None:
                self._put_pairs(pairs)
            self._rows += 1
            self.rows += 1
            if self._size >= self._bytes_max:
                self.close()

    def take(self) -> list[bytes]:
        """The blobs closed since the last call."""
        taken = self._full
        self._full = []
        return taken

    def close(self) -> None:
        """End the current blob, if it has a row."""
        if self._rows:
            self._buffer[0] = _ARRAY32
            self._put_number(1, 4, self._rows)
            self._full.append(memory.cut(self._buffer, 0, self._size))
            self._size = _HEAD_BYTES
            self._rows = 0

    def _measure(
        self, columns: list[TextColumn], pairs: PairColumn | None, row: int
    ) -> tuple[int, int]:
        """The number of fields of a row and its maximum size in bytes. Leaves each column at the row."""
        fields = 0
        room = _HEAD_BYTES
        for column in columns:
            if column.seek(row):
                fields += 1
                room += 2 * _HEAD_BYTES + len(column.name) + column.size
        if pairs is not None:
            pairs.seek(row)
            for at in range(pairs.start, pairs.end):
                if pairs.values.seek(at) and pairs.names.seek(at):
                    fields += 1
                    room += 2 * _HEAD_BYTES + pairs.names.size + pairs.values.size
        return fields, room

    def _put_pairs(self, pairs: PairColumn) -> None:
        names = pairs.names
        values = pairs.values
        for at in range(pairs.start, pairs.end):
            if values.seek(at) and names.seek(at):
                self._put_text(names._data, names.start, names.size)
                self._put_text(values._data, values.start, values.size)

    def _put_array(self, count: int) -> None:
        if count < 16:
            self._buffer[self._size] = _FIXARRAY | count
            self._size += 1
        elif count < 65_536:
            self._buffer[self._size] = _ARRAY16
            self._put_number(self._size + 1, 2, count)
            self._size += 3
        else:
            self._buffer[self._size] = _ARRAY32
            self._put_number(self._size + 1, 4, count)
            self._size += 5

    def _put_name(self, name: bytes) -> None:
        self._put_text_head(len(name))
        memory.put(self._buffer, self._size, name)
        self._size += len(name)

    def _put_text(self, data: bytearray, start: int, size: int) -> None:
        self._put_text_head(size)
        memory.copy(self._buffer, self._size, data, start, size)
        self._size += size

    def _put_text_head(self, size: int) -> None:
        at = self._size
        if size < 32:
            self._buffer[at] = _FIXSTR | size
            self._size = at + 1
        elif size < 256:
            self._buffer[at] = _STR8
            self._buffer[at + 1] = size
            self._size = at + 2
        elif size < 65_536:
            self._buffer[at] = _STR16
            self._put_number(at + 1, 2, size)
            self._size = at + 3
        else:
            self._buffer[at] = _STR32
            self._put_number(at + 1, 4, size)
            self._size = at + 5

    def _put_number(self, at: int, width: int, number: int) -> None:
        while width:
            width -= 1
            self._buffer[at + width] = number & 0xFF
            number >>= 8
