"""Builds Arrow record batches of a given schema from rows of a stream.

    _stream     string                     the key
    _id         string                     ms-seq
    _timestamp  timestamp[us, UTC]         the milliseconds of the id; null beyond Spark's range
    fields      map<k, v>                  all fields; the last one if a name repeats
    fields      list<struct<k, v>>         all fields, in order; k and v are string or binary
    _corrupt    map<string, string>        values that do not fit their column, as text; null if all fit
    any other   a type of KINDS            the field of that name

The caller gives the schema (for Spark, `to_arrow_schema(schema, "UTC")`). Batches have exactly this schema,
because Spark compares types and nullability. Buffers are wrapped, not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.client import columns as kinds
from penstock.client.columns import Column, Pairs
from penstock.client.rows import RowLimits, Rows
from penstock.errors import ConfigError, UnreadableValue

STREAM_COLUMN, ID_COLUMN, TIME_COLUMN = "_stream", "_id", "_timestamp"
FIELDS_COLUMN, CORRUPT_COLUMN = "fields", "_corrupt"

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_TEXT_KINDS = {pa.string(): kinds.STRING, pa.binary(): kinds.BINARY}
_SPECIAL = {
    STREAM_COLUMN: (pa.string(), kinds.STREAM, 0),
    ID_COLUMN: (pa.string(), kinds.ENTRY_ID, 0),
    TIME_COLUMN: (_TIMESTAMP, kinds.ENTRY_TIME, 8),
}
KINDS = {
    pa.string(): (kinds.STRING, 0),
    pa.binary(): (kinds.BINARY, 0),
    pa.int8(): (kinds.INTEGER, 1),
    pa.int16(): (kinds.INTEGER, 2),
    pa.int32(): (kinds.INTEGER, 4),
    pa.int64(): (kinds.INTEGER, 8),
    pa.float32(): (kinds.FLOAT, 4),
    pa.float64(): (kinds.DOUBLE, 8),
    pa.bool_(): (kinds.BOOLEAN, 0),
    pa.date32(): (kinds.DATE, 4),
    _TIMESTAMP: (kinds.TIMESTAMP, 8),
    pa.timestamp("us"): (kinds.LOCAL_TIMESTAMP, 8),
}
"""Types of columns for one field. Also supported: decimal128 of any precision and scale."""


class BatchBuilder:
    """Collects rows of one stream and returns them as record batches of one schema."""

    def __init__(self, schema: pa.Schema, stream: bytes, limits: RowLimits | None = None) -> None:
        """Raises: ConfigError for a column type that is not supported."""
        self._schema = schema
        self._made: list[Column | Pairs] = [_column_for(field) for field in schema]
        singles = [
            (None if field.name in _SPECIAL else field.name.encode(), made)
            for field, made in zip(schema, self._made, strict=True)
            if isinstance(made, Column)
        ]
        self.rows = Rows(singles, stream, RowLimits() if limits is None else limits)
        for field, made in zip(schema, self._made, strict=True):
            if isinstance(made, Pairs) and field.name == CORRUPT_COLUMN:
                self.rows.corrupt = made
            elif isinstance(made, Pairs):
                self.rows.fields = made
                self.rows.keep_all = pa.types.is_list(field.type)

    def take(self) -> pa.RecordBatch:
        """The rows so far, as a batch. Starts the next batch. Raises: UnreadableValue."""
        count = self.rows.count
        arrays = [
            _array(field, made, count) for field, made in zip(self._schema, self._made, strict=True)
        ]
        self.rows.begin()
        if not arrays:
            # from_arrays without columns would lose the number of rows, which Spark needs to count.
            return pa.RecordBatch.from_struct_array(
                pa.Array.from_buffers(pa.struct([]), count, [None])
            )
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def column_of(values: Sequence[bytes | None], kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """A column made from texts, and the rows that are null because their text does not fit the type.

    Raises: ConfigError.
    """
    field = pa.field("", kind)
    made = _single_for(field)
    buffer = bytearray(b"".join(value for value in values if value is not None))
    bad: list[int] = []
    at = 0
    for row, value in enumerate(values):
        if value is None:
            made.put_null(row)
            continue
        if not made.put(row, buffer, at, len(value)):
            made.put_null(row)
            bad.append(row)
        at += len(value)
    return _array(field, made, len(values)), bad


def pair_types_or_none(kind: pa.DataType) -> list[pa.DataType] | None:
    """The types of name and value, if a column of this type holds all fields of an entry."""
    types: list[pa.DataType] = []
    if pa.types.is_map(kind):
        types = [kind.key_type, kind.item_type]
    elif pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        types = [part.type for part in kind.value_type]
    if len(types) != 2 or any(part not in _TEXT_KINDS for part in types):
        return None
    return types


def _column_for(field: pa.Field) -> Column | Pairs:
    name, kind = field.name, field.type
    if name in _SPECIAL:
        expected, special, width = _SPECIAL[name]
        if kind != expected:
            raise ConfigError(f"the column {name} must have the type {expected}, not {kind}")
        return Column(special, width)
    if name == CORRUPT_COLUMN:
        if not pa.types.is_map(kind) or (kind.key_type, kind.item_type) != (pa.string(),) * 2:
            raise ConfigError(f"the column {name} must be a map of string to string, not {kind}")
        return Pairs(kinds.STRING, kinds.STRING)
    if name == FIELDS_COLUMN and pa.types.is_nested(kind):
        return _pairs_for(kind)
    return _single_for(field)


def _single_for(field: pa.Field) -> Column:
    name, kind = field.name, field.type
    if pa.types.is_decimal128(kind):
        return Column(kinds.DECIMAL, 16, kind.precision, kind.scale)
    if kind not in KINDS:
        raise ConfigError(
            f"the column {name} cannot be read as {kind}: read it as string or binary, then convert it"
        )
    return Column(*KINDS[kind])


def _pairs_for(kind: pa.DataType) -> Pairs:
    types = pair_types_or_none(kind)
    if types is None:
        raise ConfigError(
            "the column fields must be a map, or an array of structs of a name and a value, with string or"
            f" binary, not {kind}"
        )
    return Pairs(_TEXT_KINDS[types[0]], _TEXT_KINDS[types[1]])


def _array(field: pa.Field, made: Column | Pairs, count: int) -> pa.Array:
    if isinstance(made, Pairs):
        return _pairs_array(field, made, count)
    size = made.text_bytes()
    validity, offsets, data, nulls = made.take()
    if nulls and not field.nullable:
        raise UnreadableValue(
            f"the column {field.name} must not be null, but {nulls} of {count} entries have no such value"
        )
    return _wrapped(field.type, count, (validity, offsets, data, nulls), size)


def _wrapped(kind: pa.DataType, count: int, taken: kinds.Buffers, size: int) -> pa.Array:
    validity, offsets, data, nulls = taken
    buffers: list[Any] = [_buffer(validity, (count + 7) // 8) if nulls else None]
    if offsets is not None:
        buffers.append(_buffer(offsets, 4 * (count + 1)))
        buffers.append(_buffer(data, size))
    else:
        buffers.append(_buffer(data, (count * kind.bit_width + 7) // 8))
    return pa.Array.from_buffers(kind, count, buffers, nulls)


def _pairs_array(field: pa.Field, made: Pairs, count: int) -> pa.Array:
    kind, pairs = field.type, made.count
    if pa.types.is_map(kind):
        parts = [kind.key_field, kind.item_field]
    else:
        parts = list(kind.value_type)
    children = []
    for part, column in zip(parts, (made.names, made.values), strict=True):
        size = column.text_bytes()
        children.append(_wrapped(part.type, pairs, column.take(), size))
    entries = pa.Array.from_buffers(pa.struct(parts), pairs, [None], 0, children=children)
    validity, offsets, _, nulls = made.take()
    assert offsets is not None
    buffers = [_buffer(validity, (count + 7) // 8) if nulls else None]
    buffers.append(_buffer(offsets, 4 * (count + 1)))
    return pa.Array.from_buffers(kind, count, buffers, nulls, children=[entries])


def _buffer(data: bytearray, size: int) -> pa.Buffer:
    return pa.py_buffer(data).slice(0, size)
