# cython: wraparound=False
"""Builds the columns of a batch directly as Arrow buffers.

    validity   one bit per row, least significant first; 0 is null
    data       fixed width: width bytes per row     text: all values without gaps
    offsets    text only: 32 bits per row plus one, where each value begins in data

    "a", null, "bc"    validity 05    offsets 0 1 1 3    data a b c

Buffers grow by doubling and are passed to Arrow without a copy when the batch is full, so no value becomes a
Python object. Arrow pins these bytearrays. The next batch gets new ones of the same size.

A column of pairs (Pairs) holds all fields of an entry: offsets into two text columns, names and values. Maps
and lists of structs both have this form in Arrow.

Invariants
  CC1  offsets has an entry for every row put so far, null or not, and the last one is the size of data.
  CC2  rows are put in order, each exactly once.
  CC3  data of a text column stays below 2**31 bytes; Rows ends the batch before that.
"""

from __future__ import annotations

from penstock.client import value_text
from penstock.client.value_text import ValueText
from penstock.core import listpack, memory

STRING, BINARY, INTEGER, FLOAT, DOUBLE, BOOLEAN = 1, 2, 3, 4, 5, 6
DATE, TIMESTAMP, LOCAL_TIMESTAMP, DECIMAL = 7, 8, 9, 10
STREAM, ENTRY_ID, ENTRY_TIME = 11, 12, 13

_STRING, _BINARY, _INTEGER, _FLOAT, _DOUBLE, _BOOLEAN = (
    STRING,
    BINARY,
    INTEGER,
    FLOAT,
    DOUBLE,
    BOOLEAN,
)
_DATE, _TIMESTAMP, _LOCAL_TIMESTAMP, _DECIMAL = DATE, TIMESTAMP, LOCAL_TIMESTAMP, DECIMAL
_STREAM, _ENTRY_ID, _ENTRY_TIME = STREAM, ENTRY_ID, ENTRY_TIME

AS_INTEGER = 1 << 40
"""Used as the size of a value: the value is the listpack integer that begins there, not text."""
_AS_INTEGER = AS_INTEGER

TEXT_BYTES_MAX = 2**31 - 1
_ROWS_FIRST = 256  # a batch of a few rows costs a few bytes
_INTEGER_TEXT_BYTES = 20
_ID_TEXT_BYTES_MAX = 41
_INT64_MAX = 2**63 - 1
_TIME_MS_MAX = 253_402_300_799_999  # 9999-12-31T23:59:59.999, Spark's last timestamp
_MASK32 = 0xFFFFFFFF  # a literal of this size would be a Python object in compiled code
_DASH = 45

Buffers = tuple[bytearray, bytearray | None, bytearray, int]
"""Validity, offsets, data and the number of nulls."""


