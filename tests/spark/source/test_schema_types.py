"""Every type of Spark, read from servers by both decoders: the compiled one and the one in Python.

The compiled decoder is used if it knows all types of a schema. Adding a column that it does not know
(`_deliveries`) sends the same query through the decoder in Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.conftest import NO_PYSPARK, Broker

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pa = pytest.importorskip("pyarrow")
schema_module = pytest.importorskip("penstock.spark.source.schema")
values = pytest.importorskip("penstock.spark.source.values")
batches = pytest.importorskip("tests.client.test_columns")

from penstock.client.arrow_batch import BatchBuilder, column_of  # noqa: E402 - needs pyarrow
from penstock.core.stream import Stream  # noqa: E402
from tests.support.spark.dumb_columns import Entry, read, same  # noqa: E402

Read = Callable[..., Any]

SIMPLE = {
    "truth": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "whole": "int",
    "long": "bigint",
    "narrow": "float",
    "wide": "double",
    "price": "decimal(10,2)",
    "vast": "decimal(38,0)",
    "text": "string",
    "raw": "binary",
    "day": "date",
    "moment": "timestamp",
    "local": "timestamp_ntz",
}
OTHER = {
    "span": "interval day to second",
    "list": "array<int>",
    "pairs": "map<string,double>",
    "record": "struct<a:int,b:struct<c:string,d:array<boolean>>>",
    "deep": "array<map<string,binary>>",
}
GOOD: dict[str, tuple[bytes, Any]] = {
    "truth": (b"Yes", True),
    "tiny": (b"-128", -128),
    "small": (b"32767", 32767),
    "whole": (b"-2147483648", -(2**31)),
    "long": (b"9223372036854775807", 2**63 - 1),
    "narrow": (b"0.5", 0.5),
    "wide": (b"-1.25e-3", -0.00125),
    "price": (b"12345678.9", Decimal("12345678.90")),
    "vast": (b"9" * 38, Decimal("9" * 38)),
    "text": ("grün 漢字 😀".encode(), "grün 漢字 😀"),
    "raw": (b"\x00\xff\r\n", bytearray(b"\x00\xff\r\n")),
    "day": (b"0001-01-01", date(1, 1, 1)),
    "moment": (b"2026-11-16T02:29:09.123456+01:00", datetime(2026, 11, 16, 1, 29, 9, 123456)),
    "local": (b"2026-11-16 02:29:09", datetime(2026, 11, 16, 2, 29, 9)),
    "span": (b"-P1DT2H3M4.5S", -timedelta(1, 4, 500_000, 0, 3, 2)),
    "list": (b"[1, null, -3]", [1, None, -3]),
    "pairs": (b'{"a": 1, "b": null}', {"a": 1.0, "b": None}),
    "record": (b'{"a": 7, "b": {"c": "x", "d": [true, false]}}', (7, ("x", [True, False]))),
    "deep": (b'[{"k": "AP8="}]', [{"k": bytearray(b"\x00\xff")}]),
}
BAD = {
    "truth": b"maybe",
    "tiny": b"128",
    "small": b"1.0",
    "whole": b"2147483648",
    "long": b"9223372036854775808",
    "narrow": b"one",
    "wide": b" 1",
    "price": b"0.001",
    "vast": b"1" * 39,
    "text": b"\xff\xfe",
    "day": b"2026-02-29",
    "moment": b"2026-11-16T02:29:09+24:00",
    "local": b"2026-11-16T02:29:09Z",
    "span": b"P999999999D",
    "list": b"[1.5]",
    "pairs": b"[]",
    "record": b'{"a": "x"}',
    "deep": b'[{"k": "?"}]',
}


def ddl(columns: dict[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def plain(value: Any) -> Any:
    """Rows as nested tuples, with timestamps in UTC without time zone."""
    if isinstance(value, tuple):
        return tuple(plain(one) for one in value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def add(broker: Broker, entry_id: str, *pairs: tuple[bytes, bytes]) -> None:
    broker.client.execute_command(
        "XADD", "s", entry_id, *(piece for pair in pairs for piece in pair)
    )


def both_ways(read: Read, broker: Broker, columns: dict[str, str], **options: Any) -> list[Any]:
    """The rows of the compiled decoder. Checks that the decoder in Python gives the same."""
    quick: list[Any] = read(broker, ddl(columns), stream="s", **options).collect()
    sure = read(broker, ddl({**columns, "_deliveries": "bigint"}), stream="s", **options).collect()
    assert [tuple(row) for row in quick] == [tuple(row)[:-1] for row in sure]
    return quick


def test_every_simple_type_is_read_and_bad_values_are_in_corrupt(
    server: Broker, read: Read
) -> None:
    good = {name: GOOD[name] for name in SIMPLE}
    bad = [(name.encode(), text) for name, text in BAD.items() if name in SIMPLE]
    add(server, "1-1", *((name.encode(), text) for name, (text, _) in good.items()))
    add(server, "1-2", *bad)
    add(server, "1-3", (b"other", b""))
    columns = {**SIMPLE, "_corrupt": "map<string,string>"}
    first, second, third = both_ways(read, server, columns)
    assert plain(tuple(first)) == (*(value for _, value in good.values()), None)
    assert {**second.asDict(), "raw": None} == {
        **dict.fromkeys(SIMPLE),
        "_corrupt": {name.decode(): text.decode("utf-8", "backslashreplace") for name, text in bad},
    }
    assert set(third) == {None}


def test_nested_types_and_intervals_are_read(server: Broker, read: Read) -> None:
    names = list(OTHER)
    add(server, "1-1", *((name.encode(), GOOD[name][0]) for name in names))
    add(server, "1-2", *((name.encode(), BAD[name]) for name in names))
    rows = read(server, ddl({**OTHER, "_corrupt": "map<string,string>"}), stream="s").collect()
    assert plain(tuple(rows[0])) == (*(GOOD[name][1] for name in names), None)
    assert tuple(rows[1])[:-1] == (None,) * len(names)
    assert rows[1]._corrupt == {name: BAD[name].decode() for name in names}


def test_names_values_and_ids_may_be_anything(server: Broker, read: Read) -> None:
    long = b"x" * 10_000
    odd = ["a b", "ä:{}[]", "with.dot", "1", "q'uote\"", "new\nline"]
    highest = "18446744073709551615-18446744073709551615"
    add(server, "1-1", (b"v", b"first"), (b"v", b""), (b"", b"no name"), (b"\xff", b"raw"))
    add(server, "9223372036854775808-0", (b"v", long))
    add(server, highest, *((name.encode(), b"7") for name in odd))
    columns = {
        "_id": "string",
        "_timestamp": "timestamp",
        "v": "string",
        **dict.fromkeys(odd, "int"),
        "fields": "map<string,string>",
    }
    first, second, third = both_ways(read, server, columns)
    assert (first._id, first.v) == ("1-1", "")
    assert first.fields == {"v": "", "": "no name", "\\xff": "raw"}
    assert (second._id, second._timestamp, second.v) == (
        "9223372036854775808-0",
        None,
        long.decode(),
    )
    assert (third._id, third.v) == (highest, None)
    assert tuple(third)[3:-1] == (7,) * len(odd)
    (pairs, *_) = both_ways(read, server, {"fields": "array<struct<name:binary,value:binary>>"})
    assert [tuple(one) for one in pairs.fields] == [
        (b"v", b"first"),
        (b"v", b""),
        (b"", b"no name"),
        (b"\xff", b"raw"),
    ]


@pytest.mark.parametrize("more", [{}, {"_deliveries": "bigint"}], ids=["compiled", "other"])
def test_a_bad_value_can_fail_and_is_named(
    server: Broker, read: Read, more: dict[str, str]
) -> None:
    add(server, "1-1", (b"whole", b"1"))
    add(server, "1-2", (b"whole", b"many"))
    frame = read(server, ddl({"whole": "int", **more}), stream="s", onParseError="fail")
    with pytest.raises(Exception, match="entry 1-2: the field whole is 'many', which does not fit"):
        frame.collect()


@pytest.mark.parametrize("kind", ["interval year to month", "variant"])
def test_a_type_that_text_cannot_express_is_refused(
    penstock: Broker, read: Read, kind: str
) -> None:
    add(penstock, "1-1", (b"v", b"1"))
    with pytest.raises(Exception, match=r"(?i)unsupported|cannot be read"):
        read(penstock, f"v {kind}", stream="s").collect()


def test_a_time_of_day_is_read_if_spark_has_the_type(
    spark: Any, penstock: Broker, read: Read
) -> None:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    add(penstock, "1-1", (b"v", b"02:29:09.25"))
    (row,) = read(penstock, "v time(6)", stream="s").collect()
    assert row.v == time(2, 29, 9, 250_000)


# --- Without a server: both decoders and a reference implementation, over random texts ---------------------

KINDS = [*batches.ALL_TYPES.values(), pa.decimal128(38, 38)]
NESTED = pa.struct([("v", pa.list_(pa.float64()))])


@given(st.sampled_from(KINDS), batches.VALUES | st.from_regex(rb"[0-9TZ:.e+ -]{1,30}"))
def test_columns_single_values_and_the_reference_agree(kind: Any, text: bytes) -> None:
    try:
        expected = read(text, kind)
    except (ValueError, OverflowError):
        expected = None
    try:
        single = values.parser_of(kind)(text)
    except (ValueError, OverflowError):
        single = None
    column, bad = column_of([None, text], kind)
    found = column[1].as_py()
    if isinstance(found, datetime) and found.tzinfo is not None:
        found = found.astimezone(UTC)
    assert same(found, expected)
    assert same(single, expected)
    assert bad == ([] if expected is not None else [1])


@pytest.mark.parametrize("made_schema", [batches.TYPED, batches.MAPPED, batches.ENTRIES])
@given(made=batches.streams())
def test_pages_and_nodes_make_the_same_batch(
    made_schema: Any, made: tuple[Stream, list[Entry]]
) -> None:
    stream, entries = made
    page = [
        [entry_id, [piece for pair in fields for piece in pair]] for entry_id, fields in entries
    ]
    sure = schema_module.EntrySchema(made_schema).batch(schema_module.Page(b"s", page))
    quick = batches.by_nodes(stream, BatchBuilder(made_schema, b"s"))
    assert same(batches.pylist([sure]), batches.pylist(quick))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_in_json_follow_the_same_rules(numbers: list[float]) -> None:
    column, bad = values.convert([json.dumps({"v": numbers}).encode()], NESTED)
    assert (column[0].as_py(), bad) == ({"v": numbers}, [])
