"""The columns of a read, and how a page of entries becomes one Arrow batch.

The columns without a schema from the user:

    _stream string, _id string, _timestamp timestamp, fields map<string,string>

With a schema, a column holds the field of the same name: null if the entry has no such field, the last one if
it has several. These names are special:

    _stream, _id       string
    _timestamp         the time in the id; null after the year 9999, where Spark's timestamps end
    _deliveries        bigint or int: how often the group has delivered the entry; null in mode exclusive
    _corrupt           map<string,string>: the raw values of fields that did not parse; null if all did
    fields             all fields, if the type is a map of strings or binaries, or an array of (name, value)
    _raw               beside a map of strings: the unchanged fields of an entry that the map cannot hold,
                       as array<struct<name:binary,value:binary>> (client/raw_fields.py)

A value that does not fit its column becomes null. With onParseError=fail it is an error that names stream, id
and column. `_corrupt`, `_stream` and the names in `fields` show bytes that are not UTF-8 as backslash
escapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.client.arrow_batch import BatchBuilder, pair_types_or_none
from penstock.client.raw_fields import has_raw, read_schema, with_raw
from penstock.errors import ConfigError, PenstockError
from penstock.spark.source.values import convert, parser_of

Entry = Sequence[Any]  # as in a reply of XRANGE: the id, then a flat list of names and values

SHOWN_BYTES_MAX = 100
TIMESTAMP_MS_MAX = 253_402_300_799_999  # the end of the year 9999

DEFAULT_SCHEMAS = {
    "string": "_stream string, _id string, _timestamp timestamp, fields map<string,string>",
    "binary": "_stream string, _id string, _timestamp timestamp, fields map<string,binary>",
    "entries": "_stream string, _id string, _timestamp timestamp,"
    " fields array<struct<name:string,value:string>>",
}

_SPECIAL = {
    "_stream": (pa.types.is_string, "string"),
    "_id": (pa.types.is_string, "string"),
    "_timestamp": (lambda kind: pa.types.is_timestamp(kind) and kind.tz, "timestamp"),
    "_deliveries": (lambda kind: kind in (pa.int32(), pa.int64()), "bigint"),
    "_corrupt": (
        lambda kind: (
            pa.types.is_map(kind) and (kind.key_type, kind.item_type) == (pa.string(), pa.string())
        ),
        "map<string,string>",
    ),
}


class SchemaError(PenstockError):
    """A schema that the source cannot produce."""


class ParseError(PenstockError):
    """A value that does not fit its column, with onParseError=fail."""


@dataclass(frozen=True)
class Page:
    """Entries of one stream, as the server sent them."""

    stream: bytes
    entries: Sequence[Entry]
    deliveries: Mapping[bytes, int] | None = None


class EntrySchema:
    """Turns pages of entries into batches of one Arrow schema. It can be pickled and keeps no state.

    `arrow` is the schema that entries are read with. `finished` makes batches of the wanted schema of them.
    """

    def __init__(self, schema: pa.Schema, fail_on_parse_error: bool = False) -> None:
        self._wanted = schema
        schema = read_schema(schema) if has_raw(schema) else schema
        self.arrow = schema
        self.fail_on_parse_error = fail_on_parse_error
        for field in schema:
            _check(field)
        self.typed = [field for field in schema if not _is_own(field)]
        self.is_bulk = _is_bulk(schema)

    def finished(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of `arrow` with the wanted columns."""
        return batch if self._wanted is self.arrow else with_raw(batch, self._wanted)

    def batch(self, page: Page) -> pa.RecordBatch:
        """The rows of a page. Raises: ParseError."""
        rows = [_last_wins(entry[1]) for entry in page.entries]
        corrupt: list[dict[bytes, bytes]] = [{} for _ in rows]
        made: dict[str, pa.Array] = {}
        for field in self.typed:
            name = field.name.encode()
            values = [row.get(name) for row in rows]
            made[field.name], bad = convert(values, field.type)
            for row in bad:
                corrupt[row][name] = rows[row][name]
        for field in self.arrow:
            if _is_whole_entry(field):
                made[field.name] = _fields(field.type, page.entries, rows, corrupt)
        self._check_values(page, made, corrupt)
        for field in self.arrow:
            if field.name in _SPECIAL:
                made[field.name] = _special(field, page, corrupt)
        return pa.RecordBatch.from_arrays(
            [made[field.name] for field in self.arrow], schema=self.arrow
        )

    def _check_values(
        self, page: Page, made: Mapping[str, pa.Array], corrupt: list[dict[bytes, bytes]]
    ) -> None:
        if self.fail_on_parse_error:
            for row, found in enumerate(corrupt):
                for name, value in found.items():
                    raise _unfit(page, row, _misfit(name, value))
        for field in self.typed:
            if not field.nullable and made[field.name].null_count:
                row = made[field.name].is_null().index(True).as_py()
                raise _unfit(
                    page, row, f"the column {field.name} must not be null, but has no value"
                )


