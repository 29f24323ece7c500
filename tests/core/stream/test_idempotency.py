"""Idempotent appends: which messages are known, for how long, and in which order they are forgotten."""

from __future__ import annotations

import random

import pytest

from penstock.core.check import check_stream
from penstock.core.idempotency import (
    COUNT_MAX,
    DURATION_S_DEFAULT,
    DURATION_S_MAX,
    SIZE_DEFAULT,
    SIZE_MAX,
    Idempotency,
    IdempotencySettings,
)
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import LARGEST, MAX64, StreamID
from tests.support.campaign import cases
from tests.support.engine.streams import sid

NEVER = 0  # nothing expires at this time


def names_of(known: Idempotency) -> dict[bytes, list[bytes]]:
    """The names of every producer, in order."""
    return {producer: list(names) for producer, names in known.producers.items()}


def recorded(*lines: str, settings: IdempotencySettings, now_ms: int = NEVER) -> Idempotency:
    """What is known after lines of a producer, a name and an id."""
    known = Idempotency()
    for line in lines:
        producer, name, entry_id = line.split()
        known.record(producer.encode(), name.encode(), sid(entry_id), settings, now_ms)
    return known


# --- Settings ----------------------------------------------------------------------------------------


def test_a_new_stream_starts_with_the_settings_of_its_limits() -> None:
    stream = Stream()
    settings = stream.idempotency_settings
    assert (settings.duration_s, settings.size_max) == (DURATION_S_DEFAULT, SIZE_DEFAULT)
    assert stream.idempotency is None
    limits = NodeLimits()
    limits.idempotency = IdempotencySettings(5, 7)
    assert Stream(limits).idempotency_settings is limits.idempotency


@pytest.mark.parametrize(
    ("duration_s", "size_max"),
    [(0, 1), (-1, 1), (DURATION_S_MAX + 1, 1), (2**63 - 1, 1), (1, 0), (1, -1), (1, SIZE_MAX + 1)],
)
def test_settings_outside_of_their_limits_are_refused(duration_s: int, size_max: int) -> None:
    with pytest.raises(ValueError, match=f"^{size_max} names for {duration_s} s$"):
        IdempotencySettings(duration_s, size_max)


@pytest.mark.parametrize(
    ("entry_ms", "now_ms", "expired"),
    [
        (0, 0, False),
        (0, 1000, False),
        (0, 1001, True),
        (5000, 6000, False),
        (5000, 6001, True),
        (5000, 4000, False),  # the clock went back
        (5000, 0, False),
        (2**63 - 1 - 1000, 2**63 - 1, False),
        (2**63 - 1 - 1001, 2**63 - 1, True),
        (2**63 - 1, 2**63 - 1, False),
        (2**63, 2**63 - 1, False),
        (MAX64, 2**63 - 1, False),
        (MAX64, 0, False),
        (0, 2**63 - 1, True),
    ],
)
def test_a_name_expires_after_the_time_of_its_entry(
    entry_ms: int, now_ms: int, expired: bool
) -> None:
    settings = IdempotencySettings(duration_s=1)
    assert settings.has_expired(StreamID(entry_ms, MAX64), now_ms) == expired


def test_the_longest_duration_does_not_overflow() -> None:
    settings = IdempotencySettings(DURATION_S_MAX, SIZE_MAX)
    day_ms = 1000 * DURATION_S_MAX
    assert not settings.has_expired(StreamID(7, 0), day_ms + 7)
    assert settings.has_expired(StreamID(7, 0), day_ms + 8)
    assert not settings.has_expired(StreamID(7, 0), 1)


# --- Finding and recording ---------------------------------------------------------------------------


SETTINGS = IdempotencySettings(duration_s=1, size_max=3)


