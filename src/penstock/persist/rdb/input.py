# cython: wraparound=False
"""Reads the bytes of an RDB file, in pieces of a megabyte, or of a payload in memory.

    buffer   [ read ........ | at: not read yet ........ end | room ]
    offset   base + at, in the file

Only `need(n)` reads from the file. If fewer than n bytes are left in the buffer, it adds the bytes before
`at` to the checksum and drops them, moves the rest to the front, and fills the buffer. So the next n bytes
are contiguous, and a node is copied into its bytearray at once.

A length has one to nine bytes. The first two bits select the form:

    00LLLLLL                 up to 63              10000000 + 4 bytes      32 bits, most significant first
    01LLLLLL + 1 byte        up to 16383           10000001 + 8 bytes      64 bits, most significant first
    11000000, 01, 10         no length: an integer of 1, 2 or 4 bytes follows, a string of digits
    11000011                 no length: an LZF string: compressed size, size, bytes

Invariants
  RI1  the buffer grows with the bytes read, never with a stated length, which may be wrong. A compressed
      string may state at most 88 times its bytes (lzf.py).
  RI2  `_crc` is the checksum of everything before `_crc_from`. The bytes from there to `at` are still in the
      buffer.

Cost: a few ns for a length, one copy for a string, 0.6 ns per byte for the checksum.
"""

from __future__ import annotations

from typing import Protocol

from penstock.core import memory
from penstock.errors import CorruptData
from penstock.persist.rdb import crc64, lzf
from penstock.persist.rdb import format as rdb_format

CHUNK_BYTES = 1 << 20

_CHUNK_BYTES = CHUNK_BYTES
_LENGTH_MAX = 2**62
_PLAIN = 0
_INT8 = 1 + rdb_format.INT8
_INT32 = 1 + rdb_format.INT32
_LZF = 1 + rdb_format.LZF


