"""The groups of a stream: where they are, who is dead, what is stuck, and what holds the tail.

    tail of the stream                                                    head
    |------------------|-----------------------------|---------------------|
    first entry        oldest pending                group's position      last entry

A position is shown by time, for an id is a time. Ids that somebody chose (1-0, 2-0 ...) are times too,
only long ago.

What blocks trimming: entries may go when every group has read and acknowledged them. So the tail is held
by the smallest of all groups' next unread ids and oldest pending ids, and whoever has that one holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.replies import Reply, array, blob, identifier, number, parts
from penstock.client.xinfo import ConsumerInfo, GroupInfo, consumer_infos
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.human.moment import Ago, Edge, parse_moment
from penstock.human.show import duration_text, harmless, quoted, time_text
from penstock.web.model.facts import StreamFacts
from penstock.web.model.stream_page import read_ids
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient

DEAD_IDLE_MS = 5 * 60_000
PENDING_PAGE = 50
CONSUMERS_SHOWN_MAX = 200


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """An entry that was delivered and not acknowledged. `fields` is None where the entry was deleted."""

    id: StreamID
    consumer: bytes
    idle_ms: int
    deliveries: int
    fields: list[tuple[bytes, bytes]] | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who keeps entries from being trimmed: a group, by what it has not read or not acknowledged."""

    group: bytes
    id: StreamID
    reason: str


async def consumers_of(server: ServerClient, stream: bytes, group: bytes) -> list[ConsumerInfo]:
    """All consumers of a group."""
    return consumer_infos(await server.ask("XINFO", "CONSUMERS", stream, group))


def consumer_state(consumer: ConsumerInfo) -> str:
    """`dead`: silent for a long time, with pending entries. `gone`: the same, without."""
    if consumer.idle_ms >= DEAD_IDLE_MS:
        return "dead" if consumer.pending else "gone"
    if consumer.pending and (consumer.inactive_ms or 0) >= DEAD_IDLE_MS:
        return "reads, gets nothing"
    return "alive"


def foremost(consumers: list[ConsumerInfo]) -> list[ConsumerInfo]:
    """As many as a page shows, in the order they came; where there are more, those that hold the most."""
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
    """A page of pending entries from an id on, oldest first, with their payload."""
    one = [consumer] if consumer else []
    reply = await server.ask("XPENDING", stream, group, start.text, "+", PENDING_PAGE, *one)
    rows = [parts(row, 4) for row in array(reply)]
    ids = [identifier(row[0]) for row in rows]
    payload = {entry.id: entry.fields for entry in await read_ids(server, stream, ids)}
    return [
        PendingEntry(id_, blob(row[1]), number(row[2]), number(row[3]), payload.get(id_))
        for id_, row in zip(ids, rows, strict=True)
    ]


async def oldest_pending(server: ServerClient, facts: StreamFacts) -> dict[bytes, PendingEntry]:
    """The oldest pending entry of every group that has one, without its payload."""
    groups = [group for group in facts.groups if group.pending]
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
    """Every group that needs something of the stream, the one that needs the oldest first."""
    found = []
    for group in facts.groups:
        if group.last_id < facts.last_id and facts.length:
            first = facts.first.id if facts.first is not None else SMALLEST
            unread = max(group.last_id.next(), first)
            behind = "" if group.lag is None else f" {group.lag:,}"
            found.append(Holder(group.name, unread, f"has{behind} entries to read from here on"))
        pending = oldest.get(group.name)
        if pending is not None:
            found.append(Holder(group.name, pending.id, _pending_reason(group, pending)))
    # What lies before the tail holds nothing: those entries are gone already.
    start = facts.first.id if facts.first is not None else LARGEST
    return sorted((holder for holder in found if holder.id >= start), key=lambda holder: holder.id)


def _pending_reason(group: GroupInfo, pending: PendingEntry) -> str:
    times = "once" if pending.deliveries == 1 else f"{pending.deliveries:,} times"
    return (
        f"{quoted(pending.consumer)} has it pending for {duration_text(pending.idle_ms)},"
        f" delivered {times}; {group.pending:,} pending in all"
    )


def free_text(facts: StreamFacts, found: list[Holder]) -> str:
    """What may go, in one sentence."""
    if not facts.groups:
        return "No group reads this stream, so none holds anything."
    if not found:
        return "Nothing: every group has read and acknowledged all there is."
    first = found[0]
    name = harmless(first.group)
    if facts.first is not None and first.id <= facts.first.id:
        return (
            f"Group {name} needs the oldest entry, {first.id}: nothing can go without it noticing."
        )
    return (
        f"All before {first.id} ({time_text(first.id.ms)}) can go; group {name} needs what follows."
    )


def place(facts: StreamFacts, id_: StreamID) -> float:
    """Where an id lies between the stream's tail (0) and head (1), by time."""
    if facts.first is None or id_ >= facts.last_id:
        return 1.0
    first = facts.first.id.ms
    span = facts.last_id.ms - first
    if span <= 0:
        return 0.0 if id_ <= facts.first.id else 1.0
    return min(1.0, max(0.0, (id_.ms - first) / span))


def group_or_refuse(facts: StreamFacts, name: bytes) -> GroupInfo:
    """Raises: Refused if the stream has no such group."""
    for group in facts.groups:
        if group.name == name:
            return group
    raise Refused(f"the stream has no group {quoted(name)}")


def position_of(text: str, now_ms: int) -> StreamID | None:
    """Where a group reads what comes from a moment on; None is the end. Raises: ValueError."""
    moment = parse_moment(text)
    if isinstance(moment, Edge):
        return SMALLEST if moment is Edge.START else None
    if isinstance(moment, Ago):
        moment = moment.at(now_ms)
        return moment.previous() if moment > SMALLEST else SMALLEST
    # An id that was typed is taken at its word; a moment means the first entry in it.
    if "-" in text and text.replace("-", "").isdecimal():
        return moment
    return moment.previous() if moment > SMALLEST else SMALLEST