def test_a_name_belongs_to_its_producer() -> None:
    known = recorded("p a 5000-0", "q a 5000-1", settings=SETTINGS)
    assert known.find_or_none(b"p", b"a", SETTINGS, 5000) == sid("5000-0")
    assert known.find_or_none(b"q", b"a", SETTINGS, 5000) == sid("5000-1")
    assert known.find_or_none(b"p", b"b", SETTINGS, 5000) is None
    assert known.find_or_none(b"r", b"a", SETTINGS, 5000) is None
    assert (known.added, known.duplicates, known.names_count()) == (2, 0, 2)


def test_names_are_any_bytes() -> None:
    known = Idempotency()
    for name in (b"", b"\0", b"\xff" * 1000):
        known.record(name, name, LARGEST, SETTINGS, NEVER)
        assert known.find_or_none(name, name, SETTINGS, 2**63 - 1) == LARGEST


def test_an_expired_name_is_not_found_even_before_it_is_forgotten() -> None:
    known = recorded("p a 5000-0", settings=SETTINGS)
    assert known.find_or_none(b"p", b"a", SETTINGS, 6000) == sid("5000-0")
    assert known.find_or_none(b"p", b"a", SETTINGS, 6001) is None
    assert known.find_or_none(b"p", b"a", SETTINGS, NEVER) == sid("5000-0")
    assert names_of(known) == {b"p": [b"a"]}


def test_the_oldest_name_goes_when_there_are_too_many() -> None:
    known = recorded("p a 1-0", "p b 2-0", "p c 3-0", "p d 4-0", "p e 5-0", settings=SETTINGS)
    assert names_of(known) == {b"p": [b"c", b"d", b"e"]}
    assert known.added == 5


def test_size_counts_each_producer_alone() -> None:
    settings = IdempotencySettings(1, 1)
    known = recorded("p a 1-0", "q a 2-0", "p b 3-0", settings=settings)
    assert names_of(known) == {b"q": [b"a"], b"p": [b"b"]}


def test_a_name_that_is_recorded_again_is_the_newest() -> None:
    known = recorded("p a 1-0", "p b 2-0", "p c 3-0", "p a 4-0", settings=SETTINGS)
    assert names_of(known) == {b"p": [b"b", b"c", b"a"]}
    assert known.find_or_none(b"p", b"a", SETTINGS, NEVER) == sid("4-0")


def test_producers_are_in_the_order_of_their_last_record() -> None:
    known = recorded("p a 1-0", "q a 2-0", "r a 3-0", "p b 4-0", settings=SETTINGS)
    assert list(known.producers) == [b"q", b"r", b"p"]


def test_recording_forgets_producers_that_have_expired_and_old_names_of_the_next() -> None:
    lines = ["p a 1000-0", "q a 1001-0", "r a 1002-0", "r b 5000-0", "s a 5001-0"]
    known = recorded(*lines, settings=SETTINGS)
    known.record(b"t", b"a", sid("5002-0"), SETTINGS, 5002)
    assert names_of(known) == {b"r": [b"b"], b"s": [b"a"], b"t": [b"a"]}


def test_an_entry_that_is_already_too_old_is_forgotten_at_once() -> None:
    """An explicit id can be of any time."""
    known = recorded("p a 5-0", settings=SETTINGS, now_ms=10**6)
    assert (names_of(known), known.added) == ({}, 1)
    known.record(b"p", b"a", sid("6-0"), SETTINGS, 10**6)
    assert (names_of(known), known.added) == ({}, 2)


def test_a_replay_forgets_nothing_by_time() -> None:
    known = recorded("p a 1-0", "q a 99999999-0", settings=SETTINGS)
    assert known.names_count() == 2


def test_all_producers_can_be_searched_for_expired_names() -> None:
    """A producer that has recorded lately may stand before one whose names have all expired."""
    known = recorded("p a 9000-0", "q a 1000-0", "q b 9000-0", "r a 1000-0", settings=SETTINGS)
    known.forget_expired(SETTINGS, 9500)
    assert names_of(known) == {b"p": [b"a"], b"q": [b"b"]}
    known.forget_expired(SETTINGS, 9500)
    known.forget_expired(SETTINGS, 2**63 - 1)
    assert names_of(known) == {}
    known.forget_expired(SETTINGS, 2**63 - 1)


