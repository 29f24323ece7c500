"""Decodes a payload: a field that holds a JSON object becomes a struct of the declared type.

The rules are strict. A value that breaks one is not decoded, and its row is rejected with a reason:

    json:broken       not JSON (RFC 8259), not UTF-8, or text after the object; NaN and Infinity are not JSON
    json:huge         longer than BYTES_MAX
    json:deep         nested deeper than DEPTH_MAX
    json:duplicate    an object has the same name twice
    json:type:PATH    the value at this path has another type than declared, or does not fit it

    declared                    in JSON
    string, date, timestamp ..  a string; dates and times as in a field (spark/source/values.py)
    boolean                     true or false
    byte .. long                a number without point and exponent, in range
    float, double               a number in range
    decimal(p,s)                a number or a string that need not be rounded
    binary                      a string of base64
    array, map, struct          an array, an object, an object

A member that is missing or null is null, or a `json:type` if it is declared `not null`. Members that are not
declared are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.spark.source.values import parser_of

BYTES_MAX = 16 * 1024 * 1024
DEPTH_MAX = 200

Reader = Callable[[Any], Any]

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.S)


class PayloadError(ValueError):
    """A payload that is not decoded. The text is the reason."""


class _Number(str):
    """A JSON number, as it is written: the parser of the declared type reads it."""

    __slots__ = ()


def decode(
    texts: Sequence[bytes | None], kind: pa.DataType, name: str
) -> tuple[pa.Array, pa.Array]:
    """A column of structs, and a column with the reason of each row that was not decoded.

    A row without a text is null and has no reason.
    """
    read = _reader(kind, name)
    made: list[Any] = []
    reasons: list[str | None] = []
    for text in texts:
        value = reason = None
        try:
            value = None if text is None else read(parse(text))
        except PayloadError as error:
            reason = str(error)
        made.append(value)
        reasons.append(reason)
    return pa.array(made, kind), pa.array(reasons, pa.string())


def parse(text: bytes) -> Any:
    """The JSON value, with numbers as they are written. Raises: PayloadError."""
    if len(text) > BYTES_MAX:
        raise PayloadError("json:huge")
    if text.count(b"[") + text.count(b"{") > DEPTH_MAX and _is_deep(text):
        raise PayloadError("json:deep")
    try:
        return _DECODER.decode(text.decode())
    except PayloadError:
        raise
    except ValueError:
        raise PayloadError("json:broken") from None


def _is_deep(text: bytes) -> bool:
    depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in (b"[", b"{"):
            depth += 1
            if depth > DEPTH_MAX:
                return True
        elif found[0] in (b"]", b"}"):
            depth -= 1
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise PayloadError("json:duplicate")
    return made


def _constant(_word: str) -> None:
    raise PayloadError("json:broken")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_Number, parse_float=_Number, parse_constant=_constant
)


def _reader(kind: pa.DataType, path: str) -> Reader:
    """The function that turns a JSON value into one of this type."""
    if pa.types.is_struct(kind):
        return _struct_reader(kind, path)
    if pa.types.is_map(kind):
        key = _reader(kind.key_type, f"{path}[]")
        item = _member_reader(kind.item_field, f"{path}[]")
        return lambda value: [
            (key(name), item(one)) for name, one in _is(value, dict, path).items()
        ]
    if pa.types.is_list(kind):
        element = _member_reader(kind.value_field, f"{path}[]")
        return lambda value: [element(one) for one in _is(value, list, path)]
    return _scalar_reader(kind, path)


def _struct_reader(kind: pa.DataType, path: str) -> Reader:
    members = [(field.name, _member_reader(field, f"{path}.{field.name}")) for field in kind]

    def read(value: Any) -> dict[str, Any]:
        found = _is(value, dict, path)
        return {name: member(found.get(name)) for name, member in members}

    return read


def _member_reader(field: pa.Field, path: str) -> Reader:
    read = _reader(field.type, path)

    def read_or_none(value: Any) -> Any:
        if value is None and field.nullable:
            return None
        return read(value)

    return read_or_none


def _scalar_reader(kind: pa.DataType, path: str) -> Reader:
    accepts = _accepted(kind)
    # The parser of binary takes any bytes, but in JSON it is base64: the parser of a list knows that.
    is_binary = pa.types.is_binary(kind)
    parser = parser_of(pa.list_(kind) if is_binary else kind)

    def read(value: Any) -> Any:
        if type(value) not in accepts:
            raise _misfit(path)
        try:
            if is_binary:
                return parser(json.dumps([value]).encode())[0]
            text = str(value).lower() if isinstance(value, bool) else value
            found = parser(text.encode())
        except (ValueError, OverflowError):
            raise _misfit(path) from None
        if isinstance(found, float) and not math.isfinite(found):
            raise _misfit(path)
        return found

    return read


def _accepted(kind: pa.DataType) -> tuple[type, ...]:
    """The types of JSON values that a declared type takes."""
    if pa.types.is_boolean(kind):
        return (bool,)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return (_Number,)
    if pa.types.is_decimal(kind):
        return (_Number, str)
    return (str,)


def _is(value: Any, kind: type, path: str) -> Any:
    if type(value) is not kind:
        raise _misfit(path)
    return value


def _misfit(path: str) -> PayloadError:
    return PayloadError(f"json:type:{path}")