class Column:
    """One column. Add values: put, put_null, put_text, put_id, put_time. Get the buffers: take."""

    __slots__ = (
        "_capacity",
        "_data",
        "_offsets",
        "_size",
        "_text",
        "_validity",
        "is_text",
        "kind",
        "nulls",
        "precision",
        "scale",
        "width",
    )

    def __init__(self, kind: int, width: int = 0, precision: int = 0, scale: int = 0) -> None:
        """`width`: the bytes of a number. `precision`, `scale`: of a decimal."""
        self.kind = kind
        self.width = width
        self.precision = precision
        self.scale = scale
        self.is_text = kind in (STRING, BINARY, STREAM, ENTRY_ID)
        self._text = ValueText()
        self._capacity = _ROWS_FIRST
        self._begin(0)

    def _begin(self, data_bytes: int) -> None:
        rows = self._capacity
        self._validity = bytearray(rows // 8)
        self._offsets = bytearray(4 * (rows + 1) if self.is_text else 0)
        if self.kind == _BOOLEAN:
            data_bytes = rows // 8
        elif not self.is_text:
            data_bytes = rows * self.width
        self._data = bytearray(data_bytes)
        self._size = 0
        self.nulls = 0

    def take(self) -> Buffers:
        """Return the buffers of the batch and start the next one."""
        taken = (self._validity, self._offsets if self.is_text else None, self._data, self.nulls)
        self._begin(len(self._data))
        return taken

    def text_bytes(self) -> int:
        """The size of all texts so far."""
        return self._size

    def _grow(self) -> None:
        rows = self._capacity
        self._validity.extend(bytes(rows // 8))
        if self.is_text:
            self._offsets.extend(bytes(4 * rows))
        elif self.kind == _BOOLEAN:
            self._data.extend(bytes(rows // 8))
        else:
            self._data.extend(bytes(rows * self.width))
        self._capacity = 2 * rows

    def _room(self, size: int) -> None:
        """Make room for `size` more bytes of text."""
        missing = self._size + size - len(self._data)
        if missing > 0:
            self._data.extend(bytes(max(missing, len(self._data), 4096)))

    def put_null(self, row: int) -> None:
        """Put null."""
        if row >= self._capacity:
            self._grow()
        if self.is_text:
            memory.store32(self._offsets, 4 * row + 4, self._size)
        self.nulls += 1

    def put(self, row: int, buffer: bytearray, start: int, size: int) -> bool:
        """Put a stored value. Returns False, and puts nothing, if it does not fit the column's type.

        `size`: the size of the text, or AS_INTEGER for a listpack integer.
        """
        kind = self.kind
        if kind == _STRING or kind == _BINARY:
            if size == _AS_INTEGER:
                self._put_digits(row, listpack.get_int(buffer, start))
                return True
            if kind == _STRING and not value_text.is_utf8(buffer, start, size):
                return False
            self.put_text(row, buffer, start, size)
            return True
        if row >= self._capacity:
            self._grow()
        if kind == _INTEGER:
            return self._put_integer(row, buffer, start, size)
        if kind == _DOUBLE or kind == _FLOAT:
            return self._put_real(row, buffer, start, size)
        if kind == _DECIMAL:
            return self._put_decimal(row, buffer, start, size)
        return self._put_odd(row, buffer, start, size)

    def put_text(self, row: int, buffer: bytearray, start: int, size: int) -> None:
        """Put a text that is known to be valid."""
        if row >= self._capacity:
            self._grow()
        self._room(size)
        memory.copy(self._data, self._size, buffer, start, size)
        self._text_is_put(row, size)

    def put_bytes(self, row: int, text: bytes) -> None:
        """As put_text, for a bytes object."""
        if row >= self._capacity:
            self._grow()
        self._room(len(text))
        memory.put(self._data, self._size, text)
        self._text_is_put(row, len(text))

    def _text_is_put(self, row: int, size: int) -> None:
        self._size += size
        memory.store32(self._offsets, 4 * row + 4, self._size)
        self._validity[row >> 3] |= 1 << (row & 7)

    def _put_digits(self, row: int, value: int) -> None:
        if row >= self._capacity:
            self._grow()
        self._room(_INTEGER_TEXT_BYTES)
        end = memory.put_number(self._data, self._size, value)
        self._text_is_put(row, end - self._size)

    def put_id(self, row: int, ms: int, seq: int) -> None:
        """Put `ms-seq`."""
        if ms > _INT64_MAX or seq > _INT64_MAX:
            self.put_bytes(row, memory.format_pair(ms, seq))
        else:
            if row >= self._capacity:
                self._grow()
            self._room(_ID_TEXT_BYTES_MAX)
            at = memory.put_number(self._data, self._size, ms)
            self._data[at] = _DASH
            at = memory.put_number(self._data, at + 1, seq)
            self._text_is_put(row, at - self._size)

    def put_time(self, row: int, ms: int) -> None:
        """Put the milliseconds of an id as a timestamp, or null beyond Spark's range."""
        if ms > _TIME_MS_MAX:
            self.put_null(row)
        else:
            if row >= self._capacity:
                self._grow()
            memory.store64(self._data, 8 * row, ms * 1000)
            self._validity[row >> 3] |= 1 << (row & 7)

    def _put_integer(self, row: int, buffer: bytearray, start: int, size: int) -> bool:
        if size == _AS_INTEGER:
            number = listpack.get_int(buffer, start)
        elif self._text.integer(buffer, start, size):
            number = self._text.number
        else:
            return False
        width = self.width
        if width == 8:
            memory.store64(self._data, 8 * row, memory.advance(0, number))
        elif width == 4:
            if number < -2147483648 or number > 2147483647:
                return False
            memory.store32(self._data, 4 * row, number & _MASK32)
        elif width == 2:
            if number < -32768 or number > 32767:
                return False
            memory.store16(self._data, 2 * row, number & 0xFFFF)
        else:
            if number < -128 or number > 127:
                return False
            self._data[row] = number & 0xFF
        self._validity[row >> 3] |= 1 << (row & 7)
        return True

    def _put_real(self, row: int, buffer: bytearray, start: int, size: int) -> bool:
        if size == _AS_INTEGER:
            real = float(listpack.get_int(buffer, start))
        elif self._text.real_number(buffer, start, size):
            real = self._text.real
        else:
            return False
        if self.kind == _DOUBLE:
            memory.store_double(self._data, 8 * row, real)
        else:
            memory.store_float(self._data, 4 * row, real)
        self._validity[row >> 3] |= 1 << (row & 7)
        return True

    def _put_decimal(self, row: int, buffer: bytearray, start: int, size: int) -> bool:
        text = self._text
        if size == _AS_INTEGER:
            number = listpack.get_int(buffer, start)
            if not text.decimal_of(number, self.precision, self.scale):
                return False
        elif not text.decimal_number(buffer, start, size, self.precision, self.scale):
            return False
        if text.wide is not None:
            memory.put(self._data, 16 * row, text.wide)
        else:
            number = text.number
            sign = -1 if number < 0 else 0
            memory.store_pair(
                self._data, 16 * row, memory.advance(0, number), memory.advance(0, sign)
            )
        self._validity[row >> 3] |= 1 << (row & 7)
        return True

    def _put_odd(self, row: int, buffer: bytearray, start: int, size: int) -> bool:
        """Booleans, dates and timestamps."""
        text = self._text
        kind = self.kind
        if size == _AS_INTEGER:
            number = listpack.get_int(buffer, start)
            if kind != _BOOLEAN or number < 0 or number > 1:
                return False
        else:
            if kind == _BOOLEAN:
                found = text.boolean(buffer, start, size)
            elif kind == _DATE:
                found = text.date(buffer, start, size)
            else:
                found = text.timestamp(buffer, start, size, kind == _TIMESTAMP)
            if not found:
                return False
            number = text.number
        if kind == _BOOLEAN:
            if number:
                self._data[row >> 3] |= 1 << (row & 7)
        elif kind == _DATE:
            memory.store32(self._data, 4 * row, number & _MASK32)
        else:
            memory.store64(self._data, 8 * row, memory.advance(0, number))
        self._validity[row >> 3] |= 1 << (row & 7)
        return True


class Pairs:
    """A column of name-value pairs: a map, or a list of structs.

    To add a pair, put a name and a value in row `count` of the two columns and increment count. Call end_row
    after the last pair of a row.
    """

    __slots__ = ("_capacity", "_offsets", "_validity", "count", "names", "nulls", "values")

    def __init__(self, name_kind: int, value_kind: int) -> None:
        self.names = Column(name_kind)
        self.values = Column(value_kind)
        self._capacity = _ROWS_FIRST
        self._begin()

    def _begin(self) -> None:
        self._validity = bytearray(self._capacity // 8)
        self._offsets = bytearray(4 * (self._capacity + 1))
        self.count = 0
        self.nulls = 0

    def take(self) -> Buffers:
        """Validity and offsets of the rows. `names` and `values` are taken separately."""
        taken = (self._validity, self._offsets, bytearray(), self.nulls)
        self._begin()
        return taken

    def end_row(self, row: int, is_null: bool) -> None:
        """End a row: the pairs since the last call belong to it."""
        if row >= self._capacity:
            self._validity.extend(bytes(self._capacity // 8))
            self._offsets.extend(bytes(4 * self._capacity))
            self._capacity *= 2
        memory.store32(self._offsets, 4 * row + 4, self.count)
        if is_null:
            self.nulls += 1
        else:
            self._validity[row >> 3] |= 1 << (row & 7)
