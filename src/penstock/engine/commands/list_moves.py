"""Moves between lists: LMOVE, RPOPLPUSH, BLMOVE, BRPOPLPUSH.

list_pops.py has the rules for clients that wait. The destination of a move that waits is checked only when
there is an element to move.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.engine import events
from penstock.engine.arguments import seconds_at
from penstock.engine.commands.list_pops import POSITION, WAITS, awaited, is_left_at
from penstock.engine.commands.lists import popped, push_event, put_new
from penstock.engine.context import Context
from penstock.engine.table import TWO_KEYS, Command, Flags
from penstock.engine.waiters import Blocked

# --- Moving ---------------------------------------------------------------------------------------


def lmove(context: Context, frame: Frame) -> bytes | None:
    """Pop an element from one end of a list and push it to one end of another."""
    from_left, to_left = is_left_at(frame, 3), is_left_at(frame, 4)
    value = context.keyspace.list_or_none(frame.piece(1))
    return None if value is None else _move(context, frame, value, from_left, to_left)


def rpoplpush(context: Context, frame: Frame) -> bytes | None:
    """As lmove, from the right end to the left."""
    value = context.keyspace.list_or_none(frame.piece(1))
    return None if value is None else _move(context, frame, value, False, True)


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


def blmove(context: Context, frame: Frame) -> Any:
    """As lmove; wait if there is no element."""
    from_left, to_left = is_left_at(frame, 3), is_left_at(frame, 4)
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
    value = awaited(context, key)
    if value is not None:
        element = _move(context, frame, value, from_left, to_left)
        if context.effects is not None:
            context.record([name, *(frame.piece(at) for at in range(1, frame.count - 1))])
        return element
    if not context.may_block:
        return None  # unlike the null array after a timeout
    return Blocked(frame.copy(), [key], timeout_ms, POSITION)


_MOVES = Flags.WRITE | Flags.DENY_OOM

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
        access=("RW access delete", "RW insert"),
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
        access=("RW access delete", "RW insert"),
    ),
    Command(
        "BLMOVE",
        blmove,
        6,
        WAITS | Flags.NO_SCRIPT | Flags.DENY_OOM,
        TWO_KEYS,
        "Move an element from one list to another, or wait for it.",
        syntax="source destination LEFT|RIGHT LEFT|RIGHT timeout",
        since="6.2.0",
        group="list",
        access=("RW access delete", "RW insert"),
    ),
    Command(
        "BRPOPLPUSH",
        brpoplpush,
        4,
        WAITS | Flags.NO_SCRIPT | Flags.DENY_OOM,
        TWO_KEYS,
        "Move the last element of one list before the first of another, or wait for it.",
        syntax="source destination timeout",
        since="2.2.0",
        group="list",
        access=("RW access delete", "RW insert"),
    ),
)
