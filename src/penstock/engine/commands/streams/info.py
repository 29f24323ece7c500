"""Describes streams, groups and consumers: XINFO STREAM, XINFO GROUPS, XINFO CONSUMERS, XINFO HELP."""

from __future__ import annotations

from typing import Any

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import ENTRIES_READ_UNKNOWN, Group
from penstock.core.rax.items import items_of
from penstock.core.stream import Stream
from penstock.engine.arguments import INT64_MAX, int_at
from penstock.engine.commands.help import help_of
from penstock.engine.commands.streams.groups import group_or_none
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, SUBCOMMAND_KEY, Command, Flags
from penstock.errors import no_group_for_key, no_such_key, unknown_subcommand
from penstock.reply import Pairs, Status

FULL_COUNT_DEFAULT = 10

_NOT_FULL = -1


def xinfo_stream(context: Context, frame: Frame) -> Pairs:
    """Describe a stream; with FULL, also its first entries and its groups."""
    stream = _stream_at(context, frame)
    count = _NOT_FULL
    if frame.count > 3:
        count = _full_count(frame)
    pairs: list[tuple[bytes, Any]] = [
        (b"length", stream.length),
        (b"radix-tree-keys", stream.nodes.count),
        (b"radix-tree-nodes", stream.nodes.node_count),
        (b"last-generated-id", stream.last_id.text),
        (b"max-deleted-entry-id", stream.max_deleted_id.text),
        (b"entries-added", stream.entries_added),
        (b"recorded-first-entry-id", stream.first_id().text),
    ]
    if context.compat.idempotent_adds:
        pairs += _producers(context, stream)
    if count == _NOT_FULL:
        pairs.append((b"groups", 0 if stream.groups is None else stream.groups.count))
        pairs.append((b"first-entry", _edge_entry_or_none(stream, False)))
        pairs.append((b"last-entry", _edge_entry_or_none(stream, True)))
    else:
        pairs.append((b"entries", stream.range(limit=count)))
        groups = [_full_group(context, stream, n, g, count) for n, g in items_of(stream.groups)]
        pairs.append((b"groups", groups))
    return Pairs(pairs)


def _producers(context: Context, stream: Stream) -> list[tuple[bytes, Any]]:
    """What the stream remembers of its producers. What has expired by now is forgotten first."""
    settings = stream.idempotency_settings
    known = stream.idempotency
    if known is not None:
        known.forget_expired(settings, context.now_ms())
    return [
        (b"idmp-duration", settings.duration_s),
        (b"idmp-maxsize", settings.size_max),
        (b"pids-tracked", 0 if known is None else len(known.producers)),
        (b"iids-tracked", 0 if known is None else known.names_count()),
        (b"iids-added", 0 if known is None else known.added),
        (b"iids-duplicates", 0 if known is None else known.duplicates),
    ]


def _full_count(frame: Frame) -> int:
    """Read `FULL [COUNT n]`: 0 means all, a negative number the default."""
    if frame.count not in (4, 6) or not frame.is_word(3, b"FULL"):
        raise unknown_subcommand("XINFO", frame.piece(1))
    if frame.count == 4:
        return FULL_COUNT_DEFAULT
    if not frame.is_word(4, b"COUNT"):
        raise unknown_subcommand("XINFO", frame.piece(1))
    count = int_at(frame, 5)
    return FULL_COUNT_DEFAULT if count < 0 else count


def _stream_at(context: Context, frame: Frame) -> Stream:
    stream = context.keyspace.stream_or_none(frame.piece(2))
    if stream is None:
        raise no_such_key()
    return stream


def _edge_entry_or_none(stream: Stream, last: bool) -> Any:
    entries = stream.range(limit=1, reverse=last).entries()
    return entries[0] if entries else None


def _known_or_none(value: int) -> int | None:
    return None if value == ENTRIES_READ_UNKNOWN else value