def _is_bulk(schema: pa.Schema) -> bool:
    """Whether the compiled decoders know all types of a schema."""
    if "_deliveries" in schema.names:
        return False
    try:
        BatchBuilder(schema, b"")
    except ConfigError:
        return False
    return True


def _unfit(page: Page, row: int, what: str) -> ParseError:
    where = f"stream {_shown(page.stream)}, entry {page.entries[row][0].decode()}"
    return ParseError(f"{where}: {what}")


def _misfit(name: bytes, value: bytes) -> str:
    """The same text as in client/rows.py."""
    shown = _shown(value).encode()
    more = "..." if len(shown) > SHOWN_BYTES_MAX else ""
    text = shown[:SHOWN_BYTES_MAX].decode("utf-8", "replace")
    return f"the field {_shown(name)} is {text!r}{more}, which does not fit the type of its column"


def _check(field: pa.Field) -> None:
    if field.name in _SPECIAL:
        fits, expected = _SPECIAL[field.name]
        if not fits(field.type):
            raise SchemaError(f"column {field.name} is {field.type}; it must be {expected}")
        return
    if _is_whole_entry(field):
        return
    try:
        _check_marks(field)
        parser_of(field.type)
    except TypeError as error:
        raise SchemaError(f"column {field.name}: {error}") from None


def mark_or_none(kind: pa.DataType) -> str | None:
    """`variant`, `geometry` or `geography` if a type contains one. Arrow has them as structs with a mark."""
    if not pa.types.is_nested(kind):
        return None
    for at in range(kind.num_fields):
        inner = kind.field(at)
        marks = {b"variant", b"geometry", b"geography"} & set(inner.metadata or ())
        found = marks.pop().decode() if marks else mark_or_none(inner.type)
        if found:
            return found
    return None


def _check_marks(field: pa.Field) -> None:
    mark = mark_or_none(field.type)
    if mark is not None:
        raise TypeError(f"type {mark} cannot be read from text")


def _is_own(field: pa.Field) -> bool:
    return field.name in _SPECIAL or _is_whole_entry(field)


def _is_whole_entry(field: pa.Field) -> bool:
    return field.name == "fields" and pair_types_or_none(field.type) is not None


def _last_wins(pairs: Sequence[bytes]) -> dict[bytes, bytes]:
    """The fields by name. Of two with the same name the last one stays, in its own position."""
    made: dict[bytes, bytes] = {}
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        made.pop(name, None)
        made[name] = value
    return made


def _fields(
    kind: pa.DataType,
    entries: Sequence[Entry],
    rows: Sequence[dict[bytes, bytes]],
    corrupt: list[dict[bytes, bytes]],
) -> pa.Array:
    """The column with all fields of each entry. Converts the values of all entries in one call."""
    pairs: list[Sequence[tuple[bytes, bytes]]]
    if pa.types.is_map(kind):
        pairs = [list(row.items()) for row in rows]
        name_type, value_type = kind.key_type, kind.item_type
    else:
        pairs = [list(zip(e[1][::2], e[1][1::2], strict=True)) for e in entries]
        name_type, value_type = (part.type for part in kind.value_type)
    offsets = [0]
    flat: list[tuple[bytes, bytes]] = []
    for row in pairs:
        flat.extend(row)
        offsets.append(len(flat))
    is_text = name_type == pa.string()
    names = pa.array([_shown(name) if is_text else name for name, _ in flat], name_type)
    values, bad = convert([value for _, value in flat], value_type)
    if bad:
        owner = [row for row, row_pairs in enumerate(pairs) for _ in row_pairs]
        for at in bad:
            corrupt[owner[at]][flat[at][0]] = flat[at][1]
    starts = pa.array(offsets, pa.int32())
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(starts, names, values).cast(kind)
    structs = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(starts, structs).cast(kind)


def _special(field: pa.Field, page: Page, corrupt: list[dict[bytes, bytes]]) -> pa.Array:
    ids = [entry[0] for entry in page.entries]
    if field.name == "_stream":
        return pa.array([_shown(page.stream)] * len(ids), field.type)
    if field.name == "_id":
        return pa.array(ids, pa.binary()).cast(field.type)
    if field.name == "_timestamp":
        times = [int(one.split(b"-")[0]) for one in ids]
        return pa.array([ms * 1000 if ms <= TIMESTAMP_MS_MAX else None for ms in times], field.type)
    if field.name == "_deliveries":
        known = page.deliveries or {}
        return pa.array([known.get(one) for one in ids], field.type)
    # Two names may be equal after escaping, and a map must not repeat a key.
    shown = [{_shown(name): _shown(text) for name, text in bad.items()} for bad in corrupt]
    return pa.array([list(one.items()) or None for one in shown], field.type)


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
