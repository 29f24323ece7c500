"""Turning pages of entries into batches of the requested schema."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install penstock[spark]")
schema = pytest.importorskip("penstock.spark.source.schema")

TEXT_MAP = pa.map_(pa.string(), pa.string())


def rows(fields: list[Any], entries: list[Any], **options: Any) -> list[dict[str, Any]]:
    columns = pickle.loads(pickle.dumps(schema.EntrySchema(pa.schema(fields), **options)))
    batch = columns.batch(schema.Page(b"orders", entries))
    assert batch.schema == pa.schema(fields)
    batch.validate(full=True)
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


def test_a_missing_field_is_null_and_the_last_of_two_wins() -> None:
    made = rows(
        [("a", pa.int32()), ("b", pa.string())],
        [[b"1-0", [b"a", b"1"]], [b"2-0", [b"b", b"x", b"a", b"2", b"a", b"3"]]],
    )
    assert made == [{"a": 1, "b": None}, {"a": 3, "b": "x"}]


def test_stream_id_and_time_come_with_the_entry() -> None:
    fields = [
        ("_stream", pa.string()),
        ("_id", pa.string()),
        ("_timestamp", pa.timestamp("us", "UTC")),
    ]
    made = rows(
        fields, [[b"1700000000123-7", []], [b"18446744073709551615-18446744073709551615", []]]
    )
    assert made[0] == {
        "_stream": "orders",
        "_id": "1700000000123-7",
        "_timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
    }
    assert made[1]["_timestamp"] is None


def test_a_value_that_does_not_parse_is_null_and_in_corrupt() -> None:
    made = rows(
        [("a", pa.int32()), ("b", pa.string()), ("_corrupt", TEXT_MAP)],
        [[b"1-0", [b"a", b"x", b"b", b"\xff"]], [b"2-0", [b"a", b"1"]]],
    )
    assert made[0] == {"a": None, "b": None, "_corrupt": [("a", "x"), ("b", "\\xff")]}
    assert made[1]["_corrupt"] is None


def test_a_parse_error_can_fail_and_names_the_entry() -> None:
    with pytest.raises(
        schema.ParseError, match="stream orders, entry 1-0: the field a is 'x', which does not fit"
    ):
        rows([("a", pa.int32())], [[b"1-0", [b"a", b"x"]]], fail_on_parse_error=True)


def test_a_null_in_a_column_that_is_not_nullable_is_an_error() -> None:
    with pytest.raises(schema.ParseError, match="entry 2-0: the column a must not be null"):
        rows(
            [pa.field("a", pa.int32(), nullable=False)],
            [[b"1-0", [b"a", b"1"]], [b"2-0", [b"b", b"1"]]],
        )


def test_the_column_fields_holds_all_fields_in_every_form() -> None:
    entry = [b"1-0", [b"a", b"1", b"b", b"\xff", b"a", b"2"]]
    binary = pa.map_(pa.string(), pa.binary())
    pairs = pa.list_(
        pa.field("element", pa.struct([("name", pa.string()), ("value", pa.binary())]))
    )
    assert rows([("fields", binary)], [entry])[0]["fields"] == [("b", b"\xff"), ("a", b"2")]
    assert [tuple(one.values()) for one in rows([("fields", pairs)], [entry])[0]["fields"]] == [
        ("a", b"1"),
        ("b", b"\xff"),
        ("a", b"2"),
    ]
    made = rows([("fields", TEXT_MAP), ("_corrupt", TEXT_MAP)], [entry])[0]
    assert made == {"fields": [("b", None), ("a", "2")], "_corrupt": [("b", "\\xff")]}


def test_long_values_and_empty_pages_are_read() -> None:
    long = b"x" * 10_000
    assert rows([("a", pa.string())], [[b"1-0", [b"a", long]]]) == [{"a": long.decode()}]
    assert rows([("a", pa.string()), ("fields", TEXT_MAP)], []) == []


@pytest.mark.parametrize(
    ("field", "word"),
    [
        (("_id", pa.int64()), "it must be string"),
        (("_timestamp", pa.timestamp("us")), "it must be timestamp"),
        (("_corrupt", pa.string()), "it must be map<string,string>"),
        (("_deliveries", pa.string()), "it must be bigint"),
        (("when", pa.month_day_nano_interval()), "column when"),
    ],
)
def test_an_impossible_column_is_refused(field: Any, word: str) -> None:
    with pytest.raises(schema.SchemaError, match=word):
        schema.EntrySchema(pa.schema([field]))
