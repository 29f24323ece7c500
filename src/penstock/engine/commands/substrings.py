"""Parts of strings: APPEND, GETRANGE, SETRANGE, STRLEN.

A string is an immutable `bytes`, so changing a part copies the whole. For logs and queues, use streams.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.arguments import int_at
from penstock.engine.commands.strings import put_string, read_string_or_none, string_or_none
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags
from penstock.errors import CommandError, string_too_long

STRING_BYTES_MAX = 512 * 1024 * 1024  # Redis's proto-max-bulk-len


def strlen(context: Context, frame: Frame) -> int:
    """The length of a string."""
    value = read_string_or_none(context, frame.piece(1))
    return 0 if value is None else len(value)


def append(context: Context, frame: Frame) -> int:
    """Append bytes to a string."""
    key = frame.piece(1)
    old = string_or_none(context, key) or b""
    if len(old) + frame.size(2) > STRING_BYTES_MAX:
        raise string_too_long()
    value = old + frame.piece(2)
    put_string(context, key, value)
    context.changed(key, events.STRING, b"append")
    return len(value)


def getrange(context: Context, frame: Frame) -> bytes:
    """The bytes between two positions, both included; negative ones count from the end."""
    start, end = int_at(frame, 2), int_at(frame, 3)
    value = read_string_or_none(context, frame.piece(1)) or b""
    if end < start < 0:
        return b""  # otherwise both could be clipped to the first byte
    if start < 0:
        start = max(0, len(value) + start)
    if end < 0:
        end = max(0, len(value) + end)
    return value[start : end + 1]


def setrange(context: Context, frame: Frame) -> int:
    """Overwrite a string from a position on; zeros fill the gap if it is shorter."""
    offset = int_at(frame, 2)
    if offset < 0:
        raise CommandError("offset is out of range")
    key, piece = frame.piece(1), frame.piece(3)
    old = string_or_none(context, key) or b""
    if not piece:
        return len(old)
    if offset + len(piece) > STRING_BYTES_MAX:
        raise string_too_long()
    value = old[:offset].ljust(offset, b"\0") + piece + old[offset + len(piece) :]
    put_string(context, key, value)
    context.changed(key, events.STRING, b"setrange")
    return len(value)


COMMANDS = (
    Command(
        "STRLEN",
        strlen,
        2,
        Flags.READ | Flags.FAST,
        ONE_KEY,
        "Return the length of a string.",
        syntax="key",
        since="2.2.0",
        group="string",
        access=("RO",),
    ),
    Command(
        "APPEND",
        append,
        3,
        Flags.WRITE | Flags.DENY_OOM | Flags.FAST,
        ONE_KEY,
        "Append bytes to a string.",
        syntax="key value",
        since="2.0.0",
        complexity="O(bytes)",
        group="string",
        access=("RW insert",),
    ),
    Command(
        "GETRANGE",
        getrange,
        4,
        Flags.READ,
        ONE_KEY,
        "Read a part of a string.",
        syntax="key start end",
        since="2.4.0",
        complexity="O(bytes read)",
        group="string",
    ),
    Command(
        "SUBSTR",
        getrange,
        4,
        Flags.READ,
        ONE_KEY,
        "Read a part of a string (the old name of GETRANGE).",
        syntax="key start end",
        complexity="O(bytes read)",
        group="string",
    ),
    Command(
        "SETRANGE",
        setrange,
        4,
        Flags.WRITE | Flags.DENY_OOM,
        ONE_KEY,
        "Overwrite a part of a string.",
        syntax="key offset value",
        since="2.2.0",
        complexity="O(bytes)",
        group="string",
    ),
)
