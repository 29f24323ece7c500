"""Positions in a stream, and restoring one."""

from __future__ import annotations

import pytest

from penstock.core import stream_id
from penstock.core.check import check_stream
from penstock.core.groups import positions
from penstock.core.groups.positions import RANK_UNKNOWN
from penstock.core.stream import (
    LAG_COUNTS_TRIMMED,
    LAG_RECOUNTS,
    LAG_SKIPS_TRIMMED,
    Stream,
)
from penstock.core.stream_id import MAX64, SMALLEST
from penstock.errors import IDNotAboveLast
from tests.support.engine.streams import (
    add,
    nodes_of,
    refused,
    sid,
    state_of,
    stream_of,
)

# --- Positions ---------------------------------------------------------------------------------------


def ranks(stream: Stream, *entry_ids: str) -> list[int]:
    return [positions.rank_or_unknown(stream, sid(entry_id)) for entry_id in entry_ids]


def test_nothing_was_added_so_every_rank_is_zero() -> None:
    assert ranks(Stream(), "0-0", "5-0", f"{MAX64}-{MAX64}") == [0, 0, 0]


def test_ranks_are_known_at_the_ends_of_a_stream_only() -> None:
    stream = stream_of("5-0", "6-0", "7-0")
    assert ranks(stream, "0-0", "4-9", "5-0", "7-0") == [0, 0, 1, 3]
    assert ranks(stream, "5-1", "6-0", "6-9", "7-1") == [RANK_UNKNOWN] * 4


def test_a_trim_keeps_the_ranks_of_the_remaining_entries() -> None:
    stream = stream_of("5-0", "6-0", "7-0", "8-0")
    stream.trim_length(2)
    assert ranks(stream, "0-0", "6-0", "7-0", "8-0") == [2, 2, 3, 4]


def test_in_an_emptied_stream_all_up_to_the_last_id_has_been_passed() -> None:
    stream = stream_of("5-0", "6-0")
    stream.trim_length(0)
    assert ranks(stream, "0-0", "5-0", "6-0") == [2, 2, 2]
    assert ranks(stream, "7-0") == [RANK_UNKNOWN]


def test_a_deletion_in_the_middle_hides_the_ranks_before_it() -> None:
    stream = stream_of("5-0", "6-0", "7-0", "8-0")
    stream.delete(sid("6-0"))
    assert ranks(stream, "0-0", "5-0", "6-0", "7-0") == [RANK_UNKNOWN] * 4
    assert ranks(stream, "8-0") == [4]


def test_a_deletion_before_the_first_entry_hides_no_rank() -> None:
    stream = stream_of("5-0", "6-0", "7-0")
    stream.delete(sid("5-0"))
    assert ranks(stream, "0-0", "5-0", "6-0", "7-0") == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("rule", "rank"),
    [(LAG_COUNTS_TRIMMED, 1), (LAG_SKIPS_TRIMMED, RANK_UNKNOWN), (LAG_RECOUNTS, RANK_UNKNOWN)],
)
def test_what_lies_before_a_deletion_before_the_first_entry_depends_on_the_rule(
    rule: int, rank: int
) -> None:
    stream = stream_of("5-0", "6-0", "7-0")
    stream.limits.lag_rule = rule
    stream.delete(sid("5-0"))
    assert ranks(stream, "4-0") == [rank]
    assert positions.has_tombstones_from(stream, 4, 0) == (rule != LAG_COUNTS_TRIMMED)


def test_tombstones_count_from_their_position() -> None:
    stream = stream_of("5-0", "6-0", "7-0")
    assert not positions.has_tombstones_from(stream, 0, 0)
    stream.delete(sid("6-0"))
    assert positions.has_tombstones_from(stream, 0, 0)
    assert positions.has_tombstones_from(stream, 6, 0)
    assert not positions.has_tombstones_from(stream, 6, 1)
    stream.trim_length(0)
    assert not positions.has_tombstones_from(stream, 0, 0)


@pytest.mark.parametrize("entries_max", [1, 2, 100])
def test_a_stream_starts_after_the_ids_below_its_first_entry(entries_max: int) -> None:
    stream = stream_of("5-0", "6-0", "7-0", "8-0", entries_max=entries_max)
    stream.trim_length(2)
    starts = [
        positions.starts_after(stream, sid(start)) for start in ("0-0", "6-9", "7-0", "7-1", "9-0")
    ]
    assert starts == [True, True, False, False, False]
    stream.trim_length(0)
    assert not positions.starts_after(stream, SMALLEST)


# --- Restoring ---------------------------------------------------------------------------------------


def test_a_stream_can_be_rebuilt_from_its_nodes_and_counters() -> None:
    stream = stream_of(*(f"{n}-{n % 3}" for n in range(1, 11)))
    stream.delete(sid("10-1"))
    stream.trim_length(5)
    twin = Stream(stream.limits)
    for key, node in nodes_of(stream):
        twin.load_node(sid(key), bytearray(node))
    twin.set_last_id(stream.last_id, stream.entries_added, stream.max_deleted_id)
    assert state_of(twin) == state_of(stream)
    check_stream(twin)
    for each in (stream, twin):
        add(each, "11-0")
        add(each, "12-0")
    assert state_of(twin) == state_of(stream)


def test_the_last_id_can_be_set_ahead() -> None:
    stream = stream_of("5-0")
    stream.set_last_id(sid("9-0"), 7, sid("8-0"))
    assert (str(stream.last_id), stream.entries_added, str(stream.max_deleted_id)) == (
        "9-0",
        7,
        "8-0",
    )
    assert refused(stream, lambda: add(stream, "9-0")) is IDNotAboveLast
    add(stream, "9-1")
    assert stream.entries_added == 8
    assert stream_id.compare(stream.last_ms, stream.last_seq, 9, 1) == 0
