"""Builds groups in one line, and shows what they did as texts."""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.records import ClaimOptions
from penstock.core.groups.results import AutoClaim
from penstock.core.stream import Stream
from penstock.core.stream_cursor import EntryRange
from penstock.core.stream_id import SMALLEST
from tests.support.engine.streams import stream_of

Crew = tuple[Stream, Group, Consumer, Consumer]


def crew(*entry_ids: str, entries_read: int = 0) -> Crew:
    """A stream, a group at its start, and the consumers a and b."""
    stream = stream_of(*entry_ids)
    group = Group(SMALLEST, entries_read)
    return stream, group, group.create_consumer(b"a", 0), group.create_consumer(b"b", 0)


def ids(delivered: EntryRange | None) -> list[str] | None:
    if delivered is None:
        return None
    return [entry_id.decode() for entry_id, _ in delivered.entries()]


def options(
    idle_ms_min: int = 0, delivery_ms: int = 1000, delivery_count: int = -1
) -> ClaimOptions:
    return ClaimOptions(idle_ms_min, delivery_ms, delivery_count)


def told(found: AutoClaim) -> tuple[str, list[str], list[str]]:
    return str(found.cursor), [*map(str, found.claimed)], [*map(str, found.deleted)]


def returned_ids(group: Group) -> list[str]:
    return [str(stream_id.from_key(key)) for key in group.returned]


def worked() -> Crew:
    """Entries 1-0 to 4-0, delivered to a at 100, 200, 300 and 400 ms."""
    stream, group, a, b = crew("1-0", "2-0", "3-0", "4-0")
    for n in range(4):
        group.deliver(stream, a, 1, 100 * (n + 1), True)
    return stream, group, a, b
