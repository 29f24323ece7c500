"""A rax behaves like a dict with sorted keys, whatever the operations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from penstock.core.rax.tree import Rax
from tests.support.campaign import cases

words = st.lists(st.sampled_from(b"ab"), max_size=8).map(bytes)
edges = st.lists(st.sampled_from(b"\x00\x01\xfe\xff"), max_size=5).map(bytes)
ids = st.builds(
    lambda ms, seq: ms.to_bytes(8, "big") + seq.to_bytes(8, "big"),
    st.sampled_from([0, 1, 255, 256, 2**63, 2**64 - 1]) | st.integers(0, 600),
    st.integers(0, 3) | st.integers(0, 2**64 - 1),
)
keys = words | edges | ids
values = st.none() | st.integers()


class RaxMachine(RuleBasedStateMachine):
    """The model is a dict and its sorted keys; one iterator stays open through all changes."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self.tree = Rax()
        self.model: dict[bytes, int | None] = {}
        self.iterator = self.tree.iterator()
        self.place: bytes | None = None  # the iterator's key according to the model
        self.is_fresh = False  # after a seek: the next step stays

    @initialize(target=known, key=keys)
    def first(self, key: bytes) -> bytes:
        return key

    @rule(target=known, key=keys, value=values)
    def insert(self, key: bytes, value: int | None) -> bytes:
        assert self.tree.insert(key, value) is (key not in self.model)
        self.model[key] = value
        return key

    @rule(target=known, key=known, more=words, value=values)
    def insert_longer(self, key: bytes, more: bytes, value: int | None) -> bytes:
        longer = key + more
        assert self.tree.insert(longer, value) is (longer not in self.model)
        self.model[longer] = value
        return longer

    @rule(key=known | keys, value=values)
    def try_insert(self, key: bytes, value: int | None) -> None:
        assert self.tree.try_insert(key, value) is (key not in self.model)
        self.model.setdefault(key, value)

    @rule(key=consumes(known) | keys)
    def remove(self, key: bytes) -> None:
        assert self.tree.remove(key) is (key in self.model)
        self.model.pop(key, None)

    @rule(key=known | keys)
    def pop(self, key: bytes) -> None:
        assert self.tree.pop(key, "missing") == self.model.pop(key, "missing")

    @rule(key=known | keys)
    def find(self, key: bytes) -> None:
        assert self.tree.find(key, "missing") == self.model.get(key, "missing")
        assert (key in self.tree) is (key in self.model)

    @rule()
    def clear(self) -> None:
        self.tree.clear()
        self.model.clear()

    @rule(key=known | keys, op=st.sampled_from(["^", "$", "=", ">", ">=", "<", "<="]))
    def seek(self, key: bytes, op: str) -> None:
        self.place = self._sought(op, key)
        self.is_fresh = True
        assert self.iterator.seek(op, key) is (self.place is not None)
        self._stands_right()

    @rule(forward=st.booleans())
    def step(self, forward: bool) -> None:
        if self.place is not None:
            op = ">" if forward else "<"
            self.place = self._sought(op + "=" if self.is_fresh else op, self.place)
        self.is_fresh = False
        moved = self.iterator.next() if forward else self.iterator.previous()
        assert moved is (self.place is not None)
        if moved:
            self._stands_right()

    @invariant()
    def is_sound(self) -> None:
        self.tree.check()

    @invariant()
    def agrees_with_the_model(self) -> None:
        ordered = sorted(self.model.items())
        iterator = self.tree.iterator()
        iterator.seek("^")
        assert [(iterator.key, iterator.value) for _ in iter(iterator.next, False)] == ordered
        iterator.seek("$")
        assert [iterator.key for _ in iter(iterator.previous, False)] == [
            key for key, _ in reversed(ordered)
        ]
        assert len(self.tree) == len(ordered)

    def teardown(self) -> None:
        rebuilt = Rax()
        for key, value in self.model.items():
            rebuilt.insert(key, value)
        assert list(self.tree.nodes()) == list(rebuilt.nodes()), "the shape shows the history"

    def _sought(self, op: str, key: bytes) -> bytes | None:
        ordered = sorted(self.model)
        low, high = bisect_left(ordered, key), bisect_right(ordered, key)
        place = {
            "^": 0,
            "$": len(ordered) - 1,
            "=": low if low < high else -1,
            ">": high,
            ">=": low,
            "<": low - 1,
            "<=": high - 1,
        }[op]
        return ordered[place] if 0 <= place < len(ordered) else None

    def _stands_right(self) -> None:
        if self.place is not None:
            assert self.iterator.key == self.place
            # In any case the value is the one at the time of arrival.
            assert self.is_fresh or self.iterator.value == self.model[self.place]


TestRaxMachine = RaxMachine.TestCase
TestRaxMachine.settings = settings(max_examples=cases(600), stateful_step_count=40)
