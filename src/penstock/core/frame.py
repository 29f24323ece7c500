# cython: wraparound=False
"""A frame: the arguments of one command, as byte strings in one buffer and the span of each.

    buffer   XADD s * temp 21 ............
    spans    (0,4) (4,1) (5,1) (6,4) (10,2)        start and size, two 64-bit numbers per piece

Commands reach a stream in this form. The parser (or the embedded Database) leaves the arguments where they
are and notes their spans; an append encodes them from there into a listpack, without a Python object for
each. A frame is reused: `clear` keeps its memory.

It is in core, not in wire, because it contains no protocol: only `core/stream` and `engine` know what a
piece means.

Invariants
  F1  every span is inside the buffer. For `add_span` the caller ensures this; readers of a piece are checked
      again.
  F2  `end` is the position for the next copied piece.

Cost: `add` about 10 ns plus the copy; `start`, `size`, `is_word` a few ns.
"""

from __future__ import annotations

from penstock.core import memory, spans

_SPAN_BYTES = 16
_KEEP_BYTES_MAX = 1 << 20  # `clear` frees a larger buffer, which one huge command needed


class Frame:
    """The pieces of one command.

    Building: add, add_text, add_span, noted_in, clear, over, move_to, copy.
    `is_as_sent`: the pieces lie in the buffer as a client sent them: `$size`, a line end, the piece, a line
    end, one after the other.
    Reading: count, start, size, piece, bytes_from, is_piece, is_word, is_char.
    """

    __slots__ = ("buffer", "count", "end", "is_as_sent", "spans")

    def __init__(self) -> None:
        self.buffer = bytearray(256)
        self.spans = bytearray(16 * _SPAN_BYTES)
        self.count = 0
        self.end = 0
        self.is_as_sent = False

    def clear(self) -> None:
        """Remove all pieces, keep the memory."""
        self.is_as_sent = False
        self.count = 0
        self.end = 0
        if len(self.buffer) > _KEEP_BYTES_MAX:
            self.buffer = bytearray(256)
        if len(self.spans) > _KEEP_BYTES_MAX:
            self.spans = bytearray(16 * _SPAN_BYTES)

    def over(self, buffer: bytearray) -> None:
        """Remove all pieces; the next ones are spans of the caller's buffer (`add_span`)."""
        self.is_as_sent = False
        self.count = 0
        self.end = 0
        self.buffer = buffer
        if len(self.spans) > _KEEP_BYTES_MAX:
            self.spans = bytearray(16 * _SPAN_BYTES)

    def noted_in(self, buffer: bytearray, count: int) -> None:
        """The spans of `count` pieces of the caller's buffer were written to `spans`."""
        self.buffer = buffer
        self.count = count
        self.end = 0
        self.is_as_sent = True

    def move_to(self, buffer: bytearray, back: int) -> None:
        """The bytes were copied to another buffer, `back` bytes closer to its start."""
        self.buffer = buffer
        if back == 0:
            return
        for index in range(self.count):
            start = memory.span_start(self.spans, index) - back
            memory.store_pair(
                self.spans, index * _SPAN_BYTES, start, memory.span_size(self.spans, index)
            )

    def copy(self, first: int = 0) -> Frame:
        """A new frame with the same pieces, from `first` on."""
        made = Frame()
        for index in range(first, self.count):
            made.add(self.piece(index))
        return made

    def add(self, piece: bytes) -> None:
        """Append a copy of one piece."""
        end = self.end
        size = len(piece)
        if size > len(self.buffer) - end:
            self.buffer.extend(bytes(len(self.buffer) + size))
        memory.put(self.buffer, end, piece)
        self.end = end + size
        self.add_span(end, size)

    def add_text(self, text: str) -> None:
        """Append one piece, given as text, in UTF-8."""
        buffer = self.buffer
        end = self.end
        size = memory.put_text(buffer, end, text)
        if size > len(buffer) - end:
            buffer.extend(bytes(len(buffer) + size))
            memory.put_text(buffer, end, text)
        self.end = end + size
        # Inlined add_span: the call took half of the time of a short text.
        spans = self.spans
        at = self.count * _SPAN_BYTES
        if at >= len(spans):
            spans.extend(bytes(len(spans)))
        memory.store_pair(spans, at, end, size)
        self.count += 1

    def add_span(self, start: int, size: int) -> None:
        """Note a piece that is already in the buffer."""
        at = self.count * _SPAN_BYTES
        if at >= len(self.spans):
            self.spans.extend(bytes(len(self.spans)))
        memory.store_pair(self.spans, at, start, size)
        self.count += 1

    def start(self, index: int) -> int:
        """The position of a piece. Raises: IndexError if there is no such piece."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        return memory.span_start(self.spans, index)

    def size(self, index: int) -> int:
        """The size of a piece. Raises: IndexError if there is no such piece."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        return memory.span_size(self.spans, index)

    def piece(self, index: int) -> bytes:
        """A piece as a bytes object. Raises: IndexError if there is no such piece."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        start = memory.span_start(self.spans, index)
        return memory.cut(self.buffer, start, memory.span_size(self.spans, index))

    def bytes_from(self, first: int) -> int:
        """The total size of the pieces from `first` on."""
        return memory.sizes(self.spans, first, self.count)

    def is_piece(self, index: int, data: bytes) -> bool:
        """Tell whether a piece is equal to these bytes. Raises: IndexError if there is no such piece."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        return spans.is_piece(self.buffer, self.spans, index, data)

    def is_word(self, index: int, word: bytes) -> bool:
        """Tell whether a piece is this word in any case; `word` is in capitals. Raises: as is_piece."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        return spans.is_word(self.buffer, self.spans, index, word)

    def is_char(self, index: int, char: int) -> bool:
        """Tell whether a piece is this one character. Raises: as is_piece."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        return spans.is_char(self.buffer, self.spans, index, char)
