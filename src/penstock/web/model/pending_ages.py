"""Pending entries by consumer and age, for the heat map of a group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.client.dead_letters import has_due_time
from penstock.client.replies import array, blob, number, parts
from penstock.web.server.asking import ServerClient

COUNTED_MAX = 2000
CONSUMERS_MAX = 50
# Ages from which on each column counts, and its heading.
AGES = (
    (0, "under 1m"),
    (60_000, "1m to 5m"),
    (5 * 60_000, "5m to 30m"),
    (30 * 60_000, "30m to 2h"),
    (2 * 3_600_000, "2h to 1d"),
    (24 * 3_600_000, "1d or more"),
)


@dataclass(frozen=True, slots=True)
class PendingAges:
    """The number of entries of each consumer in each column of AGES."""

    rows: list[tuple[bytes, list[int]]]
    counted: int


async def pending_ages(server: ServerClient, stream: bytes, group: bytes) -> PendingAges:
    """Count the pending entries with the smallest ids, up to COUNTED_MAX."""
    reply = await server.ask("XPENDING", stream, group, "-", "+", COUNTED_MAX)
    rows = [parts(row, 4) for row in array(reply)]
    return count_ages((blob(row[1]), number(row[2])) for row in rows)


def count_ages(found: Iterable[tuple[bytes, int]]) -> PendingAges:
    """Counts by consumer and age, the consumer with the most entries first."""
    counts: dict[bytes, list[int]] = {}
    counted = 0
    for consumer, idle_ms in found:
        if has_due_time(consumer):  # of workers: no ages
            continue
        column = max(
            place for place, (start, _) in enumerate(AGES) if idle_ms >= start or not place
        )
        counts.setdefault(consumer, [0] * len(AGES))[column] += 1
        counted += 1
    ordered = sorted(counts.items(), key=lambda one: (-sum(one[1]), one[0]))
    return PendingAges(ordered[:CONSUMERS_MAX], counted)
