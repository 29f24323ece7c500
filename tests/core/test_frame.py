"""Frames keep the pieces of a command, wherever they are stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.frame import Frame


def frame_of(*pieces: bytes) -> Frame:
    frame = Frame()
    for piece in pieces:
        frame.add(piece)
    return frame


def pieces_of(frame: Frame) -> list[bytes]:
    return [frame.piece(index) for index in range(frame.count)]


def test_a_new_frame_is_empty() -> None:
    frame = Frame()
    assert frame.count == 0
    assert frame.end == 0


@given(st.lists(st.binary(max_size=80), max_size=40))
def test_pieces_come_back_as_they_were_added(pieces: list[bytes]) -> None:
    frame = frame_of(*pieces)
    assert pieces_of(frame) == pieces
    assert [frame.size(index) for index in range(frame.count)] == [len(piece) for piece in pieces]
    assert frame.end == sum(len(piece) for piece in pieces)


def test_pieces_lie_end_to_end() -> None:
    frame = frame_of(b"XADD", b"s", b"", b"temp")
    assert [frame.start(index) for index in range(4)] == [0, 4, 5, 5]


@pytest.mark.parametrize("index", [-1, 2, 3, 1000])
def test_a_piece_that_is_not_there_is_an_index_error(index: int) -> None:
    frame = frame_of(b"a", b"b")
    with pytest.raises(IndexError):
        frame.start(index)
    with pytest.raises(IndexError):
        frame.size(index)
    with pytest.raises(IndexError):
        frame.piece(index)
    with pytest.raises(IndexError):
        frame.is_word(index, b"A")
    with pytest.raises(IndexError):
        frame.is_char(index, 97)


def test_a_cleared_frame_has_no_pieces_and_forgets_none_of_its_room() -> None:
    frame = frame_of(b"x" * 1000, b"y")
    room = len(frame.buffer)
    frame.clear()
    assert frame.count == 0
    assert frame.end == 0
    assert len(frame.buffer) == room
    with pytest.raises(IndexError):
        frame.piece(0)
    frame.add(b"again")
    assert pieces_of(frame) == [b"again"]


def test_memory_that_one_huge_command_took_is_given_back() -> None:
    frame = frame_of(b"x" * (1 << 21))
    frame.clear()
    assert len(frame.buffer) < 1 << 20
    for _ in range(70_000):
        frame.add_span(0, 0)
    frame.clear()
    assert len(frame.spans) < 1 << 20
    frame.add(b"small")
    assert pieces_of(frame) == [b"small"]


@pytest.mark.parametrize("size", [255, 256, 257, 600])
def test_the_buffer_grows_for_a_piece_that_just_does_not_fit(size: int) -> None:
    frame = frame_of(b"a" * size, b"b")
    assert pieces_of(frame) == [b"a" * size, b"b"]


def test_more_pieces_than_the_first_spans_hold() -> None:
    pieces = [b"%d" % number for number in range(100)]
    assert pieces_of(frame_of(*pieces)) == pieces


def test_a_span_names_bytes_that_are_there_already() -> None:
    frame = frame_of(b"abcdef")
    frame.add_span(2, 3)
    frame.add_span(6, 0)
    assert pieces_of(frame) == [b"abcdef", b"cde", b""]
    assert frame.end == 6


def test_a_span_outside_the_buffer_cannot_be_read() -> None:
    frame = frame_of(b"abc")
    frame.add_span(len(frame.buffer) - 1, 2)
    with pytest.raises(IndexError):
        frame.piece(1)
    with pytest.raises(IndexError):
        frame.is_word(1, b"\0A")


@pytest.mark.parametrize("piece", [b"maxlen", b"MAXLEN", b"MaxLen"])
def test_a_word_is_recognised_in_any_case(piece: bytes) -> None:
    assert frame_of(b"x", piece).is_word(1, b"MAXLEN")


@pytest.mark.parametrize(
    "piece", [b"", b"MAXLE", b"MAXLENS", b"MAXLEM", b"MAXLE\xae", b"[AXLEN", b"\xc3\x8dAXLE"]
)
def test_another_word_is_not_recognised(piece: bytes) -> None:
    assert not frame_of(piece).is_word(0, b"MAXLEN")


def test_only_letters_have_two_cases() -> None:
    assert frame_of(b"a-z{`1").is_word(0, b"A-Z{`1")
    assert not frame_of(b"{").is_word(0, b"[")
    assert not frame_of(b"`").is_word(0, b"@")
    assert not frame_of(b"@").is_word(0, b"`")


def test_no_word_is_the_empty_piece() -> None:
    assert frame_of(b"").is_word(0, b"")
    assert not frame_of(b"a").is_word(0, b"")


def test_a_char_is_a_piece_of_one_byte() -> None:
    frame = frame_of(b"*", b"", b"**", b">", b"\xff")
    assert [frame.is_char(index, ord("*")) for index in range(5)] == [True, *[False] * 4]
    assert frame.is_char(4, 0xFF)
