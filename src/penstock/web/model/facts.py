"""What is known of a stream and of its groups from XINFO, on every version that has streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import redis

from penstock.client.replies import (
    Entry,
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
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import Server


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group. `lag` and `entries_read` are None where the server cannot tell (always, before Redis 7)."""

    name: bytes
    consumers: int
    pending: int
    last_id: StreamID
    entries_read: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """A stream. `size_bytes` is None where MEMORY USAGE is not allowed."""

    name: bytes
    length: int
    size_bytes: int | None
    last_id: StreamID
    first: Entry | None
    last: Entry | None
    added: int | None
    max_deleted_id: StreamID | None
    tree_keys: int
    tree_nodes: int
    groups: tuple[GroupFacts, ...]

    @property
    def read(self) -> int | None:
        """Entries delivered to groups, all together; None if one of them cannot tell."""
        counts = [group.entries_read for group in self.groups]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def worst_lag(self) -> int | None:
        """Of the group that is furthest behind; None if there is none, or if one cannot tell."""
        lags = [group.lag for group in self.groups]
        return None if not lags or None in lags else max(lag or 0 for lag in lags)

    @property
    def mean_bytes(self) -> float:
        """Of an entry in memory; what it takes on the wire is about that."""
        return (self.size_bytes or 0) / self.length if self.length else 0.0


async def stream_facts(server: Server, names: Sequence[bytes]) -> dict[bytes, StreamFacts]:
    """What is known of each; one that is gone, or is no stream, is left out."""
    questions: list[tuple[Word, ...]] = []
    for name in names:
        questions.append(("XINFO", "STREAM", name))
        questions.append(("XINFO", "GROUPS", name))
        questions.append(("MEMORY", "USAGE", name))
    replies = await server.ask_all(questions)
    found = {}
    for number_, name in enumerate(names):
        about, groups, size = replies[number_ * 3 : number_ * 3 + 3]
        if isinstance(about, redis.RedisError) or isinstance(groups, redis.RedisError):
            continue
        size_bytes = None if isinstance(size, redis.RedisError) else number_or_none(size)
        found[name] = _parse(name, about, groups, size_bytes)
    return found


async def one_stream(server: Server, name: bytes) -> StreamFacts:
    """Raises: Refused if there is no such stream, in words for the user."""
    found = await stream_facts(server, [name])
    if name in found:
        return found[name]
    kind = blob(await server.ask("TYPE", name)).decode("utf-8", "backslashreplace")
    raise Refused("there is no such key" if kind == "none" else f"the key holds a {kind}")


def _parse(name: bytes, about: Reply, groups: Reply, size_bytes: int | None) -> StreamFacts:
    told = mapping(about)
    deleted = told.get("max-deleted-entry-id")
    return StreamFacts(
        name=name,
        length=number(told["length"]),
        size_bytes=size_bytes,
        last_id=identifier(told["last-generated-id"]),
        first=_entry_or_none(told.get("first-entry")),
        last=_entry_or_none(told.get("last-entry")),
        added=number_or_none(told.get("entries-added")),
        max_deleted_id=None if deleted is None else identifier(deleted),
        tree_keys=number(told.get("radix-tree-keys", 0)),
        tree_nodes=number(told.get("radix-tree-nodes", 0)),
        groups=tuple(_group(mapping(group)) for group in array(groups)),
    )


def _group(told: dict[str, Reply]) -> GroupFacts:
    return GroupFacts(
        name=blob(told["name"]),
        consumers=number(told["consumers"]),
        pending=number(told["pending"]),
        last_id=identifier(told["last-delivered-id"]),
        entries_read=number_or_none(told.get("entries-read")),
        lag=number_or_none(told.get("lag")),
    )


def _entry_or_none(reply: Reply) -> Entry | None:
    return None if reply is None else entry(reply)
