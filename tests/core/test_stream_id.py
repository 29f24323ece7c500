"""Stream ids: texts, order, neighbours, edges of ranges."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import stream_id
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.errors import InvalidID, NoIDAbove, NoIDBelow
from tests.support.engine.id_texts import ID_TEXTS, NO_ID_TEXTS

EDGES = [0, 1, 2**63 - 1, 2**63, MAX64 - 1, MAX64]

halves = st.one_of(st.sampled_from(EDGES), st.integers(0, MAX64), st.integers(0, 300))
ids = st.builds(StreamID, halves, halves)


def pair(made: StreamID) -> tuple[int, int]:
    return made.ms, made.seq


# --- The value ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ms", EDGES)
@pytest.mark.parametrize("seq", EDGES)
def test_both_halves_keep_every_edge_through_text_key_and_pickle(ms: int, seq: int) -> None:
    made = StreamID(ms, seq)
    assert pair(made) == (ms, seq)
    assert made.text == b"%d-%d" % (ms, seq)
    assert str(made) == f"{ms}-{seq}"
    assert repr(made) == f"StreamID({ms}, {seq})"
    assert made.key == ms.to_bytes(8, "big") + seq.to_bytes(8, "big")
    assert stream_id.parse(made.text) == made
    assert stream_id.from_key(made.key) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.copy(made) == copy.deepcopy(made) == made
    assert stream_id.make(ms, seq) == made


def test_the_key_of_the_essay() -> None:
    key = bytes.fromhex("0000018bcfe56800 0000000000000003")
    assert stream_id.parse(b"1700000000000-3").key == key


@pytest.mark.parametrize(
    ("ms", "seq"), [(-1, 0), (0, -1), (2**64, 0), (0, 2**64), (-(2**64), 2**70)]
)
def test_a_half_outside_64_bits_is_refused(ms: int, seq: int) -> None:
    with pytest.raises(OverflowError):
        StreamID(ms, seq)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_a_key_that_has_not_sixteen_bytes_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"16 bytes, not {size}"):
        stream_id.from_key(bytes(size))


@given(ids, ids)
def test_ids_sort_as_their_keys_do(left: StreamID, right: StreamID) -> None:
    assert (left < right) == (left.key < right.key) == (pair(left) < pair(right))
    assert (left <= right) == (left.key <= right.key)
    assert (left > right) == (left.key > right.key)
    assert (left >= right) == (left.key >= right.key)
    assert (left == right) == (left.key == right.key)
    assert (left != right) == (left.key != right.key)


@given(ids, ids)
def test_compare_is_minus_one_zero_or_one(left: StreamID, right: StreamID) -> None:
    order = (left.key > right.key) - (left.key < right.key)
    assert stream_id.compare(left.ms, left.seq, right.ms, right.seq) == order


@given(halves, halves)
def test_equal_ids_have_equal_hashes_and_meet_in_a_set(ms: int, seq: int) -> None:
    assert hash(StreamID(ms, seq)) == hash(stream_id.make(ms, seq))
    assert len({StreamID(ms, seq), stream_id.make(ms, seq)}) == 1


def test_an_id_equals_nothing_but_an_id() -> None:
    others: list[object] = [(1, 1), b"1-1", "1-1", None]
    for other in others:
        assert StreamID(1, 1) != other


# --- Neighbours --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("below", "above"),
    [
        ((0, 0), (0, 1)),
        ((5, 2**63 - 1), (5, 2**63)),
        ((5, MAX64 - 1), (5, MAX64)),
        ((5, MAX64), (6, 0)),
        ((2**63 - 1, MAX64), (2**63, 0)),
        ((MAX64 - 1, MAX64), (MAX64, 0)),
        ((MAX64, MAX64 - 1), (MAX64, MAX64)),
    ],
)
def test_next_and_previous_cross_every_edge(below: tuple[int, int], above: tuple[int, int]) -> None:
    assert pair(StreamID(*below).next()) == above
    assert pair(StreamID(*above).previous()) == below


def test_there_is_nothing_above_the_largest() -> None:
    with pytest.raises(OverflowError):
        LARGEST.next()


def test_there_is_nothing_below_the_smallest() -> None:
    with pytest.raises(OverflowError):
        SMALLEST.previous()


@given(ids)
def test_nothing_lies_between_neighbours(made: StreamID) -> None:
    if made != LARGEST:
        assert made < made.next()
        assert made.next().previous() == made
    if made != SMALLEST:
        assert made.previous() < made
        assert made.previous().next() == made


# --- Texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "ms", "seq"), ID_TEXTS)
def test_a_text_is_read_as_redis_reads_it(text: bytes, ms: int, seq: int) -> None:
    assert pair(stream_id.parse(text)) == (ms, seq)


@pytest.mark.parametrize("text", NO_ID_TEXTS)
def test_a_text_that_is_no_id_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidID):
        stream_id.parse(text)


@pytest.mark.parametrize("text", [b"5", b"05", b"+5", b"5\0"])
@pytest.mark.parametrize("missing_seq", EDGES)
def test_a_missing_seq_is_what_the_caller_says(text: bytes, missing_seq: int) -> None:
    assert pair(stream_id.parse(text, missing_seq)) == (5, missing_seq)


def test_a_given_seq_is_not_replaced() -> None:
    assert pair(stream_id.parse(b"5-0", 9)) == (5, 0)
    assert pair(stream_id.parse(b"5-00", 9)) == (5, 0)


@given(st.binary(max_size=12), ids, st.binary(max_size=12))
def test_a_text_inside_a_buffer_is_read_from_its_place(
    before: bytes, made: StreamID, behind: bytes
) -> None:
    buffer = bytearray(before + made.text + behind)
    assert stream_id.parse_span(buffer, len(before), len(made.text), 0) == made


def test_digits_behind_the_piece_do_not_belong_to_it() -> None:
    assert pair(stream_id.parse_span(bytearray(b"1-234"), 0, 3, 0)) == (1, 2)
    assert pair(stream_id.parse_span(bytearray(b"1-234"), 0, 1, 7)) == (1, 7)
    with pytest.raises(InvalidID):
        stream_id.parse_span(bytearray(b"1-234"), 0, 2, 0)


def test_a_piece_outside_the_buffer_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        stream_id.parse_span(bytearray(b"1-2"), 0, 4, 0)


@given(st.text("0123456789-+ *(\0a", max_size=30).map(str.encode))
def test_no_text_does_anything_but_parse_or_be_refused(text: bytes) -> None:
    try:
        made = stream_id.parse(text)
    except InvalidID:
        return
    assert SMALLEST <= made <= LARGEST


# --- Edges of ranges ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        (b"-", SMALLEST, SMALLEST),
        (b"+", LARGEST, LARGEST),
        (b"-\0 rubbish", SMALLEST, SMALLEST),
        (b"+\0", LARGEST, LARGEST),
        (b"5", StreamID(5, 0), StreamID(5, MAX64)),
        (b"5-1", StreamID(5, 1), StreamID(5, 1)),
        (b"(5-1", StreamID(5, 2), StreamID(5, 0)),
        (b"(5", StreamID(5, 1), StreamID(5, MAX64 - 1)),
        (b"(5-0", StreamID(5, 1), StreamID(4, MAX64)),
        (b"(5-18446744073709551615", StreamID(6, 0), StreamID(5, MAX64 - 1)),
        (b"( 5-1", StreamID(5, 2), StreamID(5, 0)),
    ],
)
def test_a_text_as_the_start_and_as_the_end_of_a_range(
    text: bytes, start: StreamID, end: StreamID
) -> None:
    assert stream_id.parse_range_start(text) == start
    assert stream_id.parse_range_end(text) == end


def test_nothing_follows_the_largest_id() -> None:
    with pytest.raises(NoIDAbove):
        stream_id.parse_range_start(b"(18446744073709551615-18446744073709551615")
    assert stream_id.parse_range_start(b"(18446744073709551615").seq == 1


def test_nothing_precedes_the_smallest_id() -> None:
    with pytest.raises(NoIDBelow):
        stream_id.parse_range_end(b"(0-0")
    assert pair(stream_id.parse_range_end(b"(0")) == (0, MAX64 - 1)


@pytest.mark.parametrize(
    "text", [b"", b"(", b"((1-1", b"(-", b"(+", b"(*", b"1-*", b"*", b"$", b"-" + b"\0" * 127]
)
def test_a_text_that_is_no_edge_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidID):
        stream_id.parse_range_start(text)
    with pytest.raises(InvalidID):
        stream_id.parse_range_end(text)
