# cython: wraparound=False
"""Bytes of an RDB file on their way out, in pieces of a quarter of a megabyte.

    buffer   [ written, not given away yet ... at | room ]

The forms of lengths and strings are those of input.py, always the shortest. A string is written the way
Redis does it: one that reads as an integer of 32 bits as that integer; one above 20 bytes compressed, if
that saves four bytes; else as it is. So what Redis and we write of the same value is the same, byte for
byte, except inside of what is compressed.

It holds no lock and starts nothing: a forked child may use it.

Cost: a copy, the checksum, and 3 to 8 ns for each byte of a string that may be compressed.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.core import crc64, memory
from penstock.core.lzf import Compressor
from penstock.persist.rdb import format as rdb_format

CHUNK_BYTES = 256 * 1024

_CHUNK_BYTES = CHUNK_BYTES
_ENCODED = 0xC0
_LZF = rdb_format.LZF
_INTEGER_BYTES_MAX = 11
_COMPRESSED_BYTES_MIN = 21
_SAVED_BYTES_MIN = 4
_MASK64 = 2**64 - 1


class RdbOutput:
    """Where the next byte goes. `write` gets chunks; `flush` gives it the last one."""

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
        """Give away what is here."""
        if self._checksum:
            self._crc = crc64.update(self._crc, self._buffer, 0, self._at)
        if self._at:
            self._write(memory.cut(self._buffer, 0, self._at))
        self._at = 0
        if len(self._buffer) > 4 * _CHUNK_BYTES:
            self._buffer = bytearray(_CHUNK_BYTES)  # a giant has gone through

    def crc_now(self) -> int:
        """The checksum of everything so far, which is given away; 0 if none is wanted."""
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
        """An unsigned number of 64 bits; also a length."""
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
        """A number of so many bytes, most significant first."""
        while width > 0:
            width -= 1
            self.byte(value >> (8 * width) & 0xFF)

    def signed(self, value: int) -> None:
        """A signed number in the form of an unsigned one: -1 is 2**64 - 1."""
        self.number(memory.advance(0, value))

    def milliseconds(self, value: int) -> None:
        """A time in eight bytes, least significant first."""
        self._reserve(8)
        memory.store64(self._buffer, self._at, memory.advance(0, value))
        self._at += 8

    def raw(self, data: bytes) -> None:
        """Bytes as they are."""
        self._reserve(len(data))
        memory.put(self._buffer, self._at, data)
        self._at += len(data)

    def string(self, data: bytes) -> None:
        """A string in its shortest form."""
        if len(data) >= _COMPRESSED_BYTES_MIN and self._compressor is not None:
            self.piece(bytearray(data), 0, len(data))
        elif len(data) > _INTEGER_BYTES_MAX or not self._put_integer(data):
            self.number(len(data))
            self.raw(data)

    def _put_integer(self, data: bytes) -> bool:
        """Write a string as an integer, if it is exactly how one of up to 32 bits is written."""
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
        """A piece of a buffer (a node) as a string, compressed if that is worth it."""
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
