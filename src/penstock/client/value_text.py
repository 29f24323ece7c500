# cython: wraparound=False
"""Parses the text of a value for a typed column.

    integer      -17  +17  007                      no point, no exponent, no blanks
    real         1.5  -2e10  .5  inf  NaN           too large becomes infinity, as in a Spark cast
    boolean      true t yes y 1 / false f no n 0    upper or lower case
    date         2024-02-29                         years 1 to 9999, Spark's range
    timestamp    2024-02-29T10:20:30.123456+02:00   T or a blank; fraction and zone are optional
    decimal      12.345  1e3                        rejected if it does not fit without rounding

A time without a zone is UTC. A bare number is neither a date nor a timestamp, because it could count seconds
or milliseconds: read it as a number and convert it (`timestamp_millis(ts)`).

Results are stored in `number`, `real` or `wide`; a method returns whether the text is valid. So no object is
created, and invalid text raises no exception.

A real number with digits up to 2**53 and at most 22 decimal places is one exact division: both operands are
exact, so the quotient is rounded once. All others go to Python's float().
"""

from __future__ import annotations

import decimal
import re

from penstock.core import memory

_PLUS, _MINUS, _POINT, _COLON, _ZERO, _NINE = 43, 45, 46, 58, 48, 57
_BLANK, _CAPITAL_T, _CAPITAL_Z = 32, 84, 90
_DIGITS_MAX = 19  # always fits 64 bits unsigned
_INT64_MAX = 2**63 - 1
_EXACT_MAX = 2**53
_EXACT_SCALE_MAX = 22
_POWERS = tuple(float(10**power) for power in range(_EXACT_SCALE_MAX + 1))
_TENS = tuple(10**power for power in range(_DIGITS_MAX))
_NUMBER_DIGITS_MAX = 18  # of a decimal that fits 64 bits, signed
_DAY_MICROSECONDS = 86_400_000_000
_DAY_MIN = -719_162  # 0001-01-01
_DAY_MAX = 2_932_896  # 9999-12-31
_FRACTION_DIGITS = 6
_BOOLEAN_BYTES_MAX = 5
# Words as big-endian numbers: t, true, y, yes, 1 and f, false, n, no, 0.
_TRUTHS = (0x74, 0x74727565, 0x79, 0x796573, 0x31)
_UNTRUTHS = (0x66, 0x66616C7365, 0x6E, 0x6E6F, 0x30)
_T, _TRUE, _Y, _YES, _ONE_DIGIT = _TRUTHS
_F, _FALSE, _N, _NO, _ZERO_DIGIT = _UNTRUTHS
# More digits need a point first: `[0-9]+\.?[0-9]*` would try every split of a long run, O(n**2).
_NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DECIMAL_DIGITS_MAX = 38
# In compiled code, 10**precision would be a double, which is inexact near 10**38.
_LIMITS = tuple(10**digits for digits in range(_DECIMAL_DIGITS_MAX + 1))
_EXACTLY = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
)
_ASCII = 0x8080808080808080


