"""Removing from a stream: deleting by id, trimming by length and by id."""

from __future__ import annotations

import pytest

from penstock.core import listpack
from penstock.core.check import check_stream
from penstock.core.stream_id import MAX64, StreamID
from tests.support.engine.streams import (
    add,
    ids_of,
    node_at,
    node_keys,
    nodes_of,
    sid,
    state_of,
    stream_of,
)

# --- Deleting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("doomed", ["1-0", "2-0", "3-0", "4-0", "5-0"])
def test_any_entry_can_be_deleted(doomed: str) -> None:
    every = ["1-0", "2-0", "3-0", "4-0", "5-0"]
    stream = stream_of(*every)
    assert stream.delete(sid(doomed))
    assert ids_of(stream) == [entry for entry in every if entry != doomed]
    assert stream.length == 4
    assert stream.entries_added == 5
    assert str(stream.max_deleted_id) == doomed
    assert not stream.contains(sid(doomed))
    assert not stream.delete(sid(doomed))
    check_stream(stream)


@pytest.mark.parametrize("absent", ["0-0", "1-1", "3-5", "9-0", f"{MAX64}-{MAX64}"])
def test_deleting_a_missing_entry_changes_nothing(absent: str) -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    before = state_of(stream)
    assert not stream.delete(sid(absent))
    assert state_of(stream) == before


def test_the_largest_deleted_id_does_not_fall() -> None:
    stream = stream_of("1-0", "2-0", "3-0")
    stream.delete(sid("3-0"))
    stream.delete(sid("1-0"))
    assert str(stream.max_deleted_id) == "3-0"


def test_deleting_the_only_entry_leaves_an_empty_stream_that_remembers() -> None:
    stream = stream_of("5-0")
    assert stream.delete(sid("5-0"))
    assert state_of(stream) == (0, "5-0", "5-0", "0-0", 1, [], 1)
    check_stream(stream)
    add(stream, "6-0")
    assert ids_of(stream) == ["6-0"]
    check_stream(stream)


def test_a_node_goes_with_its_last_live_entry() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 8)))
    for n in (4, 6, 5):
        stream.delete(sid(f"{n}-0"))
    assert node_keys(stream) == ["1-0", "7-0"]
    check_stream(stream)


def test_when_the_tail_goes_the_node_before_it_is_appended_to_again() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0", entries_max=3)
    stream.limits.entries_max = 5
    stream.delete(sid("4-0"))
    assert node_keys(stream) == ["1-0"]
    check_stream(stream)
    add(stream, "5-0")
    add(stream, "6-0")
    add(stream, "7-0")
    assert node_keys(stream) == ["1-0", "7-0"]
    sealed = node_at(stream, "1-0")
    assert len(sealed) == listpack.total_bytes(sealed)
    assert ids_of(stream) == ["1-0", "2-0", "3-0", "5-0", "6-0", "7-0"]
    check_stream(stream)


def test_when_the_tail_goes_a_full_node_before_it_is_not_appended_to() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0", entries_max=3)
    stream.delete(sid("4-0"))
    add(stream, "5-0")
    assert node_keys(stream) == ["1-0", "5-0"]
    check_stream(stream)


# --- Trimming ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length_max", range(12))
def test_an_exact_trim_leaves_as_many_as_it_says(length_max: int) -> None:
    every = [f"{n}-0" for n in range(1, 11)]
    stream = stream_of(*every)
    assert stream.trim_length(length_max) == max(0, 10 - length_max)
    assert ids_of(stream) == (every[-length_max:] if length_max else [])
    assert str(stream.max_deleted_id) == "0-0"
    assert stream.entries_added == 10
    check_stream(stream)


@pytest.mark.parametrize(
    ("length_max", "removed"), [(10, 0), (8, 0), (7, 3), (5, 3), (4, 6), (2, 6), (1, 9), (0, 10)]
)
def test_an_approximate_trim_drops_whole_nodes_only(length_max: int, removed: int) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 11)))
    nodes = nodes_of(stream)
    assert stream.trim_length(length_max, approximate=True) == removed
    assert nodes_of(stream) == nodes[-(-removed // 3) :]
    check_stream(stream)


@pytest.mark.parametrize(
    ("limit", "removed"), [(0, 9), (1, 0), (2, 0), (3, 3), (5, 3), (6, 6), (9, 9), (100, 9)]
)
def test_a_limit_caps_what_an_approximate_trim_removes(limit: int, removed: int) -> None:
    by_length = stream_of(*(f"{n}-0" for n in range(1, 11)))
    assert by_length.trim_length(1, approximate=True, limit=limit) == removed
    by_id = stream_of(*(f"{n}-0" for n in range(1, 11)))
    assert by_id.trim_min_id(sid("10-0"), approximate=True, limit=limit) == removed
    assert by_length.length == by_id.length == 10 - removed


def test_a_trim_counts_live_entries_only() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 8)))
    stream.delete(sid("2-0"))
    stream.delete(sid("3-0"))
    assert stream.trim_length(4, approximate=True) == 1
    assert ids_of(stream) == ["4-0", "5-0", "6-0", "7-0"]


def test_a_trim_skips_the_tombstones_of_the_node_it_cuts() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 6)), entries_max=5)
    stream.delete(sid("2-0"))
    assert stream.trim_length(2) == 2
    assert ids_of(stream) == ["4-0", "5-0"]
    check_stream(stream)


@pytest.mark.parametrize("min_ms", range(12))
def test_an_exact_trim_by_id_keeps_entries_not_below_it(min_ms: int) -> None:
    every = [f"{n}-0" for n in range(1, 11)]
    stream = stream_of(*every)
    assert stream.trim_min_id(StreamID(min_ms, 0)) == min(10, max(0, min_ms - 1))
    assert ids_of(stream) == [entry for entry in every if sid(entry).ms >= min_ms]
    assert str(stream.max_deleted_id) == "0-0"
    check_stream(stream)


@pytest.mark.parametrize(("min_id", "removed"), [("3-0", 0), ("3-1", 3), ("6-0", 3), ("99-0", 10)])
def test_an_approximate_trim_by_id_keeps_a_node_that_reaches_it(min_id: str, removed: int) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 11)))
    assert stream.trim_min_id(sid(min_id), approximate=True) == removed
    check_stream(stream)


def test_a_trim_by_id_never_leaves_a_node_without_live_entries() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    stream.delete(sid("3-0"))  # the node's last entry is a tombstone at or above the id below
    assert stream.trim_min_id(sid("3-0")) == 2
    assert node_keys(stream) == ["4-0"]
    check_stream(stream)


def test_a_trim_by_id_that_empties_the_only_node_leaves_no_tail() -> None:
    stream = stream_of("1-0", "2-0", "3-0")
    stream.delete(sid("3-0"))
    assert stream.trim_min_id(sid("2-1")) == 2
    assert (stream.length, node_keys(stream)) == (0, [])
    check_stream(stream)
    add(stream, "4-0")
    check_stream(stream)


def test_a_trim_to_nothing_keeps_the_last_id() -> None:
    stream = stream_of("1-0", "2-0")
    assert stream.trim_length(0) == 2
    assert state_of(stream) == (0, "2-0", "0-0", "0-0", 2, [], 1)