class Source(Protocol):
    """An unbuffered file."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...


class RdbInput:
    """A position in a file.

    Read: byte, length, number, string, blob, raw, milliseconds, skip_string. Ask: offset, crc_now, rest.
    Report an error: corrupt.
    """

    __slots__ = ("_crc", "_crc_from", "_source", "at", "base", "buffer", "end", "name", "value")

    def __init__(
        self, source: Source | None, name: str = "", payload: bytes | bytearray = b""
    ) -> None:
        self.name = name
        self.buffer = bytearray(payload) if source is None else bytearray(_CHUNK_BYTES)
        self.base = 0
        self.at = 0
        self.end = len(self.buffer) if source is None else 0
        self.value = 0  # the last length or number
        self._source = source
        self._crc = 0
        self._crc_from = 0

    @property
    def offset(self) -> int:
        """The position in the file."""
        return self.base + self.at

    def corrupt(self, what: str, offset: int = -1) -> CorruptData:
        """An error for the caller to raise, at `offset` or at the current position."""
        return CorruptData(what, self.offset if offset < 0 else offset, self.name)

    def crc_now(self) -> int:
        """The checksum of everything read so far."""
        self._settle()
        return self._crc

    def rest(self) -> bytes:
        """The bytes that were read from the source but not used."""
        return bytes(self.buffer[self.at : self.end])

    def _settle(self) -> None:
        self._crc = crc64.update(self._crc, self.buffer, self._crc_from, self.at)
        self._crc_from = self.at

    # --- Filling ---------------------------------------------------------------------------------

    def need(self, size: int) -> None:
        """Make `size` bytes available at `at`. Raises: CorruptData if the file ends before."""
        if size > self.end - self.at:
            self._fill(size)

    def _fill(self, size: int) -> None:
        if self._source is None:
            raise self._cut_off(size)
        self._settle()
        kept = self.end - self.at
        if len(self.buffer) > 2 * _CHUNK_BYTES and size <= _CHUNK_BYTES:
            fresh = bytearray(_CHUNK_BYTES)  # free the buffer of a very large value
            memory.copy(fresh, 0, self.buffer, self.at, kept)
            self.buffer = fresh
        else:
            memory.move(self.buffer, 0, self.at, kept)
        self.base += self.at
        self.at = 0
        self._crc_from = 0
        self.end = kept
        while self.end < size:
            if self.end == len(self.buffer):
                self.buffer.extend(bytes(min(len(self.buffer), size - self.end)))  # RI1
            got = self._read()
            if got == 0:
                raise self._cut_off(size)
            self.end += got

    def _read(self) -> int:
        assert self._source is not None
        with memoryview(self.buffer) as view, view[self.end :] as room:
            return self._source.readinto(room) or 0

    def _cut_off(self, size: int) -> CorruptData:
        missing = size - (self.end - self.at)
        return self.corrupt(
            f"the data ends in the middle: {missing} of {size} bytes are missing", self.offset
        )

    # --- Numbers ---------------------------------------------------------------------------------

    def byte(self) -> int:
        self.need(1)
        self.at += 1
        return self.buffer[self.at - 1]

    def _lead(self) -> int:
        """Read a length into `value` and return 0, or return 1 + the number of a string encoding."""
        lead = self.byte()
        kind = lead >> 6
        if kind == 0:
            self.value = lead
        elif kind == 1:
            self.value = (lead & 0x3F) << 8 | self.byte()
        elif kind == 3:
            return 1 + (lead & 0x3F)
        elif lead == 0x80:
            self.value = self._big(4)
        elif lead == 0x81:
            self.value = self._big(8)
        else:
            raise self.corrupt(f"0x{lead:02x} is not the start of a length", self.offset - 1)
        return 0

    def _big(self, width: int) -> int:
        """Read a number of `width` bytes, most significant first."""
        self.need(8 if width == 8 else 4)
        value = 0
        for _ in range(width):
            value = value << 8 | self.buffer[self.at]
            self.at += 1
        return value

    def take_number(self) -> None:
        """Read an unsigned 64-bit number into `value`."""
        start = self.offset
        if self._lead():
            raise self.corrupt("an encoded string where a number is expected", start)

    def number(self) -> int:
        """Read an unsigned 64-bit number."""
        self.take_number()
        return self.value

    def length(self) -> int:
        """Read a count."""
        start = self.offset
        self.take_number()
        if self.value > _LENGTH_MAX:
            raise self.corrupt(f"a length of {self.value}", start)
        return self.value

    def milliseconds(self) -> int:
        """Read a time: eight bytes, signed, least significant first."""
        self.need(8)
        self.at += 8
        return memory.distance(memory.load64(self.buffer, self.at - 8), 0)

    # --- Strings ---------------------------------------------------------------------------------

    def raw(self, size: int) -> bytes:
        """Read `size` bytes."""
        self.need(size)
        self.at += size
        return memory.cut(self.buffer, self.at - size, size)

    def string(self) -> bytes:
        """Read a string in any encoding."""
        kind = self._lead()
        if kind == _PLAIN:
            return self.raw(self._size())
        if kind == _LZF:
            return bytes(self._unpacked())
        return self._integer_text(kind)

    def skip_string(self) -> None:
        """Skip a string without decoding it."""
        kind = self._lead()
        if kind == _LZF:
            left = self.length()
            self.length()
        elif kind == _PLAIN:
            left = self._size()
        elif _INT8 <= kind <= _INT32:
            left = 1 << (kind - 1)
        else:
            raise self.corrupt(f"unknown string encoding {kind - 1}", self.offset - 1)
        while left > 0:
            step = min(left, _CHUNK_BYTES)
            self.need(step)
            self.at += step
            left -= step

    def blob(self) -> bytearray:
        """Read a string into a bytearray."""
        kind = self._lead()
        if kind == _LZF:
            return self._unpacked()
        if kind != _PLAIN:
            return bytearray(self._integer_text(kind))
        size = self._size()
        self.need(size)
        self.at += size
        return self.buffer[self.at - size : self.at]

    def _size(self) -> int:
        """The last length, checked as the size of a string."""
        if self.value > _LENGTH_MAX:
            raise self.corrupt(f"a string of {self.value} bytes")
        return self.value

    def _integer_text(self, kind: int) -> bytes:
        """Read an integer, as the string of its decimal digits."""
        if not _INT8 <= kind <= _INT32:
            raise self.corrupt(f"unknown string encoding {kind - 1}", self.offset - 1)
        return b"%d" % int.from_bytes(self.raw(1 << (kind - 1)), "little", signed=True)

    def _unpacked(self) -> bytearray:
        """Read an LZF string."""
        size = self.length()
        promised = self.length()
        start = self.offset
        self.need(size)
        try:
            made = lzf.decompress(self.buffer, self.at, size, promised)
        except CorruptData as error:
            raise self.corrupt(error.what, start + error.offset) from None
        self.at += size
        return made
