"""Pipelines over JSON payloads: derived columns in every place that takes one, rejects with their reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.check import check_pipeline
from penstock.spark.pipeline.definition.file import load_pipeline, read_pipeline
from penstock.spark.pipeline.run import pipeline_session, run_pipeline

NOON_MS = 1_714_564_800_000  # 2024-05-01T12:00:00Z

TEXT = """[source]
url = "URL"
stream = "events"

[schema]
device = "string"

[payload]
field = "body"
format = "json"

[payload.schema]
kind = "string"
ts = "bigint"
items = "array<struct<sku:string,qty:int>>"

[columns]
kind = "body.kind"
at = "timestamp_millis(body.ts)"
pieces = "aggregate(body.items, 0, (sum, item) -> sum + item.qty)"
many = "pieces > 5"

[valid]
known = "kind is not null and at is not null"

[archive]
path = "lake"
partition_by = ["kind"]

[reject]
stream = "rejected"

[[aggregate]]
name = "minute"
time = "at"
window = "1 minute"
watermark = "1 minute"
group_by = ["kind"]
measures = { events = "count(*)", pieces = "sum(pieces)", first = "min(body.items[0].sku)" }
"""


def body(minute: float, kind: str = "sale", **more: Any) -> bytes:
    items = [{"sku": "A", "qty": 2}, {"sku": "B", "qty": 3}]
    whole = {"kind": kind, "ts": NOON_MS + int(minute * 60_000), "items": items, "other": [{}]}
    return json.dumps(whole | more).encode()


def test_json_payloads_become_columns_or_rejects(
    spark: Any, server: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "shop.toml"
    file.write_text(TEXT.replace("URL", server.options["url"]))
    good = [body(0), body(0.5, "return"), body(0.6, items=[]), body(9, items=None)]
    bad = {
        "json:broken,known,partition:kind": b'{"kind": ',
        "json:duplicate,known,partition:kind": b'{"kind": "a", "kind": "b"}',
        "json:deep,known,partition:kind": b"[" * 100_000,
        "json:type:body.ts,known,partition:kind": body(0, ts=2**63),
        "json:type:body.kind,known,partition:kind": body(0, kind=7),  # type: ignore[arg-type]
        "json:type:body.items[].qty,known,partition:kind": body(0, items=[{"qty": "1"}]),
        "known": body(0, ts=2**63 - 1),  # no timestamp is that late
        "partition:kind": body(0, kind=""),
    }
    for text in [*good, *bad.values()]:
        server.client.xadd("events", {"device": "d1", "body": text})
    server.client.xadd("events", {"device": "d2"})
    pipeline = load_pipeline(file)
    summary = run_pipeline(pipeline, spark, once=True)
    assert {name: one.rows for name, one in summary.outputs.items()} == {
        "bronze": 13,
        "silver": 4,
        "reject": 9,
        "minute": 2,
    }
    entries = [fields for _, fields in server.client.xrange("rejected")]
    found = {one[b"_reason"].decode(): one.get(b"body") for one in entries}
    assert found == bad | {"known,partition:kind": None}
    silver = spark.read.parquet(str(tmp_path / "lake" / "silver")).orderBy("at").collect()
    assert [(row.kind, row.pieces, row.many, row.device) for row in silver] == [
        ("sale", 5, False, "d1"),
        ("return", 5, False, "d1"),
        ("sale", 0, False, "d1"),
        ("sale", None, None, "d1"),
    ]
    assert silver[0].body["items"][1].asDict() == {"sku": "B", "qty": 3}
    assert int(silver[1]["at"].timestamp() * 1000) == NOON_MS + 30_000
    gold = spark.read.parquet(str(tmp_path / "lake" / "gold" / "minute")).collect()
    assert sorted((row.kind, row.events, row.pieces, row["first"]) for row in gold) == [
        ("return", 1, 5, "A"),
        ("sale", 2, 5, "A"),
    ]


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    return pipeline_session(spark)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('ts = "bigint"', 'ts = "bigit"', "14: 'bigit' is not a type for a column"),
        ('ts = "bigint"', 'ts = "variant"', "14: 'variant' is not a type for a column"),
        ("body.kind", "body.knd", "18: kind: No such struct field `knd`"),
        ("body.kind", "body.", "18: kind: Syntax error"),
        ("pieces > 5", "sum(pieces)", "21: many: "),
        ("pieces > 5", "explode(body.items)", "21: many: "),
        ("pieces > 5", "rand() > 0.5", "21: many may change between evaluations"),
        ("pieces > 5", "null", "21: many is void, which no table can hold"),
        ('["kind"]\n\n[reject]', '["body"]\n\n[reject]', "28: there is no column body"),
        ('time = "at"', 'time = "kind"', "35: kind is string, but must be timestamp"),
        ('"pieces > 5"', '"body.items"\n', ""),
    ],
)
def test_a_mistake_is_found_with_its_line(
    session: Any, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    assert old in TEXT
    file = tmp_path / "shop.toml"
    file.write_text(TEXT.replace("URL", "redis://127.0.0.1:1").replace(old, new, 1))
    pipeline, problems = read_pipeline(file)
    assert pipeline is not None
    found = [*problems, *check_pipeline(pipeline, session, is_offline=True)]
    if problem:
        assert f"{found[0].line}: {found[0].text}".startswith(problem)
    else:
        assert found == []


def test_times_that_no_timestamp_can_hold_are_null(session: Any) -> None:
    numbers = session.createDataFrame([(2**63 - 1,), (-(2**63),), (None,), (NOON_MS,)], "n bigint")
    found = numbers.selectExpr("timestamp_millis(n)", "timestamp_seconds(n)").collect()
    assert [one is not None for row in found for one in row] == [False] * 6 + [True, False]
    part = session.sql(
        "select unix_micros(timestamp_seconds(1.5)), unix_micros(timestamp_seconds(2))"
    )
    assert tuple(part.first()) == (1_500_000, 2_000_000)
