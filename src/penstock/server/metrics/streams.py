"""Metrics of streams and their groups, for a limited number of streams.

Keys are visited as SCAN visits them, a few at a time, so commands may change the keys between two parts. The
order is that of the keys' hashes: each scrape reports the same ones, as long as no stream is
added or removed.
"""

from __future__ import annotations

from penstock.core.groups.group import NOBODY, Group
from penstock.core.stream import Stream
from penstock.engine.commands.work.rows import has_due_time
from penstock.engine.keyspace import Keyspace
from penstock.metrics.text import GAUGE, Page
from penstock.server.metrics.pace import Pace
from penstock.server.server import Server
from penstock.server.stats.memory_usage import entries_bytes

KEYS_AT_ONCE = 50
SAMPLES = 5


def shown_name(name: bytes) -> str:
    """A key or a group's name as a label: bytes that are not UTF-8 as \\xNN. No two names have one label."""
    shown = name.decode(errors="backslashreplace")
    if "\\x" not in shown:
        return shown
    return name.replace(b"\\", b"\\\\").decode(errors="backslashreplace")


class StreamFamilies:
    """The families of streams and groups of one page."""

    def __init__(self, page: Page, now_ms: int, limit: int) -> None:
        self._now_ms = now_ms
        self._left = limit
        self.count = 0
        self.omitted = 0
        self._length = page.family("penstock_stream_length", GAUGE, "Entries of a stream.")
        self._bytes = page.family(
            "penstock_stream_bytes", GAUGE, "Memory of a stream's entries, estimated."
        )
        self._added = page.family(
            "penstock_stream_entries_added", GAUGE, "Entries ever added to a stream."
        )
        self._groups = page.family("penstock_stream_groups", GAUGE, "Groups of a stream.")
        self._lag = page.family(
            "penstock_group_lag", GAUGE, "Entries not delivered to a group yet; absent if unknown."
        )
        self._pending = page.family(
            "penstock_group_pending", GAUGE, "Entries delivered and not acknowledged."
        )
        self._oldest = page.family(
            "penstock_group_oldest_pending_seconds",
            GAUGE,
            "Time since the pending entry with the lowest id was last delivered; 0 without one.",
        )
        self._consumers = page.family("penstock_group_consumers", GAUGE, "Consumers of a group.")

    async def add_all(self, keyspace: Keyspace, pace: Pace) -> None:
        """Add the streams of a database, as long as the limit allows it, and count the others."""
        cursor = 0
        while True:
            cursor, keys = keyspace.values.scan(cursor, KEYS_AT_ONCE)
            for key in keys:
                value = keyspace.values.get(key)
                if isinstance(value, Stream):
                    await self._add(keyspace.index, key, value, pace)
            await pace.rest()
            if not cursor:
                return

    async def _add(self, database: int, key: bytes, stream: Stream, pace: Pace) -> None:
        self.count += 1
        if not self._left:
            self.omitted += 1
            return
        self._left -= 1
        labels = {"db": str(database), "stream": shown_name(key)}
        self._length.add(stream.length, **labels)
        self._bytes.add(entries_bytes(stream, SAMPLES), **labels)
        self._added.add(stream.entries_added, **labels)
        groups = stream.groups
        self._groups.add(0 if groups is None else groups.count, **labels)
        await pace.rest()
        if groups is None:
            return
        found = groups.iterator()  # goes on by name if groups come or go between two steps
        found.seek("^")
        while found.next():
            self._add_group(stream, found.value, {**labels, "group": shown_name(found.key)})
            await pace.rest()

    def _add_group(self, stream: Stream, group: Group, labels: dict[str, str]) -> None:
        lag = group.lag_or_none(stream)
        if lag is not None:
            self._lag.add(lag, **labels)
        self._pending.add(group.pending.count, **labels)
        self._oldest.add(self._idle_ms(group) / 1000, **labels)
        self._consumers.add(group.consumers.count, **labels)

    def _idle_ms(self, group: Group) -> int:
        """The idle time of the oldest pending entry. Rows of workers, and returned ones, have none."""
        row = group.pending.edge_or_none(False)
        if row is None or row.consumer_number == NOBODY:
            return 0
        if has_due_time(group.consumer_by_number(row.consumer_number).name):
            return 0
        return max(0, self._now_ms - row.delivery_ms)


async def add_streams(page: Page, server: Server, limit: int, pace: Pace) -> None:
    """Add all streams and groups to a page, up to the limit."""
    families = StreamFamilies(page, server.engine.context.now_ms(), limit)
    for keyspace in list(server.engine.context.databases):
        if keyspace.values:
            await families.add_all(keyspace, pace)
    page.gauge("penstock_streams", "Streams of all databases.", families.count)
    page.gauge(
        "penstock_streams_omitted",
        "Streams beyond metrics-streams-max, for which there are no metrics.",
        families.omitted,
    )
