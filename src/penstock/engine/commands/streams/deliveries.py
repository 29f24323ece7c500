"""The effects of deliveries: the changes of a group read or a claim, as words that need no clock.

Rows delivered to a consumer at one time, with the same count, are one XCLAIM with many ids; Redis writes one
for each. If the group's position moved, XGROUP SETID records it with the count behind its lag.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core import memory
from penstock.core.groups.group import Group
from penstock.core.stream_id import StreamID
from penstock.engine.context import Context


class Deliveries:
    """Records the changes in one group for one consumer."""

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
        """The group's position moved."""
        group = self._group
        words = [b"XGROUP", b"SETID", self._key, self._group_name]
        words.append(memory.format_pair(group.last_ms, group.last_seq))
        words += [b"ENTRIESREAD", memory.format_int(group.entries_read)]
        self._context.record(words)

    def got_new(self, ids: list[bytes], when_ms: int) -> None:
        """The consumer got these entries for the first time: `got` and `moved`, in one pass."""
        context = self._context
        context.recorded = True
        if context.effects is not None:
            context.effects.delivered(
                context.keyspace.index,
                (self._key, self._group_name, self._consumer),
                self._group,
                ids,
                when_ms,
            )

    def dropped(self, ids: list[StreamID]) -> None:
        """Records of entries that no longer exist were removed."""
        if ids:
            texts = [entry_id.text for entry_id in ids]
            self._context.record([b"XACK", self._key, self._group_name, *texts])

    def got(self, ids: list[bytes], when_ms: int, count: int) -> None:
        """The consumer now owns these entries, each delivered `count` times, last at `when_ms`."""
        group = self._group
        words = [b"XCLAIM", self._key, self._group_name, self._consumer, b"0"]
        words += ids
        words += [b"TIME", memory.format_int(when_ms), b"RETRYCOUNT", memory.format_int(count)]
        words += [b"FORCE", b"JUSTID", b"LASTID"]
        words.append(memory.format_pair(group.last_ms, group.last_seq))
        self._context.record(words)

    def took(self, ids: Iterable[StreamID]) -> None:
        """The consumer now owns these entries; their records hold time and count."""
        alike: dict[tuple[int, int], list[bytes]] = {}
        for entry_id in ids:
            record = self._group.pending.find(entry_id.key)
            assert record is not None
            place = (record.delivery_ms, record.delivery_count)
            alike.setdefault(place, []).append(entry_id.text)
        for (when_ms, count), texts in alike.items():
            self.got(texts, when_ms, count)
