"""Looks after groups with something to do: how old pending entries are, and whether anybody reads.

A server with many groups would be asked much, so only the groups with the most pending entries are watched,
then those with the largest lags.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass

import redis

from penstock.client.dead_letters import DELAYED_SUFFIX, has_due_time
from penstock.client.replies import Reply, UnexpectedReply, blob, number, parts
from penstock.client.xinfo import ConsumerInfo, GroupInfo, consumer_infos
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.facts import StreamFacts
from penstock.web.model.groups import consumer_state
from penstock.web.refusal import Refused, Word
from penstock.web.server.asking import ServerClient, ServerUnreachable
from penstock.web.watch.thresholds import UNREAD_MS

LOOK_SECONDS = 5.0
GROUPS_MAX = 100


@dataclass(frozen=True, slots=True)
class WatchedGroup:
    """A group with something to do. `oldest_idle_ms` belongs to the pending entry with the smallest id.

    `unread`: its lag, or 0 if that is unknown, if nobody reads it; None if somebody does.
    """

    stream: bytes
    group: bytes
    pending: int
    oldest_idle_ms: int | None
    dead: tuple[ConsumerInfo, ...]
    unread: int | None = None


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
        """Ask about each of the groups with the most pending entries or the largest lags."""
        asked = heapq.nlargest(
            GROUPS_MAX,
            (
                (facts, group)
                for facts in self._catalogue.all_facts()
                for group in facts.groups
                if group.pending or is_behind(facts, group)
            ),
            key=lambda found: (found[1].pending, found[1].lag or 0),
        )
        questions: list[tuple[Word, ...]] = []
        for facts, group in asked:
            questions.append(("XPENDING", facts.name, group.name, "-", "+", 1))
            questions.append(("XINFO", "CONSUMERS", facts.name, group.name))
        replies = await self._server.ask_all(questions)
        found = []
        for place, (facts, group) in enumerate(asked):
            rows, consumers = replies[2 * place : 2 * place + 2]
            # A group may be deleted between two looks.
            if isinstance(rows, redis.RedisError) or isinstance(consumers, redis.RedisError):
                continue
            known = consumer_infos(consumers)
            dead = tuple(one for one in known if consumer_state(one) == "dead")
            is_unread = all(one.idle_ms >= UNREAD_MS for one in known) and is_behind(facts, group)
            found.append(
                WatchedGroup(
                    stream=facts.name,
                    group=group.name,
                    pending=group.pending,
                    oldest_idle_ms=_idle_of(rows),
                    dead=dead,
                    unread=(group.lag or 0) if is_unread else None,
                )
            )
        self.groups = found


def is_behind(facts: StreamFacts, group: GroupInfo) -> bool:
    """Whether a group has entries to read. Delayed entries of workers are never read, but claimed."""
    if facts.name.endswith(DELAYED_SUFFIX) or not facts.length:
        return False
    return group.last_id < facts.last_id if group.lag is None else group.lag > 0


def _idle_of(rows: Reply) -> int | None:
    """The idle time of the first row. Rows of workers have none: theirs says when they are due."""
    for row in rows if isinstance(rows, list) else []:
        _, consumer, idle, _ = parts(row, 4)
        return None if has_due_time(blob(consumer)) else number(idle)
    return None
