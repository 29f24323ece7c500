"""Groups: consumers that come and go, and what is left of them."""

from __future__ import annotations

import gc

from penstock.build import KIND
from penstock.core.check import check_group, check_stream
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.records import NEVER_MS, Pending
from penstock.core.stream_id import SMALLEST
from tests.support.engine.groups import crew
from tests.support.engine.streams import keys_of, pending_of


def test_a_consumer_is_found_by_name_and_by_number() -> None:
    _, group, a, b = crew()
    assert group.consumer_or_none(b"a") is a
    assert group.consumer_or_none(b"c") is None
    assert group.consumer_by_number(b.number) is b
    assert (a.seen_ms, a.active_ms) == (0, NEVER_MS)


def test_deleting_a_consumer_removes_and_counts_its_pending_entries() -> None:
    stream, group, a, b = crew("1-0", "2-0", "3-0")
    group.deliver(stream, a, 2, 100, True)
    group.deliver(stream, b, 1, 100, True)
    assert group.delete_consumer(a) == 2
    assert group.consumer_or_none(b"a") is None
    assert pending_of(group) == [("3-0", b"b", 100, 1)]
    assert group.delete_consumer(b) == 1
    assert keys_of(group.consumers) == []
    assert group.pending.count == 0
    check_group(group)


def test_numbers_of_deleted_consumers_are_reused_and_do_not_mix_up_records() -> None:
    stream, group, a, b = crew("1-0", "2-0", "3-0")
    group.deliver(stream, a, 1, 100, True)
    group.deliver(stream, b, 1, 100, True)
    group.delete_consumer(a)
    c = group.create_consumer(b"c", 500)
    d = group.create_consumer(b"d", 500)
    assert (c.number, d.number) == (a.number, b.number + 1)
    group.deliver(stream, c, 1, 100, True)
    assert pending_of(group) == [("2-0", b"b", 100, 1), ("3-0", b"c", 100, 1)]
    check_group(group)


def test_many_consumers_come_and_go() -> None:
    _, group, _, _ = crew()
    made = [group.create_consumer(b"c%d" % n, 0) for n in range(2000)]
    for consumer in made[::2]:
        group.delete_consumer(consumer)
    again = [group.create_consumer(b"d%d" % n, 0) for n in range(1000)]
    assert {consumer.number for consumer in again} == {consumer.number for consumer in made[::2]}
    check_group(group)


def alive(kind: type) -> int:
    """The number of objects of a class that the garbage collector tracks."""
    gc.collect()
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


def test_nothing_survives_the_deletion_of_a_consumer() -> None:
    before = alive(Consumer)
    stream, group, a, b = crew("1-0", "2-0")
    group.deliver(stream, a, 0, 100, True)
    assert alive(Consumer) == before + 2
    group.delete_consumer(a)
    del a
    assert alive(Consumer) == before + 1
    del group, b
    assert alive(Consumer) == before


def test_nothing_survives_the_deletion_of_a_group_even_without_a_collection() -> None:
    gc.collect()
    before = alive(Group), alive(Consumer)
    stream, group, a, b = crew("1-0", "2-0")
    group.deliver(stream, a, 0, 100, True)
    gc.disable()
    try:
        del group, a, b
        left = [thing for thing in gc.get_objects() if isinstance(thing, Group | Consumer)]
    finally:
        gc.enable()
    assert len(left) == sum(before)


def test_the_collector_does_not_look_at_records_when_they_are_compiled() -> None:
    assert gc.is_tracked(Pending(SMALLEST, 0, 0, 1)) == (KIND == "interpreted")


def test_groups_of_a_stream_are_checked_with_it() -> None:
    stream, group, a, _ = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    groups = type(stream.nodes)()
    groups.insert(b"g", group)
    stream.groups = groups
    check_stream(stream)
