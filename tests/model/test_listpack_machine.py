"""A listpack behaves like a list of byte strings, whatever the edits."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from fuzz.listpack import walk, walk_back
from penstock.core import listpack
from tests.support.structures.listpacks import EDGE_INTEGERS, EDGE_STRING_SIZES, NOT_INTEGERS

SIZES = [size for size in EDGE_STRING_SIZES if size < 20_000]
INT64 = st.one_of(st.sampled_from(EDGE_INTEGERS), st.integers(-(2**63), 2**63 - 1))
DATA = st.one_of(
    st.binary(max_size=70),
    st.builds(lambda value: b"%d" % value, INT64),
    st.sampled_from(NOT_INTEGERS),
    st.builds(lambda size: b"s" * size, st.sampled_from(SIZES)),
)
INDEX = st.integers(0, 10**6)  # taken modulo the length: any index is always valid


class ListpackMachine(RuleBasedStateMachine):
    """A listpack and its model, edited alike."""

    def __init__(self) -> None:
        super().__init__()
        self.lp = listpack.new()
        self.model: list[bytes] = []
        self.room = b""

    @initialize(room=st.binary(max_size=20), is_count_known=st.booleans())
    def begin(self, room: bytes, is_count_known: bool) -> None:
        self.room = room
        self.lp += room
        if not is_count_known:
            self.lp[4:6] = b"\xff\xff"

    def place(self, index: int) -> tuple[int, int]:
        """An index into the model and the position of that element, found from either end."""
        index %= len(self.model)
        at = listpack.seek(self.lp, index)
        assert listpack.seek(self.lp, index - len(self.model)) == at
        return index, at

    @rule(data=DATA)
    def append(self, data: bytes) -> None:
        at = listpack.append(self.lp, data)
        self.model.append(data)
        assert at == listpack.last(self.lp)

    @rule(value=INT64)
    def append_int(self, value: int) -> None:
        at = listpack.append_int(self.lp, value)
        self.model.append(b"%d" % value)
        assert at == listpack.last(self.lp)
        assert listpack.get_int(self.lp, at) == value

    @precondition(lambda self: self.model)
    @rule(index=INDEX, data=DATA)
    def insert_before(self, index: int, data: bytes) -> None:
        index, at = self.place(index)
        assert listpack.insert(self.lp, at, data, listpack.BEFORE) == at
        self.model.insert(index, data)
        assert listpack.seek(self.lp, index) == at

    @precondition(lambda self: self.model)
    @rule(index=INDEX, data=DATA)
    def insert_after(self, index: int, data: bytes) -> None:
        index, at = self.place(index)
        at = listpack.insert(self.lp, at, data, listpack.AFTER)
        self.model.insert(index + 1, data)
        assert listpack.seek(self.lp, index + 1) == at

    @precondition(lambda self: self.model)
    @rule(index=INDEX, data=DATA)
    def replace(self, index: int, data: bytes) -> None:
        index, at = self.place(index)
        assert listpack.insert(self.lp, at, data, listpack.REPLACE) == at
        self.model[index] = data

    @precondition(lambda self: self.model)
    @rule(index=INDEX, value=INT64)
    def replace_int(self, index: int, value: int) -> None:
        index, at = self.place(index)
        behind = listpack.skip(self.lp, at)
        moved = listpack.replace_int(self.lp, at, value)
        self.model[index] = b"%d" % value
        assert listpack.skip(self.lp, at) == behind + moved

    @precondition(lambda self: self.model)
    @rule(index=INDEX)
    def delete(self, index: int) -> None:
        index, at = self.place(index)
        followed = index + 1 < len(self.model)
        assert listpack.delete(self.lp, at) == (at if followed else 0)
        del self.model[index]

    @precondition(lambda self: self.model)
    @rule(index=INDEX, data=DATA)
    def compare(self, index: int, data: bytes) -> None:
        index, at = self.place(index)
        for text in (data, self.model[index]):
            same = listpack.equals(self.lp, at, bytearray(text), 0, len(text))
            assert same == (text == self.model[index])

    @invariant()
    def agrees_with_the_model(self) -> None:
        total = listpack.total_bytes(self.lp)
        packed = listpack.validate(self.lp[:total], deep=True)
        assert packed + self.room == self.lp
        places = walk(packed)
        assert [listpack.get_bytes(packed, at) for at in places] == self.model
        assert walk_back(packed) == places[::-1]
        assert listpack.length(packed) == len(self.model)

    @invariant()
    def has_the_bytes_of_a_fresh_listpack(self) -> None:
        """The history of edits leaves no trace, except perhaps an unknown count."""
        fresh = listpack.new()
        for data in self.model:
            listpack.append(fresh, data)
        fresh += self.room
        if self.lp[4:6] == b"\xff\xff":
            fresh[4:6] = b"\xff\xff"
        assert self.lp == fresh


TestListpackMachine = ListpackMachine.TestCase
