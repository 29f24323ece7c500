"""Records of pending entries, and how a claim changes them."""

from __future__ import annotations

from penstock.core import memory, stream_id
from penstock.core.stream_id import StreamID

NEVER_MS = -1

_TIME_BYTES = 8  # at the start of an idle_key


class Pending:
    """One delivery that is not acknowledged yet: of which entry, to whom, when, how often."""

    __slots__ = ("consumer_number", "delivery_count", "delivery_ms", "ms", "seq")

    def __init__(
        self, entry_id: StreamID, consumer_number: int, delivery_ms: int, delivery_count: int
    ) -> None:
        self.ms = entry_id.ms
        self.seq = entry_id.seq
        self.consumer_number = consumer_number
        self.delivery_ms = delivery_ms
        self.delivery_count = delivery_count

    def key(self) -> bytes:
        """The key of the entry's id."""
        return memory.key_pair(self.ms, self.seq)

    def entry_id(self) -> StreamID:
        """The entry's id."""
        return stream_id.make(self.ms, self.seq)


def made_pending(
    ms: int, seq: int, consumer_number: int, delivery_ms: int, delivery_count: int
) -> Pending:
    """Make a record from C numbers; fast, for every delivery."""
    made = Pending.__new__(Pending)
    made.ms = ms
    made.seq = seq
    made.consumer_number = consumer_number
    made.delivery_ms = delivery_ms
    made.delivery_count = delivery_count
    return made


def idle_key(record: Pending) -> bytes:
    """The place of a record in the order of delivery times: 8 bytes of time, then the entry's id."""
    return memory.key_pair(record.delivery_ms, 0)[:_TIME_BYTES] + record.key()


class ClaimOptions:
    """How XCLAIM changes the records that it moves."""

    __slots__ = ("delivery_count", "delivery_ms", "force", "idle_ms_min", "just_id")

    def __init__(
        self,
        idle_ms_min: int,
        delivery_ms: int,
        delivery_count: int = -1,
        force: bool = False,
        just_id: bool = False,
    ) -> None:
        self.idle_ms_min = idle_ms_min
        self.delivery_ms = delivery_ms
        self.delivery_count = delivery_count  # -1: one more than before
        self.force = force
        self.just_id = just_id
