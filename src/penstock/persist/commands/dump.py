"""DUMP and RESTORE: encode one value as bytes, and decode it."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.arguments import INT64_MAX, int_at
from penstock.engine.commands.expiry import remove_now
from penstock.engine.context import Context
from penstock.engine.table import ONE_KEY, Command, Flags
from penstock.errors import CommandError, syntax_error
from penstock.persist.rdb.dump import dump_value, is_of_valkey, restore_value
from penstock.persist.rdb.format import VERSION_MAX
from penstock.persist.rdb.value import ValueLimits
from penstock.reply import OK, Status

_FREQUENCY_MAX = 255
_NOT_GIVEN = -1


def dump(context: Context, frame: Frame) -> bytes | None:
    """Encode a value as a payload for RESTORE."""
    key = frame.piece(1)
    value = context.keyspace.find(key)
    if value is None:
        context.missed(key)
        return None
    return dump_value(value, context.compat.rdb_version)  # type: ignore[arg-type]


class _Options:
    """The options after the payload. IDLETIME and FREQ are checked and ignored."""

    __slots__ = ("absolute", "replace")

    def __init__(self, frame: Frame) -> None:
        self.replace = self.absolute = False
        idle = frequency = _NOT_GIVEN
        at = 4
        while at < frame.count:
            has_more = at + 1 < frame.count
            if frame.is_word(at, b"REPLACE"):
                self.replace = True
            elif frame.is_word(at, b"ABSTTL"):
                self.absolute = True
            elif frame.is_word(at, b"IDLETIME") and has_more and frequency == _NOT_GIVEN:
                at += 1
                idle = int_at(frame, at)
                if idle < 0:
                    raise CommandError("Invalid IDLETIME value, must be >= 0")
            elif frame.is_word(at, b"FREQ") and has_more and idle == _NOT_GIVEN:
                at += 1
                frequency = int_at(frame, at)
                if not 0 <= frequency <= _FREQUENCY_MAX:
                    raise CommandError("Invalid FREQ value, must be >= 0 and <= 255")
            else:
                raise syntax_error()
            at += 1


def restore(context: Context, frame: Frame) -> Status:
    """Create a key from a payload of DUMP."""
    options = _Options(frame)
    key = frame.piece(1)
    keyspace = context.keyspace
    there = keyspace.find(key) is not None
    if there and not options.replace:
        raise CommandError("Target key name already exists.", "BUSYKEY")
    when_ms = int_at(frame, 2)
    if when_ms < 0:
        raise CommandError("Invalid TTL value, must be >= 0")
    payload = frame.piece(3)
    limits = ValueLimits(keyspace.limits, keyspace.list_limits)
    # A log may have been written with a higher compat version, or by a newer Redis.
    version_max = VERSION_MAX if context.replaying else context.compat.rdb_version
    value = restore_value(payload, version_max, limits)
    expires = when_ms > 0
    if expires and not options.absolute:
        when_ms += context.now_ms()
    # Redis adds in 64 bits, so an expiry beyond INT64_MAX overflows and is in the past.
    if expires and (when_ms > INT64_MAX or (when_ms <= context.now_ms() and not context.replaying)):
        if there:
            remove_now(context, key)
            _record(context, [b"DEL", key])
        return OK
    keyspace.discard(key)
    keyspace.put(key, value)
    if expires:
        keyspace.set_expiry(key, when_ms)
    context.created(keyspace, key)
    context.changed(key, events.GENERIC, b"restore")
    context.touch(key)
    if is_of_valkey(payload):
        payload = dump_value(value, context.compat.rdb_version)  # for a Redis that reads the log
    words = [b"RESTORE", key, b"%d" % when_ms, payload, b"ABSTTL"]
    _record(context, [*words, b"REPLACE"] if options.replace else words)
    return OK


def _record(context: Context, words: list[bytes]) -> None:
    """Record the effect, with absolute times, so that a replay needs no clock."""
    if context.effects is not None:
        context.record(words)


COMMANDS = (
    Command(
        "DUMP",
        dump,
        2,
        Flags.READ | Flags.KEYSPACE,
        ONE_KEY,
        "Return a value as bytes that RESTORE takes.",
        syntax="key",
        since="2.6.0",
        complexity="O(bytes of the value)",
        group="generic",
    ),
    Command(
        "RESTORE",
        restore,
        -4,
        Flags.WRITE | Flags.DENY_OOM | Flags.KEYSPACE | Flags.DANGEROUS,
        ONE_KEY,
        "Make a key of what DUMP gave.",
        syntax="key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        since="2.6.0",
        complexity="O(bytes of the value)",
        group="generic",
        access=("OW update",),
    ),
)
