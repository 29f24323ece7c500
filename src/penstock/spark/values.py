"""From the bytes of a field to a value of a column: which texts are values of which type.

    boolean        true t yes y 1, false f no n 0, in any case
    byte .. long   digits with an optional sign, in range
    float, double  decimal digits with optional point and exponent; nan, inf, infinity in any case
    decimal(p,s)   the same without the words; refused if it does not fit without rounding
    string         UTF-8
    binary         anything
    date           2026-11-16
    timestamp      2026-11-16T02:29:09.123456Z, a blank for the T, +01:00 for the Z; without a zone it is UTC
    timestamp_ntz  the same, without a zone
    time           02:29:09.123456
    interval day   P1DT2H3M4.5S (ISO 8601)
    array, map, struct    JSON; its numbers and strings are read by the same rules, binary is base64

No blanks around a value. The functions of `parser_of` are the truth; `convert` lets Arrow do whole
columns of which a regular expression has shown that Arrow reads them the same way.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Parser = Callable[[bytes], Any]

_TRUE = frozenset((b"true", b"t", b"yes", b"y", b"1"))
_FALSE = frozenset((b"false", b"f", b"no", b"n", b"0"))
_WHOLE = re.compile(rb"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.I)
_DATE = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(rb"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")
_ZONE = re.compile(rb"Z|([+-])([0-9]{2}):?([0-9]{2})")
_INTERVAL = re.compile(
    rb"(-?)P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?"
    rb"(?:([0-9]{1,9})(?:\.([0-9]{1,6}))?S)?)?"
)

# Texts that Arrow reads exactly as the functions below do.
_PLAIN = {
    "whole": r"^-?[0-9]{1,19}$",
    "number": r"^-?[0-9]{1,30}(\.[0-9]{1,30})?$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$",
}


def parser_of(kind: pa.DataType) -> Parser:
    """The function that reads a text of this type. Raises: TypeError for a type that has no text."""
    for matches, parser in _SCALARS:
        if matches(kind):
            return parser
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return lambda text: _whole(text, limit)
    if pa.types.is_float32(kind):
        return lambda text: _narrow(_number(text))
    if pa.types.is_decimal(kind):
        return lambda text: _decimal(text, kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _moment if kind.tz else _local_moment
    if pa.types.is_nested(kind):
        leaf = _json_reader(kind)
        return lambda text: leaf(_json(text))
    raise TypeError(f"a column of type {kind} cannot be read out of a text")


def convert(values: Sequence[bytes | None], kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """A column, and where it is null because the text is no value of that type."""
    if pa.types.is_binary(kind):
        return pa.array(values, kind), []
    quick = _quick_or_none(values, kind)
    if quick is not None:
        return quick, []
    parse = parser_of(kind)
    bad: list[int] = []
    made: list[Any] = []
    for row, value in enumerate(values):
        try:
            made.append(None if value is None else parse(value))
        except (ValueError, OverflowError, RecursionError):
            made.append(None)
            bad.append(row)
    return pa.array(made, kind), bad


def _quick_or_none(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array | None:
    plain = None
    if pa.types.is_integer(kind):
        plain = _PLAIN["whole"]
    elif pa.types.is_float64(kind):
        plain = _PLAIN["number"]
    elif pa.types.is_date(kind):
        plain = _PLAIN["date"]
    elif pa.types.is_timestamp(kind) and kind.tz:
        plain = _PLAIN["timestamp"]
    elif not pa.types.is_string(kind):
        return None
    try:
        texts = pa.array(values, pa.binary()).cast(pa.string())
        if plain is None:
            return texts
        if pc.all(pc.match_substring_regex(texts, plain)).as_py() is False:
            return None
        return texts.cast(kind)
    except pa.ArrowInvalid:  # not UTF-8, out of range, no such day
        return None


def _truth(text: bytes) -> bool:
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("no boolean")


def _whole(text: bytes, limit: int) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError("no whole number")
    value = int(text)
    if not -limit <= value < limit:
        raise ValueError("out of range")
    return value


def _number(text: bytes) -> float:
    if not (_NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text)):
        raise ValueError("no number")
    return float(text)


def _narrow(value: float) -> float:
    """What a float of 32 bits holds; too large is infinite, as in a cast of Spark's."""
    return float(pa.scalar(value, pa.float64()).cast(pa.float32(), safe=False).as_py())


