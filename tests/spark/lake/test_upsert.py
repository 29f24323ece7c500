"""Upsert tables: one row for each key, the newest, at whichever step the writer is killed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.support.campaign import cases, is_chosen, seed

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")

import duckdb
import pyarrow.dataset as ds

from penstock.spark.lake.compaction import compact
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.manifest import ArchiveError, Manifest, load_newest_or_none
from penstock.spark.lake.upsert import UpsertBatch, Upserts, UpsertWriter
from tests.support.spark.lake import Crash, FailingFiles

QUERY = "5f0c11aa-0000-0000-0000-000000000001"
SCHEMA = "_stream string, _id string, sku string, qty int"
TABLE = Upserts(("sku",), delete_when="qty = 0", buckets=3)

Row = tuple[str, int]  # sku and qty


def write(
    spark: Any, path: Path, number: int, rows: list[Row], upserts: Upserts = TABLE, **more: Any
) -> int:
    """Write a batch of rows. Its ids start at the number times 100; its position is its last id."""
    made = [("s", f"{number * 100 + at}-0", sku, qty) for at, (sku, qty) in enumerate(rows)]
    frame = spark.createDataFrame(made, SCHEMA)
    position = {"s": f"{number * 100 + 99}-0"}

    def is_done(newest: Manifest | None) -> bool:
        return newest is not None and int(newest.position["s"].split("-")[0]) >= number * 100 + 99

    writer = UpsertWriter(str(path), upserts, **more)
    return writer.write(UpsertBatch(frame, [QUERY], position), is_done)


def seen(path: Path, column: str = "qty") -> dict[str, Any]:
    """The table as DuckDB and Arrow see it. Checks that each key is there once."""
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select sku, {column} from read_parquet(?, union_by_name=true)", [f"{path}/*.parquet"]
        ).fetchall()
    assert len(found) == len(dict(found))
    table = ds.dataset(path, format="parquet").to_table(["sku"])
    assert sorted(table["sku"].to_pylist()) == sorted(dict(found))
    return dict(found)


def apply(model: dict[str, int], rows: list[Row]) -> None:
    for sku, qty in rows:
        model[sku] = qty
        if qty == 0:
            del model[sku]


def test_random_batches_agree_with_a_dict(spark: Any, tmp_path: Path) -> None:
    start = seed()
    for case in range(start, start + cases(20)):
        chance = random.Random(case)
        path = tmp_path / f"table-{case}"
        model: dict[str, int] = {}
        for number in range(4):
            rows = [
                (f"k{chance.randrange(8)}", chance.randrange(4))
                for _ in range(chance.randrange(0 if number else 1, 12))
            ]
            write(spark, path, number, rows)
            apply(model, rows)
            assert seen(path) == model, f"seed {case}"
            if chance.random() < 0.3:
                assert write(spark, path, number, rows) == 0, "a repeated batch"
        assert len(list(path.glob("*.parquet"))) <= TABLE.buckets


def test_ids_are_ordered_as_numbers_and_rows_by_another_column(spark: Any, tmp_path: Path) -> None:
    write(spark, tmp_path / "a", 0, [("x", at) for at in range(1, 13)])
    assert seen(tmp_path / "a") == {"x": 12}
    by_qty = Upserts(("sku",), order_by="qty", buckets=1)
    write(spark, tmp_path / "b", 0, [("x", 5), ("x", 9), ("x", 7)], by_qty)
    write(spark, tmp_path / "b", 1, [("x", 8), ("y", 1)], by_qty)
    assert seen(tmp_path / "b") == {"x": 9, "y": 1}
    write(spark, tmp_path / "b", 2, [("x", 9)], by_qty)
    assert seen(tmp_path / "b", "_id")["x"] == "200-0"


def test_killed_at_any_step_a_repeat_completes_the_batch(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table"
    upserts = Upserts(("sku",), delete_when="qty = 0", buckets=2)
    model: dict[str, int] = {}
    first = [(f"k{at}", 1) for at in range(6)]
    write(spark, path, 0, first, upserts)
    apply(model, first)
    stop_at = 0
    while True:
        stop_at += 1
        if not is_chosen(stop_at, 3):
            continue
        rows = [("k1", stop_at + 1), (f"new{stop_at}", 1), ("k2", 0), ("k3", stop_at)]
        before = dict(model)
        apply(model, rows)
        try:
            write(
                *(spark, path, stop_at, rows, upserts),
                files_of=lambda one, n=stop_at: FailingFiles(one, n),
            )
        except Crash:
            found = seen(path)
            assert all(found[key] in (before.get(key), model.get(key)) for key in found), stop_at
            write(spark, path, stop_at, rows, upserts)
        else:
            break
        assert seen(path) == model, f"after a stop at {stop_at}"
        assert not list(path.glob("_intent/*.json"))
    assert seen(path) == model
    assert stop_at > 10
    assert len(list(path.glob("*.parquet"))) == 2
    assert len(list(path.glob("_manifest/*.json"))) == 1


def test_a_table_without_rows_left_can_be_read(spark: Any, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", 0, [("a", 1), ("b", 1)])
    write(spark, tmp_path / "t", 1, [("a", 0), ("b", 0)])
    assert seen(tmp_path / "t") == {}
    assert spark.read.parquet(str(tmp_path / "t")).count() == 0
    write(spark, tmp_path / "t", 2, [("b", 2)])
    assert seen(tmp_path / "t") == {"b": 2}


def test_a_new_column_is_null_in_old_rows(spark: Any, tmp_path: Path) -> None:
    path, one = tmp_path / "t", Upserts(("sku",), buckets=1)
    write(spark, path, 0, [("a", 1)], one)
    frame = spark.createDataFrame([("s", "200-0", "b", 2, "x")], f"{SCHEMA}, note string")
    UpsertWriter(str(path), one).write(
        UpsertBatch(frame, [QUERY], {"s": "200-0"}), lambda newest: False
    )
    assert seen(path, "note") == {"a": None, "b": "x"}
    wider = spark.createDataFrame(
        [("s", "300-0", "b", "x")], SCHEMA.replace("qty int", "qty string")
    )
    with pytest.raises(ArchiveError, match="column qty is string, but int in the lake"):
        UpsertWriter(str(path), one).write(
            UpsertBatch(wider, [QUERY], {"s": "300-0"}), lambda newest: False
        )


def test_what_is_not_this_table_is_refused(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(spark, path, 0, [("a", 1)])
    with pytest.raises(
        ArchiveError, match="has key sku and 3 buckets, but the file says sku and 4"
    ):
        write(spark, path, 1, [("a", 1)], Upserts(("sku",), buckets=4))
    frame = spark.createDataFrame([("s", "200-0", "b", 2)], SCHEMA)
    with pytest.raises(ArchiveError, match="was written by query"):
        UpsertWriter(str(path), TABLE).write(
            UpsertBatch(frame, ["another"], {"s": "200-0"}), lambda newest: False
        )
    with pytest.raises(ArchiveError, match="is an upsert table, which needs no compaction"):
        compact(spark, str(path))
    frame.write.parquet(str(tmp_path / "foreign"))
    with pytest.raises(ArchiveError, match="has no manifest but is not empty"):
        write(spark, tmp_path / "foreign", 0, [("a", 1)])
    newest = load_newest_or_none(LakeFiles(spark), f"file:{path}")
    assert newest is not None
    assert newest.keyed == {"key": ["sku"], "buckets": 3}