def test_clearing_keeps_the_counters() -> None:
    known = recorded("p a 1-0", settings=SETTINGS)
    known.count_duplicate()
    known.clear()
    known.clear()
    assert (names_of(known), known.added, known.duplicates) == ({}, 1, 1)
    known.record(b"p", b"a", sid("2-0"), SETTINGS, NEVER)
    assert known.find_or_none(b"p", b"a", SETTINGS, NEVER) == sid("2-0")


def test_counters_stay_at_their_limit() -> None:
    known = Idempotency()
    known.added = known.duplicates = COUNT_MAX - 1
    for n in range(3):
        known.record(b"p", b"%d" % n, LARGEST, SETTINGS, NEVER)
        known.count_duplicate()
    assert (known.added, known.duplicates) == (COUNT_MAX, COUNT_MAX)


def test_a_copy_is_independent() -> None:
    known = recorded("p a 1-0", "q a 2-0", settings=SETTINGS)
    known.count_duplicate()
    twin = known.copy()
    assert names_of(twin) == names_of(known)
    assert (twin.added, twin.duplicates) == (2, 1)
    twin.record(b"p", b"b", sid("3-0"), SETTINGS, NEVER)
    known.record(b"q", b"b", sid("3-0"), SETTINGS, NEVER)
    assert names_of(twin) == {b"q": [b"a"], b"p": [b"a", b"b"]}
    assert names_of(known) == {b"p": [b"a"], b"q": [b"a", b"b"]}


# --- A model -----------------------------------------------------------------------------------------


class DumbNames:
    """For each producer a list of all names and ids, newest last; everything is searched."""

    def __init__(self, settings: IdempotencySettings) -> None:
        self.settings = settings
        self.lists: dict[bytes, list[tuple[bytes, StreamID]]] = {}

    def record(self, producer: bytes, name: bytes, entry_id: StreamID) -> None:
        others = [pair for pair in self.lists.get(producer, []) if pair[0] != name]
        self.lists[producer] = [*others, (name, entry_id)][-self.settings.size_max :]

    def fresh(self, producer: bytes, now_ms: int) -> list[tuple[bytes, StreamID]]:
        kept_ms = 1000 * self.settings.duration_s
        return [pair for pair in self.lists.get(producer, []) if now_ms - pair[1].ms <= kept_ms]


@pytest.mark.parametrize("seed", range(cases(200)))
def test_any_sequence_finds_what_the_model_finds(seed: int) -> None:
    dice = random.Random(f"names {seed}")
    stream = Stream()
    settings = IdempotencySettings(dice.choice([1, 2, 5]), dice.choice([1, 2, 3, 10, SIZE_MAX]))
    stream.idempotency_settings = settings
    stream.idempotency = known = Idempotency()
    model = DumbNames(settings)
    now_ms = dice.choice([1, 10**6, 2**62])
    added = 0
    for _ in range(200):
        now_ms += dice.choice([0, 1, 10, 400, 1500])
        producer = b"%d" % dice.randrange(4)
        name = b"%d" % dice.randrange(8)
        expected = dict(model.fresh(producer, now_ms)).get(name)
        assert known.find_or_none(producer, name, settings, now_ms) == expected
        if expected is None or dice.random() < 0.1:
            entry_id = StreamID(now_ms, dice.choice([0, MAX64]))
            known.record(producer, name, entry_id, settings, now_ms)
            model.record(producer, name, entry_id)
            added += 1
        elif dice.random() < 0.1:
            known.forget_expired(settings, now_ms)
            fresh = {key: model.fresh(key, now_ms) for key in model.lists}
            assert {key: [*names.items()] for key, names in known.producers.items()} == {
                key: pairs for key, pairs in fresh.items() if pairs
            }
        check_stream(stream)
    assert known.added == added