def _full_group(context: Context, stream: Stream, name: bytes, group: Group, count: int) -> Pairs:
    limit = count or INT64_MAX
    rows = group.pending_rows(stream_id.SMALLEST, stream_id.LARGEST, limit)
    consumers = [_full_consumer(context, group, c, limit) for _, c in items_of(group.consumers)]
    pairs: list[tuple[bytes, Any]] = [
        (b"name", name),
        (b"last-delivered-id", group.last_id.text),
        (b"entries-read", _known_or_none(group.entries_read)),
        (b"lag", group.lag_or_none(stream)),
        (b"pel-count", group.pending.count),
    ]
    if context.compat.shows_nacked:
        pairs.append((b"nacked-count", len(group.returned)))
    pending = [[r.id.text, r.consumer, r.delivery_ms, r.delivery_count] for r in rows]
    pairs += [(b"pending", pending), (b"consumers", consumers)]
    return Pairs(pairs)


def _full_consumer(context: Context, group: Group, consumer: Consumer, limit: int) -> Pairs:
    rows = group.pending_rows(stream_id.SMALLEST, stream_id.LARGEST, limit, consumer)
    pairs: list[tuple[bytes, Any]] = [(b"name", consumer.name), (b"seen-time", consumer.seen_ms)]
    if context.compat.consumer_activity:
        pairs.append((b"active-time", consumer.active_ms))
    pairs.append((b"pel-count", consumer.pending.count))
    pairs.append((b"pending", [[r.id.text, r.delivery_ms, r.delivery_count] for r in rows]))
    return Pairs(pairs)


def xinfo_groups(context: Context, frame: Frame) -> list[Pairs]:
    """The groups of a stream, with their lag."""
    stream = _stream_at(context, frame)
    return [
        Pairs(
            [
                (b"name", name),
                (b"consumers", group.consumers.count),
                (b"pending", group.pending.count),
                (b"last-delivered-id", group.last_id.text),
                (b"entries-read", _known_or_none(group.entries_read)),
                (b"lag", group.lag_or_none(stream)),
            ]
        )
        for name, group in items_of(stream.groups)
    ]


def xinfo_consumers(context: Context, frame: Frame) -> list[Pairs]:
    """The consumers of a group: their pending entries and idle times."""
    stream = _stream_at(context, frame)
    group = group_or_none(stream, frame.piece(3))
    if group is None:
        raise no_group_for_key(frame.piece(2), frame.piece(3))
    now_ms = context.now_ms()
    found = []
    for _, consumer in items_of(group.consumers):
        pairs: list[tuple[bytes, Any]] = [
            (b"name", consumer.name),
            (b"pending", consumer.pending.count),
            (b"idle", max(0, now_ms - consumer.seen_ms)),
        ]
        if context.compat.consumer_activity:
            never = consumer.active_ms < 0
            pairs.append((b"inactive", -1 if never else max(0, now_ms - consumer.active_ms)))
        found.append(Pairs(pairs))
    return found


def xinfo_help(_context: Context, _frame: Frame) -> list[Status]:
    """The subcommands of XINFO."""
    return help_of("XINFO", _HELP)


_HELP = [
    "CONSUMERS <key> <groupname>",
    "    The consumers of a group, their pending entries and idle times.",
    "GROUPS <key>",
    "    The groups of a stream, their pending entries and positions.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    The stream itself; FULL also shows its entries, groups and consumers.",
]

COMMANDS = (
    Command(
        "XINFO STREAM",
        xinfo_stream,
        -3,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Describe a stream.",
        syntax="key [FULL [COUNT count]]",
        since="5.0.0",
        complexity="O(1); with FULL O(n) for what is shown",
        group="stream",
    ),
    Command(
        "XINFO GROUPS",
        xinfo_groups,
        3,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Describe the groups of a stream.",
        syntax="key",
        since="5.0.0",
        complexity="O(n) for n groups",
        group="stream",
    ),
    Command(
        "XINFO CONSUMERS",
        xinfo_consumers,
        4,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Describe a group's consumers.",
        syntax="key group",
        since="5.0.0",
        complexity="O(n) for n consumers",
        group="stream",
        group_at=3,
    ),
    Command(
        "XINFO HELP",
        xinfo_help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of XINFO.",
        since="5.0.0",
        group="stream",
    ),
)
