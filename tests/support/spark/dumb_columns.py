"""A simple reference that turns entries into rows with Python objects, to compare the compiled code with."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa

from penstock.core import stream_id

Entry = tuple[bytes, list[tuple[bytes, bytes]]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def rows_of(entries: list[Entry], schema: pa.Schema, stream: bytes = b"s") -> list[dict[str, Any]]:
    """The expected rows of all batches, as to_pylist() returns them."""
    return [_row(entry, schema, stream) for entry in entries]


def _row(entry: Entry, schema: pa.Schema, stream: bytes) -> dict[str, Any]:
    entry_id, fields = entry
    last = dict(fields)
    # A dict keeps the position of the first of two equal names, a map that of the last.
    ordered = {name: last[name] for name in reversed(dict(reversed(fields)))}
    bad: dict[str, str] = {}
    row: dict[str, Any] = {}
    for field in schema:
        if field.name == "_id":
            row["_id"] = entry_id.decode()
        elif field.name == "_stream":
            row["_stream"] = stream.decode()
        elif field.name == "_timestamp":
            row["_timestamp"] = _moment_or_none(entry_id)
        elif field.name == "fields" and pa.types.is_map(field.type):
            row["fields"] = _pairs(
                list(ordered.items()), field.type.key_type, field.type.item_type, bad
            )
        elif field.name == "fields":
            names, values = (part.type for part in field.type.value_type)
            row["fields"] = [
                {"name": name, "value": value} for name, value in _pairs(fields, names, values, bad)
            ]
        elif field.name != "_corrupt":
            row[field.name] = _value(last, field, bad)
    if "_corrupt" in schema.names:
        row["_corrupt"] = sorted(bad.items()) or None
    return row


def _moment_or_none(entry_id: bytes) -> datetime | None:
    ms = stream_id.parse(entry_id).ms
    if ms > 253_402_300_799_999:
        return None
    return EPOCH + timedelta(milliseconds=ms)


def _pairs(
    fields: list[tuple[bytes, bytes]], names: pa.DataType, values: pa.DataType, bad: dict[str, str]
) -> list[tuple[Any, Any]]:
    made: list[tuple[Any, Any]] = []
    for name, value in fields:
        key = _escaped(name) if pa.types.is_string(names) else name
        try:
            made.append((key, read(value, values)))
        except ValueError:
            made.append((key, None))
            bad[_escaped(name)] = _escaped(value)
    return made


def _value(last: dict[bytes, bytes], field: pa.Field, bad: dict[str, str]) -> Any:
    name = field.name.encode()
    if name not in last:
        return None
    try:
        return read(last[name], field.type)
    except (ValueError, OverflowError):
        bad[_escaped(name)] = _escaped(last[name])
        return None


def _escaped(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def read(text: bytes, kind: pa.DataType) -> Any:
    """One value of a type. Raises: ValueError, OverflowError."""
    for matches, reader in READERS:
        if matches(kind):
            return reader(text, kind)
    raise AssertionError(kind)


def _integer(text: bytes, kind: pa.DataType) -> int:
    if not re.fullmatch(rb"[+-]?[0-9]+", text):
        raise ValueError
    value = int(text)
    if not -(1 << kind.bit_width - 1) <= value < 1 << kind.bit_width - 1:
        raise ValueError
    return value


def _real(text: bytes, kind: pa.DataType) -> float:
    if not NUMBER.fullmatch(text) and not NOT_FINITE.fullmatch(text):
        raise ValueError
    value = float(text)
    if kind == pa.float32():
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value *= float("inf")
    return value


def _boolean(text: bytes, _kind: pa.DataType) -> bool:
    word = text.lower()
    if word not in (b"true", b"t", b"yes", b"y", b"1", b"false", b"f", b"no", b"n", b"0"):
        raise ValueError
    return word in (b"true", b"t", b"yes", b"y", b"1")


def _date(text: bytes, _kind: pa.DataType) -> date:
    if not re.fullmatch(rb"\d{4}-\d\d-\d\d", text):
        raise ValueError
    return date(int(text[:4]), int(text[5:7]), int(text[8:]))


def _timestamp(text: bytes, kind: pa.DataType) -> datetime:
    zone = rb"(Z|[+-]\d\d:?\d\d)?" if kind.tz else rb"()"
    found = re.fullmatch(rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d{1,6})?)" + zone, text)
    if not found:
        raise ValueError
    offset = (found[3] or b"").decode().replace("Z", "+00:00")
    if not kind.tz:
        return datetime.fromisoformat(f"{found[1].decode()}T{found[2].decode()}")
    made = datetime.fromisoformat(f"{found[1].decode()}T{found[2].decode()}{offset or '+00:00'}")
    return made.astimezone(UTC)


def _decimal(text: bytes, kind: pa.DataType) -> Decimal:
    if not NUMBER.fullmatch(text):
        raise ValueError
    with localcontext() as context:
        context.prec = 200
        value = Decimal(text.decode())
        if value and (value.adjusted() > 40 or value.adjusted() < -40):
            raise ValueError
        fitted = value.quantize(Decimal(1).scaleb(-kind.scale))
        if fitted != value or abs(fitted.scaleb(kind.scale)) >= 10**kind.precision:
            raise ValueError
    return fitted or abs(fitted)  # Arrow has no negative zero


READERS: list[tuple[Callable[[pa.DataType], bool], Callable[[bytes, pa.DataType], Any]]] = [
    (pa.types.is_string, lambda text, _: text.decode()),
    (pa.types.is_binary, lambda text, _: text),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _real),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_decimal, _decimal),
]


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals NaN and -0.0 differs from 0.0."""
    return repr(left) == repr(right)
