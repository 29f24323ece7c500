"""Delta and Iceberg tables: each row once for every reader, at whichever step the writer is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.spark.lake.test_archive import OTHER, QUERY, frame_of, query_id
from tests.support.campaign import cells

pytest.importorskip("pyspark", reason=NO_PYSPARK)
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytest.importorskip("polars")
pytest.importorskip("duckdb")

from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from penstock.spark.lake.compaction import compact
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.formats import DELTA, ICEBERG, TablePlace, found_format
from penstock.spark.lake.manifest import ArchiveError, Manifest
from penstock.spark.lake.table_formats.iceberg import local_catalog
from penstock.spark.lake.table_formats.table_writer import TableWriter
from penstock.spark.replay import archived
from tests.support.spark import tables
from tests.support.spark.lake import Crash

ONE = pytest.mark.parametrize("form", cells([DELTA, ICEBERG]))
DAYS = {date(1970, 1, 1): 2, date(1970, 1, 2): 2}

Write = Callable[..., int]


@pytest.fixture
def place(tmp_path: Path, form: str) -> TablePlace:
    return tables.place_of(tmp_path, form)


@pytest.fixture
def write(place: TablePlace) -> Write:
    """write(frame, end): append to this table."""
    return partial(append, place)


def append(
    place: TablePlace,
    frame: Any,
    end: int,
    query: str = QUERY,
    open_log: Any = None,
    partition_by: tuple[str, ...] = ("day",),
) -> int:
    """Write a batch that ends at a position, with a new writer. Returns the rows."""

    def left(rows: Any, newest: Manifest | None) -> Any:
        known = None if newest is None else newest.position.get("s")
        return None if known is not None and int(known.split("-")[0]) >= end else rows

    writer = TableWriter(place.path, partition_by, open_log or place.log_at)
    return writer.append(frame, [query], {"s": f"{end}-0"}, left)


def newest(place: TablePlace) -> Manifest:
    state = place.log_at(place.path).load()
    assert state is not None
    return state.newest


def attempts(place: TablePlace) -> list[str]:
    """The directories of all attempts."""
    return sorted(path.name for path in Path(place.path, "data").glob("*"))


@ONE
def test_every_reader_sees_the_rows_of_all_batches_once(
    spark: Any, place: TablePlace, write: Write
) -> None:
    assert write(frame_of(spark, range(4)), 4) == 4
    assert write(frame_of(spark, range(4, 6)), 6) == 2
    assert write(frame_of(spark, range(4, 6)), 6) == 0  # repeated
    assert write(frame_of(spark, range(0)), 7) == 0  # empty
    assert tables.seen(spark, place) == Counter(range(6))
    days = {date(1970, 1, 1): 3, date(1970, 1, 2): 3}
    for read in (tables.by_library, tables.by_polars):
        assert read(place, "day") == days
    assert tables.by_spark(spark, place, "day") == days
    assert (newest(place).batch, newest(place).position) == (2, {"s": "7-0"})
    assert [len(name) for name in attempts(place)] == [19] * 2  # none of the empty batch


@ONE
def test_killed_at_any_step_a_repeat_completes_the_batch(
    spark: Any, tmp_path: Path, form: str
) -> None:
    """The steps: before and after the table is created, before and after the commit."""
    frame = frame_of(spark, range(4)).coalesce(1)
    for stop_at in (1, 2, 3, 4):
        place = tables.place_of(tmp_path, form, f"t{stop_at}")
        with pytest.raises(Crash):
            append(place, frame, 4, open_log=tables.stopping_at(place, stop_at))
        assert append(place, frame, 4) == (0 if stop_at == 4 else 4)
        assert tables.by_library(place) == Counter(range(4))
        assert len(attempts(place)) == 1
    assert tables.seen(spark, place) == Counter(range(4))


@ONE
def test_files_of_a_killed_attempt_are_deleted_by_the_next_run(
    spark: Any, place: TablePlace, write: Write
) -> None:
    frame = frame_of(spark, range(4)).coalesce(1)
    write(frame, 4)
    (kept,) = attempts(place)
    for step in (1, 2):  # before the commit without files, after it
        with pytest.raises(Crash):
            write(frame, 8, open_log=tables.stopping_at(place, step))
    write(frame_of(spark, range(4, 8)), 8)
    assert tables.seen(spark, place) == Counter(range(8))
    assert attempts(place)[0] == kept
    assert len(attempts(place)) == 2


@ONE
@pytest.mark.parametrize("is_killed", cells([False, True]))
def test_a_stale_driver_commits_nothing(
    spark: Any, place: TablePlace, write: Write, is_killed: bool
) -> None:
    write(frame_of(spark, range(4)), 4)
    frame = frame_of(spark, range(4, 8)).coalesce(1)

    def overtake() -> None:
        # The new driver finds the files of the stale one, and makes a commit before it deletes them.
        with suppress(Crash):
            write(frame, 8, open_log=tables.stopping_at(place, 3 if is_killed else 99))

    with pytest.raises(ArchiveError, match="another driver has written to the table"):
        write(frame, 8, open_log=tables.acting_at(place, 1, overtake))
    write(frame, 8)
    write(frame_of(spark, range(8, 10)), 10)
    assert tables.seen(spark, place) == Counter(range(10))
    assert len(attempts(place)) == 3


@ONE
def test_files_that_a_stale_driver_writes_after_the_fence_are_deleted_later(
    spark: Any, place: TablePlace, write: Write
) -> None:
    write(frame_of(spark, range(4)), 4)
    frame = frame_of(spark, range(4, 8)).coalesce(1)

    def overtake_and_be_killed() -> None:
        stale = Path(place.path, "data", attempts(place)[-1])
        write(frame, 8)
        assert not stale.exists()
        stale.mkdir()
        (stale / "part-00001.parquet").write_bytes(b"late")
        raise Crash

    with pytest.raises(Crash):
        write(frame, 8, open_log=tables.acting_at(place, 1, overtake_and_be_killed))
    assert len(attempts(place)) == 3
    write(frame_of(spark, range(8, 10)), 10)
    assert tables.seen(spark, place) == Counter(range(10))
    assert [int(name.partition("-")[0]) for name in attempts(place)] == [1, 3, 4]


@ONE
def test_a_table_that_changes_during_a_commit_gets_the_batch(
    spark: Any, place: TablePlace, write: Write
) -> None:
    write(frame_of(spark, range(4)), 4)
    write(frame_of(spark, range(4, 8)), 8)
    row = pa.table({"v": pa.array([100], pa.int32()), "day": [date(1970, 1, 1)]})

    def change() -> None:
        table = tables.library_table(place)
        if place.format == DELTA:
            table.optimize.compact()
        else:
            table.append(row)

    write(frame_of(spark, range(8, 12)), 12, open_log=tables.acting_at(place, 1, change))
    own = Counter({100: 1} if place.format == ICEBERG else {})
    assert tables.seen(spark, place) == Counter(range(12)) + own


@ONE
def test_a_table_that_was_cleaned_by_others_continues(
    spark: Any, place: TablePlace, write: Write
) -> None:
    for end in (4, 8):
        write(frame_of(spark, range(end - 4, end)), end)
    table = tables.library_table(place)
    if place.format == DELTA:
        table.optimize.compact()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
        table.create_checkpoint()
        for one in Path(place.path, "_delta_log").glob("*.json"):
            if int(one.stem) < table.version():
                one.unlink()  # as the cleanup of old logs does
    else:
        old = [one.snapshot_id for one in table.snapshots()[:-1]]
        table.maintenance.expire_snapshots().by_ids(old).commit()
    assert write(frame_of(spark, range(4, 8)), 8) == 0
    write(frame_of(spark, range(8, 12)), 12)
    assert tables.seen(spark, place) == Counter(range(12))


@ONE
def test_a_new_column_is_added_and_a_missing_one_is_null(
    spark: Any, place: TablePlace, write: Write
) -> None:
    write(frame_of(spark, range(4)), 4)
    write(frame_of(spark, range(4, 8)).selectExpr("_id", "_timestamp", "v * 2 as w"), 8)
    assert tables.seen(spark, place) == Counter([*range(4), *[None] * 4])
    for read in (tables.by_library, tables.by_polars):
        assert read(place, "w") == Counter([8, 10, 12, 14, *[None] * 4])
    wrong = frame_of(spark, range(8, 9)).selectExpr("_id", "_timestamp", "cast(v as string) as v")
    with pytest.raises(ArchiveError, match="column v is string, but int in the lake"):
        write(wrong, 9)


@ONE
def test_columns_of_every_kind_are_written_and_read(
    spark: Any, place: TablePlace, write: Write
) -> None:
    frame = frame_of(spark, range(3)).selectExpr(
        "*",
        "cast(v as smallint) as small",
        "cast(v as decimal(10,2)) as price",
        "map('a', cast(v as string)) as fields",
        "array(named_struct('name', cast('n' as binary), 'value', v)) as _raw",
        "timestamp_ntz'2024-05-01 12:00:00' as local" if place.format == ICEBERG else "v > 0 as b",
    )
    write(frame, 3)
    write(frame, 6)
    assert tables.seen(spark, place) == {0: 2, 1: 2, 2: 2}
    if place.format == DELTA:  # created, a stream added, two batches: no batch changes the columns
        assert tables.library_table(place).version() == 3
    expected = {tuple(map(str, row)) for row in frame.select("price", "fields", "_raw").collect()}
    read = archived(spark, place).select("price", "fields", "_raw").collect()
    assert {tuple(map(str, row)) for row in read} == expected


@ONE
def test_partitions_by_day_and_another_column(spark: Any, place: TablePlace, write: Write) -> None:
    frame = frame_of(spark, range(4)).selectExpr("*", "concat('a/b: %', v % 2, ' é#?') as sku")
    by = ("day", "sku")
    write(frame, 4, partition_by=by)
    expected = {"a/b: %0 é#?": 2, "a/b: %1 é#?": 2}
    for read in (tables.by_library, tables.by_polars, tables.by_pandas):
        assert read(place, "sku") == expected
    assert tables.by_spark(spark, place, "sku") == expected
    assert tables.by_spark(spark, place, "day") == DAYS
    with pytest.raises(ArchiveError, match="is partitioned by day, sku, but this query by day"):
        write(frame, 8)
    write(frame, 8, partition_by=by)
    assert tables.seen(spark, place) == Counter([*range(4), *range(4)])


@ONE
def test_a_table_without_partitions(spark: Any, place: TablePlace, write: Write) -> None:
    write(frame_of(spark, range(4)), 4, partition_by=())
    assert tables.seen(spark, place) == Counter(range(4))


@ONE
def test_tables_of_others_are_refused(spark: Any, place: TablePlace, write: Write) -> None:
    write(frame_of(spark, range(4)), 4)
    with pytest.raises(ArchiveError, match=f"by query {QUERY}, but this is query {OTHER}"):
        write(frame_of(spark, range(4)), 8, OTHER)
    if place.format == DELTA:
        DeltaTable.create(
            f"{place.path}2",
            tables.library_table(place).schema(),
            configuration={"penstock.query": QUERY},
            raise_if_key_not_exists=False,
        )
        with pytest.raises(ArchiveError, match="transaction penstock:commits is missing"):
            replace(place, path=f"{place.path}2").writer(("day",)).append(
                frame_of(spark, range(4)), [QUERY], {}, lambda rows, _: rows
            )
        return
    with tables.library_table(place).update_schema() as columns:
        columns.rename_column("v", "value")
    with pytest.raises(ArchiveError, match="has dropped or renamed column v, which was int"):
        write(frame_of(spark, range(4, 8)), 8)


@ONE
def test_a_table_that_penstock_did_not_create_is_refused(
    spark: Any, place: TablePlace, write: Write
) -> None:
    rows = pa.table({"v": pa.array([1], pa.int32())})
    if place.format == DELTA:
        DeltaTable.create(place.path, rows.schema)
    else:
        Path(place.lake).mkdir()
        catalog = load_catalog("penstock", **local_catalog(place.lake))
        catalog.create_namespace("penstock")
        catalog.create_table(("penstock", place.name), rows.schema, location=place.path)
    with pytest.raises(ArchiveError, match="a table of another program: it has no property pen"):
        write(frame_of(spark, range(4)), 4)


@ONE
def test_a_directory_with_other_data_is_refused(
    spark: Any, place: TablePlace, write: Write
) -> None:
    frame_of(spark, range(4)).write.parquet(place.path)
    with pytest.raises(ArchiveError, match=f"has no {place.format} table but is not empty"):
        write(frame_of(spark, range(4)), 4)


@ONE
def test_batches_by_number_are_written_once(spark: Any, place: TablePlace) -> None:
    with query_id(spark, QUERY):
        for batch in (0, 0, 1, 3):
            writer = place.writer(("day",))
            writer(frame_of(spark, range(batch * 2, batch * 2 + 2)), batch)
        assert writer.rows == 2
        with pytest.raises(ArchiveError, match="up to 3, but its query is at batch 2"):
            writer(frame_of(spark, range(1)), 2)
    assert tables.seen(spark, place) == Counter([0, 1, 2, 3, 6, 7])
    assert newest(place).batch == 3


@ONE
def test_the_format_of_a_directory_is_found(spark: Any, place: TablePlace, write: Write) -> None:
    files = LakeFiles(spark)
    assert found_format(files, place.path) is None
    write(frame_of(spark, range(1)), 1)
    assert found_format(files, place.path) == place.format


@ONE
def test_a_missing_library_is_named(
    place: TablePlace, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.lake.formats.find_spec", lambda _: None)
    with pytest.raises(ArchiveError, match=rf"pip install 'penstock\[{place.format}\]'"):
        place.log_at(place.path)


@ONE
def test_a_position_can_be_any_id_of_any_stream(place: TablePlace) -> None:
    log = place.log_at(place.path)
    log.create(Manifest(QUERY, -1, (), {"type": "struct", "fields": [_V]}))
    position = {"a": "18446744073709551615-18446744073709551615", "b": "0-9223372036854775808"}
    for known in (position, {"a": "0-0", '"\udcff': "7-1"}):
        before = log.load()
        assert before is not None
        log.commit(before, replace(before.newest, position=known), [])
    expected = {**known, "b": position["b"]} if place.format == DELTA else known
    assert newest(place).position == expected


_V = {"name": "v", "type": "integer", "nullable": True, "metadata": {}}


@ONE
def test_small_files_are_compacted(spark: Any, place: TablePlace, write: Write) -> None:
    for end in (4, 8, 12):
        write(frame_of(spark, range(end - 4, end)).coalesce(1), end)
    done = compact(spark, place.path)
    assert (done.files_before, done.files_after, done.rows) == (6, 2, 12)
    assert tables.seen(spark, place) == Counter(range(12))
    again = compact(spark, place.path)
    assert (again.files_before, again.files_after) == (2, 2)
    write(frame_of(spark, range(12, 16)), 16)
    assert tables.seen(spark, place) == Counter(range(16))
