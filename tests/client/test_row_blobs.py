"""Text columns packed into blobs: reading the blobs returns the columns."""

from __future__ import annotations

import random

import pytest

from penstock.client.row_blobs import PairColumn, RowBlobs, TextColumn
from penstock.core.frame import Frame
from penstock.core.row_blob import RowBlob
from tests.support.spark.row_blobs import blob_of

Texts = list[bytes | None]
NO_LIMIT = 2**31 - 1


def column(name: bytes, texts: Texts, first: int = 0) -> TextColumn:
    """The column as in Arrow, after `first` values of another column."""
    values: Texts = [*[b"?"] * first, *texts]
    offsets, data, validity = bytearray(4), bytearray(), bytearray(len(values) // 8 + 1)
    for row, text in enumerate(values):
        data += text or b""
        offsets += len(data).to_bytes(4, "little")
        if text is not None:
            validity[row // 8] |= 1 << row % 8
    return TextColumn(name, validity if None in values else None, offsets, data, first)


def rows_of(blobs: list[bytes]) -> list[list[bytes]]:
    rows = []
    for blob in blobs:
        buffer = bytearray(blob)
        reader = RowBlob()
        reader.open(buffer, 0, len(blob))
        frame = Frame()
        frame.over(buffer)
        while reader.next(frame):
            rows.append([frame.piece(at) for at in range(frame.count)])
            frame.over(buffer)
    return rows


def made(columns: list[TextColumn], rows: int, bytes_max: int = 1000) -> list[bytes]:
    blobs = RowBlobs(bytes_max, NO_LIMIT)
    blobs.add(columns, None, 0, rows)
    blobs.close()
    assert blobs.rows == rows
    return blobs.take()


def test_a_null_is_not_a_field() -> None:
    columns = [column(b"a", [b"1", None]), column(b"b", [b"", b"2"])]
    [blob] = made(columns, 2)
    assert blob[5:] == blob_of([b"a", b"1", b"b", b""], [b"b", b"2"])[1:]
    assert blob[:5] == b"\xdd\0\0\0\x02"


@pytest.mark.parametrize("size", [0, 31, 32, 255, 256, 65_535, 65_536])
def test_values_of_every_length_survive(size: int) -> None:
    name, text = b"n" * size, b"v" * size
    assert rows_of(made([column(name, [text])], 1)) == [[name, text]]


@pytest.mark.parametrize("count", [1, 7, 8, 40_000])
def test_every_number_of_columns_survives(count: int) -> None:
    columns = [column(b"%d" % n, [b"v"]) for n in range(count)]
    assert rows_of(made(columns, 1)) == [[w for n in range(count) for w in (b"%d" % n, b"v")]]


def test_a_blob_ends_after_the_row_that_fills_it() -> None:
    blobs = made([column(b"k", [b"x" * 40] * 10)], 10, bytes_max=100)
    assert [len(rows_of([blob])) for blob in blobs] == [3, 3, 3, 1]


def test_rows_of_a_part_come_from_that_part() -> None:
    texts: Texts = [b"%d" % n for n in range(20)]
    blobs = RowBlobs(1000, NO_LIMIT)
    blobs.add([column(b"k", texts, first=9)], None, 5, 8)
    blobs.close()
    assert rows_of(blobs.take()) == [[b"k", b"5"], [b"k", b"6"], [b"k", b"7"]]
    blobs.close()
    assert blobs.take() == []


def test_pairs_follow_the_columns() -> None:
    names, values = column(b"", [b"a", b"b", None, b"d"]), column(b"", [b"1", None, b"3", b"4"])
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 2, 4, 4))
    pairs = PairColumn(names, values, bytearray(b"\x05"), bytearray(offsets))
    blobs = RowBlobs(1000, NO_LIMIT)
    blobs.add([column(b"k", [b"x", b"y", b"z"])], pairs, 0, 3)
    blobs.close()
    assert rows_of(blobs.take()) == [[b"k", b"x", b"a", b"1"], [b"k", b"y"], [b"k", b"z"]]


def test_a_row_without_a_field_or_with_too_many_is_refused() -> None:
    blobs = RowBlobs(1000, 1)
    with pytest.raises(ValueError, match="every column is null"):
        blobs.add([column(b"k", [None])], None, 0, 1)
    with pytest.raises(ValueError, match="2 fields; an entry may have 1"):
        blobs.add([column(b"k", [b"v"]), column(b"l", [b"w"])], None, 0, 1)
    blobs.close()
    assert blobs.take() == []


def test_random_columns_survive() -> None:
    dice = random.Random(7)
    for _ in range(50):
        rows, width = dice.randint(1, 40), dice.randint(1, 9)
        table: list[Texts] = [
            [
                None if at and dice.random() < 0.3 else dice.randbytes(dice.choice([0, 3, 50, 300]))
                for _ in range(rows)
            ]
            for at in range(width)
        ]
        columns = [column(b"c%d" % at, texts, dice.randrange(9)) for at, texts in enumerate(table)]
        expected = [
            [
                word
                for at, texts in enumerate(table)
                if (text := texts[row]) is not None
                for word in (b"c%d" % at, text)
            ]
            for row in range(rows)
        ]
        assert rows_of(made(columns, rows, dice.choice([1, 100, 10_000]))) == expected
