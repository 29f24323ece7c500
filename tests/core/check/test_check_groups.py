"""The checks of groups find every kind of damage, and name the invariant."""

from __future__ import annotations

import pytest

from penstock.core.check import check_group, check_stream
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.pending_index import PendingIndex
from penstock.core.groups.records import Pending
from penstock.core.groups.references import References, add_group
from penstock.core.rax.tree import Rax
from penstock.core.stream import Stream
from penstock.core.stream_id import LARGEST, SMALLEST
from tests.support.engine.streams import sid, stream_of
from tests.support.structures.damage import broken

# --- Groups ------------------------------------------------------------------------------------------


def working() -> tuple[Stream, Group, Consumer, Consumer]:
    """Consumer a has 1-0 and 2-0 pending, b has 3-0."""
    stream = stream_of("1-0", "2-0", "3-0")
    group = Group(SMALLEST, 0)
    a, b = group.create_consumer(b"a", 0), group.create_consumer(b"b", 0)
    group.deliver(stream, a, 2, 100, True)
    group.deliver(stream, b, 1, 100, True)
    check_group(group)
    return stream, group, a, b


def test_a_record_that_only_the_group_has_is_found() -> None:
    _, group, _, _ = working()
    group.pending.add(Pending(sid("9-0"), 0, 0, 1))
    with broken("G1", "4 records, consumers have 3"):
        check_group(group)


def test_a_record_that_only_the_consumer_has_is_found() -> None:
    _, group, _, _ = working()
    group.pending.pop(sid("1-0").key)
    with broken("G1", "the record of 1-0 is not the group's"):
        check_group(group)


def test_a_record_that_is_there_twice_is_found() -> None:
    _, group, a, b = working()
    record = b.pending.find(sid("3-0").key)
    assert record is not None
    a.pending.add(record)
    with broken("G1", "3-0 names consumer number 1"):
        check_group(group)


def test_two_records_for_one_entry_are_found() -> None:
    _, group, _, _ = working()
    group.pending.pop(sid("3-0").key)
    group.pending.add(Pending(sid("3-0"), 1, 100, 1))
    with broken("G1", "the record of 3-0 is not the group's"):
        check_group(group)


def test_a_record_that_names_another_consumer_is_found() -> None:
    _, group, a, _ = working()
    record = a.pending.find(sid("1-0").key)
    assert isinstance(record, Pending)
    record.consumer_number = 1
    with broken("G1", "1-0 names consumer number 1"):
        check_group(group)


def test_records_out_of_order_are_found() -> None:
    _, group, a, _ = working()
    record = a.pending.edge_or_none(False)
    assert record is not None
    record.ms = 2
    with broken("PL1", "group: 2-0 follows 2-0"):
        check_group(group)
    record.ms = 9
    with broken("PL1", "group: 2-0 follows 9-0"):
        check_group(group)


def test_a_wrong_count_of_records_and_a_wrong_block_are_found() -> None:
    _, group, a, _ = working()
    a.pending.blocks()[0].pop()
    with broken("PL3", "1 records, counted as 2"):
        check_group(group)
    group.pending.blocks().append([])
    with broken("PL2", "group: a block of 0 records, one of 2"):
        check_group(group)


@pytest.mark.parametrize("number", [0, 1, 7, -1])
def test_a_consumer_with_a_number_that_is_not_its_place_is_found(number: int) -> None:
    _, group, _, _ = working()
    group.consumers.insert(b"c", Consumer(b"c", number, 0))
    with broken("G2", "is not its place"):
        check_group(group)


def test_a_consumer_under_another_name_is_found() -> None:
    _, group, a, _ = working()
    group.consumers.remove(b"a")
    group.consumers.insert(b"z", a)
    with broken("G2", "is not the consumer of this name"):
        check_group(group)


def test_an_impossible_count_of_entries_read_is_found() -> None:
    _, group, _, _ = working()
    group.entries_read = -2
    with broken("G3", "-2"):
        check_group(group)


def test_times_and_counts_below_zero_are_found() -> None:
    _, group, a, _ = working()
    record = next(iter(a.pending))
    record.delivery_count = -1
    with broken("G5", "-1 times"):
        check_group(group)
    record.delivery_count = 1
    record.delivery_ms = -1
    with broken("G5", "at -1 ms"):
        check_group(group)
    record.delivery_ms = 0
    a.active_ms = -2
    with broken("G5", "active at -2 ms"):
        check_group(group)


def test_the_groups_of_a_stream_are_checked() -> None:
    stream, group, _, _ = working()
    stream.groups = Rax()
    stream.groups.insert(b"g", group)
    check_stream(stream)
    group.entries_read = -2
    with broken("G3", "-2"):
        check_stream(stream)
    stream.groups.insert(b"g", None)
    with broken("G1", "is not a group"):
        check_stream(stream)


def test_pending_ids_may_be_gone_from_the_stream_or_lie_ahead() -> None:
    stream, group, a, _ = working()
    stream.trim_length(0)
    group.set_position(SMALLEST, 0)
    record = Pending(LARGEST, a.number, 0, 1)
    for records in (group.pending, a.pending):
        records.add(record)
    check_group(group)
    check_stream(stream)


# --- Returned entries, orders and indexes --------------------------------------------------------------


def returned() -> tuple[Group, Pending]:
    """2-0 of the working group has no owner."""
    _, group, _, _ = working()
    group.give_back(sid("2-0"), 1)
    check_group(group)
    return group, group.returned[sid("2-0").key]


