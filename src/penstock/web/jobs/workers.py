"""The handlers of workers (penstock.work), their retries and their dead letters.

A handler is a group of a stream. Workers leave these traces on the server:

    STREAM        group         consumers HOST-PID-RANDOM hold the entries that run, `waiting` those that wait
                                for their next attempt; deliveries count attempts
    STREAM:dead                 entries that were given up, with the reason
    STREAM:delayed              entries that were sent for later
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import redis

from penstock.client.dead_letters import (
    DELAYED_SUFFIX,
    GROUP,
    SUFFIX,
    WAITING,
    due_in_ms,
    facts_of,
    has_due_time,
    is_worker,
)
from penstock.client.replies import Entry, blob, identifier, number, parts
from penstock.client.xinfo import ConsumerInfo, GroupInfo, consumer_infos
from penstock.core.stream_id import StreamID
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.facts import StreamFacts
from penstock.web.model.groups import DEAD_IDLE_MS
from penstock.web.model.stream_page import NEWEST, read_entries
from penstock.web.server.asking import ServerClient

GROUPS_MAX = 200  # groups that are asked whether they belong to workers
ROWS_MAX = 200  # pending entries of each handler that are looked at
FAILING_MAX = 50
DEAD_MAX = 20  # of each stream


@dataclass(frozen=True, slots=True)
class Handler:
    """A group that workers read. `running` and `waiting` count its pending entries."""

    stream: bytes
    group: GroupInfo
    workers: int
    lost: int  # workers that have been silent for long, with entries
    running: int
    waiting: int
    delayed: int
    dead_letters: int
    newest_dead: Entry | None


@dataclass(frozen=True, slots=True)
class FailingEntry:
    """An entry whose last attempt failed, or whose worker was lost."""

    stream: bytes
    group: bytes
    id: StreamID
    attempts: int
    consumer: bytes
    due_ms: int

    @property
    def state(self) -> str:
        if self.consumer == WAITING:
            return "waits for its next attempt"
        return "runs again"


async def handlers_of(server: ServerClient, catalogue: StreamCatalogue) -> list[Handler]:
    """Every handler, by stream and group."""
    by_name = {facts.name: facts for facts in catalogue.all_facts()}
    asked = _candidates(list(by_name.values()))
    replies = await server.ask_all(
        [("XINFO", "CONSUMERS", facts.name, group.name) for facts, group in asked]
    )
    found = []
    for (facts, group), reply in zip(asked, replies, strict=True):
        if isinstance(reply, redis.RedisError):  # deleted in the meantime
            continue
        consumers = consumer_infos(reply)
        dead = by_name.get(facts.name + SUFFIX)
        mine = dead if dead is not None and _is_of(dead, group.name, facts) else None
        if mine is not None or _has_workers(consumers):
            delayed = by_name.get(facts.name + DELAYED_SUFFIX)
            found.append(_handler(facts, group, consumers, delayed, mine))
    return sorted(found, key=lambda one: (one.stream, one.group.name))


def _candidates(streams: Sequence[StreamFacts]) -> list[tuple[StreamFacts, GroupInfo]]:
    """The groups that may belong to workers: with dead letters first, then with many consumers."""
    names = {facts.name for facts in streams}
    pairs = [
        (facts, group)
        for facts in streams
        if not facts.name.endswith((SUFFIX, DELAYED_SUFFIX))
        for group in facts.groups
        if group.consumers or facts.name + SUFFIX in names
    ]
    return heapq.nlargest(
        GROUPS_MAX,
        pairs,
        key=lambda one: (one[0].name + SUFFIX in names, one[1].pending, one[1].consumers),
    )


def _is_of(dead: StreamFacts, group: bytes, facts: StreamFacts) -> bool:
    """Whether the newest dead letter is of this group, or the stream has no other."""
    if len(facts.groups) == 1 or dead.last is None:
        return True
    return facts_of(dead.last.fields).get(GROUP, group) == group


def _has_workers(consumers: Sequence[ConsumerInfo]) -> bool:
    return any(one.name == WAITING or is_worker(one.name) for one in consumers)


def _handler(
    facts: StreamFacts,
    group: GroupInfo,
    consumers: Sequence[ConsumerInfo],
    delayed: StreamFacts | None,
    dead: StreamFacts | None,
) -> Handler:
    workers = [one for one in consumers if one.name != WAITING]
    silent = [one for one in workers if one.idle_ms >= DEAD_IDLE_MS]
    return Handler(
        stream=facts.name,
        group=group,
        workers=len(workers) - len(silent),
        lost=sum(1 for one in silent if one.pending),
        running=sum(one.pending for one in workers),
        waiting=sum(one.pending for one in consumers if one.name == WAITING),
        delayed=0 if delayed is None else delayed.length,
        dead_letters=0 if dead is None else dead.length,
        newest_dead=None if dead is None else dead.last,
    )


async def failing_entries(server: ServerClient, handlers: Sequence[Handler]) -> list[FailingEntry]:
    """The entries with a second attempt or more, those with the most attempts first."""
    asked = [one for one in handlers if one.running or one.waiting]
    replies = await server.ask_all(
        [("XPENDING", one.stream, one.group.name, "-", "+", ROWS_MAX) for one in asked]
    )
    found = []
    for handler, reply in zip(asked, replies, strict=True):
        for row in reply if isinstance(reply, list) else []:
            id_, consumer, idle, deliveries = parts(row, 4)
            entry = FailingEntry(
                stream=handler.stream,
                group=handler.group.name,
                id=identifier(id_),
                attempts=number(deliveries),
                consumer=blob(consumer),
                due_ms=due_in_ms(number(idle)),
            )
            if has_due_time(entry.consumer) and _has_failed(entry):
                found.append(entry)
    return heapq.nlargest(FAILING_MAX, found, key=lambda one: (one.attempts, one.id))


def _has_failed(entry: FailingEntry) -> bool:
    """A waiting entry has failed with its first attempt; one that runs is in its second or a later one."""
    return entry.attempts >= (1 if entry.consumer == WAITING else 2)


async def newest_dead(
    server: ServerClient, handlers: Sequence[Handler]
) -> list[tuple[bytes, Entry]]:
    """The newest dead letters with their streams, newest first."""
    streams = sorted({one.stream for one in handlers if one.dead_letters})
    found = []
    for stream in streams:
        read = await read_entries(server, stream + SUFFIX, NEWEST, DEAD_MAX)
        found += [(stream, entry) for entry in read]
    return sorted(found, key=lambda one: one[1].id, reverse=True)[:FAILING_MAX]
