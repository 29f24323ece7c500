"""The archive: each row exactly once for every reader, at whichever step the writer is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker, fill

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("duckdb")
archive = pytest.importorskip("penstock.spark.lake.archive")
manifests = pytest.importorskip("penstock.spark.lake.manifest")
lakes = pytest.importorskip("tests.support.spark.lake")
archive_query = pytest.importorskip("tests.support.spark.archive_query")

DAY_MS = 86_400_000
QUERY = "5f0c11aa-0000-0000-0000-000000000001"
OTHER = "77777777-0000-0000-0000-000000000002"
WAIT_SECONDS_MAX = 300

Write = Callable[..., None]


@contextmanager
def query_id(spark: Any, query: str) -> Iterator[None]:
    """Set the query id, as Spark does in the thread of a streaming query."""
    spark.sparkContext.setLocalProperty(archive.QUERY_ID, query)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty(archive.QUERY_ID, None)


def frame_of(spark: Any, values: range) -> Any:
    """One row per value, on two days, in two partitions."""
    return spark.range(values.start, values.stop, 1, 2).selectExpr(
        f"concat(id % 2 * {DAY_MS} + id, '-0') as _id",
        f"timestamp_millis(id % 2 * {DAY_MS} + id) as _timestamp",
        "cast(id as int) as v",
    )


@pytest.fixture
def write(spark: Any, tmp_path: Path) -> Write:
    """write(frame, batch): write a batch of a query into tmp_path/lake, optionally with failing files."""

    def writing(frame: Any, batch: int, query: str = QUERY, **options: Any) -> None:
        with query_id(spark, query):
            archive.ArchiveWriter(str(tmp_path / "lake"), **options)(frame, batch)

    return writing


def manifest(lake: Path, batch: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lake / f"_manifest/{batch:010d}.json").read_text())
    return found


def test_batches_are_parquet_files_by_day_with_manifests(
    spark: Any, write: Write, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    write(frame_of(spark, range(10)), 0)
    write(frame_of(spark, range(10, 14)), 1)
    assert lakes.seen(spark, lake) == Counter(range(14))
    days = {date(1970, 1, 1): 7, date(1970, 1, 2): 7}
    assert lakes.by_duckdb(lake, "day") == lakes.by_spark(spark, lake, "day") == days
    assert {path.name for path in lake.iterdir()} == {
        *("day=1970-01-01", "day=1970-01-02", "_manifest", "_intent")
    }
    first = manifest(lake, 0)
    assert (first["version"], first["query"], first["rows"]) == (1, QUERY, 10)
    on_disk = [lake / file["path"] for file in first["files"]]
    assert first["bytes"] == sum(path.stat().st_size for path in on_disk)
    assert {path.name[:19] for path in on_disk} == {"0000000000-5f0c11aa"}
    assert not list(tmp_path.glob("_lake.tmp/*/*"))


def test_the_day_is_in_utc(spark: Any, write: Write, tmp_path: Path) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        write(spark.range(1).selectExpr("timestamp_millis(86399999) as _timestamp"), 0)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert (tmp_path / "lake/day=1970-01-01").exists()
    # A timestamp with time zone, so that readers do not take it for local time.
    assert str(next(iter(lakes.by_duckdb(tmp_path / "lake", "_timestamp"))).tzinfo) != "None"


def test_a_finished_batch_is_skipped(spark: Any, write: Write, tmp_path: Path) -> None:
    write(frame_of(spark, range(4)), 0)
    before = lakes.files_seen(tmp_path / "lake")
    write(frame_of(spark, range(4)), 0)
    assert lakes.files_seen(tmp_path / "lake") == before


@pytest.mark.parametrize("partition_by", [(), ("day",)])
def test_an_empty_batch_writes_nothing_but_its_manifest(
    spark: Any, write: Write, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    write(frame_of(spark, range(0)), 0, partition_by=partition_by)
    assert lakes.files_seen(tmp_path / "lake") == []
    assert manifest(tmp_path / "lake", 0)["files"] == []
    write(frame_of(spark, range(4)), 1, partition_by=partition_by)
    assert lakes.seen(spark, tmp_path / "lake") == Counter(range(4))


def test_killed_at_any_step_no_row_is_duplicated_and_a_repeat_completes_the_batch(
    spark: Any, write: Write, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    write(frame_of(spark, range(4)), 0)
    done = Counter(range(4))
    stop_at, batch = 0, 1
    while True:
        stop_at += 1
        new = Counter(range(batch * 10, batch * 10 + 4))
        frame = frame_of(spark, range(batch * 10, batch * 10 + 4)).coalesce(1)
        try:
            write(frame, batch, files_of=lambda one, n=stop_at: lakes.FailingFiles(one, n))
        except lakes.Crash:
            seen = lakes.seen_without_spark(lake)
            assert all(count == 1 for count in seen.values()), f"twice, stopped at {stop_at}"
            assert done <= seen <= done + new
            write(frame, batch)
        else:
            break
        done += new
        assert lakes.seen_without_spark(lake) == done, f"after a stop at {stop_at}"
        batch += 1
    # Claim and its deletion, an intent in two steps, two data files, the commit, a deletion before and after.
    assert stop_at == 10
    assert lakes.seen(spark, lake) == done + new


def test_undoing_a_batch_can_be_interrupted_too(spark: Any, write: Write, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    frame = frame_of(spark, range(4))
    with pytest.raises(lakes.Crash):  # with two of the files moved
        write(frame, 0, files_of=lambda one: lakes.FailingFiles(one, 8))
    assert 0 < len(lakes.files_seen(lake)) < 4
    for stop_at in range(1, 8):
        with pytest.raises(lakes.Crash):
            write(frame, 0, files_of=lambda one, n=stop_at: lakes.FailingFiles(one, n))
        assert lakes.seen_without_spark(lake) <= Counter(range(4))
    write(frame, 0)
    assert lakes.seen(spark, lake) == Counter(range(4))


def test_another_query_is_refused_with_both_remedies(
    spark: Any, write: Write, tmp_path: Path
) -> None:
    write(frame_of(spark, range(4)), 0)
    text = f"by query {QUERY}, but this is query {OTHER}.*Restore the old checkpoint, or archive"
    with pytest.raises(manifests.ArchiveError, match=text):
        write(frame_of(spark, range(4)), 0, OTHER)
    with pytest.raises(manifests.ArchiveError, match=text):
        write(frame_of(spark, range(4, 8)), 1, OTHER)
    assert lakes.seen(spark, tmp_path / "lake") == Counter(range(4))


def test_an_unfinished_batch_of_another_query_is_not_undone(
    spark: Any, write: Write, tmp_path: Path
) -> None:
    with pytest.raises(lakes.Crash):
        write(frame_of(spark, range(4)), 0, files_of=lambda one: lakes.FailingFiles(one, 8))
    before = lakes.files_seen(tmp_path / "lake")
    with pytest.raises(manifests.ArchiveError, match="written by query"):
        write(frame_of(spark, range(4)), 0, OTHER)
    assert before
    assert lakes.files_seen(tmp_path / "lake") == before


def test_a_checkpoint_that_is_older_than_the_lake_is_refused(spark: Any, write: Write) -> None:
    write(frame_of(spark, range(4)), 0)
    write(frame_of(spark, range(4, 8)), 1)
    with pytest.raises(manifests.ArchiveError, match="up to 1, but its query is at batch 0"):
        write(frame_of(spark, range(6)), 0)


def test_a_directory_with_other_data_is_refused(spark: Any, write: Write, tmp_path: Path) -> None:
    frame_of(spark, range(4)).write.parquet(str(tmp_path / "lake"))
    with pytest.raises(manifests.ArchiveError, match="no manifest but is not empty"):
        write(frame_of(spark, range(4)), 0)


def test_outside_a_streaming_query_the_error_says_why(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(manifests.ArchiveError, match="foreachBatch of a streaming query"):
        archive.archive_writer(str(tmp_path / "lake"))(frame_of(spark, range(4)), 0)


def test_a_column_that_changed_its_type_is_refused_before_anything_is_written(
    spark: Any, write: Write, tmp_path: Path
) -> None:
    write(frame_of(spark, range(4)), 0)
    before = sorted(tmp_path.rglob("*"))
    wider = frame_of(spark, range(4, 8)).selectExpr("_id", "_timestamp", "cast(v as bigint) as v")
    with pytest.raises(manifests.ArchiveError, match="column v is bigint, but int in the lake"):
        write(wider, 1)
    other = frame_of(spark, range(4, 8)).withColumnRenamed("v", "V")
    with pytest.raises(manifests.ArchiveError, match="column V: the lake spells it v"):
        write(other, 1)
    with pytest.raises(
        manifests.ArchiveError, match="is partitioned by day, but this query by noth"
    ):
        write(frame_of(spark, range(4, 8)), 1, partition_by=())
    assert sorted(tmp_path.rglob("*")) == before


def test_a_missing_column_is_null_and_a_new_one_is_added(
    spark: Any, write: Write, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    write(frame_of(spark, range(4)), 0)
    write(frame_of(spark, range(4, 8)).selectExpr("v * 2 as w", "_timestamp", "_id"), 1)
    assert lakes.seen(spark, lake) == Counter([*range(4), *[None] * 4])
    rows = spark.read.option("mergeSchema", "true").parquet(str(lake)).select("w").collect()
    assert Counter(row.w for row in rows) == Counter([8, 10, 12, 14, *[None] * 4])


@pytest.mark.parametrize(
    ("partition_by", "text"),
    [
        (("_id",), "readers skip directories that start with '_'"),
        (("sku",), "no such column; its columns are _id, _timestamp, v"),
        (("v", "_timestamp", "_id"), "readers skip"),
    ],
)
def test_a_partition_that_readers_could_not_see_is_refused(
    spark: Any, write: Write, partition_by: tuple[str, ...], text: str
) -> None:
    with pytest.raises(manifests.ArchiveError, match=text):
        write(frame_of(spark, range(4)), 0, partition_by=partition_by)


def test_rows_without_a_time_are_on_the_last_day(spark: Any, write: Write, tmp_path: Path) -> None:
    rows = spark.range(2).selectExpr(
        "if(id = 0, timestamp_millis(0), null) as _timestamp", "cast(id as int) as v"
    )
    write(rows, 0)
    assert lakes.seen(spark, tmp_path / "lake") == Counter(range(2))
    assert lakes.by_duckdb(tmp_path / "lake", "day") == {date(1970, 1, 1): 1, date(9999, 12, 31): 1}


def test_values_with_slashes_and_colons_make_directories_that_readers_decode(
    spark: Any, write: Write, tmp_path: Path
) -> None:
    frame = frame_of(spark, range(4)).selectExpr("v", "concat('a/b:{', v % 2, '} %') as stream")
    write(frame, 0, partition_by=("stream",))
    expected = {"a/b:{0} %": 2, "a/b:{1} %": 2}
    lake = tmp_path / "lake"
    assert lakes.by_spark(spark, lake, "stream") == expected
    assert lakes.by_duckdb(lake, "stream") == lakes.by_arrow(lake, "stream") == expected


def test_a_lake_needs_a_parent_directory(spark: Any) -> None:
    with query_id(spark, QUERY), pytest.raises(manifests.ArchiveError, match="below it"):
        archive.archive_writer("/proc")(frame_of(spark, range(4)), 0)


def test_a_derived_day_differs_from_a_day_in_the_rows(spark: Any, tmp_path: Path) -> None:
    frame = frame_of(spark, range(4))
    own = frame.selectExpr("*", "date'2020-02-02' as day")
    with query_id(spark, QUERY):
        archive.archive_writer(str(tmp_path / "made"))(frame, 0)
        archive.archive_writer(str(tmp_path / "own"))(own, 0)
    marks = [
        {one["name"]: one["metadata"] for one in manifest(tmp_path / name, 0)["schema"]["fields"]}
        for name in ("made", "own")
    ]
    assert [one["day"] for one in marks] == [{"derived": True}, {}]


@contextmanager
def running_query(broker: Broker, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in its own process group, so that its Java dies with it."""
    module = "tests.support.spark.archive_query"
    words = [sys.executable, "-m", module, broker.options["url"], str(folder)]
    process = subprocess.Popen(words, start_new_session=True, cwd=Path(__file__).parents[3])
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait for a condition, or for the end of the process."""
    for _ in range(WAIT_SECONDS_MAX * 100):
        if condition():
            return
        try:
            process.wait(0.01)
            return
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("it did not happen")


def test_a_killed_query_archives_every_entry_once(
    spark: Any, penstock: Broker, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    fill(penstock.client, "s", 3000)
    with running_query(penstock, tmp_path) as process:
        wait_until(lambda: len(list(lake.glob("_manifest/*.json"))) >= 2, process)
    seen = lakes.seen_without_spark(lake)
    assert set(seen.values()) == {1}
    assert 1000 <= len(seen) < 3000
    archive_query.archive_all(spark, penstock.options["url"], str(tmp_path))
    assert lakes.seen(spark, lake) == Counter(range(3000))
