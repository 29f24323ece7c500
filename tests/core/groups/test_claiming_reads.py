"""Groups: reads that first claim the entries that have been idle for longest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.core.check import check_group
from penstock.core.groups.records import NEVER_MS, ClaimOptions
from penstock.core.groups.results import ClaimedEntry
from penstock.core.stream import Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST
from tests.support.engine.groups import crew, options, returned_ids, worked
from tests.support.engine.streams import pending_of, sid


def taken(claimed: list[ClaimedEntry]) -> list[tuple[str, int, int]]:
    """Id, idle time and number of deliveries."""
    assert all(entry.fields == [b"k", b"v"] for entry in claimed)
    return [(str(entry.id), entry.idle_ms, entry.delivery_count) for entry in claimed]


def test_the_longest_idle_entry_is_claimed_first() -> None:
    stream, group, a, b = worked()
    group.claim(stream, sid("1-0"), a, options(delivery_ms=350, delivery_count=5), 350)
    assert taken(group.claim_idle(stream, b, 600, 0, 950)) == [
        ("2-0", 750, 1),
        ("3-0", 650, 1),
        ("1-0", 600, 5),
    ]
    assert pending_of(group) == [
        ("1-0", b"b", 950, 6),
        ("2-0", b"b", 950, 2),
        ("3-0", b"b", 950, 2),
        ("4-0", b"a", 400, 1),
    ]
    check_group(group)


def test_entries_that_are_idle_for_the_same_time_are_claimed_in_the_order_of_their_ids() -> None:
    stream, group, a, b = crew("1-0", f"1-{MAX64}", "2-0", f"{MAX64}-{MAX64}")
    group.deliver(stream, a, 0, 100, True)
    expected = [("1-0", 0, 1), (f"1-{MAX64}", 0, 1), ("2-0", 0, 1), (f"{LARGEST}", 0, 1)]
    assert taken(group.claim_idle(stream, b, 0, 0, 100)) == expected
    check_group(group)


def test_returned_entries_come_first_in_the_order_of_their_return() -> None:
    stream, group, _, b = worked()
    group.give_back(sid("4-0"), 3)
    group.give_back(sid("2-0"), 2**63 - 1)
    group.give_back(sid("3-0"), 0)
    assert taken(group.claim_idle(stream, b, 100, 3, 1000)) == [
        ("4-0", NEVER_MS, 3),
        ("2-0", NEVER_MS, 2**63 - 1),
        ("3-0", NEVER_MS, 0),
    ]
    assert group.returned == {}
    assert pending_of(group) == [
        ("1-0", b"a", 100, 1),
        ("2-0", b"b", 1000, 2**63 - 1),  # it stays at the limit
        ("3-0", b"b", 1000, 1),
        ("4-0", b"b", 1000, 4),
    ]
    check_group(group)


@pytest.mark.parametrize("limit", [0, 3, 4, 5, 2**31, 2**32, 2**63 - 1])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_returned_entry_is_claimed_once_even_without_a_least_idle_time(
    limit: int, ordered: bool
) -> None:
    """Once claimed it has been idle for 0 ms, which is enough here."""
    stream, group, _, b = worked()
    if ordered:
        group.next_claim_ms_or_none(stream, 0)
    group.give_back(sid("4-0"), 1)
    group.give_back(sid("3-0"), 1)
    expected = ["4-0", "3-0", "1-0", "2-0"][: limit or None]
    assert [row[0] for row in taken(group.claim_idle(stream, b, 0, limit, 1000))] == expected
    assert [row[3] for row in pending_of(group) if row[1] == b"b"] == [2] * len(expected)
    check_group(group)


def test_entries_that_are_gone_are_skipped_and_stay_pending() -> None:
    stream, group, _, b = worked()
    group.give_back(sid("3-0"), 1)
    group.give_back(sid("4-0"), 1)
    stream.delete(sid("3-0"))
    stream.trim_min_id(sid("2-0"))
    assert taken(group.claim_idle(stream, b, 0, 2, 1000)) == [("4-0", NEVER_MS, 1), ("2-0", 800, 1)]
    assert pending_of(group) == [
        ("1-0", b"a", 100, 1),
        ("2-0", b"b", 1000, 2),
        ("3-0", b"", 0, 1),
        ("4-0", b"b", 1000, 2),
    ]
    assert returned_ids(group) == ["3-0"]
    check_group(group)
    stream.trim_length(0)
    assert group.claim_idle(stream, b, 0, 0, 1000) == []
    assert group.pending.count == 4
    check_group(group)


@pytest.mark.parametrize(("idle_ms_min", "count"), [(899, 2), (900, 1), (901, 0), (2**63 - 1, 0)])
def test_only_entries_that_are_idle_for_long_enough_are_claimed(
    idle_ms_min: int, count: int
) -> None:
    stream, group, a, b = crew("1-0", "2-0")
    group.deliver(stream, a, 1, 100, True)
    group.deliver(stream, a, 1, 101, True)
    assert len(group.claim_idle(stream, b, idle_ms_min, 0, 1000)) == count
    check_group(group)


def test_times_at_the_limit_do_not_overflow() -> None:
    stream, group, a, b = crew("1-0", "2-0")
    group.deliver(stream, a, 1, 0, True)
    group.deliver(stream, a, 1, 2**63 - 1, True)
    assert group.next_claim_ms_or_none(stream, 2**63 - 1) == 2**63 - 1
    assert taken(group.claim_idle(stream, b, 2**63 - 1, 0, 2**63 - 1)) == [("1-0", 2**63 - 1, 1)]
    assert group.next_claim_ms_or_none(stream, 2**63 - 1) == 2**63 - 1
    assert group.next_claim_ms_or_none(stream, 1) == 2**63 - 1
    assert group.claim_idle(stream, b, 1, 0, 0) == []  # the clock went back
    check_group(group)


def test_a_claim_by_the_owner_counts_too() -> None:
    stream, group, a, _ = worked()
    assert len(group.claim_idle(stream, a, 0, 0, 1000)) == 4
    assert [row[1:] for row in pending_of(group)] == [(b"a", 1000, 2)] * 4
    check_group(group)


def test_nothing_is_claimed_in_an_empty_group() -> None:
    stream, group, a, _ = crew("1-0")
    assert group.claim_idle(stream, a, 0, 0, 1000) == []
    assert group.next_claim_ms_or_none(stream, 0) is None
    assert group.claim_idle(Stream(), a, 0, 0, 1000) == []


def test_the_order_follows_every_change() -> None:
    stream, group, a, b = crew(*(f"{n}-0" for n in range(1, 8)))
    assert group.idle_order_or_none() is None
    group.deliver(stream, a, 3, 100, True)
    check_group(group)
    assert group.idle_order_or_none() is None  # nobody has claimed by idle time
    assert len(group.claim_idle(stream, b, 50, 1, 150)) == 1
    assert group.idle_order_or_none() is not None
    steps: list[Callable[[], object]] = [
        lambda: group.deliver(stream, a, 2, 200, True),
        lambda: group.redeliver(stream, a, SMALLEST, 0, 250),
        lambda: group.claim(stream, sid("6-0"), b, ClaimOptions(0, 300, force=True), 300),
        lambda: group.autoclaim(stream, sid("2-0"), 2, b, options(0, 350)),
        lambda: group.acknowledge(sid("3-0")),
        lambda: group.give_back(sid("2-0"), 1),
        lambda: group.claim_idle(stream, a, 0, 2, 400),
        lambda: group.set_position(SMALLEST, 0),
        lambda: group.deliver(stream, b, 0, 450, True),
        lambda: group.delete_consumer(b),
        lambda: group.delete_consumer(a),
    ]
    for step in steps:
        step()
        check_group(group)
    order = group.idle_order_or_none()
    assert order is None or order.count == 0
    assert group.pending.count == 0


def test_the_time_of_the_next_claim() -> None:
    stream, group, _, _ = worked()
    assert group.next_claim_ms_or_none(stream, 50) == 150
    stream.delete(sid("1-0"))
    assert group.next_claim_ms_or_none(stream, 50) == 250
    assert group.next_claim_ms_or_none(stream, 0) == 200
    group.give_back(sid("4-0"), 1)
    assert group.next_claim_ms_or_none(stream, 50) == 0
    stream.delete(sid("4-0"))
    assert group.next_claim_ms_or_none(stream, 50) == 250
    group.acknowledge(sid("2-0"))
    group.acknowledge(sid("3-0"))
    assert group.next_claim_ms_or_none(stream, 50) is None
    assert group.pending.count == 2
