"""A drafted pipeline runs as it is: every entry of the sample is valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.cli.pipeline_draft import Draft
from penstock.spark.pipeline.definition.file import load_pipeline
from penstock.spark.pipeline.run import run_pipeline


def test_every_sampled_entry_fits_the_draft(spark: Any, penstock: Broker, tmp_path: Path) -> None:
    bodies = [
        {"kind": "sale", "ts": 1, "price": 1, "tags": [], "who": {"name": "a b", "é": None}},
        {"kind": "sale", "ts": 2, "price": 2.5, "tags": ["x"], "who": {"é": True}, "n m": 5},
    ]
    entries = [
        {"qty": "2", "price": "9.90", "at": "2026-11-18T10:00:00Z", "code": "007", "my field": "x"},
        {"qty": "3", "price": "4.5", "at": "2026-11-18 10:00:01", "code": "12", "ok": "true"},
    ]
    for fields, body in zip(entries, bodies, strict=True):
        penstock.client.xadd("orders", {**fields, "body": json.dumps(body)})
    sample = [list(fields.items()) for _, fields in penstock.client.xrange("orders")]
    file = tmp_path / "orders.toml"
    file.write_text(Draft("orders", penstock.options["url"], sample).text)
    summary = run_pipeline(load_pipeline(file), spark, once=True)
    assert summary.outputs["silver"].rows == 2
    assert penstock.client.xlen("orders:rejected") == 0
    rows = spark.read.parquet(str(tmp_path / "lake" / "silver")).orderBy("_id").collect()
    assert [(row["qty"], str(row["price"]), row["code"]) for row in rows] == [
        (2, "9.90", "007"),
        (3, "4.50", "12"),
    ]
    assert [row["body"]["n m"] for row in rows] == [None, 5]
