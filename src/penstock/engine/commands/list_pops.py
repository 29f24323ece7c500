"""Pops from the first of several lists that has an element: LMPOP, BLMPOP, BLPOP, BRPOP.

A client that waits for a list waits for any element, at either end: all waiters of a list share one position
(see engine/waiters), and after the first one that finds nothing the others are not tried. A waiter whose key
now holds another type keeps waiting.

A blocked command runs again as it was given, so a client that waits for several keys gets an element of the
first key, in its own order, that has one. Redis does so since 7.2; 7.0 returned the key that was pushed to
first, which differs if a transaction filled two of them.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.engine.arguments import INT64_MAX, int_between, seconds_at
from penstock.engine.commands.lists import pop_many, pop_one
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, syntax_error
from penstock.reply import NULL_ARRAY

POSITION = "list"  # positions of groups are bytes: never equal to this
WAITS = Flags.WRITE | Flags.BLOCKING
_ALL_BUT_LAST = (1, -2, 1)


def is_left_at(frame: Frame, index: int) -> bool:
    """Tell whether a word names the left end. Raises: CommandError if it names neither."""
    if frame.is_word(index, b"LEFT"):
        return True
    if frame.is_word(index, b"RIGHT"):
        return False
    raise syntax_error()


def awaited(context: Context, key: bytes) -> ListValue | None:
    """The list to pop from. For a command that already waits, a key of another type counts as empty."""
    if not context.retrying:
        return context.keyspace.list_or_none(key)
    value = context.keyspace.find(key)
    return value if isinstance(value, ListValue) else None


# --- One element ----------------------------------------------------------------------------------


def blpop(context: Context, frame: Frame) -> Any:
    """Pop the first element of the first list that has one; wait if none has."""
    return _pop_or_wait(context, frame, True)


def brpop(context: Context, frame: Frame) -> Any:
    """As blpop, for the last element."""
    return _pop_or_wait(context, frame, False)


def _pop_or_wait(context: Context, frame: Frame, left: bool) -> Any:
    last = frame.count - 1
    timeout_ms = seconds_at(context, frame, last)
    keys = [frame.piece(at) for at in range(1, last)]
    for key in keys:
        value = awaited(context, key)
        if value is not None:
            if context.effects is not None:
                context.record([b"LPOP" if left else b"RPOP", key])
            return [key, pop_one(context, key, value, left)]
    if not context.may_block:
        return NULL_ARRAY
    return Blocked(frame.copy(), keys, timeout_ms, POSITION)


# --- Several elements -----------------------------------------------------------------------------


def lmpop(context: Context, frame: Frame) -> Any:
    """Pop elements of the first list that has one."""
    keys, left, most = _arguments(frame, 1)
    reply = _pop_first_or_none(context, keys, left, most)
    return NULL_ARRAY if reply is None else reply


def blmpop(context: Context, frame: Frame) -> Any:
    """As lmpop; wait if there is no element."""
    keys, left, most = _arguments(frame, 2)
    timeout_ms = seconds_at(context, frame, 1)
    reply = _pop_first_or_none(context, keys, left, most)
    if reply is not None:
        return reply
    if not context.may_block:
        return NULL_ARRAY
    return Blocked(frame.copy(), keys, timeout_ms, POSITION)


def _arguments(frame: Frame, count_at: int) -> tuple[list[bytes], bool, int]:
    """The keys, whether to pop from the left, and how many at most. Raises: CommandError."""
    wrong = CommandError("numkeys should be greater than 0")
    end_at = count_at + 1 + int_between(frame, count_at, 1, INT64_MAX, wrong)
    if end_at >= frame.count:
        raise syntax_error()
    left = is_left_at(frame, end_at)
    most = 1
    if frame.count > end_at + 1:
        if frame.count == end_at + 2 or not frame.is_word(end_at + 1, b"COUNT"):
            raise syntax_error()
        wrong = CommandError("count should be greater than 0")
        most = int_between(frame, end_at + 2, 1, INT64_MAX, wrong)
        if frame.count > end_at + 3:
            raise syntax_error()
    return [frame.piece(at) for at in range(count_at + 1, end_at)], left, most


def _pop_first_or_none(
    context: Context, keys: list[bytes], left: bool, most: int
) -> list[bytes | list[bytes]] | None:
    """Pop from the first list that has elements; record it as a pop from that list."""
    for key in keys:
        value = awaited(context, key)
        if value is not None:
            taken = pop_many(context, key, value, left, most)
            if context.effects is not None:
                context.record([b"LPOP" if left else b"RPOP", key, b"%d" % len(taken)])
            return [key, taken]
    return None


def lmpop_keys(frame: Frame) -> list[int]:
    """The positions of the keys. Raises: CommandError."""
    return _key_places(frame, 1)


def blmpop_keys(frame: Frame) -> list[int]:
    """The positions of the keys. Raises: CommandError."""
    return _key_places(frame, 2)


def _key_places(frame: Frame, count_at: int) -> list[int]:
    most = frame.count - count_at - 1
    count = int_between(frame, count_at, 1, most, syntax_error())
    return list(range(count_at + 1, count_at + 1 + count))


COMMANDS = (
    Command(
        "BLPOP",
        blpop,
        -3,
        WAITS | Flags.NO_SCRIPT,
        _ALL_BUT_LAST,
        "Remove and return the first element of the first list that has one, or wait for it.",
        syntax="key [key ...] timeout",
        since="2.0.0",
        complexity="O(keys)",
        group="list",
        access=("RW access delete",),
    ),
    Command(
        "BRPOP",
        brpop,
        -3,
        WAITS | Flags.NO_SCRIPT,
        _ALL_BUT_LAST,
        "Remove and return the last element of the first list that has one, or wait for it.",
        syntax="key [key ...] timeout",
        since="2.0.0",
        complexity="O(keys)",
        group="list",
        access=("RW access delete",),
    ),
    Command(
        "LMPOP",
        lmpop,
        -4,
        Flags.WRITE,
        NO_KEYS,
        "Remove and return elements of the first list that has one.",
        syntax="numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        since="7.0.0",
        complexity="O(keys and elements removed)",
        group="list",
        find_keys=lmpop_keys,
        access=("RW access delete",),
    ),
    Command(
        "BLMPOP",
        blmpop,
        -5,
        WAITS,
        NO_KEYS,
        "Remove and return elements of the first list that has one, or wait for one.",
        syntax="timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        since="7.0.0",
        complexity="O(keys and elements removed)",
        group="list",
        find_keys=blmpop_keys,
        access=("RW access delete",),
    ),
)
