"""Compressed data decompresses to the same bytes; damaged data is refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptData
from penstock.persist.rdb import lzf
from tests.support.campaign import cases

PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"abc", b"temp", b"\x00" * 300, b"x" * 7, b"\x11\x90"]),
    st.builds(lambda byte, count: bytes([byte]) * count, st.integers(0, 255), st.integers(0, 600)),
)


def packed(data: bytes, compressor: lzf.Compressor | None = None) -> bytearray:
    target = bytearray(len(data) + len(data) // 32 + 8)
    made = (compressor or lzf.Compressor()).compress(
        bytearray(data), 0, len(data), target, len(target)
    )
    return target[:made]


def unpacked(data: bytearray | bytes, size: int) -> bytes:
    return bytes(lzf.decompress(bytearray(data), 0, len(data), size))


def test_a_repetition_that_overlaps_itself() -> None:
    assert packed(b"abcabcabcabcx").hex(" ") == "02 61 62 63 e0 00 02 00 78"
    assert unpacked(bytes.fromhex("02616263 e00002 0078"), 13) == b"abcabcabcabcx"


def test_a_short_repetition_has_two_bytes() -> None:
    assert unpacked(bytes.fromhex("02616263 2002"), 6) == b"abcabc"


@given(st.lists(PIECES, max_size=30))
def test_compressed_data_decompresses_to_the_same_bytes(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert unpacked(packed(data), len(data)) == data


def test_one_compressor_serves_many_strings() -> None:
    """Positions remembered from one string must not be used for the next."""
    dice = random.Random(3)
    compressor = lzf.Compressor()
    for _ in range(200):
        data = b"".join(
            dice.choices([b"abcd", b"efgh", b"1234567", b"\x00\x00"], k=dice.randint(0, 60))
        )
        assert unpacked(packed(data, compressor), len(data)) == data


def test_a_repetition_reaches_as_far_as_8192_bytes() -> None:
    dice = random.Random(4)
    for gap in range(8180, 8200):
        data = b"needle in a haystack" + dice.randbytes(gap) + b"needle in a haystack"
        assert unpacked(packed(data), len(data)) == data


def test_data_that_does_not_shrink_is_not_compressed() -> None:
    data = bytearray(random.Random(5).randbytes(1000))
    assert lzf.Compressor().compress(data, 0, 1000, bytearray(1000), 996) == 0
    assert lzf.Compressor().compress(bytearray(b"a" * 100), 0, 100, bytearray(100), 4) == 0


def test_a_promise_that_cannot_be_kept_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(CorruptData, match="cannot stand for"):
        unpacked(b"\x00a", 2**40)


@pytest.mark.parametrize(
    ("data", "size", "said"),
    [
        ("0261", 3, "3 literal bytes do not fit"),
        ("02616263", 2, "3 literal bytes do not fit"),
        ("0061 20", 4, "ends inside"),
        ("0061 e0", 4, "ends inside"),
        ("0061 e000", 4, "ends inside"),
        ("0061 2001", 4, "3 bytes from 2 back"),
        ("2000", 3, "3 bytes from 1 back"),
        ("0061 2000", 3, "3 bytes from 1 back"),
        ("0061", 2, "1 bytes instead of 2"),
        ("", 0, ""),
    ],
)
def test_damage_is_named(data: str, size: int, said: str) -> None:
    if said:
        with pytest.raises(CorruptData, match=said):
            unpacked(bytes.fromhex(data), size)
    else:
        assert unpacked(bytes.fromhex(data), size) == b""


def test_a_damaged_string_is_refused_or_has_its_promised_size() -> None:
    dice = random.Random(6)
    data = b"".join(dice.choices([b"temp", b"humid", b"\x01\x02", b"7" * 20], k=60))
    good = packed(data)
    for _ in range(cases(50_000)):
        bad = bytearray(good)
        for _ in range(dice.randint(1, 3)):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        size = dice.choice([len(data), len(data), dice.randrange(2000)])
        try:
            assert (
                len(unpacked(bad[: dice.choice([len(bad), dice.randrange(len(bad))])], size))
                == size
            )
        except CorruptData:
            continue
