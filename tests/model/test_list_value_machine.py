"""A list value behaves like a list of byte strings, however small its nodes are."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.core.check import check_list
from penstock.core.list_value import ListLimits, ListValue
from tests.support.structures.listpacks import EDGE_INTEGERS, NOT_INTEGERS

FEW = st.sampled_from(
    [b"a", b"b", b"7", b"-4097", b"long" * 20]
)  # few, so that removals find something
DATA = st.one_of(
    FEW,
    FEW,
    st.binary(max_size=70),
    st.builds(lambda value: b"%d" % value, st.sampled_from(EDGE_INTEGERS)),
    st.sampled_from(NOT_INTEGERS),
)
INDEX = st.integers(-(10**6), 10**6)


def removed(model: list[bytes], value: bytes, count: int) -> list[bytes]:
    """The elements that LREM keeps."""
    places = [n for n, each in enumerate(model) if each == value]
    gone = set(places[count:] if count < 0 else places[:count] if count > 0 else places)
    return [each for n, each in enumerate(model) if n not in gone]


class ListValueMachine(RuleBasedStateMachine):
    """A list value and its model, changed alike."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = ListLimits()
        self.value = ListValue(self.limits)
        self.model: list[bytes] = []
        self.edited = False

    @initialize(bytes_max=st.sampled_from([1, 24, 40, 100, 8192]), entries_max=st.integers(0, 4))
    def begin(self, bytes_max: int, entries_max: int) -> None:
        self.limits.bytes_max, self.limits.entries_max = bytes_max, entries_max

    @rule(data=DATA)
    def push_left(self, data: bytes) -> None:
        self.value.push_left(data)
        self.model.insert(0, data)

    @rule(data=DATA)
    def push_right(self, data: bytes) -> None:
        self.value.push_right(data)
        self.model.append(data)

    @rule(many=st.lists(DATA, max_size=15), left=st.booleans(), before=st.binary(max_size=3))
    def push_pieces(self, many: list[bytes], left: bool, before: bytes) -> None:
        for data in many:
            self.value.push_piece(bytearray(before + data), len(before), len(data), left)
            self.model.insert(0 if left else len(self.model), data)

    @rule(count=st.integers(1, 6))
    def pop_left(self, count: int) -> None:
        for _ in range(count):
            assert self.value.pop_left_or_none() == (self.model.pop(0) if self.model else None)

    @rule(count=st.integers(1, 6))
    def pop_right(self, count: int) -> None:
        for _ in range(count):
            assert self.value.pop_right_or_none() == (self.model.pop() if self.model else None)

    @rule(start=INDEX, size=st.integers(0, 12))
    def trim(self, start: int, size: int) -> None:
        """Drop up to twelve elements from one end, or everything outside of a range."""
        length = len(self.model)
        start = start % length if length else 0
        end = min(start + size, length) - 1
        if start % 3:  # a short range leaves little: mostly trim just the ends
            start, end = min(size, length), length - 1 - start % 2
        self.value.trim(start, end)
        self.model = self.model[start : end + 1]

    @rule(value=DATA, count=st.integers(-4, 4))
    def remove(self, value: bytes, count: int) -> None:
        left = removed(self.model, value, count)
        assert self.value.remove(value, count) == len(self.model) - len(left)
        self.model = left

    @rule(index=INDEX)
    def remove_one_that_is_there(self, index: int) -> None:
        if self.model:
            self.remove(self.model[index % len(self.model)], -1 if index < 0 else 1)

    @rule(pivot=DATA, data=DATA, after=st.booleans())
    def insert(self, pivot: bytes, data: bytes, after: bool) -> None:
        there = pivot in self.model
        assert self.value.insert(pivot, data, after) == there
        if there:
            self.model.insert(self.model.index(pivot) + after, data)
            self.edited = True

    @rule(index=INDEX, data=DATA, after=st.booleans())
    def insert_at_one_that_is_there(self, index: int, data: bytes, after: bool) -> None:
        if self.model:
            self.insert(self.model[index % len(self.model)], data, after)

    @rule(index=INDEX, data=DATA)
    def replace(self, index: int, data: bytes) -> None:
        length = len(self.model)
        near = index % (length + 4) - 2
        for each in (near, -near):
            there = -length <= each < length
            assert self.value.replace(each, data) == there
            if there:
                self.model[each] = data
                self.edited = True

    @rule(value=FEW, rank=st.integers(-4, 4), limit=st.integers(0, 3), scan_max=st.integers(0, 9))
    def find(self, value: bytes, rank: int, limit: int, scan_max: int) -> None:
        rank = rank or 1
        indexes = list(range(len(self.model)))[:: 1 if rank > 0 else -1]
        found = [n for n in indexes[: scan_max or None] if self.model[n] == value][abs(rank) - 1 :]
        assert self.value.positions(value, rank, limit, scan_max) == found[: limit or None]

    @rule(index=INDEX)
    def look(self, index: int) -> None:
        length = len(self.model)
        near = index % (length + 4) - 2
        for each in (near, -near):
            there = -length <= each < length
            assert self.value.get_or_none(each) == (self.model[each] if there else None)

    @rule(start=INDEX, end=INDEX)
    def look_at_a_range(self, start: int, end: int) -> None:
        if self.model:
            start, end = start % len(self.model), end % len(self.model)
            assert self.value.range(start, end) == self.model[start : end + 1]

    @rule()
    def go_on_with_a_copy(self) -> None:
        nodes = list(self.value.nodes())
        old, self.value = self.value, self.value.copy()
        old.trim(0, -1)
        assert list(self.value.nodes()) == nodes

    @rule()
    def save_and_load(self) -> None:
        loaded = ListValue(self.limits)
        for node in self.value.nodes():
            loaded.load_node(bytes(node))
        assert list(loaded.nodes()) == list(self.value.nodes())
        self.value = loaded

    @invariant()
    def agrees_with_the_model(self) -> None:
        check_list(self.value, self.limits, self.edited)
        assert self.value.length == len(self.model)
        assert self.value.range(0, len(self.model) - 1) == self.model


TestListValueMachine = ListValueMachine.TestCase
