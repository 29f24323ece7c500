"""The list of pending records: random work beside a dictionary, blocks, walks that see changes."""

from __future__ import annotations

import random

import pytest

from penstock.core.check import check_pending
from penstock.core.groups.pending_list import BLOCK_MAX, PendingList
from penstock.core.groups.records import Pending
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from tests.support.campaign import cases
from tests.support.engine.streams import sid


def record(entry_id: StreamID | str) -> Pending:
    return Pending(sid(entry_id) if isinstance(entry_id, str) else entry_id, 0, 1, 1)


def filled(count: int) -> PendingList:
    """Records of 1-0 to count-0."""
    records = PendingList()
    for number in range(1, count + 1):
        assert records.add(record(f"{number}-0"))
    return records


def texts(records: PendingList) -> list[str]:
    return [str(one.entry_id()) for one in records]


@pytest.mark.parametrize("number", range(cases(60)))
def test_random_work_agrees_with_a_dictionary(number: int) -> None:
    dice = random.Random(number)
    records = PendingList()
    model: dict[StreamID, Pending] = {}
    top = dice.choice([3, 40, 400, 4000])

    def any_id() -> StreamID:
        if dice.random() < 0.02:
            return dice.choice([SMALLEST, LARGEST, StreamID(0, 2**64 - 1), StreamID(2**64 - 1, 0)])
        return StreamID(dice.randrange(top), dice.randrange(2))

    adding = 0.5
    for step in range(2000):
        if step % 500 == 0:
            adding = dice.choice([0.2, 0.5, 0.9])
        entry_id = any_id()
        if dice.random() < adding:
            made = record(entry_id)
            assert records.add(made) == (entry_id not in model)
            model.setdefault(entry_id, made)
        else:
            assert records.pop(entry_id.key) is model.pop(entry_id, None)
        looked_at = any_id()
        assert records.find(looked_at.key) is model.get(looked_at)
        assert records.count == len(records) == len(model)
        if step % 100 == 0:
            check_pending(records, "here")
            expected = [model[one] for one in sorted(model)]
            assert list(records) == expected
            assert records.edge_or_none(False) is (expected[0] if expected else None)
            assert records.edge_or_none(True) is (expected[-1] if expected else None)
            start = any_id()
            walk = records.walk(start.ms, start.seq)
            found = []
            while walk.next():
                found.append(walk.record)
            assert found == [one for one in expected if one.entry_id() >= start]


def test_deliveries_leave_full_blocks_behind() -> None:
    records = filled(3 * BLOCK_MAX + 1)
    assert [len(block) for block in records.blocks()] == [BLOCK_MAX, BLOCK_MAX, BLOCK_MAX, 1]


def test_a_full_block_in_the_middle_is_split() -> None:
    records = filled(2 * BLOCK_MAX)
    assert records.add(record("5-5"))
    assert records.add(record(f"{BLOCK_MAX}-5"))
    half = BLOCK_MAX // 2
    assert [len(block) for block in records.blocks()] == [half + 1, half + 1, BLOCK_MAX]
    check_pending(records, "here")


def test_records_that_arrive_backwards_fill_their_blocks() -> None:
    records = PendingList()
    for number in range(20 * BLOCK_MAX, 0, -1):
        assert records.add(record(f"{number}-0"))
    check_pending(records, "here")
    assert len(records.blocks()) <= 40


def test_small_blocks_are_joined() -> None:
    """Otherwise 1 of 128 that is never acknowledged would keep all blocks."""
    count = 100 * BLOCK_MAX
    records = filled(count)
    for number in range(1, count + 1):
        if number % BLOCK_MAX:
            assert records.pop(sid(f"{number}-0").key) is not None
    check_pending(records, "here")
    assert records.count == 100
    assert len(records.blocks()) <= 4


def test_an_emptied_list_has_one_block_and_is_used_again() -> None:
    records = filled(3 * BLOCK_MAX)
    for number in range(1, 3 * BLOCK_MAX + 1):
        assert records.pop(sid(f"{number}-0").key) is not None
    assert (records.blocks(), records.count, records.edge_or_none(True)) == ([[]], 0, None)
    assert records.pop(sid("1-0").key) is None
    assert records.add(record("7-0"))
    assert texts(records) == ["7-0"]


def test_a_walk_goes_on_behind_a_record_that_was_removed() -> None:
    records = filled(2 * BLOCK_MAX)
    walk = records.walk(5, 0)
    seen = []
    while walk.next():
        seen.append(walk.record.ms)
        records.discard(walk.record)
    assert seen == list(range(5, 2 * BLOCK_MAX + 1))
    assert texts(records) == ["1-0", "2-0", "3-0", "4-0"]


def test_a_walk_meets_records_that_are_added_before_it_and_not_those_behind_it() -> None:
    records = filled(3)
    walk = records.walk()
    assert walk.next()
    assert walk.next()
    for one in ("1-5", "2-0", "2-5", "9-0"):
        records.add(record(one))
    found = []
    while walk.next():
        found.append(str(walk.record.entry_id()))
    assert found == ["2-5", "3-0", "9-0"]
    records.add(record("9-1"))
    assert walk.next()
    assert str(walk.record.entry_id()) == "9-1"


@pytest.mark.parametrize("number", range(cases(40)))
def test_a_walk_through_a_list_that_changes_gives_each_record_that_stays(number: int) -> None:
    dice = random.Random(number)
    records = PendingList()
    for one in dice.sample(range(1, 4000), 700):
        records.add(record(f"{one}-0"))
    present = {one.ms for one in records}
    stays = set(present)
    walk = records.walk()
    seen: list[int] = []
    while walk.next():
        seen.append(walk.record.ms)
        for _ in range(dice.choice([0, 0, 1, 5])):
            entry = sid(f"{dice.randrange(1, 4000)}-0")
            if dice.random() < 0.6:
                records.pop(entry.key)
                stays.discard(entry.ms)
            else:
                records.add(record(entry))
    assert seen == sorted(set(seen))
    assert stays <= set(seen)
    check_pending(records, "here")


def test_a_walk_over_nothing_ends() -> None:
    records = PendingList()
    walk = records.walk()
    assert not walk.next()
    records.add(record("1-0"))
    assert walk.next()
    assert not walk.next()


def test_a_walk_from_above_the_last_record_ends() -> None:
    walk = filled(3).walk(LARGEST.ms, LARGEST.seq)
    assert not walk.next()


def test_all_records_are_taken_at_once() -> None:
    records = filled(2 * BLOCK_MAX + 1)
    blocks = records.take_blocks()
    assert [len(block) for block in blocks] == [BLOCK_MAX, BLOCK_MAX, 1]
    assert (records.count, list(records)) == (0, [])
    check_pending(records, "here")
