"""Decoding payloads equals Python's json, and what is refused has its reason. Needs no Spark."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.pipeline.rows.json_payload import (
    BYTES_MAX,
    DEPTH_MAX,
    PayloadError,
    decode,
    parse,
)
from tests.support.campaign import cases

KIND = pa.struct(
    [
        pa.field("kind", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("small", pa.int8()),
        pa.field("ratio", pa.float64()),
        pa.field("narrow", pa.float32()),
        pa.field("ok", pa.bool_()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("bytes", pa.binary()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("counts", pa.map_(pa.string(), pa.int32())),
        pa.field("who", pa.struct([pa.field("id", pa.int32(), nullable=False)])),
    ]
)
NOTHING = {one.name: None for one in KIND}


def decoded(text: bytes) -> tuple[Any, str | None]:
    values, reasons = decode([text], KIND, "body")
    assert values.type == KIND
    return values[0].as_py(), reasons[0].as_py()


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{}", {}),
        ('{"unknown": {"a": [1, 2, {}]}}', {}),
        ('{"kind": null, "tags": null}', {}),
        (' {"kind" : "a\\u00e9\\n" } ', {"kind": "aé\n"}),
        ('{"ts": 9223372036854775807}', {"ts": 2**63 - 1}),
        ('{"ts": -9223372036854775808}', {"ts": -(2**63)}),
        ('{"ratio": 1e3, "small": -128}', {"ratio": 1000.0, "small": -128}),
        ('{"ratio": 7, "ok": false}', {"ratio": 7.0, "ok": False}),
        ('{"price": 12.5}', {"price": Decimal("12.50")}),
        ('{"price": "12.50"}', {"price": Decimal("12.50")}),
        ('{"day": "2026-11-16"}', {"day": date(2026, 11, 16)}),
        ('{"at": "2026-11-16T01:02:03Z"}', {"at": datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC)}),
        ('{"bytes": "AP8="}', {"bytes": b"\x00\xff"}),
        ('{"tags": ["a", null, ""]}', {"tags": ["a", None, ""]}),
        ('{"counts": {"a": 1, "b": null}}', {"counts": [("a", 1), ("b", None)]}),
        ('{"who": {"id": 7, "more": 1}}', {"who": {"id": 7}}),
    ],
)
def test_a_payload_is_decoded(text: str, members: dict[str, Any]) -> None:
    assert decoded(text.encode()) == (NOTHING | members, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "json:broken"),
        (b"{", "json:broken"),
        (b"{} {}", "json:broken"),
        (b"{'kind': 'a'}", "json:broken"),
        (b'{"kind": "a",}', "json:broken"),
        (b'{"kind": "a\n"}', "json:broken"),
        (b'{"kind": "\xff"}', "json:broken"),
        (b"\xef\xbb\xbf{}", "json:broken"),
        (b'{"ratio": NaN}', "json:broken"),
        (b'{"x": -Infinity}', "json:broken"),
        (b'{"ts": 01}', "json:broken"),
        (b'{"kind": "a", "kind": "b"}', "json:duplicate"),
        (b'{"x": [{"y": 1, "y": 1}]}', "json:duplicate"),
        (b'{"x":' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"}", "json:deep"),
        (b"[" * 1_000_000, "json:deep"),
        (b'{"x": "' + b"a" * BYTES_MAX + b'"}', "json:huge"),
        (b"null", "json:type:body"),
        (b"[]", "json:type:body"),
        (b'"{}"', "json:type:body"),
        (b"1", "json:type:body"),
        (b'{"ts": 9223372036854775808}', "json:type:body.ts"),
        (b'{"ts": ' + b"9" * 10_000 + b"}", "json:type:body.ts"),
        (b'{"ts": "1"}', "json:type:body.ts"),
        (b'{"ts": 1.0}', "json:type:body.ts"),
        (b'{"ts": true}', "json:type:body.ts"),
        (b'{"small": 128}', "json:type:body.small"),
        (b'{"ratio": 1e999}', "json:type:body.ratio"),
        (b'{"ratio": "nan"}', "json:type:body.ratio"),
        (b'{"narrow": 1e300}', "json:type:body.narrow"),
        (b'{"kind": 1}', "json:type:body.kind"),
        (b'{"kind": {}}', "json:type:body.kind"),
        (b'{"kind": "\\ud800"}', "json:type:body.kind"),
        (b'{"ok": 1}', "json:type:body.ok"),
        (b'{"ok": "true"}', "json:type:body.ok"),
        (b'{"price": 1.234}', "json:type:body.price"),
        (b'{"price": 123456789.00}', "json:type:body.price"),
        (b'{"day": "16.11.2026"}', "json:type:body.day"),
        (b'{"bytes": "?"}', "json:type:body.bytes"),
        (b'{"tags": {}}', "json:type:body.tags"),
        (b'{"tags": ["a", 1]}', "json:type:body.tags[]"),
        (b'{"counts": {"a": 2147483648}}', "json:type:body.counts[]"),
        (b'{"who": {}}', "json:type:body.who.id"),
        (b'{"who": {"id": null}}', "json:type:body.who.id"),
    ],
)
def test_another_payload_has_its_reason(text: bytes, reason: str) -> None:
    assert decoded(text) == (None, reason)


def test_a_row_without_a_payload_is_null_without_a_reason() -> None:
    values, reasons = decode([None, b"{}", b"x"], KIND, "body")
    assert values.is_valid().to_pylist() == [False, True, False]
    assert reasons.to_pylist() == [None, None, "json:broken"]


def test_brackets_in_strings_are_not_depth() -> None:
    text = json.dumps({"kind": '[{"\\' * DEPTH_MAX}).encode()
    assert decoded(text)[1] is None


TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def plain(value: Any) -> Any:
    """A parsed value with ordinary numbers."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, str) and type(value) is not str:
        return json.loads(str(value))
    return value


