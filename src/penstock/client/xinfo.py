"""Replies of XINFO STREAM, XINFO GROUPS and XINFO CONSUMERS. The terminal, dashboard and Spark use it.

Versions differ in what they send. Fields that old servers lack are None; fields that no class here knows are
ignored, and `StreamInfo.sent` keeps them. A field that every version sends must be there.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.replies import (
    Entry,
    NamedReplies,
    Reply,
    array,
    blob,
    entry,
    identifier,
    mapping,
    number,
    number_or_none,
)
from penstock.core.stream_id import StreamID


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """XINFO STREAM. `entries_added` and `max_deleted_id` are None before Redis 7.0."""

    length: int
    last_id: StreamID
    first: Entry | None
    last: Entry | None
    entries_added: int | None
    max_deleted_id: StreamID | None
    tree_keys: int | None
    tree_nodes: int | None
    sent: NamedReplies  # everything, by the server's names and in its order


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A row of XINFO GROUPS. `entries_read` and `lag` are None if unknown, and always before Redis 7.0."""

    name: bytes
    consumers: int
    pending: int
    last_id: StreamID
    entries_read: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """A row of XINFO CONSUMERS.

    Idle is the time since the consumer last sent a command, inactive since it last received an entry:
    -1 if it never did, None before Redis 7.2.
    """

    name: bytes
    pending: int
    idle_ms: int
    inactive_ms: int | None


def stream_info(reply: Reply) -> StreamInfo:
    """Read the reply of XINFO STREAM, without FULL. Raises: UnexpectedReply."""
    sent = mapping(reply)
    deleted = sent.get("max-deleted-entry-id")
    return StreamInfo(
        length=number(sent["length"]),
        last_id=identifier(sent["last-generated-id"]),
        first=_entry_or_none(sent["first-entry"]),
        last=_entry_or_none(sent["last-entry"]),
        entries_added=number_or_none(sent.get("entries-added")),
        max_deleted_id=None if deleted is None else identifier(deleted),
        tree_keys=number_or_none(sent.get("radix-tree-keys")),
        tree_nodes=number_or_none(sent.get("radix-tree-nodes")),
        sent=sent,
    )


def group_infos(reply: Reply) -> list[GroupInfo]:
    """Read the reply of XINFO GROUPS. Raises: UnexpectedReply."""
    return [_group(mapping(row)) for row in array(reply)]


def consumer_infos(reply: Reply) -> list[ConsumerInfo]:
    """Read the reply of XINFO CONSUMERS. Raises: UnexpectedReply."""
    return [_consumer(mapping(row)) for row in array(reply)]


def _group(sent: NamedReplies) -> GroupInfo:
    return GroupInfo(
        name=blob(sent["name"]),
        consumers=number(sent["consumers"]),
        pending=number(sent["pending"]),
        last_id=identifier(sent["last-delivered-id"]),
        entries_read=number_or_none(sent.get("entries-read")),
        lag=number_or_none(sent.get("lag")),
    )


def _consumer(sent: NamedReplies) -> ConsumerInfo:
    return ConsumerInfo(
        name=blob(sent["name"]),
        pending=number(sent["pending"]),
        idle_ms=number(sent["idle"]),
        inactive_ms=number_or_none(sent.get("inactive")),
    )


def _entry_or_none(reply: Reply) -> Entry | None:
    return None if reply is None else entry(reply)
