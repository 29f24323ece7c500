"""Writes the usual effects into the journal's buffer, in one pass each.

Like core/memory.py, this is not compiled: the journal uses the functions of record_bytes.pxd. Each function
takes a place in the buffer and returns the place behind what it wrote. The caller makes room first:
ADDED_BYTES_MAX bytes more than the pieces of an XADD, WORD_BYTES_MAX bytes for an id or a number.
"""

from __future__ import annotations

from penstock.core import memory
from penstock.core.frame import Frame
from penstock.core.stream import Stream

ADDED_BYTES_MAX = 104  # 24 for the head, 10 for XADD, 70 for the id
WORD_BYTES_MAX = 72  # a head, two numbers of 20 digits, a dash, a line end


def put_added(target: bytearray, at: int, frame: Frame, fields_at: int, stream: Stream) -> int:
    """Copy an XADD as a client sent it, with the stream's last id instead of options and star.

    `fields_at`: the first of the pieces that are names and values.
    """
    source = frame.buffer
    key_at = _behind(frame.spans, 0)
    key_end = _behind(frame.spans, 1)
    rest_at = _behind(frame.spans, fields_at - 1)
    rest_end = _behind(frame.spans, frame.count - 1)
    entry_id = stream.last_id_text()
    data = b"*%d\r\n$4\r\nXADD\r\n%b$%d\r\n%b\r\n%b" % (
        3 + frame.count - fields_at,
        memory.cut(source, key_at, key_end - key_at),
        len(entry_id),
        entry_id,
        memory.cut(source, rest_at, rest_end - rest_at),
    )
    memory.put(target, at, data)
    return at + len(data)


def _behind(spans: bytearray, index: int) -> int:
    """The place behind a piece and its line end."""
    return memory.span_start(spans, index) + memory.span_size(spans, index) + 2


def put_id(target: bytearray, at: int, ms: int, seq: int) -> int:
    """Write an id."""
    return memory.put_bulk_bytes(target, at, memory.format_pair(ms, seq))


def put_number(target: bytearray, at: int, value: int) -> int:
    """Write a number."""
    return memory.put_bulk_bytes(target, at, memory.format_int(value))
