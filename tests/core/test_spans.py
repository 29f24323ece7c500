"""Words and ids are read by their spans, in the forms that commands use."""

from __future__ import annotations

import pytest

from penstock.core import spans, stream_id
from penstock.core.frame import Frame
from penstock.errors import InvalidID


def frame_of(*pieces: bytes) -> Frame:
    frame = Frame()
    for piece in pieces:
        frame.add(piece)
    return frame


def word_of(piece: bytes) -> int:
    frame = frame_of(b"before", piece)
    return spans.word_at(frame.buffer, frame.spans, 1)


@pytest.mark.parametrize("piece", [b"COUNT", b"count", b"CoUnT"])
def test_a_word_has_one_number_in_any_case(piece: bytes) -> None:
    assert word_of(piece) == spans.word(b"COUNT")


def test_a_word_of_eight_letters_has_a_number() -> None:
    assert word_of(b"maxCOUNT") == spans.word(b"MAXCOUNT")


@pytest.mark.parametrize("piece", [b"", b"COUNT\0", b"COUNT\0\0\0", b"\0COUNT", b"MAXCOUNTS"])
def test_what_no_option_can_be_has_no_number(piece: bytes) -> None:
    assert word_of(piece) == 0


@pytest.mark.parametrize("piece", [b"COUN", b"COUNTS", b"C\xcfUNT", b"@OUNT", b"`ount"])
def test_other_words_have_other_numbers(piece: bytes) -> None:
    assert word_of(piece) != spans.word(b"COUNT")


NINES = 10**19 - 1
IDS = [
    (b"0-0", 0, 0),
    (b"5", 5, 0),
    (b"5-7", 5, 7),
    (b"007-08", 7, 8),
    (b"%d-%d" % (NINES, NINES), NINES, NINES),
    (b"%d-%d" % (2**64 - 1, 2**64 - 1), 2**64 - 1, 2**64 - 1),
    (b"%d-%d" % (2**63, 2**63 - 1), 2**63, 2**63 - 1),
    (b"+5-7", 5, 7),
    (b" 5", 5, 0),
]


@pytest.mark.parametrize(("text", "ms", "seq"), IDS)
def test_an_id_and_its_key_are_read_from_a_buffer(text: bytes, ms: int, seq: int) -> None:
    buffer = bytearray(b"12" + text + b"34")
    found = stream_id.parse_span(buffer, 2, len(text), 0)
    assert (found.ms, found.seq) == (ms, seq)
    assert stream_id.parse_key(buffer, 2, len(text)) == found.key


def test_a_missing_second_half_is_the_one_asked_for() -> None:
    found = stream_id.parse_span(bytearray(b"5"), 0, 1, 2**64 - 1)
    assert (found.ms, found.seq) == (5, 2**64 - 1)


@pytest.mark.parametrize(
    "text", [b"", b"-", b"5-", b"-5", b"5-7-", b"5-x", b"x", b"5 -7", b"1" * 21, b"1-" + b"9" * 20]
)
def test_what_is_not_an_id_is_refused(text: bytes) -> None:
    buffer = bytearray(b"1" + text + b"2")
    with pytest.raises(InvalidID):
        stream_id.parse_span(buffer, 1, len(text), 0)
    with pytest.raises(InvalidID):
        stream_id.parse_key(buffer, 1, len(text))
