"""Wider types: every reader reads all rows before and after, at whichever step the rewriting is killed."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.spark.lake.test_archive import DAY_MS, QUERY, query_id
from tests.support.campaign import is_chosen

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")
pytest.importorskip("polars")
archive = pytest.importorskip("penstock.spark.lake.archive")
compaction = pytest.importorskip("penstock.spark.lake.compaction")
widening = pytest.importorskip("penstock.spark.lake.widening")
lakes = pytest.importorskip("tests.support.spark.lake")
formats = pytest.importorskip("penstock.spark.lake.formats")
readers = pytest.importorskip("tests.support.spark.readers")
replay = pytest.importorskip("penstock.spark.replay")

NARROW = {
    "v": "cast(id as int)",
    "f": "cast(id as float)",
    "d": "cast(id as decimal(10,2))",
    "s": "named_struct('a', cast(id as int))",
    "l": "array(cast(id as int), null)",
    "m": "map('k', named_struct('a', cast(id as int)))",
}
WIDE = {
    "v": "cast(id as bigint) + 10000000000",
    "f": "cast(id as double) + 0.1",
    "d": "cast(id as decimal(14,4)) + cast(0.0001 as decimal(5,4))",
    "s": "named_struct('a', cast(id as bigint), 'b', 'x')",
    "l": "array(cast(id as bigint), null)",
    "m": "map('k', named_struct('a', cast(id as int), 'b', 'x'))",
    "new": "'n'",
}
COLUMNS = ["_id", "v", "f", "d", "s", "l"]  # polars and DuckDB show a map in other forms


def frame_of(spark: Any, values: range, columns: dict[str, str]) -> Any:
    """One row per value, on two days."""
    return spark.range(values.start, values.stop, 1, 1).selectExpr(
        f"concat(id % 2 * {DAY_MS} + id, '-0') as _id",
        f"timestamp_millis(id % 2 * {DAY_MS} + id) as _timestamp",
        *(f"{sql} as {name}" for name, sql in columns.items()),
    )


def write(spark: Any, lake: Path, batch: int, columns: dict[str, str]) -> None:
    frame = frame_of(spark, range(batch * 4, batch * 4 + 4), columns)
    with query_id(spark, QUERY):
        archive.archive_writer(str(lake))(frame, batch)


def widen(spark: Any, lake: Path, files: Any = None) -> bool:
    made = archive.with_partitions(frame_of(spark, range(0), WIDE), ("day",)).schema
    done: bool = widening.widen(files or lakes.LakeFiles(spark), spark, str(lake), made)
    return done


def types_in_files(spark: Any, lake: Path) -> set[str]:
    """The types of each file, without those of columns that are only new."""
    found = set()
    for file in lakes.files_seen(lake):
        schema = spark.newSession().read.parquet(str(file)).schema
        found.add(", ".join(schema[name].dataType.simpleString() for name in NARROW))
    return found


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Path:
    """Two batches on two days, with narrow types."""
    for batch in range(2):
        write(spark, tmp_path / "lake", batch, NARROW)
    return tmp_path / "lake"


def test_all_readers_read_across_the_change(spark: Any, lake: Path) -> None:
    before = readers.read_by_all(spark, lake, COLUMNS)
    with pytest.raises(archive.ArchiveError, match="column v is bigint, but int in the lake"):
        write(spark, lake, 2, WIDE)
    assert widen(spark, lake)
    assert not widen(spark, lake)
    write(spark, lake, 2, WIDE)
    after = readers.read_by_all(spark, lake, [*COLUMNS, "new"])
    assert len(types_in_files(spark, lake)) == 1
    ids = {row["_id"]: row for row in before}
    for row in after:
        if row["_id"] in ids:
            old = ids[row["_id"]]
            assert row == old | {"s": old["s"] | {"b": None}, "new": None}
        else:
            assert (row["v"] > 10_000_000_000, row["s"]["b"], row["new"]) == (True, "x", "n")
    write(spark, lake, 3, NARROW)  # as if the change was undone: the rows get the types of the lake
    assert len(types_in_files(spark, lake)) == 1
    assert len(readers.read_by_all(spark, lake, [*COLUMNS, "new"])) == 16
    compaction.compact(spark, str(lake))
    assert len(lakes.files_seen(lake)) == 2
    assert len(readers.read_by_all(spark, lake, [*COLUMNS, "new"])) == 16


def test_readers_refuse_files_with_two_types(spark: Any, tmp_path: Path) -> None:
    """The reason for rewriting. If it passes one day, rewriting may not be needed."""
    for name, kind in (("a", "int"), ("b", "bigint")):
        frame = spark.range(1).selectExpr(f"cast(id as {kind}) as v").coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / name))
        (file,) = (tmp_path / name).glob("*.parquet")
        (tmp_path / "table").mkdir(exist_ok=True)
        file.rename(tmp_path / "table" / f"{name}.parquet")
    refused = []
    for name in ("by_spark", "by_duckdb", "by_arrow", "by_polars"):
        words = (spark,) if name == "by_spark" else ()
        try:
            getattr(readers, name)(*words, tmp_path / "table", ["v"])
        except Exception:  # noqa: BLE001  each reader has its own
            refused.append(name)
    assert refused == ["by_spark", "by_arrow", "by_polars"]


def test_a_lake_without_files_gets_the_types_too(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with query_id(spark, QUERY):
        archive.archive_writer(str(lake))(frame_of(spark, range(0), NARROW), 0)
    assert widen(spark, lake)
    write(spark, lake, 1, WIDE)
    assert len(readers.read_by_all(spark, lake, COLUMNS)) == 4


def test_killed_at_any_step_no_row_is_lost_and_the_next_call_completes_it(
    spark: Any, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(widening, "COMMIT_SECONDS", 0)  # a commit per merge
    ids = Counter(row["_id"] for row in readers.read_by_all(spark, lake, COLUMNS))
    stop_at = 0
    while True:
        stop_at += 1
        place = tmp_path / f"stopped-{stop_at}" / "lake"
        shutil.copytree(lake, place)
        try:
            widen(spark, place, lakes.FailingFiles(spark, stop_at))
        except lakes.Crash:
            assert lakes.by_duckdb(place, "_id") <= ids, f"twice, stopped at {stop_at}"
        else:
            break
        if not is_chosen(stop_at):
            continue
        # The manifests can be read with both types of files.
        rows = (
            replay.archived(spark, formats.TablePlace(str(place)))
            .select("_id", "v", "s.a")
            .collect()
        )
        assert Counter(row["_id"] for row in rows) == ids, stop_at
        widen(spark, place)
        write(spark, place, 2, WIDE)
        assert len(types_in_files(spark, place)) == 1, stop_at
        found = Counter(row["_id"] for row in readers.read_by_all(spark, place, COLUMNS))
        assert ids <= found, stop_at
        assert found.total() == ids.total() + 4, stop_at
        assert not list(place.glob("_intent/*.json"))
    assert stop_at > 15