class ValueText:
    """Parses texts in a buffer. Each method returns whether the text is valid for its type."""

    __slots__ = ("_at", "number", "real", "wide")

    def __init__(self) -> None:
        self.number = 0
        self.real = 0.0
        self.wide: bytes | None = None  # a 16-byte decimal that does not fit `number`
        self._at = 0

    def integer(self, buffer: bytearray, start: int, size: int) -> bool:
        """Parse a 64-bit integer into `number`."""
        at = start
        end = start + size
        negative = False
        if at < end and (buffer[at] == _MINUS or buffer[at] == _PLUS):
            negative = buffer[at] == _MINUS
            at += 1
        if at == end:
            return False
        while at < end and buffer[at] == _ZERO:
            at += 1
        if end - at > _DIGITS_MAX:
            return False
        magnitude = 0
        while at < end:
            byte = buffer[at]
            if byte < _ZERO or byte > _NINE:
                return False
            magnitude = magnitude * 10 + (byte - _ZERO)
            at += 1
        if magnitude > _INT64_MAX:
            if not negative or magnitude - 1 > _INT64_MAX:
                return False
        if negative:
            self.number = memory.negate(magnitude)
        else:
            self.number = magnitude
        return True

    def real_number(self, buffer: bytearray, start: int, size: int) -> bool:
        """Parse a number, with or without point and exponent, into `real`."""
        at = start
        end = start + size
        negative = False
        if at < end and (buffer[at] == _MINUS or buffer[at] == _PLUS):
            negative = buffer[at] == _MINUS
            at += 1
        mantissa = 0
        seen = significant = scale = 0
        behind_point = False
        while at < end:
            byte = buffer[at]
            if _ZERO <= byte <= _NINE:
                seen += 1
                if mantissa or byte != _ZERO:
                    significant += 1
                    if significant > _DIGITS_MAX:
                        break
                mantissa = mantissa * 10 + (byte - _ZERO)
                if behind_point:
                    scale += 1
            elif byte == _POINT and not behind_point:
                behind_point = True
            else:
                break
            at += 1
        if at < end or seen == 0 or mantissa > _EXACT_MAX or scale > _EXACT_SCALE_MAX:
            return self._real_slowly(memory.cut(buffer, start, size))
        real = float(mantissa)
        if scale:
            power = _POWERS[scale]
            real = real / power
        self.real = -real if negative else real
        return True

    def _real_slowly(self, text: bytes) -> bool:
        if _NUMBER.fullmatch(text) is None and _NOT_FINITE.fullmatch(text) is None:
            return False
        self.real = float(text)
        return True

    def boolean(self, buffer: bytearray, start: int, size: int) -> bool:
        """Parse a boolean into `number`, as 1 or 0."""
        if size == 0 or size > _BOOLEAN_BYTES_MAX:
            return False
        word = 0
        for at in range(start, start + size):
            byte = buffer[at]
            if 65 <= byte <= 90:
                byte += 32
            word = word << 8 | byte
        if word == _TRUE or word == _ONE_DIGIT or word == _T or word == _YES or word == _Y:
            self.number = 1
            return True
        self.number = 0
        return word == _FALSE or word == _ZERO_DIGIT or word == _F or word == _NO or word == _N

    def date(self, buffer: bytearray, start: int, size: int) -> bool:
        """Parse a date into `number`, as days since 1970."""
        return size == 10 and self._day(buffer, start)

    def _day(self, buffer: bytearray, at: int) -> bool:
        """Parse the ten bytes of a date. The caller has checked that they exist."""
        if buffer[at + 4] != _MINUS or buffer[at + 7] != _MINUS:
            return False
        century = _two_digits(buffer, at)
        year = _two_digits(buffer, at + 2)
        month = _two_digits(buffer, at + 5)
        day = _two_digits(buffer, at + 8)
        if century < 0 or year < 0 or month < 1 or month > 12 or day < 1:
            return False
        year += 100 * century
        if year == 0 or day > _month_days(year, month):
            return False
        # Count years from March: the leap day comes last, and month lengths follow a formula.
        if month <= 2:
            year -= 1
            month += 12
        days = 365 * year + year // 4 - year // 100 + year // 400
        self.number = days + (153 * (month - 3) + 2) // 5 + day - 1 - 719_468
        return True

    def timestamp(self, buffer: bytearray, start: int, size: int, zoned: bool) -> bool:
        """Parse a timestamp into `number`, as microseconds since 1970. `zoned`: it may have a zone."""
        end = start + size
        if size < 19 or not self._day(buffer, start):
            return False
        days = self.number
        microseconds = self._time(buffer, start + 10, end)
        if microseconds < 0:
            return False
        offset = 0
        if self._at < end:
            if not zoned or not self._zone(buffer, self._at, end):
                return False
            offset = self.number
        moment = days * _DAY_MICROSECONDS + microseconds - offset * 60_000_000
        self.number = moment
        first = _DAY_MIN * _DAY_MICROSECONDS
        return first <= moment < (_DAY_MAX + 1) * _DAY_MICROSECONDS

    def _time(self, buffer: bytearray, at: int, end: int) -> int:
        """Parse a time of day of at least nine bytes: microseconds, or -1. Sets `_at` to its end."""
        if buffer[at] != _CAPITAL_T and buffer[at] != _BLANK:
            return -1
        if buffer[at + 3] != _COLON or buffer[at + 6] != _COLON:
            return -1
        hours = _two_digits(buffer, at + 1)
        minutes = _two_digits(buffer, at + 4)
        seconds = _two_digits(buffer, at + 7)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59 or seconds < 0 or seconds > 59:
            return -1
        at += 9
        fraction = 0
        if at < end and buffer[at] == _POINT:
            at += 1
            digits = 0
            while at < end and _ZERO <= buffer[at] <= _NINE:
                fraction = fraction * 10 + (buffer[at] - _ZERO)
                digits += 1
                at += 1
                if digits > _FRACTION_DIGITS:
                    return -1
            if digits == 0:
                return -1
            while digits < _FRACTION_DIGITS:
                fraction *= 10
                digits += 1
        self._at = at
        seconds += 60 * minutes + 3600 * hours
        return seconds * 1_000_000 + fraction

    def _zone(self, buffer: bytearray, at: int, end: int) -> bool:
        """Parse Z, +0200 or +02:00 into `number`, as minutes."""
        size = end - at
        if size == 1 and buffer[at] == _CAPITAL_Z:
            self.number = 0
            return True
        if (buffer[at] != _PLUS and buffer[at] != _MINUS) or size not in (5, 6):
            return False
        if size == 6 and buffer[at + 3] != _COLON:
            return False
        hours = _two_digits(buffer, at + 1)
        minutes = _two_digits(buffer, end - 2)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return False
        minutes += 60 * hours
        self.number = -minutes if buffer[at] == _MINUS else minutes
        return True

    def decimal_number(
        self, buffer: bytearray, start: int, size: int, precision: int, scale: int
    ) -> bool:
        """Parse a decimal times 10**scale into `number`, or into `wide` if that is not None."""
        self.wide = None
        at = start
        end = start + size
        negative = False
        if at < end and (buffer[at] == _MINUS or buffer[at] == _PLUS):
            negative = buffer[at] == _MINUS
            at += 1
        mantissa = 0
        digits = behind = 0
        behind_point = False
        while at < end and digits <= _NUMBER_DIGITS_MAX:
            byte = buffer[at]
            if _ZERO <= byte <= _NINE:
                mantissa = mantissa * 10 + (byte - _ZERO)
                digits += 1
                if behind_point:
                    behind += 1
            elif byte == _POINT and not behind_point:
                behind_point = True
            else:
                break
            at += 1
        if (
            at < end
            or digits == 0
            or behind > scale
            or digits + scale - behind > _NUMBER_DIGITS_MAX
        ):
            return self._decimal_slowly(memory.cut(buffer, start, size), precision, scale)
        ten = _TENS[scale - behind]
        mantissa *= ten
        if precision <= _NUMBER_DIGITS_MAX:
            ten = _TENS[precision]
            if mantissa >= ten:
                return False
        if negative:
            self.number = memory.negate(mantissa)
        else:
            self.number = mantissa
        return True

    def decimal_of(self, value: int, precision: int, scale: int) -> bool:
        """As decimal_number, for an integer."""
        return self._decimal_slowly(b"%d" % value, precision, scale)

    def _decimal_slowly(self, text: bytes, precision: int, scale: int) -> bool:
        if _NUMBER.fullmatch(text) is None:
            return False
        value = decimal.Decimal(text.decode("ascii"))
        # Check the exponent before anything is allocated by it.
        if value and not -scale <= value.adjusted() <= _DECIMAL_DIGITS_MAX:
            return False
        fitted = value.quantize(decimal.Decimal((0, (1,), -scale)), context=_EXACTLY)
        unscaled = int(fitted.scaleb(scale, _EXACTLY))
        if fitted != value or abs(unscaled) >= _LIMITS[precision]:
            return False
        self.wide = unscaled.to_bytes(16, "little", signed=True)
        return True


def _two_digits(buffer: bytearray, at: int) -> int:
    """The value of two digits, or -1."""
    first = buffer[at]
    second = buffer[at + 1]
    if first < _ZERO or first > _NINE or second < _ZERO or second > _NINE:
        return -1
    return 10 * (first - _ZERO) + (second - _ZERO)


def _month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def is_utf8(buffer: bytearray, start: int, size: int) -> bool:
    """Whether part of a buffer is UTF-8, without surrogates and overlong forms (RFC 3629)."""
    at = start
    end = start + size
    while at < end:
        if end - at >= 8 and memory.load64(buffer, at) & _ASCII == 0:
            at += 8
            continue
        lead = buffer[at]
        at += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4 or at >= end:
            return False
        # Only the second byte can have a smaller range than 80 to bf.
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if buffer[at] < low or buffer[at] > high:
            return False
        at += 1
        more = 0 if lead < 0xE0 else 1 if lead < 0xF0 else 2
        if end - at < more:
            return False
        while more > 0:
            if buffer[at] & 0xC0 != 0x80:
                return False
            at += 1
            more -= 1
    return True
