"""Expiry times: EXPIRE and its variants, TTL, PERSIST. Times are kept in milliseconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, int_at
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags
from penstock.errors import CommandError, invalid_expire_time, shown

NO_KEY = -2
NO_EXPIRY = -1

_MS_PER_SECOND = 1000


@dataclass(frozen=True, slots=True)
class Moment:
    """How a command gives a time: in seconds or milliseconds, from now or since 1970."""

    command: str
    in_seconds: bool
    from_now: bool

    def read(self, context: Context, frame: Frame, at: int) -> int:
        """The time in ms since 1970, which may be in the past. Raises: CommandError above 64 bits."""
        given = int_at(frame, at)
        if self.in_seconds:
            if abs(given) > INT64_MAX // _MS_PER_SECOND:
                raise invalid_expire_time(self.command)
            given *= _MS_PER_SECOND
        when_ms = given + (context.now_ms() if self.from_now else 0)
        if when_ms > INT64_MAX:
            raise invalid_expire_time(self.command)
        return when_ms

    def read_positive(self, context: Context, frame: Frame, at: int) -> int:
        """As read, for commands that need a positive number. Raises: CommandError."""
        when_ms = self.read(context, frame, at)
        if int_at(frame, at) <= 0:
            raise invalid_expire_time(self.command)
        return when_ms


def remove_now(context: Context, key: bytes) -> None:
    """Remove an existing key and publish it."""
    context.keyspace.discard(key)
    context.changed(key, events.GENERIC, b"del")
    context.touch(key)


class Conditions:
    """NX, XX, GT, LT: which expiry times may be replaced. A key without one counts as infinite."""

    __slots__ = ("absent", "later", "present", "sooner")

    def __init__(self, frame: Frame) -> None:
        self.absent = self.present = self.later = self.sooner = False
        for at in range(3, frame.count):
            if frame.is_word(at, b"NX"):
                self.absent = True
            elif frame.is_word(at, b"XX"):
                self.present = True
            elif frame.is_word(at, b"GT"):
                self.later = True
            elif frame.is_word(at, b"LT"):
                self.sooner = True
            else:
                raise CommandError(f"Unsupported option {shown(frame.piece(at))}")
        if self.absent and (self.present or self.later or self.sooner):
            raise CommandError("NX and XX, GT or LT options at the same time are not compatible")
        if self.later and self.sooner:
            raise CommandError("GT and LT options at the same time are not compatible")

    def allow(self, old_ms: int | None, new_ms: int) -> bool:
        """Tell whether one time may replace another."""
        if old_ms is None:
            return not (self.present or self.later)
        if self.absent or (self.later and new_ms <= old_ms):
            return False
        return not (self.sooner and new_ms >= old_ms)


def expire(context: Context, frame: Frame) -> int:
    """Set a key's expiry in seconds from now."""
    return _expire(context, frame, Moment("expire", True, True))


def pexpire(context: Context, frame: Frame) -> int:
    """Set a key's expiry in milliseconds from now."""
    return _expire(context, frame, Moment("pexpire", False, True))


def expireat(context: Context, frame: Frame) -> int:
    """Set a key's expiry in seconds since 1970."""
    return _expire(context, frame, Moment("expireat", True, False))


def pexpireat(context: Context, frame: Frame) -> int:
    """Set a key's expiry in milliseconds since 1970."""
    return _expire(context, frame, Moment("pexpireat", False, False))


def _expire(context: Context, frame: Frame, moment: Moment) -> int:
    conditions = Conditions(frame)
    when_ms = moment.read(context, frame, 2)
    key = frame.piece(1)
    keyspace = context.keyspace
    if keyspace.find(key) is None:
        return 0
    if not conditions.allow(keyspace.expiry_or_none(key), when_ms):
        return 0
    if when_ms <= context.now_ms():
        remove_over(context, key)
    else:
        change_expiry(context, key, when_ms)
    return 1


def remove_over(context: Context, key: bytes) -> None:
    """Remove a key whose new expiry time is in the past."""
    remove_now(context, key)
    if context.effects is not None:
        context.record([b"DEL", key])


