"""Sums in an 80-bit long double, at its limits."""

from __future__ import annotations

import pytest

from penstock.core.long_double import (
    TEXT_BYTES_MAX,
    LongDouble,
    parse_or_none,
    sum_or_none,
    text_of,
)


def number(text: bytes) -> LongDouble:
    found = parse_or_none(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b" 1", b"1 ", b"1e", b"e1", b".", b"+", b"0x", b"0x.p1", b"1_0", b"nan", b"nan(1)"),
        *(b"1e5000", b"1e-5000", b"1e99999999999999999999", b"-1e-99999999999999999999", b"1\x00"),
        *(b"0x1p16384", b"0x1p-16446", b"0x1p-99999999999", b"1" * (TEXT_BYTES_MAX + 1)),
    ],
)
def test_a_text_that_strtold_refuses_is_no_number(text: bytes) -> None:
    assert parse_or_none(text) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"+5.", b"5"),
        (b"-.5", b"-0.5"),
        (b"0e99999999999999999999", b"0"),
        (b"1e000000000000000000002", b"100"),
        (b"0x1.8p1", b"3"),
        (b"0X.8", b"0.5"),
        (b"0xfffffffffffffffff", b"295147905179352825856"),  # 68 bits: rounded up
        (b"18446744073709551615", b"18446744073709551615"),  # 64 bits: exact
        (b"18446744073709551617", b"18446744073709551616"),  # 65 bits, a tie: half to even
        (b"18446744073709551619", b"18446744073709551620"),
        (b"0.000000000000000006", b"0.00000000000000001"),
        (b"0.000000000000000004", b"0"),
        (b"-0", b"0"),
    ],
)
def test_a_number_is_rounded_to_64_bits_and_17_decimals(text: bytes, shown: bytes) -> None:
    assert text_of(number(text)) == shown


def test_the_largest_number_is_read_and_printed() -> None:
    largest = number(b"0xffffffffffffffffp16320")
    assert text_of(largest).startswith(b"11897314953572317650212")
    assert len(text_of(largest)) == 4933
    assert sum_or_none(largest, largest) is None
    assert number(text_of(largest)) == largest


def test_the_smallest_number_counts() -> None:
    smallest = number(b"0x1p-16445")
    total = sum_or_none(smallest, smallest)
    assert total == number(b"0x1p-16444")._replace(mantissa=2, exponent=-16445)
    assert number(b"0x1.8p-16446") == smallest


def test_infinity_is_a_number_but_no_sum() -> None:
    for text in (b"inf", b"-INF", b"+Infinity"):
        assert sum_or_none(number(text), number(b"1")) is None
