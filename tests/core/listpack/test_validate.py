"""Bytes that are not listpacks are refused, and the error names the position."""

from __future__ import annotations

import pytest

from penstock.core import listpack
from penstock.errors import CorruptData
from tests.support.structures.listpacks import craft, pack

FIRST = listpack.HEADER_BYTES

SHALLOW_DAMAGE = [
    ("nothing at all", b"", 0, "0 bytes are too few"),
    ("a header without an end", bytes.fromhex("06000000 0000"), 0, "6 bytes are too few"),
    ("a total too small", bytes.fromhex("06000000 0000 ff"), 0, "header says 6 bytes, there are 7"),
    ("a total too large", bytes.fromhex("08000000 0000 ff"), 0, "header says 8 bytes, there are 7"),
    ("a total of zero", bytes.fromhex("00000000 0000 ff"), 0, "header says 0 bytes"),
    ("the largest total", bytes.fromhex("ffffffff 0000 ff"), 0, "header says 4294967295 bytes"),
    ("room behind the end", bytes.fromhex("07000000 0000 ff 00"), 0, "there are 8"),
    ("another last byte", bytes.fromhex("07000000 0000 fe"), 6, "the last byte is not 0xff"),
    ("an element cut off", craft(1, b"\x83abc\x04")[:-2] + b"c", 0, "header says 12 bytes"),
]


@pytest.mark.parametrize(
    ("data", "offset", "words"), [d[1:] for d in SHALLOW_DAMAGE], ids=[d[0] for d in SHALLOW_DAMAGE]
)
@pytest.mark.parametrize("deep", [True, False])
def test_a_damaged_frame_is_refused_at_its_offset(
    data: bytes, offset: int, words: str, deep: bool
) -> None:
    with pytest.raises(CorruptData, match=words) as raised:
        listpack.validate(data, deep)
    assert raised.value.offset == offset
    assert f"(at byte {offset})" in str(raised.value)


STRING_70 = b"\xe0\x46" + b"x" * 70  # without its backlen, 72
DEEP_DAMAGE = [
    ("an end byte before the end", b"\x05\x01\xff\x05\x01", 2, 8, "an end byte before the end"),
    ("a lead that starts nothing", b"\x05\x01\xf5\x01", 2, 8, "0xf5 starts no element"),
    ("the last lead that starts nothing", b"\xfe\x01", 1, 6, "0xfe starts no element"),
    ("an integer without its backlen", b"\x05", 1, 6, "an element of 1 bytes runs past the end"),
    ("a short integer cut off", b"\x05\x01\xf1\x00", 2, 8, "of 3 bytes runs past the end"),
    ("a long integer cut off", b"\xf4" + bytes(8), 1, 6, "of 9 bytes runs past the end"),
    ("a string cut off", b"\x85hell\x06", 1, 6, "of 6 bytes runs past the end"),
    ("a string over the end byte", b"\x86hello\x06", 1, 6, "of 7 bytes runs past the end"),
    ("a 12-bit length cut off", b"\x05\x01\xe1", 2, 8, "length is cut off"),
    ("a 32-bit length cut off", b"\xf0\x00\x00\x00", 1, 6, "length is cut off"),
    ("a 12-bit length too large", b"\xef\xff\x00\x01", 1, 6, "of 4097 bytes runs past the end"),
    ("a giant length", b"\xf0\xff\xff\xff\xff\x05", 1, 6, "of 4294967300 bytes runs past the end"),
    (
        "a giant length that would wrap to 0",
        b"\xf0\xfb\xff\xff\xff\x00",
        1,
        6,
        "of 4294967296 bytes",
    ),
    ("a half giant length", b"\xf0\x00\x00\x00\x80\x05", 1, 6, "of 2147483653 bytes"),
    ("a wrong backlen", b"\x05\x01\x85hello\x05", 2, 14, "backlen of an element of 6 bytes"),
    ("a backlen with a high bit", b"\x05\x81", 1, 7, "backlen of an element of 1 bytes"),
    (
        "a two-byte backlen with a low end",
        b"\xe0\x7e" + b"x" * 126 + b"\x01\x00",
        1,
        135,
        "is wrong",
    ),
    (
        "a two-byte backlen with a high start",
        b"\xe0\x7e" + b"x" * 126 + b"\x81\x80",
        1,
        134,
        "is wrong",
    ),
    ("a backlen longer than needed", STRING_70 + b"\x00\xc8", 1, 78, "of 72 bytes is wrong"),
    ("a count too small", b"\x05\x01\x05\x01", 1, 4, "header says 1 elements, there are 2"),
    ("a count too large", b"\x05\x01\x05\x01", 3, 4, "header says 3 elements, there are 2"),
    ("a count of nothing", b"", 1, 4, "header says 1 elements, there are 0"),
    ("a count of almost unknown", b"\x05\x01", 65534, 4, "header says 65534 elements, there are 1"),
]


@pytest.mark.parametrize(
    ("elements", "count", "offset", "words"),
    [damage[1:] for damage in DEEP_DAMAGE],
    ids=[damage[0] for damage in DEEP_DAMAGE],
)
def test_a_damaged_element_is_refused_at_its_offset(
    elements: bytes, count: int, offset: int, words: str
) -> None:
    data = craft(count, elements)
    assert listpack.validate(data, deep=False) == data
    with pytest.raises(CorruptData, match=words) as raised:
        listpack.validate(data, deep=True)
    assert raised.value.offset == offset


def test_validation_is_deep_unless_told_otherwise() -> None:
    with pytest.raises(CorruptData):
        listpack.validate(craft(1, b"\xfe\x01"))


@pytest.mark.parametrize(
    "element",
    [
        b"\xc0\x05\x02",
        b"\xf1\x05\x00\x03",
        b"\xf4\x05" + bytes(7) + b"\x09",
        b"\x815\x02",
        b"\xe0\x015\x03",
    ],
    ids=["13 bits", "16 bits", "64 bits", "a string", "a string with a long lead"],
)
def test_a_form_that_is_not_the_shortest_is_taken(element: bytes) -> None:
    lp = listpack.validate(craft(1, element))
    assert listpack.get_bytes(lp, FIRST) == b"5"
    assert listpack.equals(lp, FIRST, bytearray(b"5"), 0, 1)


def test_a_validated_listpack_is_a_copy() -> None:
    data = pack(b"abc")
    lp = listpack.validate(data)
    listpack.append(lp, b"d")
    assert data == pack(b"abc")
