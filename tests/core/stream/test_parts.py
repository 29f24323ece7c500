"""Splitting ranges of streams into parts, and finding their nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import stream_id
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID
from penstock.core.stream_parts import nodes_in, parts_of
from tests.support.engine.streams import add, ids_of, sid, stream_of

ENTRIES_MAX = 60


def shown(stream: Stream, start: str, end: str, parts: int) -> list[tuple[str, str, int]]:
    found = parts_of(stream, sid(start), sid(end), parts)
    return [(str(part.first), str(part.last), part.count) for part in found]


def masters(stream: Stream, start: str, end: str) -> list[tuple[str, int]]:
    return [(str(node.master), node.count) for node in nodes_in(stream, sid(start), sid(end))]


@pytest.fixture
def stream() -> Stream:
    """Nodes 1-0 2-0 3-0, 4-0 5-0 6-0 and 7-0 8-0; deleted are 2-0 and 7-0."""
    stream = stream_of(*(f"{n}-0" for n in range(1, 9)))
    stream.delete(sid("2-0"))
    stream.delete(sid("7-0"))
    return stream


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (1, [("1-0", "8-0", 6)]),
        (2, [("1-0", "4-0", 3), ("5-0", "8-0", 3)]),
        (4, [("1-0", "1-0", 1), ("3-0", "4-0", 2), ("5-0", "5-0", 1), ("6-0", "8-0", 2)]),
        (6, [(f"{n}-0", f"{n}-0", 1) for n in (1, 3, 4, 5, 6, 8)]),
        (1000, [(f"{n}-0", f"{n}-0", 1) for n in (1, 3, 4, 5, 6, 8)]),
    ],
)
def test_parts_are_of_equal_size_and_none_is_empty(
    stream: Stream, parts: int, found: list[tuple[str, str, int]]
) -> None:
    assert shown(stream, "0", "99", parts) == found


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("2", "7-5", [("3-0", "6-0", 4)]),
        ("3-1", "3-9", []),
        ("7", "7-9", []),
        ("8", "8", [("8-0", "8-0", 1)]),
        ("9", "99", []),
        ("0", "0-9", []),
        ("5", "4", []),
    ],
)
def test_a_part_has_nothing_outside_of_the_range(
    stream: Stream, start: str, end: str, found: list[tuple[str, str, int]]
) -> None:
    assert shown(stream, start, end, 1) == found


def test_an_empty_stream_has_no_parts_and_no_nodes() -> None:
    assert shown(Stream(), "0", "99", 3) == []
    assert masters(Stream(), "0", "99") == []


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("0", "99", [("1-0", 2), ("4-0", 3), ("7-0", 1)]),
        ("3", "4", [("1-0", 1), ("4-0", 1)]),
        ("3-1", "5", [("4-0", 2)]),
        ("5", "7-9", [("4-0", 2)]),  # only a tombstone of the last node is in the range
        ("8-1", "99", []),
        ("6", "3", []),
    ],
)
def test_only_nodes_with_live_entries_in_the_range_count(
    stream: Stream, start: str, end: str, found: list[tuple[str, int]]
) -> None:
    assert masters(stream, start, end) == found


def test_a_node_knows_its_last_id_even_of_a_tombstone() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    stream.delete(sid("3-0"))
    [first, second] = nodes_in(stream, stream_id.SMALLEST, stream_id.LARGEST)
    assert (str(first.last_id()), str(second.last_id())) == ("3-0", "4-0")


def test_the_ends_of_all_ids_are_in_range() -> None:
    top = str(stream_id.LARGEST)
    stream = stream_of("0-1", top)
    assert shown(stream, "0", top, 2) == [("0-1", "0-1", 1), (top, top, 1)]


@given(
    deltas=st.lists(st.integers(1, 3), max_size=ENTRIES_MAX),
    deleted=st.sets(st.integers(0, ENTRIES_MAX - 1)),
    ends=st.tuples(st.integers(0, 3 * ENTRIES_MAX), st.integers(0, 3 * ENTRIES_MAX)),
    parts=st.integers(1, 2 * ENTRIES_MAX),
    entries_max=st.integers(1, 7),
)
def test_parts_hold_the_live_entries_of_the_range_and_nothing_else(
    deltas: list[int], deleted: set[int], ends: tuple[int, int], parts: int, entries_max: int
) -> None:
    stream = stream_of(entries_max=entries_max)
    ids: list[StreamID] = []
    at = 0
    for delta in deltas:
        at += delta
        ids.append(StreamID(at, 0))
        add(stream, f"{at}-0")
    for place in deleted:
        if place < len(ids):
            stream.delete(ids[place])
    start, end = StreamID(ends[0], 0), StreamID(ends[1], 0)
    live = [i for i in ids_of(stream) if start <= sid(i) <= end]
    found = parts_of(stream, start, end, parts)
    assert [part.count for part in found] == [
        len(stream.range(part.first, part.last).entries()) for part in found
    ]
    covered = [
        entry_id.decode()
        for part in found
        for entry_id, _ in stream.range(part.first, part.last).entries()
    ]
    assert covered == live
    assert all(part.count for part in found)
    assert len(found) == min(parts, len(live))
    if found:
        counts = [part.count for part in found]
        assert max(counts) - min(counts) <= 1
    assert sum(node.count for node in nodes_in(stream, start, end)) == len(live)
