"""The owner of a keyed stream, and consumers that are gone: PENSTOCK OWN, PENSTOCK REAP."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.core.rax.items import items_of
from penstock.engine.commands.work.arguments import WorkArguments, work_group, work_keys
from penstock.engine.commands.work.calls import call
from penstock.engine.commands.work.rows import WAITING, WINDOW_MS, GroupRows
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, wrong_type


def owner_or_none(context: Context, key: bytes) -> bytes | None:
    """The name in an owner's key. Raises: CommandError (WRONGTYPE)."""
    value = context.keyspace.find(key)
    if value is not None and not isinstance(value, bytes):
        raise wrong_type()
    return value


def is_owner(context: Context, key: bytes, consumer: bytes) -> bool:
    """Tell whether a consumer owns a keyed stream now. Raises: CommandError (WRONGTYPE)."""
    return owner_or_none(context, key) == consumer


def check_owner(context: Context, keys: list[bytes], consumer: bytes) -> None:
    """Raises: CommandError (NOTOWNER) unless the consumer owns all of the keys."""
    for key in keys:
        if not is_owner(context, key, consumer):
            raise CommandError("another consumer owns this stream, or none", "NOTOWNER")


def penstock_own(context: Context, frame: Frame) -> int:
    """Become the owner for a time, or stay it; 0 if another consumer is. A time of 0 gives it up.

    With KEEP and TO also 0 if nobody is: meanwhile another consumer may have been the owner. TO makes another
    consumer the owner.
    """
    arguments = WorkArguments(frame, 1)
    key = arguments.keys[0]
    consumer = arguments.word()
    lease_ms = arguments.number(0, WINDOW_MS)
    to = arguments.word() if (hands_over := arguments.option(b"TO")) else consumer
    keep = hands_over or arguments.option(b"KEEP")
    arguments.end()
    owner = owner_or_none(context, key)
    context.recorded = True
    if owner != consumer and (keep or owner is not None):
        return 0
    if lease_ms:
        call(context, "SET", key, to, b"PX", b"%d" % lease_ms)
    elif owner is not None:
        call(context, "DEL", key)
    return 1


def penstock_reap(context: Context, frame: Frame) -> int:
    """Remove consumers without pending entries that are idle; return how many. Or one of them, by name."""
    arguments = WorkArguments(frame, 1)
    group = arguments.word()
    idle_ms = arguments.number()
    only = arguments.word() if arguments.more() else None
    arguments.end()
    rows = GroupRows(context, arguments.keys[0], group, b"")
    context.recorded = True
    gone = []
    for _, consumer in items_of(rows.group.consumers):
        if (
            consumer.pending.count == 0
            and consumer.name != WAITING
            and only in (None, consumer.name)
            and context.now_ms() - consumer.seen_ms >= idle_ms
        ):
            gone.append(consumer.name)
    for name in gone:
        call(context, "XGROUP DELCONSUMER", arguments.keys[0], group, name)
    return len(gone)


COMMANDS = (
    Command(
        "PENSTOCK OWN",
        penstock_own,
        -6,
        Flags.WRITE | Flags.FAST,  # also without memory: an owner must stay the owner
        NO_KEYS,
        "Own a keyed stream for a time.",
        syntax="1 owner consumer lease-ms [KEEP | TO consumer]",
        since="0.2.0",
        group="penstock",
        find_keys=work_keys,
    ),
    Command(
        "PENSTOCK REAP",
        penstock_reap,
        -6,
        Flags.WRITE,
        NO_KEYS,
        "Remove consumers that have no pending entries and are idle.",
        syntax="1 stream group idle-ms [consumer]",
        since="0.2.0",
        complexity="O(n) for n consumers",
        group="penstock",
        find_keys=work_keys,
        find_group=work_group,
    ),
)
