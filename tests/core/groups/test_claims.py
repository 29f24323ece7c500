"""Groups: claiming pending entries, by id and in bulk."""

from __future__ import annotations

import pytest

from penstock.core.check import check_group
from penstock.core.groups.records import ClaimOptions
from penstock.core.stream_id import SMALLEST
from tests.support.engine.groups import crew, options, told, worked
from tests.support.engine.streams import pending_of, sid

# --- Claims ------------------------------------------------------------------------------------------


def test_a_claim_moves_the_record_and_counts_a_delivery() -> None:
    stream, group, a, b = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    assert group.claim(stream, sid("1-0"), b, options(delivery_ms=250), 300)
    assert pending_of(group) == [("1-0", b"b", 250, 2)]
    assert (a.pending.count, b.pending.count) == (0, 1)
    check_group(group)


@pytest.mark.parametrize(
    ("idle_ms_min", "taken"), [(0, True), (199, True), (200, True), (201, False)]
)
def test_a_claim_takes_only_entries_that_are_idle_for_long_enough(
    idle_ms_min: int, taken: bool
) -> None:
    stream, group, a, b = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    assert group.claim(stream, sid("1-0"), b, options(idle_ms_min, 300), 300) == taken
    assert pending_of(group) == [("1-0", b"b", 300, 2) if taken else ("1-0", b"a", 100, 1)]
    check_group(group)


def test_a_claim_of_ids_only_leaves_the_count() -> None:
    stream, group, a, b = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    assert group.claim(stream, sid("1-0"), b, ClaimOptions(0, 300, just_id=True), 300)
    assert pending_of(group) == [("1-0", b"b", 300, 1)]


@pytest.mark.parametrize("just_id", [False, True])
@pytest.mark.parametrize("delivery_count", [0, 9, 2**63 - 1])
def test_a_claim_with_a_count_sets_it(delivery_count: int, just_id: bool) -> None:
    stream, group, a, b = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    given = ClaimOptions(0, 300, delivery_count, just_id=just_id)
    assert group.claim(stream, sid("1-0"), b, given, 300)
    assert pending_of(group) == [("1-0", b"b", 300, delivery_count)]


def test_a_claim_by_the_owner_renews_the_record() -> None:
    stream, group, a, _ = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    assert group.claim(stream, sid("1-0"), a, options(), 1000)
    assert pending_of(group) == [("1-0", b"a", 1000, 2)]
    check_group(group)


def test_a_claim_of_an_entry_that_is_not_pending_is_refused_unless_forced() -> None:
    stream, group, a, _ = crew("1-0")
    assert not group.claim(stream, sid("1-0"), a, options(), 1000)
    assert pending_of(group) == []


@pytest.mark.parametrize(("just_id", "count"), [(False, 2), (True, 1)])
def test_a_forced_claim_makes_a_record_that_counts_as_redis_does(just_id: bool, count: int) -> None:
    """Redis creates the record with one delivery and then counts the claim too."""
    stream, group, a, _ = crew("1-0")
    given = ClaimOptions(999_999, 300, force=True, just_id=just_id)  # the idle time does not matter
    assert group.claim(stream, sid("1-0"), a, given, 400)
    assert pending_of(group) == [("1-0", b"a", 300, count)]
    check_group(group)


def test_a_forced_claim_makes_no_record_for_an_entry_that_is_not_there() -> None:
    stream, group, a, _ = crew("1-0")
    assert not group.claim(stream, sid("2-0"), a, ClaimOptions(0, 300, force=True), 300)
    assert pending_of(group) == []


def test_a_claim_of_a_deleted_entry_forgets_it() -> None:
    stream, group, a, b = crew("1-0", "2-0")
    group.deliver(stream, a, 0, 100, True)
    stream.delete(sid("1-0"))
    given = ClaimOptions(999_999, 300)  # however short the idle time
    assert not group.claim(stream, sid("1-0"), b, given, 300)
    assert pending_of(group) == [("2-0", b"a", 100, 1)]
    check_group(group)


# --- Claiming in bulk --------------------------------------------------------------------------------


