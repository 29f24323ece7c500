"""The groups of a stream: positions, dead consumers, pending entries, and what blocks trimming.

    tail of the stream                                                    head
    |------------------|-----------------------------|---------------------|
    first entry        oldest pending                group's position      last entry

Positions are shown by time, because ids contain times. Custom ids (1-0, 2-0 ...) count as times long ago.

Entries can be trimmed when every group has read and acknowledged them. So trimming is blocked by the group
with the smallest id among all next unread ids and oldest pending ids.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf

import redis

from penstock.client.dead_letters import only_keeps
from penstock.client.replies import Reply, array, blob, identifier, number, parts
from penstock.client.xinfo import ConsumerInfo, GroupInfo, consumer_infos
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.human.moment import Ago, Edge, parse_moment
from penstock.human.show import counted, duration_text, harmless, quoted, time_text
from penstock.web.model.facts import StreamFacts
from penstock.web.model.stream_page import read_ids
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient

GROUPS_SHOWN_MAX = 50
GROUPS_ASKED_MAX = 5000  # for their oldest pending entry, each time
GROUPS_ASKED_AT_ONCE = 500
DEAD_IDLE_MS = 5 * 60_000
PENDING_PAGE = 50
CONSUMERS_SHOWN_MAX = 200


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """An entry that was delivered and not acknowledged. `fields` is None if the entry was deleted."""

    id: StreamID
    consumer: bytes
    idle_ms: int
    deliveries: int
    fields: list[tuple[bytes, bytes]] | None


@dataclass(frozen=True, slots=True)
class Holder:
    """A group that blocks trimming from `id` on, because of unread or pending entries."""

    group: bytes
    id: StreamID
    reason: str


@dataclass(frozen=True, slots=True)
class OldestPending:
    """The oldest pending entry of each group that has one, and how many groups could not be asked for it."""

    entries: dict[bytes, PendingEntry] = field(default_factory=dict)
    unknown: int = 0


async def consumers_of(server: ServerClient, stream: bytes, group: bytes) -> list[ConsumerInfo]:
    """All consumers of a group."""
    return consumer_infos(await server.ask("XINFO", "CONSUMERS", stream, group))


def consumer_state(consumer: ConsumerInfo) -> str:
    """`dead`: silent for a long time, with pending entries. `gone`: the same, without.

    Workers keep entries that wait for their next attempt, or for a time, in the name of a consumer that never
    reads.
    """
    if only_keeps(consumer.name):
        return "waits for workers"
    if consumer.idle_ms >= DEAD_IDLE_MS:
        return "dead" if consumer.pending else "gone"
    if consumer.pending and (consumer.inactive_ms or 0) >= DEAD_IDLE_MS:
        return "reads, gets nothing"
    return "alive"


def foremost(consumers: list[ConsumerInfo]) -> list[ConsumerInfo]:
    """The consumers that a page shows: all, or those with the most pending entries if there are too many."""
    if len(consumers) <= CONSUMERS_SHOWN_MAX:
        return consumers
    places = sorted(range(len(consumers)), key=lambda place: -consumers[place].pending)
    return [consumers[place] for place in sorted(places[:CONSUMERS_SHOWN_MAX])]


async def pending_of(
    server: ServerClient,
    stream: bytes,
    group: bytes,
    start: StreamID = SMALLEST,
    consumer: bytes = b"",
) -> list[PendingEntry]:
    """A page of pending entries from an id on, oldest first, with their fields."""
    one = [consumer] if consumer else []
    reply = await server.ask("XPENDING", stream, group, start.text, "+", PENDING_PAGE, *one)
    rows = [parts(row, 4) for row in array(reply)]
    ids = [identifier(row[0]) for row in rows]
    payload = {entry.id: entry.fields for entry in await read_ids(server, stream, ids)}
    return [
        PendingEntry(id_, blob(row[1]), number(row[2]), number(row[3]), payload.get(id_))
        for id_, row in zip(ids, rows, strict=True)
    ]


def matching(groups: Sequence[GroupInfo], search: str) -> Sequence[GroupInfo]:
    """The groups whose names contain a text."""
    wanted = search.casefold()
    return [group for group in groups if wanted in harmless(group.name).casefold()]


def busiest(groups: Sequence[GroupInfo], most: int) -> Sequence[GroupInfo]:
    """The groups with the largest lags, then the most pending entries, in the order of the server.

    An unknown lag may be a large one.
    """
    if len(groups) <= most:
        return groups

    def key(place: int) -> tuple[float, int]:
        lag = groups[place].lag
        return inf if lag is None else lag, groups[place].pending

    return [groups[place] for place in sorted(sorted(range(len(groups)), key=key)[-most:])]


async def oldest_pending(
    server: ServerClient, facts: StreamFacts, shown: Collection[bytes] = ()
) -> OldestPending:
    """The oldest pending entries, without their fields.

    Of very many groups, those that are shown and those with the most pending entries are asked.
    """
    groups = [group for group in facts.groups if group.pending]
    groups.sort(key=lambda group: (group.name not in shown, -group.pending))
    found: dict[bytes, PendingEntry] = {}
    unknown = max(0, len(groups) - GROUPS_ASKED_MAX)
    for start in range(0, min(len(groups), GROUPS_ASKED_MAX), GROUPS_ASKED_AT_ONCE):
        asked = groups[start : min(start + GROUPS_ASKED_AT_ONCE, GROUPS_ASKED_MAX)]
        replies = await server.ask_all(
            [("XPENDING", facts.name, group.name, "-", "+", 1) for group in asked]
        )
        for group, reply in zip(asked, replies, strict=True):
            if isinstance(reply, redis.RedisError):
                unknown += "NOGROUP" not in str(reply)  # a group that was deleted needs nothing
            else:
                for row in array(reply):
                    found[group.name] = _pending_entry(row)
    return OldestPending(found, unknown)


def _pending_entry(row: Reply) -> PendingEntry:
    id_, consumer, idle, deliveries = parts(row, 4)
    return PendingEntry(identifier(id_), blob(consumer), number(idle), number(deliveries), None)


def holders(facts: StreamFacts, oldest: dict[bytes, PendingEntry]) -> list[Holder]:
    """The groups that still need entries, sorted by the oldest id they need."""
    found = []
    for group in facts.groups:
        if group.last_id < facts.last_id and facts.length:
            first = facts.first.id if facts.first is not None else SMALLEST
            unread = max(group.last_id.next(), first)
            behind = "" if group.lag is None else f" {group.lag:,}"
            found.append(Holder(group.name, unread, f"has{behind} unread entries from here on"))
        pending = oldest.get(group.name)
        if pending is not None:
            found.append(Holder(group.name, pending.id, _pending_reason(group, pending)))
    # Entries before the tail are gone already and block nothing.
    start = facts.first.id if facts.first is not None else LARGEST
    return sorted((holder for holder in found if holder.id >= start), key=lambda holder: holder.id)


def _pending_reason(group: GroupInfo, pending: PendingEntry) -> str:
    times = "once" if pending.deliveries == 1 else f"{pending.deliveries:,} times"
    return (
        f"delivered {times} to {quoted(pending.consumer)}, last {duration_text(pending.idle_ms)} ago,"
        f" not acknowledged; {group.pending:,} pending in total"
    )


def free_text(facts: StreamFacts, found: list[Holder], unknown: int = 0) -> str:
    """Which entries can be trimmed, in one sentence. `unknown` groups may need any entry."""
    if not facts.groups:
        return "Nothing: no group reads this stream."
    first = found[0] if found else None
    if first is not None and facts.first is not None and first.id <= facts.first.id:
        name = harmless(first.group)
        return f"Group {name} still needs the oldest entry, {first.id}, so no entry can be trimmed."
    if unknown:
        return (
            f"It is unknown what can be trimmed: the pending entries of {counted(unknown, 'group')} are"
            " not known."
        )
    if first is None:
        return "Nothing: every group has read and acknowledged all entries."
    name = harmless(first.group)
    return (
        f"Entries before {first.id} ({time_text(first.id.ms)}) can be trimmed;"
        f" group {name} still needs the others."
    )


def group_or_refuse(facts: StreamFacts, name: bytes) -> GroupInfo:
    """Raises: Refused if the stream has no such group."""
    for group in facts.groups:
        if group.name == name:
            return group
    raise Refused(f"the stream has no group {quoted(name)}")


def position_of(text: str, now_ms: int) -> StreamID | None:
    """The position of a group that reads from a time on. None is the end. Raises: ValueError."""
    moment = parse_moment(text)
    if isinstance(moment, Edge):
        return SMALLEST if moment is Edge.START else None
    if isinstance(moment, Ago):
        moment = moment.at(now_ms)
        return moment.previous() if moment > SMALLEST else SMALLEST
    # A complete id is the position itself. A time means the first entry at that time.
    if "-" in text and text.replace("-", "").isdecimal():
        return moment
    return moment.previous() if moment > SMALLEST else SMALLEST