def change_expiry(context: Context, key: bytes, when_ms: int) -> None:
    """Set the expiry time of an existing key and publish it."""
    context.keyspace.set_expiry(key, when_ms)
    context.changed(key, events.GENERIC, b"expire")
    if context.effects is not None:
        context.record([b"PEXPIREAT", key, b"%d" % when_ms])


def persist(context: Context, frame: Frame) -> int:
    """Remove a key's expiry time."""
    key = frame.piece(1)
    if context.keyspace.find(key) is None or not context.keyspace.clear_expiry(key):
        return 0
    context.changed(key, events.GENERIC, b"persist")
    return 1


def _expiry(context: Context, frame: Frame) -> int:
    """A key's expiry time in ms since 1970, NO_EXPIRY if it has none, NO_KEY if it does not exist."""
    key = frame.piece(1)
    if context.keyspace.find(key) is None:
        context.missed(key)
        return NO_KEY
    when_ms = context.keyspace.expiry_or_none(key)
    return NO_EXPIRY if when_ms is None else when_ms


def ttl(context: Context, frame: Frame) -> int:
    """The seconds until a key expires."""
    return _in_seconds(pttl(context, frame))


def pttl(context: Context, frame: Frame) -> int:
    """The milliseconds until a key expires."""
    when_ms = _expiry(context, frame)
    return when_ms if when_ms < 0 else max(0, when_ms - context.now_ms())


def expiretime(context: Context, frame: Frame) -> int:
    """A key's expiry time in seconds since 1970."""
    return _in_seconds(_expiry(context, frame))


def pexpiretime(context: Context, frame: Frame) -> int:
    """A key's expiry time in milliseconds since 1970."""
    return _expiry(context, frame)


def _in_seconds(ms: int) -> int:
    return ms if ms < 0 else (ms + _MS_PER_SECOND // 2) // _MS_PER_SECOND


_CONDITIONS = "[NX|XX|GT|LT]"
_SETS = Flags.WRITE | Flags.FAST | Flags.KEYSPACE
_TELLS = Flags.READ | Flags.FAST | Flags.KEYSPACE

COMMANDS = (
    Command(
        "EXPIRE",
        expire,
        -3,
        _SETS,
        ONE_KEY,
        "Set a key's expiry in seconds from now.",
        syntax=f"key seconds {_CONDITIONS}",
        group="generic",
    ),
    Command(
        "PEXPIRE",
        pexpire,
        -3,
        _SETS,
        ONE_KEY,
        "Set a key's expiry in milliseconds from now.",
        syntax=f"key milliseconds {_CONDITIONS}",
        since="2.6.0",
        group="generic",
    ),
    Command(
        "EXPIREAT",
        expireat,
        -3,
        _SETS,
        ONE_KEY,
        "Set a key's expiry in seconds since 1970.",
        syntax=f"key unix-time-seconds {_CONDITIONS}",
        since="1.2.0",
        group="generic",
    ),
    Command(
        "PEXPIREAT",
        pexpireat,
        -3,
        _SETS,
        ONE_KEY,
        "Set a key's expiry in milliseconds since 1970.",
        syntax=f"key unix-time-milliseconds {_CONDITIONS}",
        since="2.6.0",
        group="generic",
    ),
    Command(
        "PERSIST",
        persist,
        2,
        _SETS,
        ONE_KEY,
        "Remove a key's expiry time.",
        syntax="key",
        since="2.2.0",
        group="generic",
    ),
    Command(
        "TTL",
        ttl,
        2,
        _TELLS,
        ONE_KEY,
        "Tell the seconds until a key expires.",
        syntax="key",
        group="generic",
    ),
    Command(
        "PTTL",
        pttl,
        2,
        _TELLS,
        ONE_KEY,
        "Tell the milliseconds until a key expires.",
        syntax="key",
        since="2.6.0",
        group="generic",
    ),
    Command(
        "EXPIRETIME",
        expiretime,
        2,
        _TELLS,
        ONE_KEY,
        "Tell a key's expiry time in seconds since 1970.",
        syntax="key",
        since="7.0.0",
        group="generic",
    ),
    Command(
        "PEXPIRETIME",
        pexpiretime,
        2,
        _TELLS,
        ONE_KEY,
        "Tell a key's expiry time in milliseconds since 1970.",
        syntax="key",
        since="7.0.0",
        group="generic",
    ),
)
