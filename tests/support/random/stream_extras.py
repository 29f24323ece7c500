"""Adds to streams what only later versions of Redis know: names of producers, and returned entries.

Numbers are often at their limits. Commands can set few of them: counters cannot be set at all.
"""

from __future__ import annotations

import random

from penstock.core import stream_id
from penstock.core.idempotency import (
    COUNT_MAX,
    DURATION_S_MAX,
    SIZE_MAX,
    Idempotency,
    IdempotencySettings,
)
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID

PRODUCERS = [b"p", b"\x00", b"17", b"-129", b"producer:" * 9, bytes(range(256)), b"\xff"]
NAMES = [
    b"a",
    b"-1",
    b"0",
    b"2147483648",
    b"order-" * 11,
    b"\x00",
    b"order-17",
    b"n" * 20,
    b"n" * 21,
]
DURATIONS_S = [1, 63, 64, 100, 100, 16_384, DURATION_S_MAX]
SIZES = [1, 2, 63, 64, 100, 100, SIZE_MAX]
COUNTERS = [0, 1, 63, 64, 2**32, COUNT_MAX - 1, COUNT_MAX]
DELIVERIES = [0, 1, 2, 2, 64, COUNT_MAX]


def add_producers(dice: random.Random, stream: Stream, about_ms: int, odd: float = 0.1) -> None:
    """Settings, names of entries around a time (`odd`: how many are anywhere), and counters."""
    settings = IdempotencySettings(dice.choice(DURATIONS_S), dice.choice(SIZES))
    stream.idempotency_settings = settings
    stream.idempotency = None  # names from before may be more than the new settings allow
    if dice.random() < 0.1:
        return
    known = stream.idempotency = Idempotency()
    for _ in range(dice.choice([0, 1, 5, 30])):
        name = dice.choice([dice.choice(NAMES), b"%d" % dice.randrange(10**6), dice.randbytes(16)])
        known.record(dice.choice(PRODUCERS), name, entry_id(dice, about_ms, odd), settings, 0)
    known.added = dice.choice(COUNTERS)
    known.duplicates = dice.choice(COUNTERS)


def entry_id(dice: random.Random, about_ms: int, odd: float) -> StreamID:
    """An id that may or may not be in the stream."""
    if dice.random() < odd:
        return dice.choice([stream_id.LARGEST, StreamID(0, 1), StreamID(2**63, 2**63)])
    return StreamID(about_ms + dice.randrange(1000), dice.randrange(3))


def add_returned(dice: random.Random, stream: Stream) -> None:
    """Return some pending entries of each group, and some that were not pending."""
    for _, group in [] if stream.groups is None else stream.groups.pairs():
        ids = [record.entry_id() for record in group.pending]
        for entry in dice.sample(ids, dice.randint(0, len(ids))):
            group.give_back(entry, dice.choice(DELIVERIES))
        for _ in range(dice.choice([0, 0, 1, 3])):
            entry = entry_id(dice, dice.choice([1, 100, 10**12]), 0.1)
            if group.pending.find(entry.key) is None:
                group.add_returned(entry, dice.choice(DELIVERIES))