def strictly(text: bytes) -> Any:
    """What Python's json reads, or the reason for refusing it."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in found}) < len(found):
            raise PayloadError("json:duplicate")
        return dict(found)

    def constant(_: str) -> None:
        raise ValueError

    try:
        return json.loads(text.decode(), object_pairs_hook=pairs, parse_constant=constant)
    except PayloadError as error:
        return error.args
    except ValueError:
        return ("json:broken",)


def ours(text: bytes) -> Any:
    try:
        return plain(parse(text))
    except PayloadError as error:
        return error.args


@settings(max_examples=cases(300), deadline=None)
@given(VALUES, st.booleans(), st.data())
def test_parsing_equals_pythons_json(value: Any, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert ours(text) == strictly(text)
    at = data.draw(st.integers(0, len(text)))
    broken = (
        text[:at] + data.draw(st.binary(max_size=3)) + text[at + data.draw(st.integers(0, 3)) :]
    )
    assert ours(broken) == strictly(broken)


def fitting(value: Any, kind: pa.DataType) -> bool:
    """Whether a value of Python's json fits a declared type: the rules once more, over Python's types."""
    if pa.types.is_struct(kind):
        return isinstance(value, dict) and all(
            (value.get(one.name) is None and one.nullable) or fitting(value.get(one.name), one.type)
            for one in kind
        )
    if pa.types.is_list(kind):
        return isinstance(value, list) and all(
            one is None or fitting(one, kind.value_type) for one in value
        )
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_string(kind):
        return isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value)
    if pa.types.is_integer(kind):
        return type(value) is int and -(2**63) <= value < 2**63
    return type(value) in (int, float) and math.isfinite(float(value))


SMALL = pa.struct(
    [
        pa.field("a", pa.int64()),
        pa.field("b", pa.string()),
        pa.field("c", pa.list_(pa.struct([pa.field("d", pa.float64(), nullable=False)]))),
        pa.field("e", pa.bool_()),
    ]
)
NUMBERS = (
    st.integers()
    | st.integers(2**63 - 2, 2**63 + 2)
    | st.floats(allow_nan=False, allow_infinity=False)
)
ANY: st.SearchStrategy[Any] = (
    NUMBERS | TEXTS | st.booleans() | st.none() | st.just({}) | st.just([])
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "a": ANY,
        "b": TEXTS | ANY,
        "c": st.lists(st.fixed_dictionaries({}, optional={"d": NUMBERS | ANY}), max_size=3) | ANY,
        "e": st.booleans() | ANY,
        "f": VALUES.filter(
            lambda value: "NaN" not in json.dumps(value) and "Infinity" not in json.dumps(value)
        ),
    },
)


@settings(max_examples=cases(300), deadline=None)
@given(st.lists(BODIES, max_size=4))
def test_decoding_equals_pythons_json(bodies: list[dict[str, Any]]) -> None:
    values, reasons = decode([json.dumps(one).encode() for one in bodies], SMALL, "body")
    for body, value, reason in zip(bodies, values.to_pylist(), reasons.to_pylist(), strict=True):
        fits = fitting(body, SMALL)
        assert (reason is None) == fits, (body, reason)
        if not fits:
            assert value is None
            continue
        inner = (
            None if body.get("c") is None else [one and {"d": float(one["d"])} for one in body["c"]]
        )
        assert value == {"a": body.get("a"), "b": body.get("b"), "c": inner, "e": body.get("e")}
