"""All fields of an entry as a map of strings, and unchanged where a map cannot hold them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.raw_fields import has_raw, read_schema, with_raw

Pair = tuple[bytes, bytes]

TEXTS = pa.map_(pa.string(), pa.string())
PAIRS = pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary())]))
WANTED = pa.schema([("fields", TEXTS), ("_id", pa.string()), ("_raw", PAIRS)])

NAMES = st.sampled_from([b"sku", b"qty", b"", "größe".encode(), b"\xff", b"a\xe2\x82"])
VALUES = st.one_of(st.text(max_size=5).map(str.encode), st.binary(max_size=3))


def converted(entries: list[list[Pair]]) -> list[dict[str, object]]:
    rows = [[{"name": name, "value": value} for name, value in entry] for entry in entries]
    ids = [f"{number}-0" for number in range(len(rows))]
    read = pa.RecordBatch.from_arrays([pa.array(rows, PAIRS), pa.array(ids)], schema=READ)
    made = with_raw(read, WANTED)
    made.validate(full=True)
    assert made.schema == WANTED
    found: list[dict[str, object]] = made.to_pylist()
    return found


READ = read_schema(WANTED)


def is_text(data: bytes) -> bool:
    return data.decode("utf-8", "replace").encode() == data


@given(st.lists(st.lists(st.tuples(NAMES, VALUES), max_size=4), max_size=6))
def test_every_entry_is_in_its_map_or_unchanged(entries: list[list[Pair]]) -> None:
    for number, (entry, row) in enumerate(zip(entries, converted(entries), strict=True)):
        names = [name for name, _ in entry]
        fits = len(set(names)) == len(names) and all(
            is_text(part) for pair in entry for part in pair
        )
        values = {
            name.decode("utf-8", "replace"): value.decode() if is_text(value) else None
            for name, value in entry
        }
        raw = None if fits else [{"name": name, "value": value} for name, value in entry]
        assert row == {"fields": list(values.items()), "_id": f"{number}-0", "_raw": raw}


def test_one_entry_does_not_change_how_the_others_are_shown() -> None:
    plain = [(b"sku", b"A1"), (b"qty", b"2")]
    alone, beside = converted([plain])[0], converted([plain, [(b"sku", b"\xff")]])[0]
    assert alone == beside


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("_raw", PAIRS)]),
        pa.schema([("fields", TEXTS), ("_raw", pa.string())]),
        pa.schema([("fields", pa.map_(pa.string(), pa.binary())), ("_raw", PAIRS)]),
        pa.schema([("fields", PAIRS), ("_raw", PAIRS)]),
    ],
)
def test_elsewhere_the_name_is_that_of_a_field(schema: pa.Schema) -> None:
    assert not has_raw(schema)
