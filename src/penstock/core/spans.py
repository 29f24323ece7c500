"""Reads the pieces of a frame by their spans, and appends them to a node, in one pass each.

Like memory.py, this is not compiled: compiled modules use the functions of spans.pxd. `append_same_entry` is
an exception. In C it writes the usual entry in one pass; here it always leaves the entry to
`stream_node.append_entry`, which writes the same bytes.
"""

from __future__ import annotations

from penstock.core import memory

COUNT_BITS = 10  # of the result of note_command
ID_DIGITS_MAX = 19  # of a half of an id
WORD_BYTES_MAX = 8
_STAR = 42


def note_command(buffer: bytearray, at: int, end: int, spans: bytearray) -> int:
    """Note the spans of a whole command, if it has only short sizes: position after it << 10 | arguments.

    Returns 0 for an incomplete command, and for any that has a size of more than three digits or no line end
    where one belongs. The spans are then undefined.
    """
    line = memory.short_line(buffer, at, end, _STAR)
    count = line >> 3
    if count <= 0 or 16 * count > len(spans) or buffer[at + (line & 7) - 1] != 10:
        return 0
    at += line & 7
    if memory.note_bulks(buffer, at, end, spans, 0, count) < count:
        return 0
    for index in range(count):
        start = memory.span_start(spans, index)
        behind = start + memory.span_size(spans, index) + 2
        if buffer[start - 1] != 10 or buffer[behind - 2 : behind] != b"\r\n":
            return 0
    return behind << COUNT_BITS | count


def is_piece(buffer: bytearray, spans: bytearray, index: int, data: bytes) -> bool:
    """Tell whether a piece is equal to these bytes."""
    return _piece(buffer, spans, index) == data


def is_char(buffer: bytearray, spans: bytearray, index: int, char: int) -> bool:
    """Tell whether a piece is this one character."""
    return _piece(buffer, spans, index) == bytes([char])


def is_word(buffer: bytearray, spans: bytearray, index: int, word: bytes) -> bool:
    """Tell whether a piece is this word in any case; `word` is in capitals."""
    return _piece(buffer, spans, index).upper() == word


def _piece(buffer: bytearray, spans: bytearray, index: int) -> bytes:
    return memory.cut(buffer, memory.span_start(spans, index), memory.span_size(spans, index))


def word_at(buffer: bytearray, spans: bytearray, index: int) -> int:
    """A word of up to eight letters, in any case, as the number that `word` gives it; 0 for all others."""
    piece = _piece(buffer, spans, index)
    return word(piece.upper()) if len(piece) <= WORD_BYTES_MAX and 0 not in piece else 0


def word(letters: bytes) -> int:
    """The number that stands for a word in capitals, to compare it with `word_at`."""
    return int.from_bytes(letters, "little")


def id_key(buffer: bytearray, start: int, size: int, missing_seq: int) -> bytes:
    """The key of a stream id that is written as `ms-seq` or `ms`, in plain digits; empty for all others.

    19 digits never overflow 64 bits; an id with more is left to the caller.
    """
    ms_text, dash, seq_text = memory.cut(buffer, start, size).partition(b"-")
    if not _is_half(ms_text) or (dash and not _is_half(seq_text)):
        return b""
    return memory.key_pair(int(ms_text), int(seq_text) if dash else missing_seq)


def _is_half(text: bytes) -> bool:
    return len(text) <= ID_DIGITS_MAX and text.isdigit()


def append_same_entry(
    node: bytearray,
    ms_delta: int,
    seq_delta: int,
    spans: bytearray,
    first: int,
    count: int,
    source: bytearray,
    bytes_max: int,
    entries_max: int,
) -> int:
    """Append an entry that has the names of the node's header; return the node's new size.

    Returns 0 and leaves the node as it was if the names differ, the node is full (`bytes_max`,
    `entries_max`), its room is too small, or a value is of an unusual size: then append_entry must do it.
    """
    return 0
