"""Data that is no longer used is freed a part at a time, unless somebody still refers to it."""

from __future__ import annotations

import sys

from penstock.core.check import check_stream
from penstock.core.garbage import OBJECTS_AT_ONCE, Garbage, parts_of
from penstock.core.groups.group import Group
from penstock.core.groups.references import References, add_group
from penstock.core.list_value import ListLimits, ListValue
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import SMALLEST
from tests.support.engine.streams import frame_of


class Bin(Garbage):
    """Garbage with an owner that counts how often it was woken."""

    __slots__ = ("woken",)

    def __init__(self) -> None:
        super().__init__()
        self.woken = 0
        self.wake = self._count

    def _count(self) -> None:
        self.woken += 1


def large_stream(entries: int = 50) -> Stream:
    """A stream with two groups, each with consumers, pending and returned entries, and every index."""
    stream = Stream(NodeLimits(entries_max=2))
    for number in range(1, entries + 1):
        stream.append_at(number, 0, frame_of(b"k", b"v"), 0)
    for name in (b"g", b"h"):
        group = Group(SMALLEST)
        add_group(stream, name, group)
        a, b = group.create_consumer(b"a", 0), group.create_consumer(b"b", 0)
        group.deliver(stream, a, 20, 5, True)
        group.deliver(stream, b, 20, 5, True)
        group.claim_idle(stream, b, 0, 1, 9)
        group.give_back(stream.first_id(), 1)
    assert References(stream).holds(1, 0)
    check_stream(stream)
    return stream


def test_without_an_owner_nothing_is_kept() -> None:
    garbage = Garbage()
    garbage.discard(large_stream())
    assert len(garbage) == 0
    assert not garbage.free_some()


def test_an_owner_is_woken_once_for_everything() -> None:
    garbage = Bin()
    for _ in range(3):
        garbage.discard(large_stream())
    assert (garbage.woken, len(garbage)) == (1, 3)
    garbage.free_all()
    assert (garbage.woken, len(garbage)) == (1, 0)
    garbage.discard([1])
    assert garbage.woken == 2


def test_strings_and_nothing_are_not_worth_a_wait() -> None:
    garbage = Bin()
    garbage.discard(b"x")
    garbage.discard(None)
    assert (garbage.woken, len(garbage)) == (0, 0)


def test_a_step_frees_a_bounded_number_of_objects() -> None:
    garbage = Bin()
    items = [bytearray(1) for _ in range(3 * OBJECTS_AT_ONCE)]
    garbage.discard(items)
    lengths = []
    while garbage.free_some():
        lengths.append(len(items))
    assert lengths == [2 * OBJECTS_AT_ONCE, OBJECTS_AT_ONCE]
    assert items == []


def test_a_stream_is_freed_to_its_last_node_and_record() -> None:
    garbage = Bin()
    stream = large_stream()
    nodes = list(stream.nodes.values)
    group: Group = stream.groups.find(b"g")  # type: ignore[union-attr]
    record = group.consumers.find(b"a").pending.edge_or_none(False)
    del group
    garbage.discard(stream)
    del stream
    garbage.free_all()
    # This list, and the argument.
    assert {sys.getrefcount(nodes[number]) for number in range(len(nodes))} == {2}
    assert sys.getrefcount(record) == 2


def test_a_list_is_freed_to_its_last_node() -> None:
    limits = ListLimits()
    limits.set_listpack_size(2)
    value = ListValue(limits)
    for number in range(99):
        value.push_right(b"%d" % number)
    nodes = list(value.nodes())
    garbage = Bin()
    garbage.discard(value)
    del value
    garbage.free_all()
    assert {sys.getrefcount(nodes[number]) for number in range(len(nodes))} == {2}


def test_a_value_that_a_reply_still_refers_to_stays_whole() -> None:
    garbage = Bin()
    stream = large_stream()
    unsent = stream.range()
    garbage.discard(stream)
    del stream
    garbage.free_all()
    assert len(unsent.entries()) == 50
    check_stream(unsent.stream)


def test_values_of_a_dictionary_are_taken_apart_one_by_one() -> None:
    garbage = Bin()
    kept = large_stream()
    values = {b"a": kept, b"b": large_stream(), b"c": b"string", b"d": ListValue()}
    garbage.discard(values)
    while garbage.free_some():
        check_stream(kept)
    assert values == {}
    assert kept.length == 50


def test_an_unknown_value_has_no_parts() -> None:
    assert parts_of(object()) == []