def _decimal(text: bytes, precision: int, scale: int) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError("no number")
    with localcontext() as context:
        context.prec = 80
        try:
            value = Decimal(text.decode())
            fitted = value.quantize(Decimal(1).scaleb(-scale))
        except InvalidOperation:
            raise ValueError("out of range") from None
        if fitted != value or abs(fitted.scaleb(scale)) >= 10**precision:
            raise ValueError("does not fit without rounding")
    return fitted


def _utf8(text: bytes) -> str:
    return text.decode()


def _day(text: bytes) -> date:
    parts = _DATE.fullmatch(text)
    if parts is None:
        raise ValueError("no date")
    return date(int(parts[1]), int(parts[2]), int(parts[3]))


def _clock(text: bytes) -> time:
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError("no time of day")
    micros = int((parts[4] or b"0").ljust(6, b"0"))
    return time(int(parts[1]), int(parts[2]), int(parts[3]), micros)


def _local_moment(text: bytes) -> datetime:
    if text[10:11] not in (b"T", b" "):
        raise ValueError("no timestamp")
    return datetime.combine(_day(text[:10]), _clock(text[11:]))


def _moment(text: bytes) -> datetime:
    zone = _ZONE.search(text, 19)
    offset = timedelta()
    if zone is not None:
        if zone.end() != len(text):
            raise ValueError("no time zone")
        text = text[: zone.start()]
        if zone[1]:
            offset = timedelta(hours=int(zone[2]), minutes=int(zone[3]))
            offset = -offset if zone[1] == b"-" else offset
    return _local_moment(text).replace(tzinfo=timezone(offset)).astimezone(UTC)


def _interval(text: bytes) -> timedelta:
    parts = _INTERVAL.fullmatch(text)
    if parts is None or not any(parts[at] for at in range(2, 6)) or text.endswith(b"T"):
        raise ValueError("no interval")
    days, hours, minutes, seconds = (int(parts[at] or 0) for at in range(2, 6))
    micros = int((parts[6] or b"0").ljust(6, b"0"))
    value = timedelta(days, seconds, micros, 0, minutes, hours)
    return -value if parts[1] else value


def _nothing(_text: bytes) -> None:
    raise ValueError("a column of type void holds nothing")


_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], Parser], ...] = (
    (pa.types.is_boolean, _truth),
    (pa.types.is_float64, _number),
    (pa.types.is_string, _utf8),
    (pa.types.is_binary, bytes),
    (pa.types.is_date, _day),
    (pa.types.is_time, _clock),
    (pa.types.is_duration, _interval),
    (pa.types.is_null, _nothing),
)


def _json(text: bytes) -> Any:
    # Numbers stay texts: the rules of the column's type decide what they may be.
    return json.loads(text.decode(), parse_float=str, parse_int=str, parse_constant=str)


def _json_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """The function that turns what JSON has into a value of this type."""
    if pa.types.is_struct(kind):
        return _struct_reader(kind)
    if pa.types.is_map(kind):
        key = _json_reader(kind.key_type)
        item = _nullable(kind.item_field)
        return lambda value: [(key(name), item(value[name])) for name in _is(value, dict)]
    if pa.types.is_list(kind):
        element = _nullable(kind.value_field)
        return lambda value: [element(one) for one in _is(value, list)]
    if pa.types.is_binary(kind):
        return lambda value: _base64(_is(value, str))
    parse = parser_of(kind)

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            value = str(value).lower()
        return parse(_is(value, str).encode())

    return read


def _struct_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    members = [(field.name, _nullable(field)) for field in kind]
    return lambda value: {
        name: read(value.get(name)) for name, read in members if _is(value, dict) is value
    }


def _nullable(field: pa.Field) -> Callable[[Any], Any]:
    read = _json_reader(field.type)

    def read_or_none(value: Any) -> Any:
        if value is not None:
            return read(value)
        if not field.nullable:
            raise ValueError("null where the schema has none")
        return None

    return read_or_none


def _is(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"JSON has no {kind.__name__} here")
    return value


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("no base64") from None