def test_a_record_without_an_owner_that_was_not_returned_is_found() -> None:
    group, _ = returned()
    group.returned.clear()
    with broken("G1", "3 records, consumers have 2"):
        check_group(group)


def test_a_returned_record_that_is_not_the_groups_is_found() -> None:
    group, record = returned()
    group.returned[sid("9-0").key] = Pending(sid("9-0"), -1, 0, 1)
    with broken("G1", "returned: the record of 9-0 is not the group's"):
        check_group(group)
    group.returned.clear()
    group.returned[sid("2-0").key] = Pending(sid("2-0"), -1, 0, 1)
    with broken("G1", "returned: the record of 2-0 is not the group's"):
        check_group(group)
    group.returned.clear()
    group.returned[b"short"] = record
    with broken("G1", "returned: the key of 2-0 is 73686f7274"):
        check_group(group)


@pytest.mark.parametrize(("number", "delivery_ms"), [(0, 0), (-1, 5), (-2, 0), (-1, -1)])
def test_a_returned_record_with_an_owner_or_a_time_is_found(number: int, delivery_ms: int) -> None:
    group, record = returned()
    record.consumer_number = number
    record.delivery_ms = delivery_ms
    with broken("G1", f"2-0 names consumer number {number} at {delivery_ms} ms"):
        check_group(group)


def test_a_returned_record_that_a_consumer_has_too_is_found() -> None:
    group, record = returned()
    group.consumer_by_number(0).pending.add(record)
    with broken("G1", "2-0 names consumer number -1"):
        check_group(group)


def test_numbers_of_returned_records_are_checked() -> None:
    group, record = returned()
    record.delivery_count = -1
    with broken("G5", "returned: 2-0 was delivered at 0 ms, -1 times"):
        check_group(group)
    record.delivery_count = 2**63 - 1
    check_group(group)
    group.add_returned(SMALLEST, 1)
    with broken("G5", "returned: 0-0 is pending"):
        check_group(group)


def ordered() -> tuple[Group, Rax]:
    """The working group with an order of its records by time."""
    stream, group, _, _ = working()
    assert group.next_claim_ms_or_none(stream, 0) == 100
    order = group.idle_order_or_none()
    assert order is not None
    check_group(group)
    return group, order


def test_a_record_that_is_missing_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    key, _ = next(order.pairs())
    order.remove(key)
    with broken("G6", "2 records by time, 3 with an owner"):
        check_group(group)


def test_a_record_that_is_too_much_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    order.insert(bytes(8) + sid("2-0").key, group.pending.find(sid("2-0").key))
    with broken("G6", "4 records by time, 3 with an owner"):
        check_group(group)


def test_a_record_with_another_time_than_its_place_in_the_order_is_found() -> None:
    group, _ = ordered()
    record = group.pending.find(sid("2-0").key)
    assert record is not None
    record.delivery_ms = 101
    with broken("G6", "3 records by time, 3 with an owner"):
        check_group(group)


def test_another_record_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    key, _ = next(order.pairs())
    order.insert(key, Pending(sid("1-0"), 0, 100, 1))
    with broken("G6", "3 records by time, 3 with an owner"):
        check_group(group)


def test_a_returned_record_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    group.give_back(sid("2-0"), 1)
    check_group(group)
    order.insert(bytes(8) + sid("2-0").key, group.returned[sid("2-0").key])
    with broken("G6", "3 records by time, 2 with an owner"):
        check_group(group)


def indexed() -> tuple[Stream, Rax]:
    """Two groups with an index: 1-0 is pending in one of them, 2-0 in both."""
    stream = stream_of("1-0", "2-0", "3-0")
    for name, count in ((b"g", 2), (b"h", 2)):
        group = Group(SMALLEST, 0)
        add_group(stream, name, group)
        group.deliver(stream, group.create_consumer(b"c", 0), count, 100, True)
    References(stream).holds(0, 0)
    group.acknowledge(sid("1-0"))
    check_stream(stream)
    assert stream.pending_index is not None
    return stream, stream.pending_index.counts


@pytest.mark.parametrize(
    ("entry_id", "count", "what"),
    [
        ("1-0", 2, "1-0 is pending in 1 groups, not 2"),
        ("2-0", 1, "2-0 is pending in 2 groups, not 1"),
        ("2-0", 0, "2-0 is pending in 2 groups, not 0"),
        ("3-0", 1, "3-0 is pending in 0 groups, not 1"),
        ("3-0", 0, "3-0 is pending in 0 groups, not 0"),
    ],
)
def test_a_wrong_count_in_the_index_is_found(entry_id: str, count: int, what: str) -> None:
    stream, counts = indexed()
    counts.insert(sid(entry_id).key, count)
    with broken("X1", what):
        check_stream(stream)


def test_an_entry_that_is_missing_in_the_index_is_found() -> None:
    stream, counts = indexed()
    counts.remove(sid("2-0").key)
    with broken("X1", "2-0 is pending in 2 groups, not None"):
        check_stream(stream)


def test_a_group_that_does_not_keep_up_the_index_is_found() -> None:
    stream, _ = indexed()
    assert stream.groups is not None
    stream.groups.remove(b"g")
    with broken("X1", "is pending in"):
        check_stream(stream)


def test_an_index_without_groups_is_checked() -> None:
    stream = stream_of("1-0")
    stream.pending_index = PendingIndex()
    check_stream(stream)
    stream.pending_index.add(sid("1-0").key)
    with broken("X1", "1-0 is pending in 0 groups, not 1"):
        check_stream(stream)
