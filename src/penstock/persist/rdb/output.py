# cython: wraparound=False
"""Writes the bytes of an RDB file, in pieces of a quarter of a megabyte.

    buffer   [ not flushed yet ... at | room ]

Lengths and strings have the forms shown in input.py, always the shortest one. Strings follow Redis's rules:
the text of a 32-bit integer is written as that integer, a string above 20 bytes is compressed if that saves
at least four bytes, and any other string is written unchanged. So Redis and penstock write the same bytes for
the same value, except inside compressed strings.

It takes no lock and starts no thread, so a forked child may use it.

Cost: one copy, the checksum, and 3 to 8 ns per byte of a string that may be compressed.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.core import memory
from penstock.persist.rdb import crc64
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.lzf import Compressor

CHUNK_BYTES = 256 * 1024

_CHUNK_BYTES = CHUNK_BYTES
_ENCODED = 0xC0
_LZF = rdb_format.LZF
_INTEGER_BYTES_MAX = 11
_COMPRESSED_BYTES_MIN = 21
_SAVED_BYTES_MIN = 4
_MASK64 = 2**64 - 1


class RdbOutput:
    """A buffered output. `write` is called with chunks; `flush` passes on the last one."""

    __slots__ = ("_at", "_buffer", "_checksum", "_compressor", "_crc", "_packed", "_write")

    def __init__(self, write: Callable[[bytes], object], compress: bool, checksum: bool) -> None:
        self._write = write
        self._compressor = Compressor() if compress else None
        self._checksum = checksum
        self._buffer = bytearray(_CHUNK_BYTES)
        self._packed = bytearray()
        self._at = 0
        self._crc = 0

    def flush(self) -> None:
        """Pass the buffered bytes to `write`."""
        if self._checksum:
            self._crc = crc64.update(self._crc, self._buffer, 0, self._at)
        if self._at:
            self._write(memory.cut(self._buffer, 0, self._at))
        self._at = 0
        if len(self._buffer) > 4 * _CHUNK_BYTES:
            self._buffer = bytearray(_CHUNK_BYTES)  # free the buffer of a very large value

    def crc_now(self) -> int:
        """Flush, and return the checksum of everything so far; 0 without checksums."""
        self.flush()
        return self._crc

    def _reserve(self, size: int) -> None:
        if size > len(self._buffer) - self._at:
            self.flush()
            if size > len(self._buffer):
                self._buffer = bytearray(size)

    def byte(self, value: int) -> None:
        self._reserve(1)
        self._buffer[self._at] = value
        self._at += 1

    def number(self, value: int) -> None:
        """Write an unsigned 64-bit number or a length."""
        if value < 0x40:
            self.byte(value)
        elif value < 0x4000:
            self.byte(0x40 | value >> 8)
            self.byte(value & 0xFF)
        elif value <= 0xFFFFFFFF:
            self.byte(0x80)
            self._big(value, 4)
        else:
            self.byte(0x81)
            self._big(value, 8)

    def _big(self, value: int, width: int) -> None:
        """Write a number of `width` bytes, most significant first."""
        while width > 0:
            width -= 1
            self.byte(value >> (8 * width) & 0xFF)

    def signed(self, value: int) -> None:
        """Write a signed number as an unsigned one: -1 as 2**64 - 1."""
        self.number(memory.advance(0, value))

    def milliseconds(self, value: int) -> None:
        """Write a time: eight bytes, least significant first."""
        self._reserve(8)
        memory.store64(self._buffer, self._at, memory.advance(0, value))
        self._at += 8

    def raw(self, data: bytes) -> None:
        """Write bytes unchanged."""
        self._reserve(len(data))
        memory.put(self._buffer, self._at, data)
        self._at += len(data)

    def string(self, data: bytes) -> None:
        """Write a string in its shortest form."""
        if len(data) >= _COMPRESSED_BYTES_MIN and self._compressor is not None:
            self.piece(bytearray(data), 0, len(data))
        elif len(data) > _INTEGER_BYTES_MAX or not self._put_integer(data):
            self.number(len(data))
            self.raw(data)

    def _put_integer(self, data: bytes) -> bool:
        """Write a string as an integer, if it is the canonical text of a 32-bit integer."""
        if not data or data[0] > 57 or not data.removeprefix(b"-").isdigit():
            return False
        value = int(data)
        if b"%d" % value != data or not -(2**31) <= value < 2**31:
            return False
        width = 0 if -(2**7) <= value < 2**7 else 1 if -(2**15) <= value < 2**15 else 2
        self.byte(_ENCODED | width)
        self.raw(value.to_bytes(1 << width, "little", signed=True))
        return True

    def piece(self, source: bytearray, start: int, size: int) -> None:
        """Write a slice of a buffer (a node) as a string, compressed if that saves enough."""
        packed = 0
        if size >= _COMPRESSED_BYTES_MIN and self._compressor is not None:
            room = size - _SAVED_BYTES_MIN
            if len(self._packed) < room or len(self._packed) > 2 * _CHUNK_BYTES:
                self._packed = bytearray(room)
            packed = self._compressor.compress(source, start, size, self._packed, room)
        if packed > 0:
            self.byte(_ENCODED | _LZF)
            self.number(packed)
            self.number(size)
            self._copy(self._packed, 0, packed)
        else:
            self.number(size)
            self._copy(source, start, size)

    def _copy(self, source: bytearray, start: int, size: int) -> None:
        self._reserve(size)
        memory.copy(self._buffer, self._at, source, start, size)
        self._at += size
