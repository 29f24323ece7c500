"""Groups: delivering entries, reading a consumer's history, acknowledging."""

from __future__ import annotations

import pytest

from penstock.core.check import check_group
from penstock.core.groups.group import ENTRIES_READ_UNKNOWN
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST
from tests.support.engine.groups import crew, ids, options
from tests.support.engine.streams import add, pending_of, sid

# --- Delivering --------------------------------------------------------------------------------------


def test_entries_are_delivered_once_in_order_and_become_pending() -> None:
    stream, group, a, b = crew("1-0", "2-0", "3-0", "4-0")
    assert ids(group.deliver(stream, a, 1, 100, True)) == ["1-0"]
    assert ids(group.deliver(stream, b, 2, 200, True)) == ["2-0", "3-0"]
    assert ids(group.deliver(stream, a, 0, 300, True)) == ["4-0"]
    assert group.deliver(stream, b, 0, 400, True) is None
    assert pending_of(group) == [
        ("1-0", b"a", 100, 1),
        ("2-0", b"b", 200, 1),
        ("3-0", b"b", 200, 1),
        ("4-0", b"a", 300, 1),
    ]
    assert (str(group.last_id), group.entries_read) == ("4-0", 4)
    check_group(group)


def test_without_acknowledgement_the_position_moves_and_nothing_is_pending() -> None:
    stream, group, a, _ = crew("1-0", "2-0")
    assert ids(group.deliver(stream, a, 0, 100, False)) == ["1-0", "2-0"]
    assert pending_of(group) == []
    assert (str(group.last_id), group.entries_read) == ("2-0", 2)


def test_a_range_that_was_delivered_does_not_grow() -> None:
    stream, group, a, _ = crew("1-0", "2-0")
    delivered = group.deliver(stream, a, 0, 100, True)
    add(stream, "3-0")
    assert ids(delivered) == ["1-0", "2-0"]


def test_deleted_entries_are_passed_over() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0")
    stream.delete(sid("1-0"))
    stream.delete(sid("3-0"))
    assert ids(group.deliver(stream, a, 0, 100, True)) == ["2-0"]
    assert group.deliver(stream, a, 0, 100, True) is None


def test_a_group_at_or_above_the_last_id_gets_nothing() -> None:
    stream, group, a, _ = crew("1-0")
    for last in ("1-0", "9-0", f"{MAX64}-{MAX64}"):
        group.set_position(sid(last), ENTRIES_READ_UNKNOWN)
        assert group.deliver(stream, a, 0, 100, True) is None


def test_the_largest_id_can_be_delivered() -> None:
    stream, group, a, _ = crew("1-0", f"{MAX64}-{MAX64}")
    assert ids(group.deliver(stream, a, 0, 100, True)) == ["1-0", f"{MAX64}-{MAX64}"]
    assert group.deliver(stream, a, 0, 100, True) is None
    assert group.acknowledge(LARGEST)


def test_nothing_is_skipped_when_the_buffer_of_the_last_node_read_is_given_up() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0")
    assert ids(group.deliver(stream, a, 1, 100, True)) == ["1-0"]
    add(stream, "4-0", b"k", b"v" * 20_000)  # in the buffer of the first node
    add(stream, "5-0")  # in a buffer of its own: the other is too large to keep
    assert ids(group.deliver(stream, a, 0, 100, True)) == ["2-0", "3-0", "4-0", "5-0"]


@pytest.mark.parametrize("length", range(1, 12))
def test_a_delivered_range_is_the_same_after_any_number_of_appends(length: int) -> None:
    stream, group, a, _ = crew(*(f"{n}-0" for n in range(1, length + 1)))
    taken = []
    for n in range(length + 1, length + 8):
        delivered = group.deliver(stream, a, 2, 100, True)
        add(stream, f"{n}-0")
        taken += ids(delivered) or []
    assert taken == [f"{n}-0" for n in range(1, len(taken) + 1)]


def test_a_group_that_was_set_back_delivers_again_and_the_record_moves() -> None:
    stream, group, a, b = crew("1-0", "2-0")
    group.deliver(stream, a, 0, 100, True)
    group.claim(stream, sid("1-0"), a, options(delivery_count=7), 150)
    group.set_position(SMALLEST, 0)
    assert ids(group.deliver(stream, b, 1, 200, True)) == ["1-0"]
    assert pending_of(group) == [("1-0", b"b", 200, 1), ("2-0", b"a", 100, 1)]
    assert (a.pending.count, b.pending.count) == (1, 1)
    check_group(group)


def test_a_second_delivery_to_the_same_consumer_resets_its_record() -> None:
    stream, group, a, _ = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    group.redeliver(stream, a, SMALLEST, 0, 150)
    group.set_position(SMALLEST, 0)
    group.deliver(stream, a, 0, 200, True)
    assert pending_of(group) == [("1-0", b"a", 200, 1)]
    check_group(group)


# --- History -----------------------------------------------------------------------------------------


def test_history_counts_as_a_delivery_and_shows_deleted_entries_as_none() -> None:
    stream, group, a, b = crew("1-0", "2-0", "3-0", "4-0")
    group.deliver(stream, a, 3, 100, True)
    group.deliver(stream, b, 1, 100, True)
    stream.delete(sid("2-0"))
    assert group.redeliver(stream, a, SMALLEST, 0, 500) == [
        (b"1-0", [b"k", b"v"]),
        (b"2-0", None),
        (b"3-0", [b"k", b"v"]),
    ]
    assert pending_of(group) == [
        ("1-0", b"a", 500, 2),
        ("2-0", b"a", 100, 1),
        ("3-0", b"a", 500, 2),
        ("4-0", b"b", 100, 1),
    ]


def test_history_begins_behind_an_id_and_stops_at_the_limit() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0")
    group.deliver(stream, a, 0, 100, True)
    found = group.redeliver(stream, a, sid("1-0"), 1, 500)
    assert [entry_id for entry_id, _ in found] == [b"2-0"]
    assert group.redeliver(stream, a, sid("3-0"), 0, 500) == []
    assert group.redeliver(stream, a, LARGEST, 0, 500) == []


# --- Acknowledging -----------------------------------------------------------------------------------


def test_an_acknowledged_entry_is_forgotten_on_both_sides() -> None:
    stream, group, a, b = crew("1-0", "2-0")
    group.deliver(stream, a, 1, 100, True)
    group.deliver(stream, b, 1, 100, True)
    assert group.acknowledge(sid("1-0"))
    assert not group.acknowledge(sid("1-0"))
    assert not group.acknowledge(sid("9-0"))
    assert (a.pending.count, b.pending.count, group.pending.count) == (0, 1, 1)
    check_group(group)


def test_a_deleted_entry_can_be_acknowledged() -> None:
    stream, group, a, _ = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    stream.trim_length(0)
    assert pending_of(group) == [("1-0", b"a", 100, 1)]
    assert group.acknowledge(sid("1-0"))
