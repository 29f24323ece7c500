"""Streams as a server describes them, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from penstock.client.replies import Reply, array, blob, parts
from penstock.client.xinfo import ConsumerInfo, consumer_infos, group_infos, stream_info
from penstock.core.stream_id import StreamID
from penstock.doctor.streams import ConsumerFacts, GroupFacts, StreamFacts

SCAN_COUNT = 500

Word = str | bytes | int


class Asking(Protocol):
    """A connection to a server."""

    def ask_or_none(self, *words: Word) -> Reply | None:
        """The reply; None if the server refuses the command."""

    def ask_each(self, commands: Sequence[Sequence[Word]]) -> list[Reply | None]:
        """The replies of many commands; None where the server refuses one."""


def streams_of(server: Asking) -> Iterator[StreamFacts]:
    """All streams of the connection's database. Those that are deleted meanwhile are left out."""
    seen: set[bytes] = set()
    cursor = b"0"
    while True:
        reply = server.ask_or_none("SCAN", cursor, "TYPE", "stream", "COUNT", SCAN_COUNT)
        if reply is None:
            return
        next_cursor, found = parts(reply, 2)
        names = [name for name in map(blob, array(found)) if name not in seen]
        seen.update(names)
        yield from _described(server, names)
        cursor = blob(next_cursor)
        if cursor == b"0":
            return


def _described(server: Asking, names: list[bytes]) -> Iterator[StreamFacts]:
    questions = [("XINFO", kind, name) for name in names for kind in ("STREAM", "GROUPS")]
    replies = iter(server.ask_each(questions))
    for name in names:
        about, groups = next(replies), next(replies)
        if about is None or groups is None:
            continue
        stream = stream_info(about)
        cut = stream.max_deleted_id not in (None, StreamID(0, 0))
        if stream.entries_added is not None:
            cut = cut or stream.entries_added != stream.length
        rows = group_infos(groups)
        asked = [("XINFO", "CONSUMERS", name, row.name) for row in rows]
        found = server.ask_each(asked) if asked else []
        yield StreamFacts(
            name,
            stream.length,
            stream.last_id.ms,
            cut,
            [
                GroupFacts(
                    row.name,
                    row.lag,
                    bool(row.lag) if row.lag is not None else row.last_id < stream.last_id,
                    row.pending,
                    [] if reply is None else [_consumer(one) for one in consumer_infos(reply)],
                )
                for row, reply in zip(rows, found, strict=True)
            ],
        )


def _consumer(row: ConsumerInfo) -> ConsumerFacts:
    return ConsumerFacts(row.name, row.pending, row.idle_ms)
