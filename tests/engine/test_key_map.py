"""A dictionary in segments behaves as a dictionary, and can be walked over in parts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.engine import key_map
from penstock.engine.key_map import DEPTH_MAX, PLACE_BITS, PLACES, KeyMap, place_of

KEYS = st.binary(max_size=2)


def check(keys: KeyMap) -> None:
    """Raise AssertionError, with the invariant's number, if an invariant does not hold."""
    segments = keys.segments()
    assert keys.count == sum(map(len, segments)) == len(keys), "KM1"
    bits = len(keys.directory).bit_length() - 1
    assert len(keys.directory) == len(keys.depths) == 1 << bits, "KM3"
    number = 0
    for segment in segments:
        depth = keys.depths[number]
        places = 1 << bits - depth
        assert number % places == 0, "KM3"
        assert all(one is segment for one in keys.directory[number : number + places]), "KM3"
        assert set(keys.depths[number : number + places]) == {depth}, "KM3"
        assert len(segment) <= keys.segment_max or depth == DEPTH_MAX, "KM2"
        for key in segment:
            assert number <= place_of(key) >> PLACE_BITS - bits < number + places, "KM1"
        number += places
    assert number == len(keys.directory), "KM3"


class KeyMapMachine(RuleBasedStateMachine):
    """A KeyMap is a dictionary, however small its segments are."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = KeyMap(segment_max=4)
        self.model: dict[bytes, Any] = {}

    @rule(key=KEYS, value=st.integers())
    def put(self, key: bytes, value: int) -> None:
        self.keys[key] = value
        self.model[key] = value

    @rule(keys=st.lists(KEYS, max_size=60))
    def put_many(self, keys: list[bytes]) -> None:
        for key in keys:
            self.put(key, 1)

    @rule(key=KEYS)
    def pop(self, key: bytes) -> None:
        assert self.keys.pop(key) == self.model.pop(key, None)

    @rule(number=st.integers(0, 100))
    def pop_many(self, number: int) -> None:
        for key in sorted(self.model)[:number]:
            self.pop(key)

    @rule()
    def clear(self) -> None:
        self.keys.clear()
        self.model.clear()

    @rule(count=st.integers(1, 9))
    def scan(self, count: int) -> None:
        found: list[bytes] = []
        cursor = 0
        while True:
            cursor, some = self.keys.scan(cursor, count)
            assert len(some) <= count
            found += some
            if cursor == 0:
                break
        assert sorted(found) == sorted(self.model)

    @rule(seed=st.integers())
    def pick(self, seed: int) -> None:
        if self.model:
            assert self.keys.pick(random.Random(seed).randrange) in self.model

    @rule(key=KEYS)
    def look(self, key: bytes) -> None:
        assert self.keys.get(key, 7) == self.model.get(key, 7)
        assert (key in self.keys) == (key in self.model)

    @invariant()
    def agrees_with_the_model(self) -> None:
        check(self.keys)
        assert dict(self.keys.items()) == self.model
        assert sorted(self.keys) == sorted(self.model)
        assert bool(self.keys) == bool(self.model)


TestKeyMap = KeyMapMachine.TestCase


def test_a_missing_key_is_an_error_as_in_a_dictionary() -> None:
    keys = KeyMap()
    with pytest.raises(KeyError):
        keys[b"k"]
    with pytest.raises(KeyError):
        del keys[b"k"]
    keys[b"k"] = 1
    del keys[b"k"]
    assert len(keys) == 0


def test_few_keys_stay_in_the_order_in_which_they_were_added() -> None:
    keys = KeyMap()
    names = [b"%d" % number for number in range(keys.segment_max)]
    for name in names:
        keys[name] = None
    assert list(keys) == names


def test_keys_of_one_place_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cursor cannot separate them, so a call may return more than asked for."""
    monkeypatch.setattr(key_map, "place_of", lambda _key: PLACES - 1)
    keys = KeyMap()
    for n in range(20):
        keys[b"%d" % n] = None
    cursor, found = keys.scan(0, 5)
    assert (cursor, len(found)) == (0, 20)


@given(st.integers(0, 2**32))
def test_a_map_that_is_emptied_starts_again_with_one_segment(seed: int) -> None:
    keys = KeyMap(segment_max=8)
    names = [b"%d-%d" % (seed, number) for number in range(300)]
    for name in names:
        keys[name] = None
    assert len(keys.segments()) > 30
    for name in names:
        keys.pop(name)
    check(keys)
    assert len(keys) == 0
    assert len(keys.segments()) <= 30
