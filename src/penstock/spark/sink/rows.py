"""Turns rows of Spark into the fields of entries, and finds the target stream of each row.

    stream, _stream   without the option `stream`: the target of the row; not a field
    fields            a map, or an array of structs (name, value): each pair is a field
    all others        a field with the column's name

Values are written as text that the source reads back (spark/source/values.py): digits, true,
2026-11-16T02:29:09.123456Z; binary unchanged; arrays, maps and structs as JSON. A null is left out. A row
without any field is an error.

Arrow makes the text of a whole column at a time. The compiled client/row_blobs.py makes the blobs.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.client.row_blobs import PairColumn, RowBlobs, TextColumn
from penstock.errors import PenstockError
from penstock.spark.sink.options import STREAM_COLUMNS
from penstock.spark.source.schema import mark_or_none

FIELDS = "fields"
_DATE_BYTES, _MOMENT_BYTES = 10, 26  # 2026-11-16, and with a time: 2026-11-16 02:29:09.123456


class RowError(PenstockError):
    """Rows that cannot be written to a stream."""


class SinkRows:
    """The schema of a write. It can be pickled and keeps no state."""

    def __init__(self, schema: pa.Schema, stream: str) -> None:
        """`stream` is the target of all rows, or empty if a column has the target. Raises: RowError."""
        self.stream = stream
        self._route = None if stream else next(n for n in STREAM_COLUMNS if n in schema.names)
        for field in schema:
            if field.name == self._route:
                if not is_text(field.type):
                    raise RowError(
                        f"column {field.name}: the name of a stream must be string or binary"
                    )
            elif _pairs_or_none(field) is None:
                text_maker(field.type, field.name)
        if all(name == self._route for name in schema.names):
            raise RowError("there is no column except the one that names the stream")

    def routed(self, batch: pa.RecordBatch) -> Iterator[tuple[bytes, Rows]]:
        """The rows of a batch by target stream, in order within each stream. Raises: RowError."""
        if self._route is None:
            yield self.stream.encode(), Rows(batch, 0, batch.num_rows)
            return
        names = batch.column(self._route).cast(pa.binary())
        batch = batch.drop_columns([self._route])
        if names.null_count:
            raise RowError(
                f"column {self._route} is null in a row: it names the stream to write to"
            )
        codes = names.dictionary_encode()
        streams = codes.dictionary.to_pylist()
        if len(streams) > 1:
            order = pc.sort_indices(codes.indices)  # stable: keeps the order within a stream
            batch = batch.take(order)
        rows = Rows(batch, 0, 0)
        counts = {
            one["values"]: one["counts"] for one in pc.value_counts(codes.indices).to_pylist()
        }
        for code, stream in enumerate(streams):
            rows = rows.next(counts[code])
            yield stream, rows


class Rows:
    """A run of rows of a batch whose columns are text."""

    def __init__(self, batch: pa.RecordBatch, start: int, until: int) -> None:
        self._columns: list[TextColumn] = []
        self._pairs: PairColumn | None = None
        for field, column in zip(batch.schema, batch.columns, strict=True):
            pairs = _pairs_or_none(field)
            if pairs is not None:
                self._pairs = _pair_column(column, *pairs)
            else:
                texts = text_maker(field.type, field.name)(column)
                self._columns.append(_text_column(field.name.encode(), texts))
        self._start = start
        self._until = until

    def next(self, count: int) -> Rows:
        """The run of the next `count` rows."""
        made = Rows.__new__(Rows)
        made._columns, made._pairs = self._columns, self._pairs
        made._start, made._until = self._until, self._until + count
        return made

    def put(self, blobs: RowBlobs) -> None:
        """Append the rows to blobs. Raises: RowError."""
        try:
            blobs.add(self._columns, self._pairs, self._start, self._until)
        except ValueError as error:
            raise RowError(f"a row cannot be an entry: {error}") from None


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are bytes already."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def text_maker(kind: pa.DataType, name: str) -> Callable[[pa.Array], pa.Array]:
    """The function that turns a column into text. Raises: RowError if text cannot express the type."""
    if is_text(kind):
        return lambda column: column.cast(pa.binary())
    if pa.types.is_timestamp(kind):
        return _moments if kind.tz else _local_moments
    if pa.types.is_time64(kind):
        # Spark has at most six digits, and the source reads no more.
        return lambda column: column.cast(pa.time64("us")).cast(pa.string())
    if _is_plain(kind):
        return lambda column: column.cast(pa.string())
    if pa.types.is_duration(kind):
        return lambda column: pa.array([_interval(one) for one in column.to_pylist()], pa.string())
    if pa.types.is_nested(kind):
        mark = mark_or_none(kind)
        if mark is not None:
            raise RowError(f"column {name}: values of type {mark} cannot be written as text")
        shape = _json_maker(kind, name)
        return lambda column: pa.array(
            [None if one is None else _json(shape(one)) for one in column.to_pylist()], pa.string()
        )
    raise RowError(f"column {name}: values of type {kind} cannot be written as text")


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Arrow writes values of this type as the source reads them."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_time(kind)
        or types.is_null(kind)
    )


def _local_moments(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.timestamp("us")).cast(pa.string())
    if not pc.all(pc.equal(pc.binary_length(texts), _MOMENT_BYTES), min_count=0).as_py():
        raise RowError("timestamps before the year 0 or after 9999 cannot be written as text")
    return pc.binary_replace_slice(texts, _DATE_BYTES, _DATE_BYTES + 1, "T")


def _moments(column: pa.Array) -> pa.Array:
    # Timestamps of Spark are in UTC. Arrow is ten times slower for a type with a time zone.
    return pc.binary_replace_slice(_local_moments(column), _MOMENT_BYTES, _MOMENT_BYTES, "Z")


def _interval(value: timedelta | None) -> str | None:
    """ISO 8601, in days and seconds."""
    if value is None:
        return None
    sign = "-" if value < timedelta(0) else ""
    value = abs(value)
    seconds = f"{value.seconds}.{value.microseconds:06}".rstrip("0").rstrip(".")
    return f"{sign}P{value.days}DT{seconds}S"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_maker(kind: pa.DataType, name: str) -> Callable[[Any], Any]:
    """The function that turns a value into one that JSON can hold. Types that JSON lacks become text."""
    if pa.types.is_struct(kind):
        members = [(field.name, _or_null(field.type, name)) for field in kind]
        return lambda value: {member: make(value[member]) for member, make in members}
    if pa.types.is_map(kind):
        if pa.types.is_nested(kind.key_type):
            raise RowError(f"column {name}: keys of type {kind.key_type} cannot be written as JSON")
        item = _or_null(kind.item_type, name)
        key = _or_null(kind.key_type, name)
        return lambda pairs: {_key(key(one)): item(other) for one, other in pairs}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _or_null(kind.value_type, name)
        return lambda value: [element(one) for one in value]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    if is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return lambda value: value
    texts = text_maker(kind, name)

    def text(value: Any) -> Any:
        if isinstance(value, float) and math.isfinite(value):
            return value
        return texts(pa.array([value], kind))[0].as_py()

    return text


def _or_null(kind: pa.DataType, name: str) -> Callable[[Any], Any]:
    make = _json_maker(kind, name)
    return lambda value: None if value is None else make(value)


def _key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs_or_none(field: pa.Field) -> tuple[pa.DataType, pa.DataType] | None:
    """The types of name and value if the column holds all fields, or None for an ordinary column."""
    kind = field.type
    if field.name != FIELDS:
        return None
    if pa.types.is_map(kind) and is_text(kind.key_type):
        name, value = kind.key_type, kind.item_type
    elif pa.types.is_list(kind) and _is_pair(kind.value_type):
        name, value = kind.value_type.field("name").type, kind.value_type.field("value").type
    else:
        return None
    text_maker(value, FIELDS)
    return name, value


def _is_pair(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_struct(kind)
        and {field.name for field in kind} == {"name", "value"}
        and is_text(kind.field("name").type)
    )


def _pair_column(column: pa.Array, name: pa.DataType, value: pa.DataType) -> PairColumn:
    if pa.types.is_map(column.type):
        names, values = column.keys, column.items
    else:
        names, values = (pc.struct_field(column.values, [one]) for one in ("name", "value"))
    names, values = text_maker(name, FIELDS)(names), text_maker(value, FIELDS)(values)
    validity, offsets = column.buffers()[:2]
    return PairColumn(
        _text_column(b"", names),
        _text_column(b"", values),
        None if validity is None else bytearray(validity),
        bytearray(offsets),
        column.offset,
    )


def _text_column(name: bytes, texts: pa.Array) -> TextColumn:
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    validity, offsets, data = texts.buffers()
    return TextColumn(
        name,
        None if validity is None or not texts.null_count else bytearray(validity),
        bytearray(4) if offsets is None else bytearray(offsets),
        bytearray() if data is None else bytearray(data),
        texts.offset,
    )
