"""What groups need and what a retention policy removes: PENSTOCK GROUPS, PENSTOCK RETENTION."""

from __future__ import annotations

import sys
from typing import Any

from penstock.core.frame import Frame
from penstock.core.groups.group import Group
from penstock.core.rax.items import items_of
from penstock.core.stream import Stream
from penstock.engine.context import Context
from penstock.engine.retention.cut import cut_of, stream_bytes
from penstock.engine.retention.group_needs import (
    first_needed,
    oldest_unread_or_none,
    orphan_count_or_none,
    seen_ms_or_none,
    unread_count,
)
from penstock.engine.retention.policy import parse_policies
from penstock.engine.table import SUBCOMMAND_KEY, Command, Flags
from penstock.errors import CommandError, no_such_key
from penstock.reply import Pairs


def penstock_groups(context: Context, frame: Frame) -> list[Pairs]:
    """Describe the groups of a stream with counted figures."""
    stream = _stream_at(context, frame)
    now_ms = context.now_ms()
    return [_facts(stream, name, group, now_ms) for name, group in items_of(stream.groups)]


def _facts(stream: Stream, name: bytes, group: Group, now_ms: int) -> Pairs:
    record = group.pending.edge_or_none(False)
    oldest = None if record is None else record.entry_id()
    unread = oldest_unread_or_none(stream, group)
    seen_ms = seen_ms_or_none(group)
    facts: list[tuple[bytes, Any]] = [
        (b"name", name),
        (b"consumers", group.consumers.count),
        (b"idle", None if seen_ms is None else max(0, now_ms - seen_ms)),
        (b"last-delivered-id", group.last_id.text),
        (b"lag", unread_count(stream, group)),
        (b"oldest-unread", None if unread is None else unread.text),
        (b"pending", group.pending.count),
        (b"oldest-pending", None if oldest is None else oldest.text),
        (
            b"oldest-pending-idle",
            None if record is None else max(0, now_ms - record.delivery_ms),
        ),
        (b"orphans", orphan_count_or_none(stream, group)),
        (b"needed-from", first_needed(group).text),
    ]
    return Pairs(facts)


def penstock_retention(context: Context, frame: Frame) -> Pairs:
    """What a policy would remove from a stream now."""
    stream = _stream_at(context, frame)
    words = [frame.piece(at).decode(errors="surrogateescape") for at in range(3, frame.count)]
    policies = parse_policies(["*", *words])
    if len(policies) != 1:
        raise CommandError(f"'{policies[1].pattern[:40]}' is no option of a retention policy")
    now_ms = context.now_ms()
    cut = cut_of(
        stream,
        policies[0],
        now_ms,
        sys.maxsize,
        lambda _name, group: now_ms - (seen_ms_or_none(group) or now_ms),
    )
    facts: list[tuple[bytes, Any]] = [
        (b"length", stream.length),
        (b"bytes", stream_bytes(stream)),
        (b"removed-entries", cut.entries),
        (b"removed-bytes", cut.bytes),
        (b"first-kept", None if cut.min_id is None else cut.min_id.text),
        (b"held-by", cut.holder),
    ]
    return Pairs(facts)


def _stream_at(context: Context, frame: Frame) -> Stream:
    """Raises: CommandError if there is no such key."""
    stream = context.keyspace.stream_or_none(frame.piece(2))
    if stream is None:
        raise no_such_key()
    return stream


COMMANDS = (
    Command(
        "PENSTOCK GROUPS",
        penstock_groups,
        3,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Describe the groups of a stream with counted figures.",
        syntax="key",
        since="0.2.0",
        complexity="O(n) for the nodes of the stream and the pending entries of its groups",
        group="penstock",
    ),
    Command(
        "PENSTOCK RETENTION",
        penstock_retention,
        -5,
        Flags.READ,
        SUBCOMMAND_KEY,
        "Show what a retention policy would remove from a stream now.",
        syntax="key [age time] [bytes size] [length count] [acked yes] [idle-group time] [force yes]",
        since="0.2.0",
        complexity="O(n) for the nodes that would be removed",
        group="penstock",
    ),
)
