"""[dedup]: silver and the aggregates get the first row of a key, also if a batch is repeated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_joining import fail_after
from tests.spark.pipeline.test_run import AGGREGATE, NOON, TEXT, add, pipeline_of, rejected, rows

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.lake.compaction import compact
from penstock.spark.pipeline.run import PipelineFailed, run_pipeline
from penstock.spark.pipeline.targets import duplicates
from tests.support.campaign import cells
from tests.support.spark.lake import by_arrow

__all__ = ["pipeline_of"]  # the fixture

DEDUP = TEXT + '\n[dedup]\nkey = ["sku"]\nwithin = "10 minutes"\n'


def skus(spark: Any, lake: Path) -> list[str]:
    """The keys of silver, in the order of their ids."""
    found = sorted(rows(spark, lake / "silver"), key=lambda row: row._id)
    return [row.sku for row in found]


def counted(spark: Any, lake: Path) -> list[int]:
    found = sorted(rows(spark, lake / "gold" / "minute"), key=lambda row: row.window_start)
    return [row.orders for row in found]


@pytest.mark.parametrize("slice_rows", cells([2, 500_000]))
def test_the_first_row_of_a_key_is_kept(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slice_rows: int,
) -> None:
    monkeypatch.setattr(duplicates, "SLICE_ROWS", slice_rows)
    lake = tmp_path / "lake"
    pipeline = pipeline_of(penstock, DEDUP + AGGREGATE)
    for minutes, sku in ((0, "A"), (0.1, "B"), (0.2, "A"), (5, "C"), (6, "B")):
        add(penstock, minutes, sku=sku)
    add(penstock, 6.5, sku="C", qty="0")  # rejected, not a duplicate
    first = run_pipeline(pipeline, spark, once=True)
    assert skus(spark, lake) == ["A", "B", "C"]
    assert (first.outputs["silver"].rows, first.outputs["silver"].duplicates) == (3, 2)
    assert first.outputs["bronze"].rows == len(rows(spark, lake / "bronze")) == 6
    assert [one["_reason"] for one in rejected(penstock)] == ["quantity"]
    assert counted(spark, lake) == [2]

    for minutes, sku in ((9, "A"), (10, "A"), (10.1, "A"), (10.2, "B"), (12, "C"), (30, "C")):
        add(penstock, minutes, sku=sku)
    again = run_pipeline(pipeline, spark, once=True)
    assert skus(spark, lake) == ["A", "B", "C", "A", "B", "C"]
    assert again.outputs["silver"].duplicates == 3
    assert counted(spark, lake) == [2, 1, 2]
    streamed = [int(one[b"orders"]) for _, one in penstock.client.xrange("minutes")]
    assert sorted(streamed) == [1, 2, 2]

    compact(spark, str(lake / "silver"))
    add(penstock, 31, sku="C")
    add(penstock, 60, sku="D")
    run_pipeline(pipeline, spark, once=True)
    assert skus(spark, lake)[6:] == ["D"]
    assert counted(spark, lake) == [2, 1, 2, 1]


def test_a_row_with_a_null_key_is_kept_and_the_key_can_change(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    for sku in ("A", "A", "B"):
        add(penstock, 0, sku=sku, at=None)
    run_pipeline(pipeline_of(penstock, DEDUP), spark, once=True)
    assert skus(spark, lake) == ["A", "B"]
    text = DEDUP.replace('key = ["sku"]', 'key = ["sku", "at"]')
    for sku in ("A", "A", "B"):
        add(penstock, 1, sku=sku, at=None)
    add(penstock, 1, sku="A")
    add(penstock, 1, sku="A", at=NOON.isoformat())
    add(penstock, 1, sku="A")
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert skus(spark, lake)[2:] == ["A", "A", "B", "A", "A"]


@pytest.mark.parametrize(
    ("batch", "after"),
    cells([("second", "silver"), ("first", "latest"), ("second", "reject"), ("first", "bronze")]),
)
def test_a_repeated_batch_has_the_same_rows_in_each_output(
    spark: Any,
    penstock: Broker,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch: str,
    after: str,
) -> None:
    lake = tmp_path / "lake"
    text = DEDUP + '\n[[table]]\nname = "latest"\nkey = ["sku"]\n'
    if batch == "second":
        add(penstock, 0, sku="A")
        run_pipeline(pipeline_of(penstock, text), spark, once=True)
    for minutes, sku in ((1, "A"), (1.1, "B"), (1.2, "B")):
        add(penstock, minutes, sku=sku)
    add(penstock, 1.3, qty="x")
    with monkeypatch.context() as patch:
        fail_after(patch, after)
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline_of(penstock, text), spark, once=True)
    add(penstock, 2, sku="B")
    again = run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert skus(spark, lake) == ["A", "B"]
    assert again.outputs["silver"].duplicates >= 1
    silver = by_arrow(lake / "silver", "_id")
    latest = rows(spark, lake / "tables" / "latest")
    assert sorted(row.sku for row in latest) == ["A", "B"]
    assert {row._id for row in latest} == set(silver)
    refused = [one["_source_id"] for one in rejected(penstock)]
    assert len(refused) == 1
    bronze = by_arrow(lake / "bronze", "_id")
    assert silver + Counter(refused) <= bronze
    assert set(bronze.values()) == {1}
    assert len(bronze) == penstock.client.xlen("orders")


def test_an_existing_pipeline_can_begin_to_deduplicate(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    for minutes in (0, 0.5):
        add(penstock, minutes, sku="A")
    run_pipeline(pipeline_of(penstock, TEXT + AGGREGATE), spark, once=True)
    for minutes, sku in ((3, "A"), (3.1, "B"), (20, "B")):
        add(penstock, minutes, sku=sku)
    run_pipeline(pipeline_of(penstock, DEDUP + AGGREGATE), spark, once=True)
    assert skus(spark, lake) == ["A", "A", "B", "B"]
    assert counted(spark, lake) == [2, 1]
    add(penstock, 40, sku="B")
    add(penstock, 40.1, sku="B")
    run_pipeline(pipeline_of(penstock, TEXT + AGGREGATE), spark, once=True)
    assert skus(spark, lake) == ["A", "A", "B", "B", "B", "B"]
    assert counted(spark, lake) == [2, 1, 1]
