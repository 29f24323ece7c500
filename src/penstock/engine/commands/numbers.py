"""Numbers in strings: INCR and its variants. Each command parses the number and formats it again."""

from __future__ import annotations

from penstock.core import long_double
from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, INT64_MIN, int_at, int_of
from penstock.engine.commands.strings import put_string, string_or_none
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags
from penstock.errors import CommandError, not_a_float


def incr(context: Context, frame: Frame) -> int:
    """Add one."""
    return _add(context, frame.piece(1), 1)


def decr(context: Context, frame: Frame) -> int:
    """Subtract one."""
    return _add(context, frame.piece(1), -1)


def incrby(context: Context, frame: Frame) -> int:
    """Add an integer."""
    return _add(context, frame.piece(1), int_at(frame, 2))


def decrby(context: Context, frame: Frame) -> int:
    """Subtract an integer."""
    amount = int_at(frame, 2)
    if amount == INT64_MIN:
        raise CommandError("decrement would overflow")
    return _add(context, frame.piece(1), -amount)


def _add(context: Context, key: bytes, amount: int) -> int:
    text = string_or_none(context, key)
    value = (0 if text is None else int_of(text)) + amount
    if not INT64_MIN <= value <= INT64_MAX:
        raise CommandError("increment or decrement would overflow")
    put_string(context, key, b"%d" % value)
    context.changed(key, events.STRING, b"incrby")
    return value


def incrbyfloat(context: Context, frame: Frame) -> bytes:
    """Add a decimal number."""
    key = frame.piece(1)
    text = string_or_none(context, key)
    value = long_double.parse_or_none(b"0" if text is None else text)
    amount = long_double.parse_or_none(frame.piece(2))
    if value is None or amount is None:
        raise not_a_float()
    total = long_double.sum_or_none(value, amount)
    if total is None:
        raise CommandError("increment would produce NaN or Infinity")
    shown = long_double.text_of(total)
    put_string(context, key, shown)
    context.changed(key, events.STRING, b"incrbyfloat")
    if context.effects is not None:
        # The sum, not the increment: another machine's long double may round differently.
        context.record([b"SET", key, shown, b"KEEPTTL"])
    return shown


_ADDS = Flags.WRITE | Flags.DENY_OOM | Flags.FAST

COMMANDS = (
    Command(
        "INCR",
        incr,
        2,
        _ADDS,
        ONE_KEY,
        "Add one to a number.",
        syntax="key",
        group="string",
        access=("RW access update",),
    ),
    Command(
        "DECR",
        decr,
        2,
        _ADDS,
        ONE_KEY,
        "Subtract one from a number.",
        syntax="key",
        group="string",
        access=("RW access update",),
    ),
    Command(
        "INCRBY",
        incrby,
        3,
        _ADDS,
        ONE_KEY,
        "Add an integer to a number.",
        syntax="key increment",
        group="string",
        access=("RW access update",),
    ),
    Command(
        "DECRBY",
        decrby,
        3,
        _ADDS,
        ONE_KEY,
        "Subtract an integer from a number.",
        syntax="key decrement",
        group="string",
        access=("RW access update",),
    ),
    Command(
        "INCRBYFLOAT",
        incrbyfloat,
        3,
        _ADDS,
        ONE_KEY,
        "Add a decimal number to a number.",
        syntax="key increment",
        since="2.6.0",
        group="string",
        access=("RW access update",),
    ),
)
