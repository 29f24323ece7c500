"""[[table]] in a pipeline: the newest row of each key, deletions, tables that join later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import TEXT, add, pipeline_of, rows

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.definition.file import PipelineFileError
from penstock.spark.pipeline.run import run_pipeline

__all__ = ["pipeline_of"]  # the fixture

TABLE = """
[[table]]
name = "latest"
key = ["sku"]
delete_when = "qty < 0"
buckets = 2
"""
ANY_QTY = TEXT.replace('quantity = "10 / qty > 0"', 'quantity = "qty is not null"')


def latest(spark: Any, lake: Path) -> dict[str, int]:
    found = rows(spark, lake / "tables" / "latest")
    made = {row.sku: row.qty for row in found}
    assert len(made) == len(found)
    return made


def test_the_newest_row_of_a_key_wins(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    pipeline = pipeline_of(penstock, ANY_QTY + TABLE)
    for minutes, (sku, qty) in enumerate([("A", 1), ("B", 2), ("A", 3), ("C", "x"), ("D", 4)]):
        add(penstock, minutes, sku=sku, qty=qty)
    summary = run_pipeline(pipeline, spark, once=True)
    assert latest(spark, tmp_path / "lake") == {"A": 3, "B": 2, "D": 4}
    assert summary.outputs["latest"].rows == 3
    for minutes, (sku, qty) in enumerate([("B", -1), ("D", 5), ("E", 6), ("E", -1)], 10):
        add(penstock, minutes, sku=sku, qty=qty)
    run_pipeline(pipeline, spark, once=True)
    assert latest(spark, tmp_path / "lake") == {"A": 3, "D": 5}


def test_a_new_table_is_made_from_silver_and_then_joins(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    for step, text in enumerate([ANY_QTY, ANY_QTY + TABLE, ANY_QTY, ANY_QTY + TABLE]):
        add(penstock, step, sku="A", qty=step + 1)
        add(penstock, step, sku=f"B{step}", qty=1)
        run_pipeline(pipeline_of(penstock, text, trim="archived"), spark, once=True)
        if text != ANY_QTY:
            expected = {f"B{one}": 1 for one in range(step + 1)} | {"A": step + 1}
            assert latest(spark, lake) == expected


def test_another_key_is_refused_with_its_line(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock, ANY_QTY + TABLE), spark, once=True)
    changed = pipeline_of(penstock, ANY_QTY + TABLE.replace('["sku"]', '["sku", "price"]'))
    with pytest.raises(PipelineFileError) as caught:
        run_pipeline(changed, spark, once=True)
    (problem,) = caught.value.problems
    assert problem.line == 24
    assert "it has key sku and 2 buckets, but the file says sku, price and 2" in problem.text
