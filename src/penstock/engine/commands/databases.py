"""Commands on databases: COPY, MOVE, SWAPDB, FLUSHDB, FLUSHALL, DBSIZE."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.arguments import INT32_MAX, INT32_MIN, database_at, database_of, int_between
from penstock.engine.context import Context
from penstock.engine.keyspace import Keyspace
from penstock.engine.table import NO_KEYS, ONE_KEY, TWO_KEYS, Command, Flags
from penstock.errors import CommandError, same_object, syntax_error
from penstock.reply import OK, Status


def move(context: Context, frame: Frame) -> int:
    """Move a key to another database, unless it exists there."""
    source, target = context.keyspace, database_at(context, frame, 2)
    if source is target:
        raise same_object()
    key = frame.piece(1)
    value = source.find(key)
    if value is None or target.find(key) is not None:
        return 0
    when_ms = source.expiry_or_none(key)
    source.remove(key)
    _put_in(context, target, key, value, when_ms)
    context.changed_in(source, key, events.GENERIC, b"move_from")
    context.changed_in(target, key, events.GENERIC, b"move_to")
    context.dirty += 1
    return 1


def _put_in(
    context: Context, keyspace: Keyspace, key: bytes, value: object, when_ms: int | None
) -> None:
    """Set a key that does not exist, with its expiry time."""
    keyspace.put(key, value)
    if when_ms is not None:
        keyspace.set_expiry(key, when_ms)
    context.created(keyspace, key)


def copy(context: Context, frame: Frame) -> int:
    """Copy a value to another key, or to another database, or both."""
    source = target = context.keyspace
    replace = False
    at = 3
    while at < frame.count:
        if frame.is_word(at, b"REPLACE"):
            replace = True
        elif at + 1 < frame.count and frame.is_word(at, b"DB"):
            at += 1
            target = database_at(context, frame, at)
        else:
            raise syntax_error()
        at += 1
    key, new_key = frame.piece(1), frame.piece(2)
    if source is target and key == new_key:
        raise same_object()
    value = source.find(key)
    if value is None:
        context.missed(key)
        return 0
    if target.find(new_key) is not None:
        if not replace:
            return 0
        target.discard(new_key)
    _put_in(context, target, new_key, _copied(value), source.expiry_or_none(key))
    context.changed_in(target, new_key, events.GENERIC, b"copy_to")
    context.dirty += 1
    return 1


def _copied(value: Any) -> object:
    return value if isinstance(value, bytes) else value.copy()


def swapdb(context: Context, frame: Frame) -> Status:
    """Exchange the keys of two databases for all clients."""
    numbers = [
        int_between(frame, at, INT32_MIN, INT32_MAX, CommandError(f"invalid {word} DB index"))
        for at, word in ((1, "first"), (2, "second"))
    ]
    one, other = (database_of(context, number) for number in numbers)
    if one is other:
        context.recorded = True  # counted as a change, as in Redis, but there is no effect
    else:
        _break_watches(one, other)
        _break_watches(other, one)
        one.swap_with(other)
        context.touch_waiting(one)
        context.touch_waiting(other)
    context.dirty += 1
    return OK


def _break_watches(keyspace: Keyspace, other: Keyspace | None) -> None:
    """Break the watches on all keys that leave a database, or arrive from another."""
    for key in list(keyspace.watches):
        if key in keyspace.values or (other is not None and key in other.values):
            keyspace.changed(key)


def flushdb(context: Context, frame: Frame) -> Status:
    """Remove all keys of the selected database."""
    return _flush(context, frame, [context.keyspace])


def flushall(context: Context, frame: Frame) -> Status:
    """Remove all keys of all databases."""
    return _flush(context, frame, context.databases)


def _flush(context: Context, frame: Frame, databases: list[Keyspace]) -> Status:
    """Accepts ASYNC and SYNC, which are the same here: the keys are gone at once, their memory soon after."""
    if frame.count > 2 or (
        frame.count == 2 and not (frame.is_word(1, b"ASYNC") or frame.is_word(1, b"SYNC"))
    ):
        raise syntax_error()
    for keyspace in databases:
        context.dirty += len(keyspace.values)
        _break_watches(keyspace, None)
        keyspace.clear()
        context.touch_waiting(keyspace)
    return OK


def dbsize(context: Context, _frame: Frame) -> int:
    """The number of keys."""
    return len(context.keyspace.values)


_ALL_OF_IT = Flags.WRITE | Flags.DANGEROUS | Flags.KEYSPACE

COMMANDS = (
    Command(
        "COPY",
        copy,
        -3,
        Flags.WRITE | Flags.DENY_OOM | Flags.KEYSPACE,
        TWO_KEYS,
        "Copy a value to another key or another database.",
        syntax="source destination [DB destination-db] [REPLACE]",
        since="6.2.0",
        complexity="O(size of the value)",
        group="generic",
        access=("RO access", "OW update"),
    ),
    Command(
        "MOVE",
        move,
        3,
        Flags.WRITE | Flags.FAST | Flags.KEYSPACE,
        ONE_KEY,
        "Move a key to another database.",
        syntax="key db",
        group="generic",
        access=("RW access update",),
    ),
    Command(
        "SWAPDB",
        swapdb,
        3,
        _ALL_OF_IT | Flags.FAST,
        NO_KEYS,
        "Exchange the keys of two databases.",
        syntax="index1 index2",
        since="4.0.0",
        complexity="O(watched and waited-for keys)",
        group="server",
    ),
    Command(
        "FLUSHDB",
        flushdb,
        -1,
        _ALL_OF_IT,
        NO_KEYS,
        "Remove all keys of the selected database.",
        syntax="[ASYNC|SYNC]",
        complexity="O(keys)",
        group="server",
    ),
    Command(
        "FLUSHALL",
        flushall,
        -1,
        _ALL_OF_IT,
        NO_KEYS,
        "Remove all keys of all databases.",
        syntax="[ASYNC|SYNC]",
        complexity="O(keys)",
        group="server",
    ),
    Command(
        "DBSIZE",
        dbsize,
        1,
        Flags.READ | Flags.FAST | Flags.KEYSPACE,
        NO_KEYS,
        "Count the keys of the selected database.",
        group="server",
    ),
)
