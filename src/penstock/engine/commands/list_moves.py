"""Moves between lists, and blocking list commands: LMOVE, RPOPLPUSH, BLPOP, BRPOP, BLMOVE, BRPOPLPUSH.

A client that waits for a list waits for any element, at either end: all waiters of a list share one position
(see engine/waiters), and after the first one that finds nothing the others are not tried. A waiter whose key
now holds another type keeps waiting; the destination is checked only when there is an element to move.

A blocked command runs again as it was given, so a client that waits for several keys gets an element of the
first key, in its own order, that has one. Redis does so since 7.2; 7.0 returned the key that was pushed to
first, which differs if a transaction filled two of them.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.engine import events
from penstock.engine.arguments import seconds_at
from penstock.engine.commands.lists import pop_one, popped, push_event, put_new
from penstock.engine.context import Context
from penstock.engine.table import TWO_KEYS, Command, Flags
from penstock.engine.waiters import Blocked
from penstock.errors import syntax_error
from penstock.reply import NULL_ARRAY

_POSITION = "list"  # positions of groups are bytes: never equal to this
_ALL_BUT_LAST = (1, -2, 1)


# --- Moving ---------------------------------------------------------------------------------------


def lmove(context: Context, frame: Frame) -> bytes | None:
    """Pop an element from one end of a list and push it to one end of another."""
    from_left, to_left = _is_left(frame, 3), _is_left(frame, 4)
    value = context.keyspace.list_or_none(frame.piece(1))
    return None if value is None else _move(context, frame, value, from_left, to_left)


def rpoplpush(context: Context, frame: Frame) -> bytes | None:
    """As lmove, from the right end to the left."""
    value = context.keyspace.list_or_none(frame.piece(1))
    return None if value is None else _move(context, frame, value, False, True)


def _is_left(frame: Frame, index: int) -> bool:
    """Tell whether a word names the left end."""
    if frame.is_word(index, b"LEFT"):
        return True
    if frame.is_word(index, b"RIGHT"):
        return False
    raise syntax_error()


def _move(
    context: Context, frame: Frame, value: ListValue, from_left: bool, to_left: bool
) -> bytes | None:
    """Move an element to the list whose key is the second argument; both lists may be the same."""
    key, target_key = frame.piece(1), frame.piece(2)
    found = context.keyspace.list_or_none(target_key)
    target = context.keyspace.new_list() if found is None else found
    element = value.pop_left_or_none() if from_left else value.pop_right_or_none()
    assert element is not None, "a list under a key is never empty"
    if to_left:
        target.push_left(element)
    else:
        target.push_right(element)
    if found is None:
        put_new(context, target_key, target)
    context.changed(target_key, events.LIST, push_event(to_left))
    context.dirty -= 1  # both ends of a move are one change
    popped(context, key, value, from_left, 1)
    return element


# --- Waiting --------------------------------------------------------------------------------------


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
        value = _awaited(context, key)
        if value is not None:
            if context.effects is not None:
                context.record([b"LPOP" if left else b"RPOP", key])
            return [key, pop_one(context, key, value, left)]
    if not context.may_block:
        return NULL_ARRAY
    return Blocked(frame.copy(), keys, timeout_ms, _POSITION)


def blmove(context: Context, frame: Frame) -> Any:
    """As lmove; wait if there is no element."""
    from_left, to_left = _is_left(frame, 3), _is_left(frame, 4)
    return _move_or_wait(context, frame, b"LMOVE", from_left, to_left)


def brpoplpush(context: Context, frame: Frame) -> Any:
    """As rpoplpush; wait if there is no element."""
    return _move_or_wait(context, frame, b"RPOPLPUSH", False, True)


def _move_or_wait(
    context: Context, frame: Frame, name: bytes, from_left: bool, to_left: bool
) -> Any:
    """Move as the command `name` does without blocking, or wait."""
    timeout_ms = seconds_at(context, frame, frame.count - 1)
    key = frame.piece(1)
    value = _awaited(context, key)
    if value is not None:
        element = _move(context, frame, value, from_left, to_left)
        if context.effects is not None:
            context.record([name, *(frame.piece(at) for at in range(1, frame.count - 1))])
        return element
    if not context.may_block:
        return None  # unlike the null array after a timeout
    return Blocked(frame.copy(), [key], timeout_ms, _POSITION)


def _awaited(context: Context, key: bytes) -> ListValue | None:
    """The list to pop from. For a command that already waits, a key of another type counts as empty."""
    if not context.retrying:
        return context.keyspace.list_or_none(key)
    value = context.keyspace.find(key)
    return value if isinstance(value, ListValue) else None


_MOVES = Flags.WRITE | Flags.DENY_OOM
_WAITS = Flags.WRITE | Flags.NO_SCRIPT | Flags.BLOCKING

COMMANDS = (
    Command(
        "LMOVE",
        lmove,
        5,
        _MOVES,
        TWO_KEYS,
        "Move an element from an end of one list to an end of another.",
        syntax="source destination LEFT|RIGHT LEFT|RIGHT",
        since="6.2.0",
        group="list",
    ),
    Command(
        "RPOPLPUSH",
        rpoplpush,
        3,
        _MOVES,
        TWO_KEYS,
        "Move the last element of one list before the first of another.",
        syntax="source destination",
        since="1.2.0",
        group="list",
    ),
    Command(
        "BLPOP",
        blpop,
        -3,
        _WAITS,
        _ALL_BUT_LAST,
        "Remove and return the first element of the first list that has one, or wait for it.",
        syntax="key [key ...] timeout",
        since="2.0.0",
        complexity="O(keys)",
        group="list",
    ),
    Command(
        "BRPOP",
        brpop,
        -3,
        _WAITS,
        _ALL_BUT_LAST,
        "Remove and return the last element of the first list that has one, or wait for it.",
        syntax="key [key ...] timeout",
        since="2.0.0",
        complexity="O(keys)",
        group="list",
    ),
    Command(
        "BLMOVE",
        blmove,
        6,
        _WAITS | Flags.DENY_OOM,
        TWO_KEYS,
        "Move an element from one list to another, or wait for it.",
        syntax="source destination LEFT|RIGHT LEFT|RIGHT timeout",
        since="6.2.0",
        group="list",
    ),
    Command(
        "BRPOPLPUSH",
        brpoplpush,
        4,
        _WAITS | Flags.DENY_OOM,
        TWO_KEYS,
        "Move the last element of one list before the first of another, or wait for it.",
        syntax="source destination timeout",
        since="2.2.0",
        group="list",
    ),
)
