"""Adds decimal numbers as Redis does on x86: in an 80-bit long double, printed with 17 decimals.

    "3.0"  + "0.1"  ->  3.10000000000000000002   (64 bits of mantissa)   ->  "3.1"
    "1e20" + "0.5"  ->  100000000000000000000    (the half is lost)      ->  "100000000000000000000"

A Python float has 53 bits, and its rounding would show in the 17 decimals; Decimal rounds in base ten, not in
base two. So a number here is mantissa * 2 ** exponent in plain integers. It is exact while it is read, added
and printed, and rounded to 64 bits (half to even) where the processor would round. Everything that strtold
accepts is accepted: decimal, hexadecimal, infinity. A Redis on a machine with another long double (ARM has
113 bits) differs in the last digits; penstock gives the same result everywhere.

Cost: microseconds for usual numbers; at most 5119 characters are read, as in Redis.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MANTISSA_BITS = 64
LAST_BIT_MIN = -16445  # the exponent of the smallest number
TOP_BIT_MAX = 16384  # numbers are below 2 ** this
TEXT_BYTES_MAX = 5119
DECIMALS = 17

_DECIMAL = re.compile(rb"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?")
_HEXADECIMAL = re.compile(
    rb"([+-]?)0[xX](?=\.?[0-9a-fA-F])([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?(?:[pP]([+-]?)([0-9]+))?"
)
_INFINITY = re.compile(rb"([+-]?)inf(?:inity)?", re.IGNORECASE)
_MAGNITUDE_MAX = 5000  # larger powers of ten are far out of range: not worth computing
_EXPONENT_DIGITS_MAX = 9
_CHUNK_DIGITS = 4000  # Python converts at most 4300 digits at once


class LongDouble(NamedTuple):
    """mantissa * 2 ** exponent; with `infinite` only the sign of the mantissa counts."""

    mantissa: int
    exponent: int
    infinite: bool = False


def parse_or_none(text: bytes) -> LongDouble | None:
    """Parse a number and round it; None if it is no number, or rounds to infinity or to 0."""
    if not 0 < len(text) <= TEXT_BYTES_MAX:
        return None
    if found := _DECIMAL.fullmatch(text):
        return _from_decimal(found)
    if found := _HEXADECIMAL.fullmatch(text):
        return _from_hexadecimal(found)
    if found := _INFINITY.fullmatch(text):
        return LongDouble(-1 if found[1] == b"-" else 1, 0, True)
    return None


def _from_decimal(found: re.Match[bytes]) -> LongDouble | None:
    sign, whole, part, exponent_sign, exponent_digits = found.groups(b"")
    digits = (whole + part).lstrip(b"0")
    if not digits:
        return LongDouble(0, 0)
    power = _exponent(exponent_sign, exponent_digits) - len(part)
    if abs(power + len(digits)) > _MAGNITUDE_MAX:
        return None
    numerator = _int_of(digits) * 10 ** max(0, power)
    return _signed(sign, _rounded(numerator, 10 ** max(0, -power)))


def _from_hexadecimal(found: re.Match[bytes]) -> LongDouble | None:
    sign, whole, part, exponent_sign, exponent_digits = found.groups(b"")
    mantissa = int(whole + part, 16)
    if mantissa == 0:
        return LongDouble(0, 0)
    power = _exponent(exponent_sign, exponent_digits) - 4 * len(part)
    if abs(power + mantissa.bit_length()) > 4 * _MAGNITUDE_MAX:
        return None
    return _signed(sign, _rounded(mantissa << max(0, power), 1 << max(0, -power)))


def _exponent(sign: bytes, digits: bytes) -> int:
    digits = digits.lstrip(b"0")
    value = int(digits or b"0") if len(digits) <= _EXPONENT_DIGITS_MAX else 10**9
    return -value if sign == b"-" else value


def _signed(sign: bytes, number: LongDouble | None) -> LongDouble | None:
    if number is None or number.mantissa == 0:
        return None
    return number._replace(mantissa=-number.mantissa) if sign == b"-" else number


def _rounded(numerator: int, denominator: int) -> LongDouble | None:
    """A positive fraction in 64 bits, or fewer near zero; None if it is too large."""
    exponent = numerator.bit_length() - denominator.bit_length() - MANTISSA_BITS
    exponent = max(exponent, LAST_BIT_MIN)
    mantissa = _divided(numerator, denominator, exponent)
    if mantissa >> MANTISSA_BITS:
        exponent += 1
        mantissa = _divided(numerator, denominator, exponent)
    if mantissa.bit_length() + exponent > TOP_BIT_MAX:
        return None
    return LongDouble(mantissa, exponent)


def _divided(numerator: int, denominator: int, exponent: int) -> int:
    """numerator / denominator / 2 ** exponent, rounded to the nearest integer, half to even."""
    if exponent < 0:
        numerator <<= -exponent
    else:
        denominator <<= exponent
    quotient, rest = divmod(numerator, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and quotient & 1):
        quotient += 1
    return quotient


def sum_or_none(one: LongDouble, other: LongDouble) -> LongDouble | None:
    """The rounded sum; None if it is infinite or not a number."""
    if one.infinite or other.infinite:
        return None
    exponent = min(one.exponent, other.exponent)
    exact = (one.mantissa << one.exponent - exponent) + (
        other.mantissa << other.exponent - exponent
    )
    if exact == 0:
        return LongDouble(0, 0)
    number = _rounded(abs(exact) << max(0, exponent), 1 << max(0, -exponent))
    if number is None or exact > 0:
        return number
    return number._replace(mantissa=-number.mantissa)


def text_of(number: LongDouble) -> bytes:
    """A number with up to 17 decimals and no trailing zeros."""
    scaled = _divided(abs(number.mantissa) * 10**DECIMALS, 1, -number.exponent)
    digits = _digits_of(scaled).rjust(DECIMALS + 1, b"0")
    text = (digits[:-DECIMALS] + b"." + digits[-DECIMALS:]).rstrip(b"0").rstrip(b".")
    return b"-" + text if number.mantissa < 0 and scaled else text


def _int_of(digits: bytes) -> int:
    if len(digits) <= _CHUNK_DIGITS:
        return int(digits)
    high, low = digits[:-_CHUNK_DIGITS], digits[-_CHUNK_DIGITS:]
    scale: int = 10**_CHUNK_DIGITS
    return int(high) * scale + int(low)


def _digits_of(number: int) -> bytes:
    high, low = divmod(number, 10**_CHUNK_DIGITS)
    if high == 0:
        return b"%d" % low
    return b"%d" % high + (b"%d" % low).rjust(_CHUNK_DIGITS, b"0")
