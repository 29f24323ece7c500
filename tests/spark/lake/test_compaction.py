"""Compaction: fewer files with the same rows, at whichever step it is killed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.spark.lake.lock import held
from tests.spark.conftest import NO_PYSPARK
from tests.spark.lake.test_archive import QUERY, frame_of, query_id
from tests.support.campaign import cells, is_chosen

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")
archive = pytest.importorskip("penstock.spark.lake.archive")
compaction = pytest.importorskip("penstock.spark.lake.compaction")
manifests = pytest.importorskip("penstock.spark.lake.manifest")
lakes = pytest.importorskip("tests.support.spark.lake")

DataFile = manifests.DataFile


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Path:
    """Three batches on two days: six small files."""
    for batch in range(3):
        write(spark, tmp_path / "lake", batch)
    return tmp_path / "lake"


def write(spark: Any, lake: Path, batch: int) -> None:
    values = range(batch * 4, batch * 4 + 4)
    with query_id(spark, QUERY):
        archive.archive_writer(str(lake))(frame_of(spark, values).coalesce(1), batch)


def compact_until(spark: Any, lake: Path, stop_at: int | None) -> Any:
    files = lakes.FailingFiles(spark, stop_at)
    return compaction.Compaction(files, spark, str(lake)).run()


def test_the_small_files_of_each_day_become_one(spark: Any, lake: Path) -> None:
    done = compaction.compact(spark, str(lake))
    assert (done.files_before, done.files_after, done.rows) == (6, 2, 12)
    assert lakes.seen(spark, lake) == Counter(range(12))
    assert len(lakes.files_seen(lake)) == 2
    assert [path.name for path in lake.glob("_manifest/*.json")] == [
        "base-0000000001-0000000002.json"
    ]
    assert not list(lake.glob("_intent/*.json"))
    again = compaction.compact(spark, str(lake))
    assert (again.files_before, again.files_after) == (2, 2)
    assert lakes.by_spark(spark, lake, "day") == lakes.by_duckdb(lake, "day")


def test_the_query_continues_after_a_compaction(spark: Any, lake: Path) -> None:
    compaction.compact(spark, str(lake))
    write(spark, lake, 2)  # repeated: the base has it
    write(spark, lake, 3)
    assert lakes.seen(spark, lake) == Counter(range(16))
    done = compaction.compact(spark, str(lake))
    assert (done.files_before, done.files_after, done.rows) == (4, 2, 16)
    assert lakes.seen(spark, lake) == Counter(range(16))


def test_a_second_compaction_at_the_same_time_is_refused(spark: Any, lake: Path) -> None:
    with (
        held(str(lake), AssertionError()),
        pytest.raises(manifests.ArchiveError, match="another compaction is running"),
    ):
        compaction.compact(spark, str(lake))
    assert compaction.compact(spark, str(lake)).files_before == 6


@pytest.mark.parametrize(("seconds", "steps"), cells([(0, 20), (600, 15)]))
def test_killed_at_any_step_no_row_is_duplicated_and_the_next_call_completes_it(
    spark: Any,
    lake: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: int,
    steps: int,
) -> None:
    monkeypatch.setattr(compaction, "COMMIT_SECONDS", seconds)  # a commit per merge, or one for all
    rows = Counter(range(12))
    stop_at = 0
    while True:
        stop_at += 1
        place = tmp_path / f"stopped-{stop_at}"
        shutil.copytree(lake, place / "lake")
        try:
            compact_until(spark, place / "lake", stop_at)
        except lakes.Crash:
            assert lakes.seen_without_spark(place / "lake") <= rows, f"twice, stopped at {stop_at}"
        else:
            break
        if not is_chosen(stop_at):
            continue
        again = tmp_path / f"again-{stop_at}"
        shutil.copytree(place, again)
        write(spark, place / "lake", 3)
        both = rows + Counter(range(12, 16))
        assert lakes.seen_without_spark(place / "lake") == both, stop_at
        assert not list(place.glob("lake/_intent/*.json"))
        compact_until(spark, again / "lake", None)
        assert lakes.seen_without_spark(again / "lake") == rows, f"after a stop at {stop_at}"
        assert len(lakes.files_seen(again / "lake")) == 2
        assert not [one for one in again.glob("_lake.tmp/**/*") if one.is_file()]
    assert stop_at > steps
    assert lakes.by_spark(spark, place / "lake") == rows


def test_a_batch_that_is_being_written_is_left_alone(spark: Any, lake: Path) -> None:
    frame = frame_of(spark, range(12, 16)).coalesce(1)
    writer = archive.ArchiveWriter(str(lake), files_of=lambda one: lakes.FailingFiles(one, 7))
    with query_id(spark, QUERY), pytest.raises(lakes.Crash):  # one of two files is in the lake
        writer(frame, 3)
    before = lakes.seen(spark, lake)
    assert len(before) == 14
    done = compaction.compact(spark, str(lake))
    assert (done.files_before, done.files_after) == (6, 2)
    assert lakes.seen(spark, lake) == before
    write(spark, lake, 3)
    assert lakes.seen(spark, lake) == Counter(range(16))


def test_merged_rows_are_in_the_order_of_their_ids(spark: Any, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    ids = ["9-10", "9-9", "10-0", "9-100"]
    with query_id(spark, QUERY):
        writer = archive.archive_writer(str(tmp_path / "lake"), ())
        for batch, one in enumerate(ids):
            writer(spark.createDataFrame([(one, batch)], "_id string, v int"), batch)
    compaction.compact(spark, str(tmp_path / "lake"))
    (merged,) = lakes.files_seen(tmp_path / "lake")
    assert pq.read_table(merged)["_id"].to_pylist() == ["9-9", "9-10", "9-100", "10-0"]


def test_rows_with_malformed_ids_are_merged_too(spark: Any, tmp_path: Path) -> None:
    with query_id(spark, QUERY):
        for batch, one in enumerate(["7", "order-x", "1-2-3"]):
            frame = spark.createDataFrame([(one, batch)], "_id string, v int")
            archive.archive_writer(str(tmp_path / "lake"), ())(frame, batch)
    compaction.compact(spark, str(tmp_path / "lake"))
    assert lakes.seen(spark, tmp_path / "lake") == Counter(range(3))


def test_names_that_look_like_patterns_are_names(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "[lake] {a,b}*?"
    frame = frame_of(spark, range(4)).selectExpr("v", "'a/b:{0}[1] *%' as stream").coalesce(1)
    with query_id(spark, QUERY):
        for batch in range(2):
            archive.archive_writer(str(lake), ("stream",))(frame, batch)
    done = compaction.compact(spark, str(lake))
    assert (done.files_before, done.files_after, done.rows) == (2, 1, 8)
    assert lakes.by_arrow(lake, "stream") == {"a/b:{0}[1] *%": 8}


def test_the_command_line_compacts_and_shows(lake: Path) -> None:
    def archive_command(*words: str) -> str:
        result = CliRunner().invoke(app, ["archive", *words], catch_exceptions=False)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    done = json.loads(archive_command("compact", str(lake), "--master", "local[1]", "--json"))
    assert (done["files_before"], done["files_after"], done["rows"]) == (6, 2, 12)
    assert "12 rows, 2 files" in archive_command("show", str(lake))
    assert lakes.by_duckdb(lake) == Counter(range(12))


def test_a_later_column_is_in_merged_files(spark: Any, lake: Path) -> None:
    frame = frame_of(spark, range(12, 16)).selectExpr("*", "v * 2 as w")
    with query_id(spark, QUERY):
        archive.archive_writer(str(lake))(frame, 3)
    compaction.compact(spark, str(lake))
    assert lakes.by_duckdb(lake, "w") == Counter([24, 26, 28, 30, *[None] * 12])
    assert lakes.by_duckdb(lake, "w") == lakes.by_arrow(lake, "w")


def test_a_file_with_missing_rows_stops_it_before_any_change(spark: Any, lake: Path) -> None:
    path = lake / "_manifest/0000000001.json"
    given = json.loads(path.read_text())
    given["files"][0]["rows"] += 1
    path.write_text(json.dumps(given))
    before = lakes.files_seen(lake)
    with pytest.raises(manifests.ArchiveError, match="in their manifests; they were not changed"):
        compaction.compact(spark, str(lake))
    assert lakes.files_seen(lake) == before


def test_files_that_cannot_be_deleted_are_not_replaced(spark: Any, lake: Path) -> None:
    class Refusing(lakes.FailingFiles):  # type: ignore[name-defined, misc]
        def delete(self, path: str) -> bool:
            if path.startswith(f"file:{lake}/day="):
                raise manifests.ArchiveError(f"{path} cannot be deleted")
            return bool(super().delete(path))

    with pytest.raises(manifests.ArchiveError, match="cannot be deleted"):
        compaction.Compaction(Refusing(spark), spark, str(lake)).run()
    assert lakes.seen(spark, lake) == Counter(range(12))
    assert compaction.compact(spark, str(lake)).files_after == 2
    assert lakes.seen(spark, lake) == Counter(range(12))


def test_a_directory_without_manifest_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(manifests.ArchiveError, match="it has no manifest"):
        compaction.compact(spark, str(tmp_path))


def test_merges_keep_order_and_size() -> None:
    sizes = [10, 60, 20, 30, 30, 45, 5]
    files = [DataFile(f"day=1/{number}.parquet", 1, size) for number, size in enumerate(sizes)]
    files.append(DataFile("day=2/0.parquet", 1, 10))  # alone in its day
    plan = compaction.plan_merges(files, 100)
    assert {
        day: [[one.bytes for one in merge] for merge in merges] for day, merges in plan.items()
    } == {"day=1": [[10, 20, 30, 30], [45, 5]]}
