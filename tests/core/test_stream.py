"""A stream: adding, removing, reading, and what changes meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.core import listpack, stream_id, stream_node
from penstock.core.check import check_stream
from penstock.core.frame import Frame
from penstock.core.stream import ENTRY_BYTES_MAX, RANK_UNKNOWN, NodeLimits, Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.errors import CommandError, elements_too_large, id_not_above_top, ids_exhausted
from tests.support.source_tree import ROOT
from tests.support.streams import (
    add,
    frame_of,
    ids_of,
    node_at,
    node_keys,
    nodes_of,
    sid,
    state_of,
    stream_of,
)

KV = (b"k", b"v")


def refused(stream: Stream, append: Callable[[], None]) -> str:
    """The text of the error that an append raises, having changed nothing."""
    before = state_of(stream)
    with pytest.raises(CommandError) as caught:
        append()
    assert state_of(stream) == before
    check_stream(stream)
    return str(caught.value)


# --- Adding ------------------------------------------------------------------------------------------


def test_an_automatic_id_takes_the_clock_and_starts_at_zero() -> None:
    stream = Stream()
    stream.append(1000, frame_of(*KV), 0)
    stream.append(1001, frame_of(*KV), 0)
    assert ids_of(stream) == ["1000-0", "1001-0"]


def test_an_automatic_id_goes_on_in_the_last_millisecond_when_the_clock_stands_or_steps_back() -> (
    None
):
    stream = Stream()
    for now_ms in (1000, 1000, 999, 0):
        stream.append(now_ms, frame_of(*KV), 0)
    assert ids_of(stream) == ["1000-0", "1000-1", "1000-2", "1000-3"]


def test_an_automatic_id_at_time_zero_is_not_zero() -> None:
    stream = Stream()
    stream.append(0, frame_of(*KV), 0)
    assert ids_of(stream) == ["0-1"]


def test_an_automatic_id_goes_to_the_next_millisecond_when_the_seqs_are_used_up() -> None:
    stream = stream_of(f"1000-{MAX64}")
    stream.append(1000, frame_of(*KV), 0)
    assert stream.last_id == StreamID(1001, 0)


def test_an_id_in_a_given_millisecond_takes_the_next_free_seq() -> None:
    stream = Stream()
    for ms in (0, 0, 7, 7, 8):
        stream.append_in_ms(ms, frame_of(*KV), 0)
    assert ids_of(stream) == ["0-1", "0-2", "7-0", "7-1", "8-0"]


def test_the_pieces_before_the_first_field_are_not_stored() -> None:
    stream = Stream()
    stream.append_at(5, 0, frame_of(b"XADD", b"s", b"5-0", b"name", b"value"), 3)
    assert stream.range().entries() == [(b"5-0", [b"name", b"value"])]


@pytest.mark.parametrize("entry_id", ["5-5", "5-4", "4-9", "0-0"])
def test_an_id_not_above_the_last_is_refused(entry_id: str) -> None:
    stream = stream_of("5-5")
    assert refused(stream, lambda: add(stream, entry_id)) == str(id_not_above_top())


def test_zero_is_above_no_id() -> None:
    stream = Stream()
    assert refused(stream, lambda: add(stream, "0-0")) == str(id_not_above_top())


def test_the_last_id_counts_even_when_its_entry_is_gone() -> None:
    stream = stream_of("5-5")
    stream.delete(sid("5-5"))
    assert refused(stream, lambda: add(stream, "5-5")) == str(id_not_above_top())


@pytest.mark.parametrize("ms", [5, 4])
def test_a_millisecond_that_is_used_up_or_past_is_refused(ms: int) -> None:
    stream = stream_of(f"5-{MAX64}")
    text = refused(stream, lambda: stream.append_in_ms(ms, frame_of(*KV), 0))
    assert text == str(id_not_above_top())


def test_nothing_can_be_added_above_the_largest_id() -> None:
    stream = stream_of("1-0", f"{MAX64}-{MAX64}")
    ways: list[Callable[[], None]] = [
        lambda: stream.append(5, frame_of(*KV), 0),
        lambda: stream.append(MAX64, frame_of(*KV), 0),
        lambda: stream.append_at(5, 0, frame_of(*KV), 0),
        lambda: stream.append_at(MAX64, MAX64, frame_of(*KV), 0),
        lambda: stream.append_in_ms(5, frame_of(*KV), 0),
        lambda: stream.append_in_ms(MAX64, frame_of(*KV), 0),
    ]
    assert {refused(stream, way) for way in ways} == {str(ids_exhausted())}


@pytest.mark.parametrize("entry_id", [f"{2**63 - 1}-{2**63 - 1}", f"{2**63}-{2**63}", "0-1"])
def test_ids_at_the_edges_of_64_bits_can_be_first(entry_id: str) -> None:
    stream = stream_of(entry_id)
    assert ids_of(stream) == [entry_id]
    add(stream, f"{MAX64}-{MAX64}")
    assert ids_of(stream) == [entry_id, f"{MAX64}-{MAX64}"]
    check_stream(stream)


@pytest.mark.parametrize("entry_count", [0, 1, 3])
def test_an_entry_of_more_than_a_gibibyte_is_refused_and_changes_nothing(entry_count: int) -> None:
    frame = Frame()
    frame.add(bytes(1 << 20))
    for _ in range(ENTRY_BYTES_MAX >> 20):
        frame.add_span(0, 1 << 20)  # the same bytes again and again: large by its sizes only
    stream = stream_of(*(f"{n}-0" for n in range(1, entry_count + 1)))
    text = refused(stream, lambda: stream.append(1000, frame, 0))
    assert text == str(elements_too_large())


def test_a_huge_entry_has_a_node_of_its_own() -> None:
    stream = Stream()
    huge = bytes(range(256)) * 4096 * 5  # 5 MiB: a backlen of four bytes
    add(stream, "1-0")
    add(stream, "2-0", b"k", huge)
    add(stream, "3-0")
    assert node_keys(stream) == ["1-0", "2-0", "3-0"]
    assert stream.range(sid("2-0"), sid("2-0")).entries() == [(b"2-0", [b"k", huge])]
    assert len(node_at(stream, "3-0")) < 4096  # the buffer of the huge node was not kept
    check_stream(stream)


def test_an_entry_with_many_fields_is_read_back() -> None:
    stream = Stream()
    fields = [b"%d" % n for n in range(140_000)]  # more elements than a listpack's header can count
    stream.append_at(1, 0, frame_of(*fields), 0)
    assert stream.range().entries() == [(b"1-0", fields)]
    check_stream(stream)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_an_append_that_finds_no_memory_changes_nothing() -> None:
    code = """if True:
        import resource
        from pathlib import Path
        from penstock.core.check import check_stream
        from tests.support.streams import frame_of, state_of, stream_of

        frame = frame_of(b"k", bytes(1 << 25))
        for _ in range(16):
            frame.add_span(frame.start(0), 1)
            frame.add_span(frame.start(1), 1 << 25)
        used = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
        refused = 0
        for entries in (0, 1, 3):
            stream = stream_of(*(f"{n}-0" for n in range(1, entries + 1)))
            before = state_of(stream)
            for room in (50 << 20, 700 << 20):  # too little for the zeros, or for their copy
                resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))
                try:
                    stream.append_at(1000, 0, frame, 0)
                except MemoryError:
                    refused += 1
                assert state_of(stream) == before
                check_stream(stream)
        assert refused == 6, refused
    """
    path = os.pathsep.join((str(Path(str(penstock.__file__)).parents[1]), str(ROOT)))
    command = [sys.executable, "-P", "-c", code]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)


# --- When a node begins ------------------------------------------------------------------------------


def test_a_node_begins_after_as_many_entries_as_are_allowed() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 8)), entries_max=3)
    assert node_keys(stream) == ["1-0", "4-0", "7-0"]


def test_tombstones_count_towards_the_entries_of_a_node() -> None:
    stream = stream_of("1-0", "2-0", entries_max=3)
    stream.delete(sid("1-0"))
    add(stream, "3-0")
    add(stream, "4-0")
    assert node_keys(stream) == ["1-0", "4-0"]


def test_no_limit_on_entries_means_bytes_alone_decide() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 301)), entries_max=0, bytes_max=4096)
    assert node_keys(stream) == ["1-0"]


@pytest.mark.parametrize(("value_bytes", "expected"), [(68, ["1-0"]), (69, ["1-0", "2-0"])])
def test_a_node_begins_when_its_bytes_and_the_raw_bytes_reach_the_limit(
    value_bytes: int, expected: list[str]
) -> None:
    stream = stream_of(entries_max=100, bytes_max=100)
    add(stream, "1-0", b"k", b"7")
    (_, node), *_ = nodes_of(stream)
    assert len(node) == 28
    add(stream, "2-0", b"abc", b"v" * (value_bytes))
    assert len(node) + 3 + value_bytes == (99 if len(expected) == 1 else 100)
    assert node_keys(stream) == expected


@pytest.mark.parametrize("bytes_max", [0, 1 << 40])
def test_no_limit_on_bytes_means_the_hard_limit(bytes_max: int) -> None:
    stream = stream_of(entries_max=100, bytes_max=bytes_max)
    for n in range(1, 4):
        add(stream, f"{n}-0", b"k", b"v" * 100_000)
    assert node_keys(stream) == ["1-0"]


def test_limits_that_change_hold_for_the_next_append() -> None:
    limits = NodeLimits(4096, 2)
    stream = Stream(limits)
    for n in range(1, 4):
        add(stream, f"{n}-0")
    limits.entries_max = 5
    for n in range(4, 9):
        add(stream, f"{n}-0")
    assert node_keys(stream) == ["1-0", "3-0", "8-0"]


def test_a_new_node_takes_the_names_of_its_own_first_entry() -> None:
    stream = stream_of("1-0", entries_max=1)
    add(stream, "2-0", b"other", b"1", b"names", b"2")
    (_, _), (_, second) = nodes_of(stream)
    assert b"\x85other\x06\x85names\x06" in second
    assert second.count(b"other") == 1


def test_live_entries_go_from_127_to_128_and_back() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 128)), entries_max=1000)
    assert stream_node.live_count(node_at(stream, "1-0")) == 127
    add(stream, "128-0")
    check_stream(stream)
    assert ids_of(stream) == [f"{n}-0" for n in range(1, 129)]
    assert stream.delete(sid("64-0"))
    check_stream(stream)
    add(stream, "129-0")
    check_stream(stream)
    assert ids_of(stream) == [f"{n}-0" for n in range(1, 130) if n != 64]


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
def test_deleting_what_is_not_there_changes_nothing(absent: str) -> None:
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
def test_an_exact_trim_by_id_leaves_what_is_not_below_it(min_ms: int) -> None:
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


# --- Ranges ------------------------------------------------------------------------------------------


def test_a_range_touches_every_boundary_in_both_directions() -> None:
    every = [f"{ms}-{seq}" for ms in (1, 2, 4) for seq in (0, 5, 9)] + ["7-0"]
    stream = stream_of(*every)
    for doomed in ("2-0", "4-5", "7-0"):
        stream.delete(sid(doomed))
    live = [sid(entry) for entry in every if entry not in ("2-0", "4-5", "7-0")]
    edges = sorted({SMALLEST, LARGEST, *(edge for entry in every for edge in _around(sid(entry)))})
    for start in edges:
        for end in edges:
            expected = [str(entry).encode() for entry in live if start <= entry <= end]
            found = stream.range(start, end)
            assert [entry for entry, _ in found.entries()] == expected
            backwards = stream.range(start, end, reverse=True)
            assert [entry for entry, _ in backwards.entries()] == expected[::-1]


def _around(entry: StreamID) -> tuple[StreamID, StreamID, StreamID]:
    return entry.previous(), entry, entry.next()


@pytest.mark.parametrize("limit", range(6))
def test_a_limit_takes_from_the_near_end(limit: int) -> None:
    every = [f"{n}-0".encode() for n in range(1, 5)]
    stream = stream_of(*(entry.decode() for entry in every))
    taken = limit or 4
    assert [entry for entry, _ in stream.range(limit=limit).entries()] == every[:taken]
    backwards = stream.range(limit=limit, reverse=True)
    assert [entry for entry, _ in backwards.entries()] == every[::-1][:taken]


def test_a_range_gives_lists_mappings_and_iterates() -> None:
    stream = Stream()
    add(stream, "1-0", b"a", b"1", b"a", b"2")
    found = stream.range()
    assert found.entries() == list(found) == [(b"1-0", [b"a", b"1", b"a", b"2"])]
    assert found.mappings() == [(b"1-0", {b"a": b"2"})]


def test_a_range_of_an_empty_stream_is_empty() -> None:
    assert Stream().range().entries() == []
    assert Stream().range(reverse=True).entries() == []


def test_a_range_is_read_when_it_is_asked_for() -> None:
    stream = stream_of("1-0")
    found = stream.range()
    add(stream, "2-0")
    assert len(found.entries()) == 2


def test_the_first_id_is_that_of_the_oldest_live_entry() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    assert str(stream.first_id()) == "1-0"
    stream.delete(sid("1-0"))
    assert str(stream.first_id()) == "2-0"
    stream.trim_length(1)
    assert str(stream.first_id()) == "4-0"
    stream.delete(sid("4-0"))
    assert stream.first_id() == SMALLEST


# --- Cursors while the stream changes ------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("doomed", [{1}, {3}, {4}, {7}, {1, 2, 3}, {4, 5, 6}, set(range(1, 8))])
def test_entries_can_be_removed_while_iterating(reverse: bool, doomed: set[int]) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 8)))
    cursor = stream.cursor(reverse=reverse)
    seen = []
    while cursor.advance():
        seen.append(cursor.id.ms)
        if cursor.id.ms in doomed:
            assert cursor.remove()
            check_stream(stream)
    assert sorted(seen, reverse=reverse) == seen == (list(range(1, 8))[:: -1 if reverse else 1])
    assert ids_of(stream) == [f"{n}-0" for n in range(1, 8) if n not in doomed]


def test_an_entry_is_removed_once() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    cursor = stream.cursor()
    assert not cursor.remove()  # not on an entry yet
    assert cursor.advance()
    assert cursor.remove()
    before = state_of(stream)
    assert not cursor.remove()
    assert state_of(stream) == before


def test_a_cursor_at_its_end_removes_nothing() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    before = state_of(stream)
    for cursor in (stream.cursor(), stream.cursor(end=sid("2-0")), stream.cursor(reverse=True)):
        while cursor.advance():
            pass
        assert not cursor.remove()
    assert state_of(stream) == before


def test_a_cursor_removes_its_entry_even_after_the_bytes_have_moved() -> None:
    stream = stream_of("1-0", "2-0", entries_max=3)
    cursor = stream.cursor()
    assert cursor.advance()
    for n in range(3, 9):  # the tail is sealed, and its buffer becomes another node
        add(stream, f"{n}-0")
    assert cursor.remove()
    check_stream(stream)
    assert ids_of(stream) == [f"{n}-0" for n in range(2, 9)]
    assert cursor.advance()
    assert str(cursor.id) == "2-0"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cursor_notices_a_buffer_that_became_another_node_and_was_then_given_up(
    reverse: bool,
) -> None:
    stream = stream_of("1-0", "2-0", "3-0", entries_max=3)
    cursor = stream.cursor(end=sid("3-0"), reverse=reverse)
    assert cursor.advance()
    add(stream, "4-0", b"k", b"v" * 20_000)  # in the buffer of the first node
    add(stream, "5-0")  # in a buffer of its own: the other has become too large to keep
    rest = []
    while cursor.advance():
        rest.append(str(cursor.id))
        assert cursor.entry.fields() == [b"k", b"v"]
    assert rest == (["2-0", "1-0"] if reverse else ["2-0", "3-0"])


def test_a_cursor_does_not_remove_what_somebody_else_has_removed() -> None:
    stream = stream_of("1-0", "2-0", "3-0")
    cursor = stream.cursor()
    assert cursor.advance()
    stream.delete(sid("1-0"))
    before = state_of(stream)
    assert not cursor.remove()
    assert state_of(stream) == before


def test_a_cursor_sees_what_is_appended_in_front_of_it() -> None:
    stream = stream_of("1-0")
    cursor = stream.cursor()
    seen = []
    while cursor.advance():
        seen.append(cursor.id.ms)
        if cursor.id.ms < 10:
            add(stream, f"{cursor.id.ms + 1}-0")
    assert seen == list(range(1, 11))


def test_a_cursor_goes_on_when_an_append_moves_the_entries() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 128)), entries_max=1000)
    for reverse in (False, True):
        cursor = stream.cursor(end=sid("127-0"), reverse=reverse)
        assert cursor.advance()
        add(stream, f"{stream.last_ms + 1}-0")
        assert cursor.advance()
        assert cursor.id.ms == (126 if reverse else 2)
        assert cursor.entry.fields() == [b"k", b"v"]
        stream.delete(stream.last_id)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cursor_goes_on_when_its_node_and_its_neighbours_are_dropped(reverse: bool) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 14)))
    cursor = stream.cursor(reverse=reverse)
    while cursor.advance() and cursor.id.ms != 7:
        pass
    for n in range(4, 11):
        stream.delete(sid(f"{n}-0"))
    assert cursor.advance()
    assert cursor.id.ms == (3 if reverse else 11)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cursor_goes_on_after_a_trim(reverse: bool) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 11)))
    cursor = stream.cursor(reverse=reverse)
    assert cursor.advance()
    stream.trim_length(5)
    rest = []
    while cursor.advance():
        rest.append(cursor.id.ms)
    assert rest == ([9, 8, 7, 6] if reverse else [6, 7, 8, 9, 10])


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cursor_ends_when_everything_goes(reverse: bool) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 6)))
    cursor = stream.cursor(reverse=reverse)
    assert cursor.advance()
    stream.trim_length(0)
    assert not cursor.advance()
    add(stream, "9-0")
    assert not cursor.advance()


@pytest.mark.parametrize(("edge", "reverse"), [("0-1", True), (f"{MAX64}-{MAX64}", False)])
def test_a_cursor_on_the_edge_of_all_ids_ends_when_the_stream_changes(
    edge: str, reverse: bool
) -> None:
    stream = stream_of("0-1", "5-0", f"{MAX64}-{MAX64}")
    cursor = stream.cursor(sid(edge), sid(edge), reverse)
    assert cursor.advance()
    stream.delete(sid("5-0"))
    assert not cursor.advance()


# --- Positions ---------------------------------------------------------------------------------------


def ranks(stream: Stream, *entry_ids: str) -> list[int]:
    return [stream.rank_or_unknown(sid(entry_id)) for entry_id in entry_ids]


def test_nothing_was_added_so_every_rank_is_zero() -> None:
    assert ranks(Stream(), "0-0", "5-0", f"{MAX64}-{MAX64}") == [0, 0, 0]


def test_ranks_are_known_at_the_ends_of_a_stream_only() -> None:
    stream = stream_of("5-0", "6-0", "7-0")
    assert ranks(stream, "0-0", "4-9", "5-0", "7-0") == [0, 0, 1, 3]
    assert ranks(stream, "5-1", "6-0", "6-9", "7-1") == [RANK_UNKNOWN] * 4


def test_a_trim_leaves_the_ranks_of_what_is_there() -> None:
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
    assert ranks(stream, "0-0", "4-0", "5-0", "6-0", "7-0") == [1, 1, 1, 2, 3]


def test_tombstones_count_from_where_they_lie() -> None:
    stream = stream_of("5-0", "6-0", "7-0")
    assert not stream.has_tombstones_from(SMALLEST)
    stream.delete(sid("6-0"))
    assert [stream.has_tombstones_from(sid(start)) for start in ("0-0", "6-0", "6-1")] == [
        True,
        True,
        False,
    ]
    stream.trim_length(0)
    assert not stream.has_tombstones_from(SMALLEST)


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
    assert refused(stream, lambda: add(stream, "9-0")) == str(id_not_above_top())
    add(stream, "9-1")
    assert stream.entries_added == 8
    assert stream_id.compare(stream.last_ms, stream.last_seq, 9, 1) == 0
