"""What a group returns about its pending entries: rows, and the outcome of claims."""

from __future__ import annotations

from penstock.core import stream_id
from penstock.core.stream_id import StreamID


class PendingRow:
    """One row of a pending list. An entry that was returned has no consumer (b"") and a time of 0."""

    __slots__ = ("consumer", "delivery_count", "delivery_ms", "id", "owned")

    def __init__(
        self,
        entry_id: StreamID,
        consumer: bytes,
        delivery_ms: int,
        delivery_count: int,
        owned: bool,
    ) -> None:
        self.id = entry_id
        self.consumer = consumer
        self.delivery_ms = delivery_ms
        self.delivery_count = delivery_count
        self.owned = owned


class ClaimedEntry:
    """An entry that a read has claimed, with its idle time and its number of deliveries before."""

    __slots__ = ("delivery_count", "fields", "id", "idle_ms")

    def __init__(
        self, entry_id: StreamID, fields: list[bytes], idle_ms: int, delivery_count: int
    ) -> None:
        self.id = entry_id
        self.fields = fields
        self.idle_ms = idle_ms
        self.delivery_count = delivery_count


class AutoClaim:
    """The result of an autoclaim: the next start (0-0: at the end), claimed ids, deleted ids."""

    __slots__ = ("claimed", "cursor", "deleted")

    def __init__(self) -> None:
        self.cursor = stream_id.SMALLEST
        self.claimed: list[StreamID] = []
        self.deleted: list[StreamID] = []
