"""Segments of listpacks: every byte once, for any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import listpack
from penstock.errors import CorruptData
from penstock.inspect.segments import Segment, SegmentKind, damages, listpack_map

EVERY_ENCODING = [
    0, 127, 128, -1, 4095, -4096, 4096, -32768, 2**23 - 1, -(2**23), 2**31 - 1, -(2**31), 2**63 - 1,
    -(2**63),
    b"", b"temp", b"x" * 63, b"x" * 64, b"x" * 126, b"x" * 4095, b"x" * 4096, b"x" * 16378,
    b"\x1b[31m", b"<script>", bytes(range(256)), "ü".encode(),
]  # fmt: skip

ELEMENTS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=300), max_size=20)


def packed(values: list[int | bytes]) -> bytes:
    made = listpack.new()
    for value in values:
        if isinstance(value, int):
            listpack.append_int(made, value)
        else:
            listpack.append(made, value)
    return bytes(made[: listpack.total_bytes(made)])


def assert_covers(data: bytes, segments: list[Segment]) -> None:
    """Every byte is in exactly one segment, in order."""
    at = 0
    for segment in segments:
        assert segment.offset == at
        assert segment.length >= 0
        at += segment.length
    assert at == len(data)


def values_of(segments: list[Segment]) -> list[int | bytes | None]:
    """The values of the elements, from the last segment of each that has one."""
    found: dict[int, int | bytes | None] = {}
    for segment in segments:
        if segment.kind is SegmentKind.CONTENT:
            found[segment.element] = segment.value
        elif segment.kind is SegmentKind.ENCODING:
            is_string = segment.label.startswith("string")
            found[segment.element] = b"" if is_string else segment.value
    return [found[number] for number in sorted(found)]


def test_the_listpack_of_the_document_is_explained_as_there() -> None:
    segments = listpack_map(packed([b"hello", 1024]))
    assert [(s.offset, s.length, s.kind, s.label, s.value) for s in segments] == [
        (0, 4, "total", "total bytes", 17),
        (4, 2, "count", "elements", 2),
        (6, 1, "encoding", "string, 6 bits of length", 5),
        (7, 5, "content", "string, 6 bits of length", b"hello"),
        (12, 1, "backlen", "bytes back", 6),
        (13, 1, "encoding", "integer of 13 bits", 1024),
        (14, 1, "content", "integer of 13 bits", 1024),
        (15, 1, "backlen", "bytes back", 2),
        (16, 1, "end", "end", None),
    ]


def test_an_empty_listpack_has_a_header_and_an_end() -> None:
    assert [s.kind for s in listpack_map(packed([]))] == ["total", "count", "end"]


@pytest.mark.parametrize("value", EVERY_ENCODING, ids=lambda value: str(value)[:20])
def test_every_encoding_is_shown_with_its_value(value: int | bytes) -> None:
    data = packed([value])
    segments = listpack_map(data)
    assert_covers(data, segments)
    assert values_of(segments) == [value]
    assert damages(segments) == []


@given(ELEMENTS)
def test_every_byte_of_any_listpack_belongs_to_one_segment(values: list[int | bytes]) -> None:
    data = packed(values)
    segments = listpack_map(data)
    assert_covers(data, segments)
    assert damages(segments) == []
    stored = bytearray(data)
    expected, at = [], listpack.first(stored)
    while at:
        expected.append(listpack.get(stored, at))
        at = listpack.next_at(stored, at)
    assert values_of(segments) == expected


@given(st.binary(max_size=80))
def test_no_bytes_raise(data: bytes) -> None:
    assert_covers(data, listpack_map(data))


@given(ELEMENTS, st.data())
def test_bytes_that_validation_refuses_are_shown_as_damage(
    values: list[int | bytes], data: st.DataObject
) -> None:
    damaged = bytearray(packed(values))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    segments = listpack_map(damaged)
    assert_covers(bytes(damaged), segments)
    try:
        listpack.validate(bytes(damaged))
    except CorruptData:
        assert damages(segments)
    else:
        assert damages(segments) == []


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        ("08000000 0000 ff", 0, "total bytes: the header says 8, there are 7"),
        ("07000000 0100 ff", 4, "elements: the header says 1, there are 0"),
        ("09000000 0100 fe01 ff", 6, "0xfe is not the start of an element"),
        ("09000000 0100 8568 ff", 6, "an element of 6 bytes runs 3 bytes past the end"),
        ("09000000 0100 0502 ff", 7, "the backlen of an element of 1 bytes must be 01, not 02"),
        ("08000000 0100 0501", 8, "the end byte is missing"),
        ("07000000 0000 ff 00", 7, "1 bytes after the end byte"),
        ("07000000", 0, "4 bytes are too few for a header"),
        ("07000000 0100 f0", 6, "the data ends in the middle of an element's length"),
        ("08000000 0100 0a", 7, "the backlen of an element of 1 bytes must be 01, not missing"),
    ],
)
def test_damage_has_its_place_and_its_reason(data: str, offset: int, reason: str) -> None:
    assert (offset, reason) in damages(listpack_map(bytes.fromhex(data)))


def test_an_unknown_count_is_not_damage() -> None:
    segments = listpack_map(bytes.fromhex("09000000 ffff 0501 ff"))
    assert damages(segments) == []
    assert segments[1].label == "elements: 65535 or more"
