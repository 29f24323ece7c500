"""Idempotent appends: the messages that each producer has added lately.

    producer "p1"    "order-17" ──> 1700000000000-0        oldest first
                     "order-18" ──> 1700000000450-0
    producer "p2"    "order-17" ──> 1700000000460-0

A producer that is not sure whether its message arrived sends it again under the same name. The name is known,
so nothing is added, and the answer is the id of the first entry. The entry itself may be gone by then.

A name is forgotten `duration_s` seconds after the time in its entry's id, or when its producer has more than
`size_max` names, whichever comes first.

Invariants
  D1  a producer has at least one name and at most `size_max`; its names are in the order in which they were
      recorded.
  D2  producers are in the order of their last record, so those that have expired tend to come first.
  D3  both counters are at most 2**63 - 1, where they stay.

Cost: find and record are O(1), plus what has expired since the last call. The dictionaries are OrderedDicts:
finding the first key of a plain dict costs O(keys removed before it). Nothing here reads a clock: callers
pass `now_ms`; 0 means that nothing expires, for a replay.
"""

from __future__ import annotations

from collections import OrderedDict

from penstock.core.stream_id import StreamID

DURATION_S_DEFAULT = 100
DURATION_S_MAX = 86_400
SIZE_DEFAULT = 100
SIZE_MAX = 10_000
COUNT_MAX = 2**63 - 1


class IdempotencySettings:
    """How long names are kept. Never changed: a stream with other settings gets another object.

    Raises: ValueError if a number is below 1 or above its maximum.
    """

    __slots__ = ("duration_s", "size_max")

    def __init__(self, duration_s: int = DURATION_S_DEFAULT, size_max: int = SIZE_DEFAULT) -> None:
        if not (1 <= duration_s <= DURATION_S_MAX and 1 <= size_max <= SIZE_MAX):
            raise ValueError(f"{size_max} names for {duration_s} s")
        self.duration_s = duration_s
        self.size_max = size_max

    def has_expired(self, entry_id: StreamID, now_ms: int) -> bool:
        """Tell whether a name for this entry is forgotten by now."""
        before_ms = now_ms - 1000 * self.duration_s
        return before_ms > 0 and entry_id.ms < before_ms


class Idempotency:
    """The names of a stream's producers, and how often they were used."""

    __slots__ = ("added", "duplicates", "producers")

    def __init__(self) -> None:
        self.producers: OrderedDict[bytes, OrderedDict[bytes, StreamID]] = OrderedDict()
        self.added = 0
        self.duplicates = 0

    def find_or_none(
        self, producer: bytes, name: bytes, settings: IdempotencySettings, now_ms: int
    ) -> StreamID | None:
        """The entry that a producer has added under a name."""
        names = self.producers.get(producer)
        entry_id = None if names is None else names.get(name)
        if entry_id is None or settings.has_expired(entry_id, now_ms):
            return None
        return entry_id

    def record(
        self,
        producer: bytes,
        name: bytes,
        entry_id: StreamID,
        settings: IdempotencySettings,
        now_ms: int,
    ) -> None:
        """Remember the entry that a producer has added under a name."""
        names = self.producers.get(producer)
        if names is None:
            names = self.producers[producer] = OrderedDict()
        else:
            self.producers.move_to_end(producer)
        names[name] = entry_id
        names.move_to_end(name)
        if len(names) > settings.size_max:
            del names[next(iter(names))]
        self._forget_idle_producers(settings, now_ms)
        if self.added != COUNT_MAX:
            self.added += 1

    def count_duplicate(self) -> None:
        """Count a message that was not added because its name is known."""
        if self.duplicates != COUNT_MAX:
            self.duplicates += 1

    def _forget_idle_producers(self, settings: IdempotencySettings, now_ms: int) -> None:
        """Forget the producers whose names have all expired, and the names in front of the first other."""
        while self.producers:
            producer = next(iter(self.producers))
            if self._forget_names(producer, settings, now_ms):
                break

    def _forget_names(self, producer: bytes, settings: IdempotencySettings, now_ms: int) -> bool:
        """Forget what has expired of a producer; False if nothing is left of it."""
        names = self.producers[producer]
        while names:
            name = next(iter(names))
            if not settings.has_expired(names[name], now_ms):
                return True
            del names[name]
        del self.producers[producer]
        return False

    def forget_expired(self, settings: IdempotencySettings, now_ms: int) -> None:
        """Forget what has expired of all producers. Cost: O(producers)."""
        for producer in list(self.producers):
            self._forget_names(producer, settings, now_ms)

    def clear(self) -> None:
        """Forget all names. The counters stay."""
        self.producers = OrderedDict()

    def names_count(self) -> int:
        """The number of names of all producers. Cost: O(producers)."""
        return sum(map(len, self.producers.values()))

    def copy(self) -> Idempotency:
        """An independent copy."""
        made = Idempotency()
        for producer, names in self.producers.items():
            made.producers[producer] = OrderedDict(names)
        made.added = self.added
        made.duplicates = self.duplicates
        return made
