"""Planning: ranges without gaps, limits, detection of losses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.stream_id import MAX64, SMALLEST, StreamID
from penstock.spark.source.offsets import Position
from penstock.spark.source.planning import (
    IdRange,
    StreamState,
    cut_at,
    cut_by_time,
    lost_or_none,
    plan_parts,
    range_between,
    share_limit,
)


def an_id(ms: int, seq: int = 0) -> StreamID:
    return StreamID(ms, seq)


def test_a_range_excludes_its_start_and_includes_its_end() -> None:
    assert IdRange(an_id(1), an_id(5)).words == ("(1-0", "5-0")
    assert IdRange(SMALLEST, an_id(5)).words == ("-", "5-0")
    assert range_between(Position(an_id(1), 3), Position(an_id(5), 9)).count == 6
    assert range_between(Position(an_id(1)), Position(an_id(5), 9)).count is None
    assert IdRange(an_id(5), an_id(5)).is_empty


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 10**6)), st.integers(1, 10**6))
def test_a_limit_is_shared_and_never_exceeded(waiting: dict[int, int], limit: int) -> None:
    shares = share_limit(waiting, limit)
    assert sum(shares.values()) == min(sum(waiting.values()), limit)
    assert all(0 <= shares[key] <= waiting[key] for key in waiting)


def test_a_small_stream_does_not_starve_beside_a_large_one() -> None:
    assert share_limit({"small": 1, "large": 10**6}, 10)["small"] == 1


def test_there_are_at_least_the_wanted_number_of_parts() -> None:
    assert sum(plan_parts({"a": 10, "b": 1000}, 8).values()) >= 8
    assert plan_parts({"a": 10}, None) == {"a": 1}
    assert plan_parts({"a": 700_000}, None) == {"a": 3}
    assert plan_parts({"a": None}, 4) == {"a": 4}
    assert plan_parts({"a": 0}, 4) == {"a": 1}


IDS = st.builds(StreamID, st.integers(0, 1000) | st.just(MAX64), st.integers(0, 3) | st.just(MAX64))


@given(IDS, IDS, IDS, st.integers(1, 20))
def test_parts_by_time_leave_no_gap(
    after: StreamID, end: StreamID, first: StreamID, parts: int
) -> None:
    whole = IdRange(after, end)
    if whole.is_empty:
        return
    made = cut_by_time(whole, first, parts)
    assert 1 <= len(made) <= parts
    assert [part.after for part in made] == [after, *(part.end for part in made[:-1])]
    assert made[-1].end == end
    assert not any(part.is_empty for part in made)


def test_parts_know_the_number_of_entries_before_them() -> None:
    whole = IdRange(an_id(1), an_id(9), 10, 8)
    made = cut_at(whole, [(an_id(4), 3), (an_id(7), 3)])
    assert [(part.n, part.count) for part in made] == [(10, 3), (13, 3), (16, 2)]


def state(first: int | None, last: int, length: int, added: int) -> StreamState:
    return StreamState(length, None if first is None else an_id(first), an_id(last), added)


@pytest.mark.parametrize(
    ("found", "lost"),
    [
        (state(1, 9, 9, 9), False),
        (state(4, 9, 6, 9), False),  # trimmed up to the last entry read, which is still there
        (state(5, 9, 5, 9), False),  # that entry is gone too
        (state(7, 9, 3, 9), True),
        (state(None, 9, 0, 9), True),  # all gone
        (state(None, 4, 0, 4), False),  # all gone after all were read
        (state(1, 9, 5, 9), False),  # XDEL only, the head is complete
        (StreamState(3, StreamID(4, 1), an_id(9), 9), False),  # the next entry is there
    ],
)
def test_a_trim_of_unread_entries_is_detected(found: StreamState, lost: bool) -> None:
    assert (lost_or_none("s", Position(an_id(4), 4), found) is not None) == lost


def test_a_loss_names_the_missing_range() -> None:
    text = lost_or_none("s", Position(an_id(4), 4), state(7, 9, 3, 9))
    assert text == (
        "stream s: up to 2 entries after 4-0 and before 7-0 were removed before they were read"
    )


def test_a_stream_that_was_replaced_is_a_loss() -> None:
    assert "deleted or replaced" in str(lost_or_none("s", Position(an_id(4), 4), StreamState()))
    refilled = StreamState(3, an_id(5), an_id(7), 3)
    lost = lost_or_none("s", Position(an_id(4), 4), refilled)
    assert "has had 3 entries, but 4 were read" in str(lost)
    assert lost_or_none("s", Position(an_id(4), 3), refilled) is None
