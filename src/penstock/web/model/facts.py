"""The state of a stream and its groups, from XINFO and MEMORY USAGE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import redis

from penstock.client.replies import Entry, blob, number_or_none
from penstock.client.xinfo import GroupInfo, StreamInfo, group_infos, stream_info
from penstock.core.stream_id import StreamID
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient


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
    groups: tuple[GroupInfo, ...]

    @property
    def reads(self) -> dict[bytes, int | None]:
        """The number of entries delivered to each group, or None where it is unknown."""
        return {group.name: group.entries_read for group in self.groups}

    @property
    def worst_lag(self) -> int | None:
        """The largest lag of a group, or None without groups or if a lag is unknown."""
        lags = [group.lag for group in self.groups]
        return None if not lags or None in lags else max(lag or 0 for lag in lags)

    @property
    def mean_bytes(self) -> float:
        """Memory per entry. An entry takes about as much on the wire."""
        return (self.size_bytes or 0) / self.length if self.length else 0.0


async def stream_facts(server: ServerClient, names: Sequence[bytes]) -> dict[bytes, StreamFacts]:
    """Facts by name. Keys that do not exist, or hold no stream, are left out."""
    questions: list[tuple[Word, ...]] = []
    for name in names:
        questions.append(("XINFO", "STREAM", name))
        questions.append(("XINFO", "GROUPS", name))
        questions.append(("MEMORY", "USAGE", name))
    replies = await server.ask_all(questions)
    found = {}
    for place, name in enumerate(names):
        about, groups, size = replies[place * 3 : place * 3 + 3]
        if isinstance(about, redis.RedisError) or isinstance(groups, redis.RedisError):
            continue
        size_bytes = None if isinstance(size, redis.RedisError) else number_or_none(size)
        found[name] = _facts(name, stream_info(about), group_infos(groups), size_bytes)
    return found


async def one_stream(server: ServerClient, name: bytes) -> StreamFacts:
    """Facts of one stream. Raises: Refused if there is none, with a text for the user."""
    found = await stream_facts(server, [name])
    if name in found:
        return found[name]
    kind = blob(await server.ask("TYPE", name)).decode("utf-8", "backslashreplace")
    raise Refused("there is no such key" if kind == "none" else f"the key holds a {kind}")


def _facts(
    name: bytes, info: StreamInfo, groups: list[GroupInfo], size_bytes: int | None
) -> StreamFacts:
    return StreamFacts(
        name=name,
        length=info.length,
        size_bytes=size_bytes,
        last_id=info.last_id,
        first=info.first,
        last=info.last,
        added=info.entries_added,
        max_deleted_id=info.max_deleted_id,
        tree_keys=info.tree_keys or 0,
        tree_nodes=info.tree_nodes or 0,
        groups=tuple(groups),
    )
