"""The groups of a stream: positions, dead consumers, pending entries, and what blocks trimming.

    tail of the stream                                                    head
    |------------------|-----------------------------|---------------------|
    first entry        oldest pending                group's position      last entry

Positions are shown by time, because ids contain times. Custom ids (1-0, 2-0 ...) count as times long ago.

Entries can be trimmed when every group has read and acknowledged them. So trimming is blocked by the group
with the smallest id among all next unread ids and oldest pending ids.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.client.dead_letters import only_keeps
from penstock.client.replies import Reply, array, blob, identifier, number, parts
from penstock.client.xinfo import ConsumerInfo, GroupInfo, consumer_infos
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.human.moment import Ago, Edge, parse_moment
from penstock.human.show import duration_text, harmless, quoted, time_text
from penstock.web.model.facts import StreamFacts
from penstock.web.model.stream_page import read_ids
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient

GROUPS_SHOWN_MAX = 50
GROUPS_ASKED_MAX = 500  # for their oldest pending entry, each time
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


def busiest(groups: Sequence[GroupInfo], search: str, most: int) -> list[GroupInfo]:
    """The groups with the largest lags, then the most pending entries, in the order of the server."""
    wanted = search.casefold()
    found = [group for group in groups if wanted in harmless(group.name).casefold()]
    if len(found) <= most:
        return found
    places = sorted(
        range(len(found)), key=lambda place: (found[place].lag or 0, found[place].pending)
    )
    return [found[place] for place in sorted(places[-most:])]


async def oldest_pending(server: ServerClient, facts: StreamFacts) -> dict[bytes, PendingEntry]:
    """The oldest pending entry of each group that has one, without its fields.

    Of very many groups, those with the most pending entries are asked.
    """
    groups = [group for group in facts.groups if group.pending]
    if len(groups) > GROUPS_ASKED_MAX:
        groups = heapq.nlargest(GROUPS_ASKED_MAX, groups, key=lambda group: group.pending)
    replies = await server.ask_all(
        [("XPENDING", facts.name, group.name, "-", "+", 1) for group in groups]
    )
    found = {}
    for group, reply in zip(groups, replies, strict=True):
        rows: list[Reply] = reply if isinstance(reply, list) else []
        for row in rows:
            id_, consumer, idle, deliveries = parts(row, 4)
            found[group.name] = PendingEntry(
                identifier(id_), blob(consumer), number(idle), number(deliveries), None
            )
    return found


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


def free_text(facts: StreamFacts, found: list[Holder]) -> str:
    """Which entries can be trimmed, in one sentence."""
    if not facts.groups:
        return "Nothing: no group reads this stream."
    if not found:
        return "Nothing: every group has read and acknowledged all entries."
    first = found[0]
    name = harmless(first.group)
    if facts.first is not None and first.id <= facts.first.id:
        return f"Group {name} still needs the oldest entry, {first.id}, so no entry can be trimmed."
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
