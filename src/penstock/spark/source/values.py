"""Parses the bytes of a field into a value of its column's type.

    boolean        true t yes y 1, false f no n 0, in any case
    byte .. long   digits with an optional sign, in range
    float, double  decimal digits with optional point and exponent; nan, inf, infinity in any case
    decimal(p,s)   the same without nan and inf; refused if it would have to be rounded
    string         UTF-8
    binary         anything
    date           2026-11-16, years 1 to 9999
    timestamp      2026-11-16T02:29:09.123456Z; a blank for T; +01:00, +0100 or nothing (UTC) for Z
    timestamp_ntz  the same without a zone
    time           02:29:09.123456
    interval day   P1DT2H3M4.5S (ISO 8601)
    array, map, struct    JSON; its numbers and strings follow the same rules, binary is base64

Blanks around a value are not allowed. client/value_text.py implements the types down to timestamp_ntz, also
for the bulk decoders. This module adds the other types and JSON.
"""

from __future__ import annotations

import base64
import binascii
import ctypes
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from penstock.client.arrow_batch import KINDS, column_of
from penstock.client.value_text import ValueText, is_utf8

Parser = Callable[[bytes], Any]

_TIME = re.compile(rb"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")
_INTERVAL = re.compile(
    rb"(-?)P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?"
    rb"(?:([0-9]{1,9})(?:\.([0-9]{1,6}))?S)?)?"
)
_INTERVAL_MAX = timedelta(microseconds=2**63 - 1)  # Spark's limit
_EPOCH = datetime(1970, 1, 1)  # timestamp_ntz has no time zone
_EXACTLY = Context(prec=40)


def parser_of(kind: pa.DataType) -> Parser:
    """The function that parses values of this type. Raises: TypeError if text cannot express the type."""
    for matches, parser in _SCALARS:
        if matches(kind):
            return parser
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return lambda text: _whole(text, limit)
    if pa.types.is_decimal(kind):
        return lambda text: _decimal(text, kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _moment if kind.tz else _local_moment
    if pa.types.is_nested(kind):
        leaf = _json_reader(kind)
        return lambda text: leaf(_json(text))
    raise TypeError(f"a column of type {kind} cannot be read from text")


def convert(values: Sequence[bytes | None], kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """A column, and the rows that are null because their text did not parse."""
    if kind in KINDS or pa.types.is_decimal128(kind):
        return column_of(values, kind)
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


def _read(method: Callable[..., bool], text: bytes, *more: Any) -> None:
    if not method(bytearray(text), 0, len(text), *more):
        raise ValueError("not a value of this type")


def _truth(text: bytes) -> bool:
    found = ValueText()
    _read(found.boolean, text)
    return bool(found.number)


def _whole(text: bytes, limit: int) -> int:
    found = ValueText()
    _read(found.integer, text)
    if not -limit <= found.number < limit:
        raise ValueError("out of range")
    return found.number


def _number(text: bytes) -> float:
    found = ValueText()
    _read(found.real_number, text)
    return found.real


def _narrow(text: bytes) -> float:
    """Rounded to 32 bits. Too large a number becomes infinite, as in Spark's cast."""
    return ctypes.c_float(_number(text)).value


def _decimal(text: bytes, precision: int, scale: int) -> Decimal:
    found = ValueText()
    _read(found.decimal_number, text, precision, scale)
    number = found.number
    if found.wide is not None:
        number = int.from_bytes(found.wide, "little", signed=True)
    return Decimal(number).scaleb(-scale, _EXACTLY)


def _utf8(text: bytes) -> str:
    _read(is_utf8, text)
    return text.decode()


def _day(text: bytes) -> date:
    found = ValueText()
    _read(found.date, text)
    return _EPOCH.date() + timedelta(found.number)


def _clock(text: bytes) -> time:
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError("not a time of day")
    micros = int((parts[4] or b"0").ljust(6, b"0"))
    return time(int(parts[1]), int(parts[2]), int(parts[3]), micros)


def _local_moment(text: bytes) -> datetime:
    found = ValueText()
    _read(found.timestamp, text, False)
    return _EPOCH + timedelta(microseconds=found.number)


def _moment(text: bytes) -> datetime:
    found = ValueText()
    _read(found.timestamp, text, True)
    return _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=found.number)


def _interval(text: bytes) -> timedelta:
    parts = _INTERVAL.fullmatch(text)
    if parts is None or not any(parts[at] for at in range(2, 6)) or text.endswith(b"T"):
        raise ValueError("not an interval")
    days, hours, minutes, seconds = (int(parts[at] or 0) for at in range(2, 6))
    micros = int((parts[6] or b"0").ljust(6, b"0"))
    value = timedelta(days, seconds, micros, 0, minutes, hours)
    if value > _INTERVAL_MAX:
        raise ValueError("out of range")
    return -value if parts[1] else value


def _nothing(_text: bytes) -> None:
    raise ValueError("a column of type void holds no value")


_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], Parser], ...] = (
    (pa.types.is_boolean, _truth),
    (pa.types.is_float64, _number),
    (pa.types.is_float32, _narrow),
    (pa.types.is_string, _utf8),
    (pa.types.is_binary, bytes),
    (pa.types.is_date, _day),
    (pa.types.is_time, _clock),
    (pa.types.is_duration, _interval),
    (pa.types.is_null, _nothing),
)


def _json(text: bytes) -> Any:
    # Numbers stay strings, so that the parser of the column's type reads them.
    return json.loads(text.decode(), parse_float=str, parse_int=str, parse_constant=str)


def _json_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """The function that turns a decoded JSON value into a value of this type."""
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
            raise ValueError("null in a member that is not nullable")
        return None

    return read_or_none


def _is(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"JSON: expected {kind.__name__}")
    return value


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
