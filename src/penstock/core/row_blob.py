# cython: wraparound=False
"""Row blobs: many rows in one string. A sink stages them before they are appended to a stream.

A blob is one MessagePack value: an array of rows, each an array of alternating names and values.

    [["temp", "21"], ["temp", "22", "wet", "yes"]]

    dd 00000002               array32: two rows
       92                     fixarray: two texts
          a4 "temp"           fixstr
          a2 "21"
       94 a4 "temp" a2 "22" a3 "wet" a3 "yes"

Only arrays (fixarray, array16, array32) and texts (fixstr, str8 to str32, bin8 to bin32) of MessagePack are
used. Any MessagePack library writes and reads them, including the one in Redis's Lua. A blob is not decoded
into objects here: a row becomes spans of a frame (frame.py), from which a stream appends.

Invariants
  B1  a row has at least one name and one value, and as many values as names.
  B2  nothing follows the last row.

Cost: about 5 ns per text; nothing is copied.
"""

from __future__ import annotations

from penstock.core.frame import Frame

_FIXARRAY, _FIXARRAY_END = 0x90, 0x9F
_ARRAY16, _ARRAY32 = 0xDC, 0xDD
_FIXSTR, _FIXSTR_END = 0xA0, 0xBF
_STR8, _STR16, _STR32 = 0xD9, 0xDA, 0xDB
_BIN8, _BIN16, _BIN32 = 0xC4, 0xC5, 0xC6


class RowBlob:
    """Reads blobs: call `open`, then `next` until it returns False. Raises: ValueError for a bad blob."""

    __slots__ = ("_at", "_buffer", "_end", "_left", "_start")

    def __init__(self) -> None:
        self.open(bytearray(b"\x90"), 0, 1)

    def open(self, buffer: bytearray, start: int, size: int) -> None:
        """Start to read a blob. The buffer must not change until the last row is read."""
        if start < 0 or size < 0 or start + size > len(buffer):
            raise IndexError("a blob outside of its buffer")
        self._buffer = buffer
        self._start = start
        self._at = start
        self._end = start + size
        self._left = self._array()

    def next(self, frame: Frame) -> bool:
        """Add the texts of the next row to a frame over the same buffer; False after the last row."""
        texts = self._row()
        while texts > 0:
            size = self._text()
            frame.add_span(self._at, size)
            self._at += size
            texts -= 1
        return texts == 0

    def skip(self) -> bool:
        """Check every byte of the next row, as `next` does, without adding it; False after the last row."""
        texts = self._row()
        while texts > 0:
            size = self._text()
            self._at += size
            texts -= 1
        return texts == 0

    def _row(self) -> int:
        """The number of texts of the next row; -1 after the last one."""
        if self._left == 0:
            if self._at != self._end:
                raise ValueError(f"byte {self._at - self._start}: something follows the last row")
            return -1
        self._left -= 1
        place = self._at
        texts = self._array()
        if texts == 0 or texts & 1:
            raise ValueError(f"byte {place - self._start}: a row of {texts} texts")
        return texts

    def _array(self) -> int:
        lead = self._byte()
        if lead >= _FIXARRAY and lead <= _FIXARRAY_END:
            return lead & 0x0F
        if lead == _ARRAY16:
            return self._number(2)
        if lead == _ARRAY32:
            return self._number(4)
        raise ValueError(f"byte {self._at - 1 - self._start}: expected an array, found {lead}")

    def _text(self) -> int:
        """The size of the text that starts at the new position."""
        lead = self._byte()
        if lead >= _FIXSTR and lead <= _FIXSTR_END:
            size = lead & 0x1F
        elif lead == _STR8 or lead == _BIN8:
            size = self._byte()
        elif lead == _STR16 or lead == _BIN16:
            size = self._number(2)
        elif lead == _STR32 or lead == _BIN32:
            size = self._number(4)
        else:
            raise ValueError(f"byte {self._at - 1 - self._start}: expected a text, found {lead}")
        if size > self._end - self._at:
            raise ValueError(
                f"byte {self._at - self._start}: a text of {size} bytes runs past the end"
            )
        return size

    def _number(self, width: int) -> int:
        number = 0
        while width:
            number = number << 8 | self._byte()
            width -= 1
        return number

    def _byte(self) -> int:
        if self._at >= self._end:
            raise ValueError(f"byte {self._at - self._start}: the blob ends too early")
        self._at += 1
        return self._buffer[self._at - 1]
