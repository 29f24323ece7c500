"""Groups: delivering, acknowledging, claiming, and removing consumers."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from penstock.build import KIND
from penstock.core import stream_id
from penstock.core.check import check_group, check_stream
from penstock.core.groups.group import (
    ENTRIES_READ_UNKNOWN,
    NEVER_MS,
    AutoClaim,
    ClaimedEntry,
    ClaimOptions,
    Consumer,
    Group,
    Pending,
)
from penstock.core.stream import EntryRange, Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from tests.support.engine.streams import add, keys_of, pending_of, sid, stream_of

Crew = tuple[Stream, Group, Consumer, Consumer]


def crew(*entry_ids: str, entries_read: int = 0) -> Crew:
    """A stream, a group at its start, and the consumers a and b."""
    stream = stream_of(*entry_ids)
    group = Group(SMALLEST, entries_read)
    return stream, group, group.create_consumer(b"a", 0), group.create_consumer(b"b", 0)


def ids(delivered: EntryRange | None) -> list[str] | None:
    if delivered is None:
        return None
    return [entry_id.decode() for entry_id, _ in delivered.entries()]


def options(
    idle_ms_min: int = 0, delivery_ms: int = 1000, delivery_count: int = -1
) -> ClaimOptions:
    return ClaimOptions(idle_ms_min, delivery_ms, delivery_count)


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


def told(found: AutoClaim) -> tuple[str, list[str], list[str]]:
    return str(found.cursor), [*map(str, found.claimed)], [*map(str, found.deleted)]


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


# --- Returned entries ----------------------------------------------------------------------------------


def returned_ids(group: Group) -> list[str]:
    return [str(stream_id.from_key(key)) for key in group.returned]


def worked() -> Crew:
    """Entries 1-0 to 4-0, delivered to a at 100, 200, 300 and 400 ms."""
    stream, group, a, b = crew("1-0", "2-0", "3-0", "4-0")
    for n in range(4):
        group.deliver(stream, a, 1, 100 * (n + 1), True)
    return stream, group, a, b


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("delivery_count", [0, 1, 2**31, 2**63 - 1])
def test_a_returned_entry_stays_pending_and_has_no_owner(
    ordered: bool, delivery_count: int
) -> None:
    stream, group, a, _ = worked()
    if ordered:
        group.next_claim_ms_or_none(stream, 0)
    group.give_back(sid("2-0"), delivery_count)
    check_group(group)
    assert pending_of(group)[1] == ("2-0", b"", 0, delivery_count)
    assert [row.owned for row in group.pending_rows(SMALLEST, LARGEST, 9)] == [
        *(True, False, True, True),
    ]
    assert (a.pending.count, group.pending.count, returned_ids(group)) == (3, 4, ["2-0"])
    assert group.consumer_counts() == [(b"a", 3)]
    assert group.redeliver(stream, a, sid("1-0"), 1, 500)[0][0] == b"3-0"
    check_group(group)


def test_an_entry_that_is_returned_twice_keeps_its_turn() -> None:
    _, group, _, _ = worked()
    for entry_id in ("3-0", "1-0", "3-0"):
        group.give_back(sid(entry_id), 9)
    assert returned_ids(group) == ["3-0", "1-0"]
    group.give_back(sid("3-0"), 2)
    assert pending_of(group)[2] == ("3-0", b"", 0, 2)
    check_group(group)


def test_an_entry_that_is_not_pending_cannot_be_returned() -> None:
    _, group, _, _ = worked()
    with pytest.raises(AttributeError):
        group.give_back(sid("9-0"), 1)
    assert len(pending_of(group)) == 4
    check_group(group)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_record_without_an_owner_can_be_added(ordered: bool) -> None:
    stream, group, a, _ = worked()
    if ordered:
        group.next_claim_ms_or_none(stream, 0)
    group.add_returned(LARGEST, 2**63 - 1)
    assert pending_of(group)[4] == (str(LARGEST), b"", 0, 2**63 - 1)
    assert returned_ids(group) == [str(LARGEST)]
    check_group(group)
    assert group.delete_consumer(a) == 4
    assert returned_ids(group) == [str(LARGEST)]
    check_group(group)


def test_a_record_cannot_be_added_twice() -> None:
    _, group, _, _ = worked()
    group.add_returned(sid("5-0"), 1)
    before = pending_of(group)
    for entry_id in ("5-0", "1-0"):
        with pytest.raises(ValueError, match=f"^{entry_id} is pending already$"):
            group.add_returned(sid(entry_id), 7)
    assert pending_of(group) == before
    check_group(group)


def test_a_returned_entry_can_be_acknowledged() -> None:
    _, group, _, _ = worked()
    group.give_back(sid("2-0"), 1)
    assert group.acknowledge(sid("2-0"))
    assert not group.acknowledge(sid("2-0"))
    assert (group.returned, group.pending.count) == ({}, 3)
    check_group(group)


@pytest.mark.parametrize("ordered", [False, True])
def test_every_way_to_take_a_returned_entry(ordered: bool) -> None:
    stream, group, a, b = worked()
    if ordered:
        group.next_claim_ms_or_none(stream, 0)
    for n in range(1, 5):
        group.give_back(sid(f"{n}-0"), 7)
    assert group.claim(stream, sid("1-0"), b, options(1000, 1000), 1000)  # idle since 1970
    check_group(group)
    found = group.autoclaim(stream, sid("2-0"), 1, b, options(1000, 1000))
    assert told(found) == ("3-0", ["2-0"], [])
    check_group(group)
    group.set_position(sid("2-0"), 0)
    assert ids(group.deliver(stream, a, 1, 1000, True)) == ["3-0"]
    check_group(group)
    assert returned_ids(group) == ["4-0"]
    stream.delete(sid("4-0"))
    assert told(group.autoclaim(stream, sid("4-0"), 1, b, options())) == ("0-0", [], ["4-0"])
    assert pending_of(group) == [
        ("1-0", b"b", 1000, 8),
        ("2-0", b"b", 1000, 8),
        ("3-0", b"a", 1000, 1),
    ]
    check_group(group)


def test_a_claim_of_a_returned_entry_that_is_gone_forgets_it() -> None:
    stream, group, _, b = worked()
    group.give_back(sid("2-0"), 7)
    stream.delete(sid("2-0"))
    assert not group.claim(stream, sid("2-0"), b, options(), 1000)
    assert (returned_ids(group), group.pending.count) == ([], 3)
    check_group(group)


def test_returned_entries_survive_their_consumer() -> None:
    stream, group, a, _ = worked()
    group.give_back(sid("2-0"), 7)
    group.delete_consumer(a)
    again = group.create_consumer(b"c", 0)
    assert again.number == 0
    assert pending_of(group) == [("2-0", b"", 0, 7)]
    group.claim_idle(stream, again, 0, 0, 500)
    assert pending_of(group) == [("2-0", b"c", 500, 8)]
    check_group(group)


# --- Reads that claim ----------------------------------------------------------------------------------


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
    order = group.idle_order_or_none()
    assert order is not None
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
    assert (order.count, group.pending.count) == (0, 0)


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


@pytest.mark.parametrize("limit", [2**31, 2**32, (2**63 - 1) // 10 + 1, 2**63 - 1])
def test_a_large_limit_of_an_autoclaim_does_not_overflow(limit: int) -> None:
    stream, group, _, b = worked()
    found = group.autoclaim(stream, SMALLEST, limit, b, options())
    assert len(found.claimed) == 4


# --- Inspection --------------------------------------------------------------------------------------


def test_the_summary_counts_by_consumer_and_knows_the_edges() -> None:
    stream, group, a, b = crew("1-0", "2-0", "3-0")
    assert (group.consumer_counts(), group.pending_edge_or_none(False)) == ([], None)
    assert group.pending_edge_or_none(True) is None
    group.deliver(stream, b, 2, 100, True)
    assert group.consumer_counts() == [(b"b", 2)]
    group.deliver(stream, a, 1, 100, True)
    assert group.consumer_counts() == [(b"a", 1), (b"b", 2)]
    assert str(group.pending_edge_or_none(False)) == "1-0"
    assert str(group.pending_edge_or_none(True)) == "3-0"


def rows(
    group: Group,
    start: StreamID = SMALLEST,
    end: StreamID = LARGEST,
    limit: int = 99,
    consumer: Consumer | None = None,
    idle_since_ms: int | None = None,
) -> list[str]:
    return [str(row.id) for row in group.pending_rows(start, end, limit, consumer, idle_since_ms)]


def test_pending_rows_are_chosen_by_range_limit_consumer_and_idle_time() -> None:
    stream, group, a, b = crew("1-0", "2-0", "3-0", "4-0")
    for n, consumer in enumerate((a, b, a, b)):
        group.deliver(stream, consumer, 1, 100 * n, True)
    assert rows(group) == ["1-0", "2-0", "3-0", "4-0"]
    assert rows(group, sid("2-0"), sid("3-0")) == ["2-0", "3-0"]
    assert rows(group, sid("2-1"), sid("2-9")) == []
    assert rows(group, limit=2) == ["1-0", "2-0"]
    assert rows(group, limit=0) == []
    assert rows(group, consumer=b) == ["2-0", "4-0"]
    assert rows(group, idle_since_ms=100) == ["1-0", "2-0"]
    assert rows(group, idle_since_ms=250, limit=1, consumer=b) == ["2-0"]


# --- Entries read and lag ------------------------------------------------------------------------------


def test_lag_is_zero_when_nothing_was_ever_added() -> None:
    stream, group, _, _ = crew(entries_read=ENTRIES_READ_UNKNOWN)
    assert group.lag_or_none(stream) == 0


def test_lag_follows_the_count_of_entries_read() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0")
    lags = [group.lag_or_none(stream)]
    while group.deliver(stream, a, 1, 100, True) is not None:
        lags.append(group.lag_or_none(stream))
    assert lags == [3, 2, 1, 0]


def test_a_group_created_in_the_middle_knows_its_lag_after_reaching_the_end() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0")
    group.set_position(sid("2-0"), ENTRIES_READ_UNKNOWN)
    assert group.lag_or_none(stream) is None
    group.deliver(stream, a, 0, 100, True)
    assert (group.entries_read, group.lag_or_none(stream)) == (3, 0)


@pytest.mark.parametrize(("last", "lag"), [("0-0", 3), ("0-5", 3), ("1-0", 2), ("3-0", 0)])
def test_lag_is_estimated_at_the_ends_of_the_stream(last: str, lag: int) -> None:
    stream, group, _, _ = crew("1-0", "2-0", "3-0")
    group.set_position(sid(last), ENTRIES_READ_UNKNOWN)
    assert group.lag_or_none(stream) == lag


def test_a_deletion_ahead_hides_the_lag_until_the_group_has_passed_it() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0", "4-0")
    group.deliver(stream, a, 1, 100, True)
    stream.delete(sid("3-0"))
    assert group.lag_or_none(stream) is None
    group.deliver(stream, a, 1, 100, True)
    assert (group.entries_read, group.lag_or_none(stream)) == (ENTRIES_READ_UNKNOWN, None)
    group.deliver(stream, a, 1, 100, True)
    assert (group.entries_read, group.lag_or_none(stream)) == (4, 0)


def test_a_deletion_behind_leaves_the_lag() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0", "4-0")
    group.deliver(stream, a, 2, 100, True)
    stream.delete(sid("1-0"))
    assert group.lag_or_none(stream) == 2


def test_a_trim_is_no_deletion_for_the_lag() -> None:
    stream, group, a, _ = crew("1-0", "2-0", "3-0", "4-0")
    group.deliver(stream, a, 3, 100, True)
    stream.trim_length(2)
    assert group.lag_or_none(stream) == 1


# --- Consumers ---------------------------------------------------------------------------------------


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
    assert keys_of(group.consumers) == keys_of(group.pending) == []
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
    assert gc.is_tracked(Pending(0, 0, 1)) == (KIND == "interpreted")


def test_groups_of_a_stream_are_checked_with_it() -> None:
    stream, group, a, _ = crew("1-0")
    group.deliver(stream, a, 0, 100, True)
    groups = type(stream.nodes)()
    groups.insert(b"g", group)
    stream.groups = groups
    check_stream(stream)
