"""What a group consists of: records of pending entries, and consumers. And how a claim changes records."""

from __future__ import annotations

from penstock.core import memory
from penstock.core.rax.tree import Rax

NEVER_MS = -1
TIME_BYTES = 8  # at the start of an idle_key

_NEVER_MS = NEVER_MS
_TIME_BYTES = TIME_BYTES


class Pending:
    """One delivery that is not acknowledged yet."""

    __slots__ = ("consumer_number", "delivery_count", "delivery_ms")

    def __init__(self, consumer_number: int, delivery_ms: int, delivery_count: int) -> None:
        self.consumer_number = consumer_number
        self.delivery_ms = delivery_ms
        self.delivery_count = delivery_count


def made_pending(consumer_number: int, delivery_ms: int, delivery_count: int) -> Pending:
    """Make a record from C numbers; fast, for every delivery."""
    made = Pending.__new__(Pending)
    made.consumer_number = consumer_number
    made.delivery_ms = delivery_ms
    made.delivery_count = delivery_count
    return made


def idle_key(record: Pending, key: bytes) -> bytes:
    """The place of a record in the order of delivery times: 8 bytes of time, then the entry's id."""
    return memory.key_pair(record.delivery_ms, 0)[:_TIME_BYTES] + key


class Consumer:
    """A reader in a group, known by name."""

    __slots__ = ("active_ms", "name", "number", "pending", "seen_ms")

    def __init__(self, name: bytes, number: int, now_ms: int) -> None:
        self.name = name
        self.number = number
        self.seen_ms = now_ms  # its last request
        self.active_ms = _NEVER_MS  # its last request that returned something
        self.pending = Rax()


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
