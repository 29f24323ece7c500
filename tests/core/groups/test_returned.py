"""Groups: entries that were returned and have no owner."""

from __future__ import annotations

import pytest

from penstock.core.check import check_group
from penstock.core.stream_id import LARGEST, SMALLEST
from tests.support.engine.groups import ids, options, returned_ids, told, worked
from tests.support.engine.streams import pending_of, sid


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
    with pytest.raises(ValueError, match="9-0 is not pending"):
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
