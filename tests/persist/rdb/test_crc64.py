"""The checksum equals Redis's, however the bytes are split."""

from __future__ import annotations

import random

import pytest

from penstock.persist.rdb import crc64

POLYNOMIAL = 0x95AC9329AC4BC9B5


def slowly(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc


def crc_of(data: bytes) -> int:
    return crc64.update(0, bytearray(data), 0, len(data))


def test_the_checksum_of_nine_digits_is_the_known_one() -> None:
    assert crc_of(b"123456789") == 0xE9C6D914C4B8D9CA


@pytest.mark.parametrize("size", [*range(20), 63, 64, 65, 1000])
def test_it_is_the_division_bit_by_bit(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc_of(data) == slowly(data)


def test_it_continues_from_any_position() -> None:
    data = bytearray(random.Random(1).randbytes(100))
    for cut in range(101):
        crc = crc64.update(crc64.update(0, data, 0, cut), data, cut, 100)
        assert crc == crc_of(bytes(data))


def test_a_checksum_of_all_ones_is_no_error() -> None:
    """In compiled code 0xffffffff is the value that may mean an error."""
    assert crc64.update(0xFFFFFFFF, bytearray(), 0, 0) == 0xFFFFFFFF
    assert crc64.update(2**64 - 1, bytearray(), 0, 0) == 2**64 - 1


@pytest.mark.parametrize(("start", "until"), [(-1, 2), (0, 4), (5, 9)])
def test_bytes_outside_of_the_buffer_are_refused(start: int, until: int) -> None:
    with pytest.raises(IndexError):
        crc64.update(0, bytearray(3), start, until)
