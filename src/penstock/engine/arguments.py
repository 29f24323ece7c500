"""Reads a command's arguments from its frame; raises Redis's errors for wrong ones."""

from __future__ import annotations

from penstock.core import long_double, memory, stream_id
from penstock.core.frame import Frame
from penstock.core.stream_id import StreamID
from penstock.engine.context import Context
from penstock.engine.keyspace import Keyspace
from penstock.errors import CommandError, no_such_database, not_an_integer

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_INT64_MAX = INT64_MAX
_WRAPPED_MAX = -(2**62)  # a count that wrapped to -2**63 cannot have grown beyond this
_DIGITS_MAX = 19
_MINUS = 45
_ZERO = 48
_NINE = 57


def int_at(frame: Frame, index: int, error: CommandError | None = None) -> int:
    """A 64-bit integer in the only form that Redis accepts: no plus, no blank, no leading zero.

    Raises: CommandError, the given one or "value is not an integer or out of range".
    """
    if not 0 <= index < frame.count:
        raise IndexError(index)
    buffer = frame.buffer
    at = memory.span_start(frame.spans, index)
    size = memory.span_size(frame.spans, index)
    negative = size > 0 and buffer[at] == _MINUS
    if negative:
        at += 1
        size -= 1
    if 0 < size <= _DIGITS_MAX and (buffer[at] != _ZERO or (size == 1 and not negative)):
        magnitude = 0
        end = at + size
        while at < end and _ZERO <= buffer[at] <= _NINE:
            magnitude = magnitude * 10 + (buffer[at] - _ZERO)
            at += 1
        if at == end and magnitude <= _INT64_MAX:
            return memory.negate(magnitude) if negative else magnitude
        if at == end and negative and magnitude == _INT64_MAX + 1:
            return INT64_MIN
    raise not_an_integer() if error is None else error


def ids_from(frame: Frame, first: int) -> list[StreamID]:
    """The stream ids from one argument to the last. Raises: InvalidID."""
    ids: list[StreamID] = []
    for at in range(first, frame.count):
        ids.append(stream_id.parse_span(frame.buffer, frame.start(at), frame.size(at), 0))
    return ids


def unwrapped(count: int) -> int:
    """A count from a file: if Redis let it wrap into negative numbers, it becomes the largest number."""
    return INT64_MAX if count < _WRAPPED_MAX else count


def count_at(context: Context, frame: Frame, index: int, error: CommandError | None = None) -> int:
    """As int_at, for a count that may have wrapped in Redis before it was logged."""
    count = int_at(frame, index, error)
    return unwrapped(count) if context.replaying else count


def int_of(text: bytes) -> int:
    """As int_at, for a key's value instead of an argument."""
    digits = text[1:] if text[:1] == b"-" else text
    if 0 < len(digits) <= _DIGITS_MAX and digits.isdigit() and (digits[0] != _ZERO or text == b"0"):
        value = int(text)
        if INT64_MIN <= value <= INT64_MAX:
            return value
    raise not_an_integer()


def int_between(frame: Frame, index: int, low: int, high: int, error: CommandError) -> int:
    """An integer in a range. Raises: the given error."""
    value = int_at(frame, index, error)
    if not low <= value <= high:
        raise error
    return value


def database_at(context: Context, frame: Frame, index: int) -> Keyspace:
    """The database with the number in an argument. Raises: CommandError if there is none."""
    number = int_at(frame, index)
    if not INT32_MIN <= number <= INT32_MAX:
        raise CommandError(f"value is out of range, value must between {INT32_MIN} and {INT32_MAX}")
    return database_of(context, number)


def database_of(context: Context, number: int) -> Keyspace:
    """The database with this number. Raises: CommandError if there is none."""
    if not 0 <= number < len(context.databases):
        raise no_such_database()
    return context.databases[number]


def timeout_at(frame: Frame, index: int) -> int:
    """A timeout in milliseconds; 0 means none."""
    value = int_at(frame, index, CommandError("timeout is not an integer or out of range"))
    if value < 0:
        raise CommandError("timeout is negative")
    return value


def seconds_at(context: Context, frame: Frame, index: int) -> int:
    """A timeout given in seconds with a fraction, in milliseconds; 0 means none."""
    seconds = long_double.parse_or_none(frame.piece(index))
    if seconds is None:
        raise CommandError("timeout is not a float or out of range")
    value = _milliseconds(seconds)
    has_end = context.compat.timeout_has_end
    if value < 0 or (value > INT64_MAX and not has_end):  # above 64 bits, 7.0 sees a sign
        raise CommandError("timeout is negative")
    if has_end and value > INT64_MAX - context.now_ms():
        raise CommandError("timeout is out of range")
    return value


def _milliseconds(seconds: long_double.LongDouble) -> int:
    """Whole milliseconds, rounded up after the product was rounded as on x86: 0.001 s is 1 ms."""
    if seconds.infinite:
        return seconds.mantissa * (INT64_MAX + 1)
    product = 1000 * seconds.mantissa
    exponent = seconds.exponent
    extra = abs(product).bit_length() - long_double.MANTISSA_BITS
    if extra > 0:
        product = (product + (1 << extra - 1)) >> extra
        exponent += extra
    return product << exponent if exponent >= 0 else -(-product >> -exponent)
