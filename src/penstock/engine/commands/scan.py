"""Finds keys: KEYS, SCAN, RANDOMKEY. engine/key_map.py describes how SCAN walks over a database."""

from __future__ import annotations

import re
from typing import Any

from penstock.core.frame import Frame
from penstock.core.glob import Glob
from penstock.engine.arguments import INT64_MIN, int_at
from penstock.engine.commands.keys import type_name
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, syntax_error

SCAN_COUNT_DEFAULT = 10
CURSOR_MAX = 2**64 - 1

_ALL = b"*"
_CURSOR = re.compile(rb"[+-]?[0-9]+|")
_NEGATIVE = re.compile(rb"-[1-9][0-9]{0,18}")


def keys(context: Context, frame: Frame) -> list[bytes]:
    """All keys that match a pattern."""
    glob = _glob_or_none(frame.piece(1))
    keyspace = context.keyspace
    now_ms = context.now_ms()
    return [
        key
        for key in keyspace.values
        if (glob is None or glob.matches(key)) and keyspace.expires.get(key, now_ms) >= now_ms
    ]


def _glob_or_none(pattern: bytes) -> Glob | None:
    """The parsed pattern; None for a lone star, which also matches an empty key."""
    return None if pattern == _ALL else Glob(pattern)


class ScanOptions:
    """MATCH, COUNT and TYPE; the last one of each counts."""

    __slots__ = ("count", "glob", "type")

    def __init__(self, frame: Frame) -> None:
        self.count = SCAN_COUNT_DEFAULT
        self.glob: Glob | None = None
        self.type: bytes | None = None
        for at in range(2, frame.count, 2):
            if at + 1 == frame.count:
                raise syntax_error()
            if frame.is_word(at, b"COUNT"):
                self.count = int_at(frame, at + 1)
                if self.count < 1:
                    raise syntax_error()
            elif frame.is_word(at, b"MATCH"):
                self.glob = _glob_or_none(frame.piece(at + 1))
            elif frame.is_word(at, b"TYPE"):
                self.type = frame.piece(at + 1).lower()
            else:
                raise syntax_error()

    def want(self, context: Context, key: bytes) -> bool:
        """Tell whether to return a key; an expired one is removed instead."""
        if self.glob is not None and not self.glob.matches(key):
            if context.compat.scan_expires_all:
                context.keyspace.find(key)
            return False
        value = context.keyspace.find(key)
        if value is None:
            if self.type is not None:
                context.missed(key)
            return False
        return self.type is None or self.type == type_name(value).encode()


def scan(context: Context, frame: Frame) -> list[Any]:
    """Some keys, and the next cursor."""
    cursor = _cursor_at(context, frame, 1)
    options = ScanOptions(frame)
    cursor, found = context.keyspace.scan(cursor, options.count)
    return [b"%d" % cursor, [key for key in found if options.want(context, key)]]


def _cursor_at(context: Context, frame: Frame, index: int) -> int:
    """A cursor, read as by C's strtoul: up to a NUL, empty is 0, a minus counts from the top.

    Since 7.4 it may have blanks in front, must not be empty, and must not be a negative 64-bit number.
    """
    text = frame.piece(index).partition(b"\0")[0]
    if context.compat.cursor_is_number:
        is_negative = _NEGATIVE.fullmatch(text) and int(text) >= INT64_MIN
        text = text.lstrip(b" \t\n\v\f\r")
        if text == b"" or is_negative:
            raise CommandError("invalid cursor")
    if not _CURSOR.fullmatch(text) or len(text.lstrip(b"+-0")) > len(str(CURSOR_MAX)):
        raise CommandError("invalid cursor")
    value = int(text.lstrip(b"+-").lstrip(b"0") or b"0")
    if value > CURSOR_MAX:
        raise CommandError("invalid cursor")
    return -value & CURSOR_MAX if text[:1] == b"-" else value


def randomkey(context: Context, _frame: Frame) -> bytes | None:
    """A random key."""
    keyspace = context.keyspace
    key = keyspace.random_key_or_none(context.dice)
    while key is not None and keyspace.find(key) is None:
        key = keyspace.random_key_or_none(context.dice)  # the last one had expired, and is gone now
    return key


COMMANDS = (
    Command(
        "KEYS",
        keys,
        2,
        Flags.READ | Flags.DANGEROUS | Flags.KEYSPACE,
        NO_KEYS,
        "List all keys that match a pattern.",
        syntax="pattern",
        complexity="O(keys of the database)",
        group="generic",
    ),
    Command(
        "SCAN",
        scan,
        -2,
        Flags.READ | Flags.KEYSPACE,
        NO_KEYS,
        "List some keys and the next cursor.",
        syntax="cursor [MATCH pattern] [COUNT count] [TYPE type]",
        since="2.8.0",
        complexity="O(count)",
        group="generic",
    ),
    Command(
        "RANDOMKEY",
        randomkey,
        1,
        Flags.READ | Flags.KEYSPACE,
        NO_KEYS,
        "Return a random key.",
        complexity="O(1)",
        group="generic",
    ),
)
