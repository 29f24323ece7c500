# cython: wraparound=False
"""The receive buffer of a bulk reader, and the two kinds of RESP2 lines in bulk replies.

    buffer   ......|read|*2\\r\\n$3\\r\\n1-0\\r\\n$51\\r\\n...|free|
                   at                            end

The owner of the socket receives into `free()` and then calls `received`. A decoder reads lines and bulk
strings from `at`. A method that needs more bytes returns False and sets `wanted` to the smallest `end` worth
trying again. Positions are valid until the next `free`, which may move the remaining bytes to the front.

An announced size does not allocate memory. The buffer only grows as bytes arrive, by doubling.
"""

from __future__ import annotations

from penstock.core import memory
from penstock.errors import CommandError, ProtocolError

FIRST_BYTES = 256 << 10
_STAR, _DOLLAR, _MINUS, _ZERO, _NINE, _CR, _LF = 42, 36, 45, 48, 57, 13, 10
_DIGITS_MAX = 18
_LINE_BYTES_MAX = 64 << 10
_UNDERSCORE = 95


class Inbox:
    """Received bytes. Fill: free, received. Read: head, bulk, bulk_or_null, then number, start, size."""

    __slots__ = ("at", "buffer", "end", "number", "size", "start", "wanted")

    def __init__(self, first_bytes: int = FIRST_BYTES) -> None:
        self.buffer = bytearray(first_bytes)
        self.at = 0
        self.end = 0
        self.number = 0
        self.start = 0
        self.size = 0
        self.wanted = 0

    def free(self) -> memoryview:
        """Free space to receive into. Drops bytes already read, and doubles a full buffer."""
        if self.at:
            left = self.end - self.at
            memory.move(self.buffer, 0, self.at, left)
            self.wanted = max(self.wanted - self.at, 0)
            self.end = left
            self.at = 0
        if self.end == len(self.buffer):
            self.buffer.extend(bytes(len(self.buffer)))
        return memoryview(self.buffer)[self.end :]

    def received(self, count: int) -> bool:
        """Add `count` received bytes. Returns whether `wanted` is reached."""
        self.end += count
        return self.end >= self.wanted

    def head(self, kind: int) -> bool:
        """Read `*5` or `$5` into `number`. Raises: CommandError for an error reply, ProtocolError."""
        short = memory.short_line(self.buffer, self.at, self.end, kind)
        if short >= 0:
            self.number = short >> 3
            self.at += short & 7
            return True
        return self._long_head(kind)

    def _long_head(self, kind: int) -> bool:
        buffer = self.buffer
        at = self.at
        line_end = memory.find_byte(buffer, at, self.end, _LF)
        if line_end < 0:
            if self.end - at > _LINE_BYTES_MAX:
                self.refuse("a line without an end")
            self.wanted = self.end + 1
            return False
        if buffer[at] == _MINUS:
            raise self._error(at + 1, line_end)
        if buffer[at] != kind or buffer[line_end - 1] != _CR:
            self.refuse("a line of another kind is expected")
        at += 1
        negative = buffer[at] == _MINUS
        if negative:
            at += 1
        digits = line_end - 1 - at
        if digits < 1 or digits > _DIGITS_MAX:
            self.refuse("a number is expected")
        number = 0
        while at < line_end - 1:
            byte = buffer[at]
            if byte < _ZERO or byte > _NINE:
                self.refuse("a number is expected")
            number = number * 10 + (byte - _ZERO)
            at += 1
        self.number = -number if negative else number
        self.at = line_end + 1
        return True

    def _error(self, start: int, line_end: int) -> CommandError:
        line = (
            memory.cut(self.buffer, start, line_end - start)
            .rstrip(b"\r")
            .decode("utf-8", "replace")
        )
        self.at = line_end + 1
        code, _, text = line.partition(" ")
        return CommandError(text, code)

    def bulk(self) -> bool:
        """Find a bulk string: sets `start` and `size`."""
        at = self.at
        if not self.head(_DOLLAR):
            return False
        if self.number < 0:
            self.refuse("null where bytes are expected")
        return self._content(at)

    def bulk_or_null(self) -> bool:
        """As bulk, but also accepts null: its size is -1."""
        at = self.at
        if self.end - at >= 3 and self.buffer[at] == _UNDERSCORE:  # RESP3's
            self.at = at + 3
            self.size = -1
            return True
        if not self.head(_DOLLAR):
            return False
        if self.number < 0:
            self.size = -1
            return True
        return self._content(at)

    def _content(self, line_at: int) -> bool:
        """Find the bytes after `$5` and their CRLF. Goes back to `line_at` if they are incomplete."""
        start = self.at
        behind = start + self.number + 2
        if behind > self.end:
            self.at = line_at
            self.wanted = behind
            return False
        if self.buffer[behind - 2] != _CR or self.buffer[behind - 1] != _LF:
            self.refuse("a bulk string that does not end where it should")
        self.start = start
        self.size = self.number
        self.at = behind
        return True

    def refuse(self, what: str) -> None:
        """Raise a ProtocolError that quotes the next bytes."""
        shown = memory.cut(self.buffer, self.at, min(self.end - self.at, 40))
        raise ProtocolError(f"{what}, at {shown!r}")
