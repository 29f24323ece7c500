"""Groups: what they tell about pending entries, entries read and lag."""

from __future__ import annotations

import pytest

from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import ENTRIES_READ_UNKNOWN, Group
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from tests.support.engine.groups import crew
from tests.support.engine.streams import sid

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
