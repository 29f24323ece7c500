"""Reads the entries between two ids: XRANGE, XREVRANGE."""

from __future__ import annotations

from typing import Any

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.stream_cursor import EntryRange
from penstock.engine.arguments import int_at
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags, QuickForm
from penstock.errors import syntax_error
from penstock.reply import NULL_ARRAY, NullArray, ReplyWriter

_NO_COUNT = -1


def xrange(context: Context, frame: Frame) -> EntryRange | list[Any] | NullArray:
    """Entries between two ids, oldest first."""
    return _range(context, frame, False)


def xrevrange(context: Context, frame: Frame) -> EntryRange | list[Any] | NullArray:
    """Entries between two ids, newest first."""
    return _range(context, frame, True)


class QuickRange(QuickForm):
    """XRANGE with any arguments."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        reply.put(_range(context, frame, False))
        return True


class QuickReverseRange(QuickForm):
    """XREVRANGE with any arguments."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        reply.put(_range(context, frame, True))
        return True


def _range(context: Context, frame: Frame, reverse: bool) -> EntryRange | list[Any] | NullArray:
    start = stream_id.parse_range_start(frame.piece(3 if reverse else 2))
    end = stream_id.parse_range_end(frame.piece(2 if reverse else 3))
    count = _NO_COUNT
    at = 4
    while at < frame.count:
        if at + 1 == frame.count or not frame.is_word(at, b"COUNT"):
            raise syntax_error()
        count = max(0, int_at(frame, at + 1))
        at += 2
    stream = context.keyspace.stream_or_none(frame.piece(1))
    if stream is None:
        return []
    if count == 0:
        return NULL_ARRAY
    return stream.range(start, end, max(0, count), reverse)


COMMANDS = (
    Command(
        "XRANGE",
        xrange,
        -4,
        Flags.READ,
        ONE_KEY,
        "Read entries between two ids, oldest first.",
        syntax="key start end [COUNT count]",
        since="5.0.0",
        complexity="O(n) for the n entries returned",
        group="stream",
        quick=QuickRange(),
    ),
    Command(
        "XREVRANGE",
        xrevrange,
        -4,
        Flags.READ,
        ONE_KEY,
        "Read entries between two ids, newest first.",
        syntax="key end start [COUNT count]",
        since="5.0.0",
        complexity="O(n) for the n entries returned",
        group="stream",
        quick=QuickReverseRange(),
    ),
)
