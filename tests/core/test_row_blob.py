"""Row blobs: every form of array and text, and every kind of damage."""

from __future__ import annotations

import random

import pytest

from penstock.core.frame import Frame
from penstock.core.row_blob import RowBlob
from tests.support.spark.row_blobs import Row, array_of, blob_of, text_of

ROW = array_of([text_of("k"), text_of("v")])


def rows_of(blob: bytes, before: bytes = b"", behind: bytes = b"") -> list[list[bytes]]:
    """The rows that a reader finds in a blob between other bytes."""
    buffer = bytearray(before + blob + behind)
    reader = RowBlob()
    reader.open(buffer, len(before), len(blob))
    rows: list[list[bytes]] = []
    while True:
        frame = Frame()
        frame.over(buffer)
        if not reader.next(frame):
            return rows
        rows.append([frame.piece(at) for at in range(frame.count)])


def test_rows_come_in_order_and_lie_where_they_are() -> None:
    blob = blob_of(["k", "v"], ["a", "", "b", b"\xff\x00"])
    assert rows_of(blob, b"before", b"behind") == [[b"k", b"v"], [b"a", b"", b"b", b"\xff\x00"]]


def test_a_blob_may_have_no_rows() -> None:
    assert rows_of(b"\x90") == rows_of(b"\xdd\0\0\0\0") == []


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 65_535, 65_536])
def test_every_length_of_text_is_read(size: int) -> None:
    assert rows_of(blob_of(["k", b"x" * size])) == [[b"k", b"x" * size]]


@pytest.mark.parametrize("lead", [b"\xc4\x02", b"\xc5\0\x02", b"\xc6\0\0\0\x02", b"\xd9\x02"])
def test_binaries_and_long_forms_are_texts(lead: bytes) -> None:
    assert rows_of(b"\x91\x92\xa1k" + lead + b"ab") == [[b"k", b"ab"]]


@pytest.mark.parametrize("count", [2, 14, 16, 65_534, 65_536])
def test_every_length_of_row_is_read(count: int) -> None:
    row = [b"%d" % number for number in range(count)]
    assert rows_of(blob_of(row)) == [row]


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (b"", "byte 0: the blob ends too early"),
        (b"\xc0", "byte 0: expected an array, found 192"),
        (b"\x81\xa1k\xa1v", "byte 0: expected an array, found 129"),
        (b"\x91\xa1k", "byte 1: expected an array, found 161"),
        (b"\x91\x90", "byte 1: a row of 0 texts"),
        (b"\x91\x91\xa1k", "byte 1: a row of 1 texts"),
        (b"\x91\x92\xa1k\x05", "byte 4: expected a text, found 5"),
        (b"\x91\x92\xa1k\xa2v", "byte 5: a text of 2 bytes runs past the end"),
        (
            b"\x91\x92\xa1k\xdb\xff\xff\xff\xff",
            "byte 9: a text of 4294967295 bytes runs past the end",
        ),
        (b"\x91\x92\xa1k\xda\0", "byte 6: the blob ends too early"),
        (b"\xdd\xff\xff\xff\xff", "byte 5: the blob ends too early"),
        (b"\x91" + ROW + b"\x90", "byte 6: something follows the last row"),
    ],
)
def test_an_invalid_blob_is_refused_with_the_position(blob: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        rows_of(blob, b"..", b"....")


def test_no_damage_is_read_beyond_the_blob() -> None:
    dice = random.Random(5)
    rows: list[Row] = [["name", b"x" * size] for size in (0, 3, 40, 300)]
    whole = blob_of(*rows)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 3)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        cut = bytes(damaged[: dice.randint(0, len(damaged))])
        try:
            found = rows_of(cut, b"", b"\xa5" * 400)
        except ValueError:
            continue
        assert sum(len(text) for row in found for text in row) <= len(cut)


def test_a_place_outside_of_the_buffer_is_refused() -> None:
    with pytest.raises(IndexError):
        RowBlob().open(bytearray(b"\x90"), 0, 2)
