"""Parses commands from bytes, leaving every argument where it was received.

    *3\\r\\n$4\\r\\nXADD\\r\\n$1\\r\\ns\\r\\n$1\\r\\n*\\r\\n     an array of bulk strings, as clients send
    XADD s * temp 21\\r\\n                              or an inline command, as people type

The parser reads a buffer that its owner fills. For each complete command it notes the span of every argument
in a frame. For an incomplete command it remembers its position (P1), so that a command that arrives byte by
byte is not parsed from its start each time.

    start     where the incomplete command starts: bytes before it are no longer needed
    at        where parsing continues
    left      arguments of the command still missing; 0 between commands
    bulk      size of the argument being read; -1 while it is unknown

Invariants
  P1  start <= at; no byte before `at` is read again.
  P2  no number from a client causes an allocation: an argument's span is noted when its bytes have arrived.

Limits are checked when a size is read, before its bytes arrive. Clients that are not authenticated have small
limits, with Redis's texts: 10 arguments, 16 KB per argument. Here that is also the limit of all arguments
together, and of a line: an unknown client must not make the server hold more than a password needs.

The two bytes after an argument are assumed to be the line end without a check, as in Redis.
"""

from __future__ import annotations

from penstock.core import memory, spans
from penstock.core.frame import Frame
from penstock.errors import ProtocolError

INLINE_BYTES_MAX = 64 * 1024
ARGUMENTS_MAX = 2**31 - 1
BULK_BYTES_MAX = 512 * 1024 * 1024
STRANGER_ARGUMENTS_MAX = 10
STRANGER_BULK_BYTES_MAX = 16 * 1024
STRANGER_COMMAND_BYTES_MAX = (
    STRANGER_BULK_BYTES_MAX + 1024
)  # one argument of that size, and the other arguments of HELLO

_INLINE_BYTES_MAX = INLINE_BYTES_MAX
_ARGUMENTS_MAX = ARGUMENTS_MAX
_STRANGER_ARGUMENTS_MAX = STRANGER_ARGUMENTS_MAX
_STRANGER_BULK_BYTES_MAX = STRANGER_BULK_BYTES_MAX
_STRANGER_COMMAND_BYTES_MAX = STRANGER_COMMAND_BYTES_MAX
_NUMBER_DIGITS_MAX = 18  # no valid size has more, and this many cannot overflow 64 bits
_NOT_A_NUMBER = -(2**62)
_COUNT_BITS = spans.COUNT_BITS
_COUNT_MASK = (1 << spans.COUNT_BITS) - 1
_STAR = 42
_DOLLAR = 36
_MINUS = 45
_ZERO = 48
_CR = 13
_LF = 10


class WireLimits:
    """The limit that a server may change at run time; shared by all its parsers."""

    __slots__ = ("bulk_bytes_max",)

    def __init__(self) -> None:
        self.bulk_bytes_max = BULK_BYTES_MAX


