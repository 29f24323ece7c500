"""The effects of deliveries: what a group read or a claim leaves behind, in words that need no clock.

Rows that a consumer got at one moment, for the same time, are one XCLAIM with many ids; Redis writes one for
each. Where the group reads on, XGROUP SETID says so with the count behind its lag.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.group import Group, Pending
from penstock.core.stream_id import StreamID
from penstock.engine.context import Context


class Deliveries:
    """Records what happens in one group for one consumer."""

    __slots__ = ("_consumer", "_context", "_group", "_group_name", "_key")

    def __init__(
        self, context: Context, key: bytes, group: Group, group_name: bytes, consumer: bytes
    ) -> None:
        self._context = context
        self._key = key
        self._group = group
        self._group_name = group_name
        self._consumer = consumer

    def made(self) -> None:
        """The consumer is new."""
        words = [b"XGROUP", b"CREATECONSUMER", self._key, self._group_name, self._consumer]
        self._context.record(words)

    def moved(self) -> None:
        """The group reads on elsewhere."""
        group = self._group
        place = [group.last_id.text, b"ENTRIESREAD", b"%d" % group.entries_read]
        self._context.record([b"XGROUP", b"SETID", self._key, self._group_name, *place])

    def dropped(self, ids: list[StreamID]) -> None:
        """Entries that are gone from the stream are pending no longer."""
        if ids:
            texts = [entry_id.text for entry_id in ids]
            self._context.record([b"XACK", self._key, self._group_name, *texts])

    def got(self, ids: list[bytes], when_ms: int, count: int) -> None:
        """The consumer has these now, each delivered so many times, the last time then."""
        words = [b"XCLAIM", self._key, self._group_name, self._consumer, b"0", *ids]
        words += [b"TIME", b"%d" % when_ms, b"RETRYCOUNT", b"%d" % count, b"FORCE", b"JUSTID"]
        self._context.record([*words, b"LASTID", self._group.last_id.text])

    def took(self, ids: Iterable[StreamID]) -> None:
        """The consumer has these now; their records say when and how often."""
        alike: dict[tuple[int, int], list[bytes]] = {}
        for entry_id in ids:
            record: Pending = self._group.pending.find(entry_id.key)
            place = (record.delivery_ms, record.delivery_count)
            alike.setdefault(place, []).append(entry_id.text)
        for (when_ms, count), texts in alike.items():
            self.got(texts, when_ms, count)