def test_autoclaim_takes_idle_entries_and_returns_the_next_start() -> None:
    stream, group, a, b = crew(*(f"{n}-0" for n in range(1, 6)))
    group.deliver(stream, a, 0, 100, True)
    given = options(50, 200)
    assert told(group.autoclaim(stream, SMALLEST, 2, b, given)) == ("3-0", ["1-0", "2-0"], [])
    assert told(group.autoclaim(stream, sid("3-0"), 3, b, given)) == (
        "0-0",
        ["3-0", "4-0", "5-0"],
        [],
    )
    assert [row[1:] for row in pending_of(group)] == [(b"b", 200, 2)] * 5
    check_group(group)


def test_autoclaim_of_ids_only_leaves_the_count() -> None:
    stream, group, a, b = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    group.autoclaim(stream, SMALLEST, 9, b, ClaimOptions(0, 200, just_id=True))
    assert pending_of(group) == [("1-0", b"b", 200, 1)]


def test_autoclaim_skips_entries_that_are_not_idle_enough() -> None:
    stream, group, a, b = crew("1-0", "2-0", "3-0")
    group.deliver(stream, a, 1, 100, True)
    group.deliver(stream, a, 1, 190, True)
    group.deliver(stream, a, 1, 100, True)
    assert told(group.autoclaim(stream, SMALLEST, 9, b, options(50, 200))) == (
        "0-0",
        ["1-0", "3-0"],
        [],
    )


@pytest.mark.parametrize(("idle_ms_min", "taken"), [(99, True), (100, True), (101, False)])
def test_autoclaim_takes_entries_that_are_just_idle_enough(idle_ms_min: int, taken: bool) -> None:
    stream, group, a, b = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    found = group.autoclaim(stream, SMALLEST, 9, b, options(idle_ms_min, 200))
    assert bool(found.claimed) == taken


def test_autoclaim_reports_deleted_entries_forgets_them_and_counts_them() -> None:
    stream, group, a, b = crew(*(f"{n}-0" for n in range(1, 6)))
    group.deliver(stream, a, 0, 100, True)
    stream.delete(sid("1-0"))
    stream.delete(sid("3-0"))
    found = group.autoclaim(stream, SMALLEST, 3, b, options(0, 200))
    assert told(found) == ("4-0", ["2-0"], ["1-0", "3-0"])
    assert [row[:2] for row in pending_of(group)] == [("2-0", b"b"), ("4-0", b"a"), ("5-0", b"a")]
    check_group(group)


@pytest.mark.parametrize("limit", [1, 2])
def test_autoclaim_looks_at_ten_rows_for_each_it_may_take(limit: int) -> None:
    stream, group, a, b = crew(*(f"{n}-0" for n in range(1, 31)))
    group.deliver(stream, a, 0, 100, True)
    group.claim(stream, sid("30-0"), a, options(delivery_ms=1), 100)  # idle, but far away
    found = group.autoclaim(stream, SMALLEST, limit, b, options(50, 101))
    assert told(found) == (f"{10 * limit + 1}-0", [], [])


def test_autoclaim_with_nothing_pending_is_at_the_end() -> None:
    stream, group, a, _ = crew("1-0")
    assert told(group.autoclaim(stream, SMALLEST, 9, a, options())) == ("0-0", [], [])
    group.deliver(stream, a, 0, 100, True)
    assert told(group.autoclaim(stream, sid("5-0"), 9, a, options())) == ("0-0", [], [])


def test_autoclaim_of_everything_can_continue_from_its_own_cursor() -> None:
    stream, group, a, b = crew(*(f"{n}-0" for n in range(1, 8)))
    group.deliver(stream, a, 0, 100, True)
    cursor, claimed = SMALLEST, 0
    while True:
        found = group.autoclaim(stream, cursor, 2, b, options(50, 200))
        claimed += len(found.claimed)
        cursor = found.cursor
        if cursor == SMALLEST:
            break
    assert claimed == b.pending.count == 7


@pytest.mark.parametrize("limit", [2**31, 2**32, (2**63 - 1) // 10 + 1, 2**63 - 1])
def test_a_large_limit_of_an_autoclaim_does_not_overflow(limit: int) -> None:
    stream, group, _, b = worked()
    found = group.autoclaim(stream, SMALLEST, limit, b, options())
    assert len(found.claimed) == 4