class Parser:
    """Reads commands from a buffer, one at a time. The module docstring describes its state."""

    __slots__ = ("at", "bulk", "left", "limits", "start", "stranger")

    def __init__(self, limits: WireLimits) -> None:
        self.limits = limits
        self.stranger = False
        self.start = 0
        self.at = 0
        self.left = 0
        self.bulk = -1

    def next(self, frame: Frame, buffer: bytearray, end: int) -> bool:
        """Parse up to the end of a command; False if it is incomplete. Raises: ProtocolError."""
        if self.left == 0 and not self.stranger:
            noted = spans.note_command(buffer, self.at, end, frame.spans)
            if noted:
                frame.noted_in(buffer, noted & _COUNT_MASK)
                self.at = self.start = noted >> _COUNT_BITS
                return True
        if self.left == 0 and not self._begin(frame, buffer, end):
            return False
        if self.left == 0:
            return True  # a line
        at = self.at
        left = self.left
        size = self.bulk
        while left:
            if size < 0:
                noted = memory.note_bulks(buffer, at, end, frame.spans, frame.count, left)
                if noted:
                    frame.count += noted
                    left -= noted
                    last = frame.count - 1
                    at = frame.start(last) + frame.size(last) + 2
                    continue
                line_end = self._line_end(buffer, at, end, "too big bulk count string")
                if line_end < 0:
                    break
                size = self._bulk_size(buffer, at, line_end)
                at = line_end + 2
            if end - at < size + 2:
                break
            frame.add_span(at, size)
            at += size + 2
            size = -1
            left -= 1
        self.at = at
        self.left = left
        self.bulk = size
        if left == 0:
            self.start = at
            return True
        return False

    def rest_moved(self, back: int) -> None:
        """The remaining bytes were moved `back` bytes towards the start of their buffer."""
        self.at -= back
        self.start -= back

    def _begin(self, frame: Frame, buffer: bytearray, end: int) -> bool:
        """Read the number of arguments, or a whole inline command."""
        while True:
            at = self.at
            self.start = at
            if at >= end:
                return False
            if buffer[at] != _STAR:
                count = self._inline(frame, buffer, end)
                if count != 0:
                    return count > 0
                continue
            line_end = self._line_end(buffer, at, end, "too big mbulk count string")
            if line_end < 0:
                return False
            count = _number(buffer, at + 1, line_end)
            if count == _NOT_A_NUMBER or count > _ARGUMENTS_MAX:
                raise ProtocolError("invalid multibulk length")
            if self.stranger and count > _STRANGER_ARGUMENTS_MAX:
                raise ProtocolError("unauthenticated multibulk length")
            self.at = line_end + 2
            if count > 0:
                frame.over(buffer)
                self.left = count
                return True

    def _line_end(self, buffer: bytearray, at: int, end: int, refusal: str) -> int:
        """The end of the line that starts here; -1 if it has not arrived yet."""
        found = memory.find_byte(buffer, at, end, _CR)
        if found < 0 and end - at > self._line_bytes_max():
            raise ProtocolError(refusal)
        return -1 if found + 1 >= end else found

    def _line_bytes_max(self) -> int:
        return _STRANGER_BULK_BYTES_MAX if self.stranger else _INLINE_BYTES_MAX

    def _bulk_size(self, buffer: bytearray, at: int, line_end: int) -> int:
        if buffer[at] != _DOLLAR:
            found = bytes(buffer[at : at + 1]).decode("utf-8", "surrogateescape")
            raise ProtocolError(f"expected '$', got '{found}'")
        size = _number(buffer, at + 1, line_end)
        if size < 0 or size > self.limits.bulk_bytes_max:
            raise ProtocolError("invalid bulk length")
        if self.stranger and (
            size > _STRANGER_BULK_BYTES_MAX or at - self.start + size > _STRANGER_COMMAND_BYTES_MAX
        ):
            raise ProtocolError("unauthenticated bulk length")
        return size

    def _inline(self, frame: Frame, buffer: bytearray, end: int) -> int:
        """Read an inline command; return the number of words, -1 if its end has not arrived yet."""
        line_end = memory.find_byte(buffer, self.at, end, _LF)
        if line_end < 0:
            if end - self.at > self._line_bytes_max():
                raise ProtocolError("too big inline request")
            return -1
        words = split_words(memory.cut(buffer, self.at, line_end - self.at))
        self.at = line_end + 1
        self.start = self.at
        frame.over(bytearray(256))
        for word in words:
            frame.add(word)
        return len(words)


def _number(buffer: bytearray, at: int, end: int) -> int:
    """A decimal number as Redis writes it, or _NOT_A_NUMBER."""
    negative = at < end and buffer[at] == _MINUS
    if negative:
        at += 1
    count = end - at
    if count <= 0 or count > _NUMBER_DIGITS_MAX:
        return _NOT_A_NUMBER
    if buffer[at] == _ZERO and (count > 1 or negative):
        return _NOT_A_NUMBER
    value = 0
    while at < end:
        digit = buffer[at]
        if digit < 48 or digit > 57:
            return _NOT_A_NUMBER
        value = value * 10 + (digit - 48)
        at += 1
    return -value if negative else value


_QUOTE = ord('"')
_APOSTROPHE = ord("'")
_BACKSLASH = ord("\\")
_BLANKS = b" \t\r\n\v\f\0"
_ESCAPES = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
_HEX = b"0123456789abcdefABCDEF"


def split_words(line: bytes) -> list[bytes]:
    """Split a line into words, quoted as in redis-cli. Raises: ProtocolError for unbalanced quotes."""
    words: list[bytes] = []
    at = 0
    while True:
        while at < len(line) and line[at] in _BLANKS:
            at += 1
        if at >= len(line):
            return words
        word, at = _word(line, at)
        words.append(word)


def _word(line: bytes, at: int) -> tuple[bytes, int]:
    """The word that starts here, and the position after it."""
    word = bytearray()
    quote = 0
    while at < len(line):
        char = line[at]
        if quote and char == quote:
            if at + 1 < len(line) and line[at + 1] not in _BLANKS:
                break  # a closing quote must end the word
            return bytes(word), at + 1
        if not quote and char in _BLANKS:
            return bytes(word), at
        if not quote and char in (_QUOTE, _APOSTROPHE):
            quote = char
        elif quote and char == _BACKSLASH and at + 1 < len(line):
            at += _escape(line, at, quote, word)
        else:
            word.append(char)
        at += 1
    if quote:
        raise ProtocolError("unbalanced quotes in request")
    return bytes(word), at


def _escape(line: bytes, at: int, quote: int, word: bytearray) -> int:
    """Add the character that the escape at `at` means; return how many bytes after the backslash it has."""
    follows = line[at + 1]
    if quote == _APOSTROPHE:
        if follows != _APOSTROPHE:
            word.append(_BACKSLASH)
            return 0
        word.append(_APOSTROPHE)
        return 1
    code = line[at + 2 : at + 4]
    if follows == ord("x") and len(code) == 2 and code[0] in _HEX and code[1] in _HEX:
        word.append(int(code, 16))
        return 3
    word.append(_ESCAPES.get(follows, follows))
    return 1
