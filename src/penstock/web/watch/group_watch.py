"""Looks after groups with pending entries: how old these are, and whether their consumers are alive.

A server with many groups would be asked much, so only the groups with the most pending entries are watched.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass

import redis

from penstock.client.dead_letters import has_due_time
from penstock.client.replies import Reply, UnexpectedReply, blob, number, parts
from penstock.client.xinfo import ConsumerInfo, consumer_infos
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.groups import consumer_state
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient, ServerUnreachable

LOOK_SECONDS = 5.0
GROUPS_MAX = 100


@dataclass(frozen=True, slots=True)
class WatchedGroup:
    """A group with pending entries. `oldest_idle_ms` belongs to the entry with the smallest id."""

    stream: bytes
    group: bytes
    pending: int
    oldest_idle_ms: int | None
    dead: tuple[ConsumerInfo, ...]


class GroupWatch:
    """The watched groups, as of the last look."""

    def __init__(self, server: ServerClient, catalogue: StreamCatalogue) -> None:
        self._server = server
        self._catalogue = catalogue
        self.groups: list[WatchedGroup] = []

    async def run(self) -> None:
        """Look until cancelled, also while the server cannot be reached."""
        while True:
            try:
                await self.look()
            except (ServerUnreachable, Refused, UnexpectedReply):
                self.groups = []
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Ask about each of the groups with the most pending entries."""
        asked = heapq.nlargest(
            GROUPS_MAX,
            (
                (group.pending, facts.name, group.name)
                for facts in self._catalogue.all_facts()
                for group in facts.groups
                if group.pending
            ),
        )
        questions: list[tuple[Word, ...]] = []
        for _, stream, group in asked:
            questions.append(("XPENDING", stream, group, "-", "+", 1))
            questions.append(("XINFO", "CONSUMERS", stream, group))
        replies = await self._server.ask_all(questions)
        found = []
        for place, (pending, stream, group) in enumerate(asked):
            rows, consumers = replies[2 * place : 2 * place + 2]
            # A group may be deleted between two looks.
            if isinstance(rows, redis.RedisError) or isinstance(consumers, redis.RedisError):
                continue
            dead = [one for one in consumer_infos(consumers) if consumer_state(one) == "dead"]
            found.append(WatchedGroup(stream, group, pending, _idle_of(rows), tuple(dead)))
        self.groups = found


def _idle_of(rows: Reply) -> int | None:
    """The idle time of the first row. Rows of workers have none: theirs says when they are due."""
    for row in rows if isinstance(rows, list) else []:
        _, consumer, idle, _ = parts(row, 4)
        return None if has_due_time(blob(consumer)) else number(idle)
    return None
