"""All fields of an entry as a map of strings, and unchanged where a map cannot hold them.

    fields   map<string,string>                        the fields
    _raw     array<struct<name:binary,value:binary>>   the same, unchanged; null if the map has all of it

A map cannot hold an entry with a name or a value that is not UTF-8, or with a name that occurs twice. In the
map of such an entry a value that is not UTF-8 is null, a name that is not UTF-8 is repaired, and of a
repeated name the last value wins.

The entries are read as arrays of pairs. Most batches have only entries that fit a map. Such a batch is
converted as a whole: its texts are checked, but not copied. Only for other batches each entry is looked at.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

FIELDS, RAW = "fields", "_raw"
NAMES_MAX = 10_000  # names that are remembered


def has_raw(schema: pa.Schema) -> bool:
    """Whether a schema has `_raw` beside a map of all fields. Otherwise it is a field of this name."""
    if RAW not in schema.names or FIELDS not in schema.names:
        return False
    kind = schema.field(FIELDS).type
    if not pa.types.is_map(kind) or (kind.key_type, kind.item_type) != (pa.string(),) * 2:
        return False
    return _is_pairs(schema.field(RAW).type)


def read_schema(schema: pa.Schema) -> pa.Schema:
    """The schema to read entries with, for `with_raw`: `fields` has the type of `_raw`."""
    pairs = schema.field(RAW).with_name(FIELDS)
    return pa.schema([pairs if one.name == FIELDS else one for one in schema if one.name != RAW])


def with_raw(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of `read_schema`, with `fields` and `_raw` of the wanted schema."""
    pairs = batch.column(FIELDS)
    texts, raw = schema.field(FIELDS).type, schema.field(RAW).type
    made = {FIELDS: _whole_or_none(pairs, texts), RAW: pa.nulls(len(pairs), raw)}
    if made[FIELDS] is None:
        made = dict(zip((FIELDS, RAW), _by_entry(pairs, texts), strict=True))
    columns = [made[one] if one in made else batch.column(one) for one in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_pairs(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind)
        and pa.types.is_struct(kind.value_type)
        and [(part.name, part.type) for part in kind.value_type]
        == [("name", pa.binary()), ("value", pa.binary())]
    )


def _whole_or_none(pairs: pa.ListArray, texts: pa.MapType) -> pa.MapArray | None:
    """The fields of all entries as maps, or None if one entry does not fit a map."""
    names, values = pairs.flatten().flatten()
    # Each name of each entry as a number: a repeated name gives the same number twice.
    codes = names.dictionary_encode()
    step = pa.scalar(max(1, len(codes.dictionary)), pa.int64())
    rows = pc.multiply(pc.list_parent_indices(pairs), step)
    if pc.count_distinct(pc.add(rows, codes.indices)).as_py() < len(names):
        return None
    try:
        parts = [one.cast(pa.string()) for one in (names, values)]
    except pa.ArrowInvalid:  # not UTF-8
        return None
    return pa.MapArray.from_arrays(pairs.offsets, *parts).cast(texts)


def _by_entry(pairs: pa.ListArray, texts: pa.MapType) -> tuple[pa.MapArray, pa.ListArray]:
    """The fields of each entry, and the unchanged pairs of those that do not fit a map."""
    names, values = (one.to_pylist() for one in pairs.flatten().flatten())
    ends, is_plain = [0], []
    keys: list[str] = []
    items: list[str | None] = []
    for start, end in pairwise(pairs.offsets.to_pylist()):
        fields: dict[str, str | None] = {}
        fits = True
        for name, value in zip(names[start:end], values[start:end], strict=True):
            key, is_text = _name(name)
            item = _text_or_none(value)
            fits = fits and is_text and item is not None and key not in fields
            fields[key] = item
        keys += fields
        items += fields.values()
        ends.append(len(keys))
        is_plain.append(fits)
    parts = (pa.array(ends, pa.int32()), pa.array(keys, pa.string()), pa.array(items, pa.string()))
    raw = pc.if_else(pa.array(is_plain), pa.scalar(None, pairs.type), pairs)
    return pa.MapArray.from_arrays(*parts).cast(texts), raw


@lru_cache(NAMES_MAX)
def _name(name: bytes) -> tuple[str, bool]:
    """A name as text, repaired if it is not UTF-8, and whether it is UTF-8."""
    text = _text_or_none(name)
    return (name.decode("utf-8", "replace"), False) if text is None else (text, True)


def _text_or_none(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
