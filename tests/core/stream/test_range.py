"""Reading a stream: ranges in both directions, and cursors while the stream changes."""

from __future__ import annotations

import pytest

from penstock.core.check import check_stream
from penstock.core.stream import Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from tests.support.engine.streams import (
    add,
    ids_of,
    sid,
    state_of,
    stream_of,
)

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
def test_a_cursor_notices_a_buffer_that_became_another_node_and_was_then_dropped(
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


def test_a_cursor_does_not_remove_an_entry_twice() -> None:
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


def test_a_cursor_continues_when_an_append_moves_the_entries() -> None:
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
def test_a_cursor_continues_when_its_node_and_its_neighbours_are_dropped(reverse: bool) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 14)))
    cursor = stream.cursor(reverse=reverse)
    while cursor.advance() and cursor.id.ms != 7:
        pass
    for n in range(4, 11):
        stream.delete(sid(f"{n}-0"))
    assert cursor.advance()
    assert cursor.id.ms == (3 if reverse else 11)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cursor_continues_after_a_trim(reverse: bool) -> None:
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
