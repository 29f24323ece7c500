"""Replays from a stream, from rejects and from a lake."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.core.stream_id import StreamID
from penstock.spark.replay import (
    NotReplayable,
    Replay,
    default_name,
    frame_of,
    newest_in_lake,
    next_part,
    parts_of,
    write_part,
)
from penstock.spark.replay_parts import EndUnknown, Part
from tests.spark.conftest import Broker, fill
from tests.spark.lake.test_archive import QUERY, query_id

archive = pytest.importorskip("penstock.spark.lake.archive")
compaction = pytest.importorskip("penstock.spark.lake.compaction")
lakes = pytest.importorskip("tests.support.spark.lake")


def replay(spark: Any, broker: Broker, what: Replay, name: str | None = None) -> int:
    name = name or default_name(what)
    part = next_part(what, name, broker.options, broker.options, spark)
    if part is None:
        return 0
    frame = frame_of(spark, what, part, broker.options)
    return write_part(frame, what, name, part, broker.options)


def entries(broker: Broker, stream: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    found: list[tuple[bytes, dict[bytes, bytes]]] = broker.client.xrange(stream)
    return found


def test_a_range_of_a_stream_keeps_its_order_and_has_its_origin(spark: Any, broker: Broker) -> None:
    ids = fill(broker.client, "{a}", 50)
    first, last = (StreamID(*map(int, ids[at].split("-"))) for at in (10, 39))
    assert replay(spark, broker, Replay("{a}", None, "{a}:again", first, last)) == 30
    found = [fields for _, fields in entries(broker, "{a}:again")]
    assert [fields[b"v"] for fields in found] == [b"%d" % n for n in range(10, 40)]
    assert [fields[b"_source_id"].decode() for fields in found] == ids[10:40]
    assert {fields[b"_source_stream"] for fields in found} == {b"{a}"}


def test_a_replay_continues_where_it_stopped_until_it_is_forgotten(
    spark: Any, server: Broker
) -> None:
    """A second replay after new rejects appended nothing, without a word."""
    fill(server.client, "a", 5)
    what = Replay("a", None, "b")
    assert replay(spark, server, what) == 5
    assert replay(spark, server, what) == 0
    fill(server.client, "a", 3)
    assert replay(spark, server, what, "another") == 8
    assert replay(spark, server, what) == 3
    assert len(entries(server, "b")) == 16
    with parts_of(server.options, what, default_name(what)) as parts:
        parts.forget()
    assert replay(spark, server, what) == 8
    assert server.client.keys("penstock:staging:*") == []


def test_a_part_that_was_noted_is_written_as_it_was_noted(spark: Any, server: Broker) -> None:
    """A run that crashed, and one beside another run, write the same range."""
    fill(server.client, "a", 5)
    what, name = Replay("a", None, "b"), "monday"
    noted = next_part(what, name, server.options, server.options)
    assert noted is not None
    fill(server.client, "a", 2)
    assert next_part(what, name, server.options, server.options) == noted
    frame = frame_of(spark, what, noted, server.options)
    assert write_part(frame, what, name, noted, server.options) == 5
    write_part(frame, what, name, noted, server.options)  # a second run of the same part
    assert len(entries(server, "b")) == 5
    assert replay(spark, server, what, name) == 2
    assert len(entries(server, "b")) == 7


def test_a_part_whose_entries_are_gone_does_not_stop_the_replay(
    spark: Any, penstock: Broker
) -> None:
    fill(penstock.client, "a", 5)
    what = Replay("a", None, "b")
    assert next_part(what, default_name(what), penstock.options, penstock.options) is not None
    penstock.client.xtrim("a", maxlen=0, approximate=False)
    assert replay(spark, penstock, what) == 0
    fill(penstock.client, "a", 2)
    assert replay(spark, penstock, what) == 2


def test_a_replay_of_an_older_version_cannot_be_continued(penstock: Broker) -> None:
    fill(penstock.client, "a", 5)
    penstock.client.set("penstock:sink:{b}:write:monday:b", 1)
    with pytest.raises(EndUnknown, match="monday was replayed by an older version"):
        next_part(Replay("a", None, "b"), "monday", penstock.options, penstock.options)


def test_a_reject_is_replayed_without_its_reason_and_keeps_its_origin(
    spark: Any, penstock: Broker
) -> None:
    reject = {"v": b"\xff\x00", "_reason": "even", "_source_stream": "a", "_source_id": "7-1"}
    penstock.client.xadd("rejects", reject)
    replay(spark, penstock, Replay("rejects", None, "a"))
    [(_, fields)] = entries(penstock, "a")
    assert fields == {b"v": b"\xff\x00", b"_source_stream": b"a", b"_source_id": b"7-1"}


def test_a_lake_is_replayed_in_the_order_of_its_ids(
    spark: Any, penstock: Broker, tmp_path: Path
) -> None:
    client = penstock.client
    ids = [client.xadd("a", {"v": at}, id=f"{at}-{2**64 - 1 - at}") for at in (9, 10, 100)]
    frame = spark.read.format("penstock").options(**penstock.options, stream="a").load()
    frame.orderBy("_id").write.parquet(str(tmp_path / "lake"))  # as text, 10 comes before 9
    what = Replay(None, str(tmp_path / "lake"), "b", last=StreamID(99, 0))
    assert replay(spark, penstock, what) == 2
    found = entries(penstock, "b")
    assert [fields[b"_source_id"] for _, fields in found] == ids[:2]
    assert [fields[b"v"] for _, fields in found] == [b"9", b"10"]


def test_a_replay_of_a_lake_continues_after_the_ids_of_each_stream(
    spark: Any, penstock: Broker, tmp_path: Path
) -> None:
    schema = "_stream string, _id string, v int"
    lake = str(tmp_path / "lake")

    def archived(*rows: tuple[str, str, int]) -> int:
        spark.createDataFrame(rows, schema).write.mode("append").parquet(lake)
        return replay(spark, penstock, Replay(None, lake, "b"))

    assert archived(("a", "5-0", 1), ("c", "0-0", 2)) == 2
    assert archived(("a", "5-1", 3), ("c", "2-0", 4), ("d", "1-0", 5)) == 3
    assert replay(spark, penstock, Replay(None, lake, "b")) == 0
    values = [fields[b"v"] for _, fields in entries(penstock, "b")]
    assert values == [b"2", b"1", b"5", b"4", b"3"]


def test_typed_columns_of_a_lake_become_fields(
    spark: Any, penstock: Broker, tmp_path: Path
) -> None:
    rows = [("1-0", "a", 5), ("2-0", None, 6)]
    frame = spark.createDataFrame(rows, "_id string, sku string, qty int")
    frame.write.parquet(str(tmp_path / "orders"))
    replay(spark, penstock, Replay(None, str(tmp_path / "orders"), "b"))
    origin = {b"_source_stream": b"orders"}
    assert [fields for _, fields in entries(penstock, "b")] == [
        {b"sku": b"a", b"qty": b"5", b"_source_id": b"1-0", **origin},
        {b"qty": b"6", b"_source_id": b"2-0", **origin},
    ]


SILVER = "_id string, _timestamp timestamp, v int"


def archive_rows(
    spark: Any, lake: Path, rows: Sequence[Any], batch: int = 0, by: Sequence[str] = ("day",)
) -> None:
    frame = rows if hasattr(rows, "columns") else spark.createDataFrame(rows, SILVER).coalesce(1)
    with query_id(spark, QUERY):
        archive.archive_writer(str(lake), by)(frame, batch)


def fields_of(spark: Any, lake: Path) -> list[dict[str, Any]]:
    """The fields of the replayed entries, in order, without those that name the original."""
    what = Replay(None, str(lake), "b")
    everything = Part(1, {}, newest_in_lake(spark, what, {}))
    rows = frame_of(spark, what, everything, {}).collect()
    found = [row.asDict() for row in rows]
    return [{name: one[name] for name in one if not name.startswith("_source")} for one in found]


def silver(values: range) -> list[tuple[str, None, int]]:
    return [(f"{value}-0", None, value) for value in values]


def test_a_partition_of_an_archive_keeps_its_type(spark: Any, tmp_path: Path) -> None:
    rows = [("1-0", "001", 1, True), ("2-0", "1e3", 2, False), ("3-0", "a/b=[0]", 3, None)]
    frame = spark.createDataFrame(rows, "_id string, store string, qty int, ok boolean")
    lake = tmp_path / "[lake] {a,b}*?"
    archive_rows(spark, lake, frame, by=("store", "ok"))
    assert fields_of(spark, lake) == [
        {"store": store, "qty": qty, "ok": ok} for _, store, qty, ok in rows
    ]


def test_only_a_derived_day_is_left_out(spark: Any, tmp_path: Path) -> None:
    archive_rows(spark, tmp_path / "made", silver(range(2)))
    assert fields_of(spark, tmp_path / "made") == [{"v": 0}, {"v": 1}]
    for by in (("day",), ()):
        own = spark.createDataFrame([("1-0", "monday", 1)], "_id string, day string, v int")
        archive_rows(spark, tmp_path / f"own-{len(by)}", own, by=by)
        assert fields_of(spark, tmp_path / f"own-{len(by)}") == [{"day": "monday", "v": 1}]


def test_a_killed_compaction_is_finished_before_a_replay(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for batch in range(2):
        archive_rows(spark, lake, silver(range(batch * 2, batch * 2 + 2)), batch)
    everything = fields_of(spark, lake)
    for stop_at in range(1, 20):
        place = tmp_path / f"stopped-{stop_at}" / "lake"
        shutil.copytree(lake, place)
        killed = compaction.Compaction(lakes.FailingFiles(spark, stop_at), spark, str(place))
        with pytest.raises(lakes.Crash):
            killed.run()
        is_less = not lakes.files_seen(
            place
        )  # the old files are deleted, the merged one is not there yet
        assert fields_of(spark, place) == everything
        if is_less:
            return
    raise AssertionError("no rows were ever missing")


def test_files_without_a_manifest_are_not_replayed(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "lake"

    def stopping(batch: int) -> None:  # after its file is in the lake
        writer = archive.ArchiveWriter(str(lake), files_of=lambda one: lakes.FailingFiles(one, 7))
        with query_id(spark, QUERY), pytest.raises(lakes.Crash):
            writer(spark.createDataFrame(silver(range(2)), SILVER).coalesce(1), batch)

    stopping(0)
    assert lakes.files_seen(lake)
    with pytest.raises(NotReplayable, match="no finished batch yet"):
        fields_of(spark, lake)
    archive_rows(spark, lake, silver(range(0)))
    assert fields_of(spark, lake) == []
    stopping(1)
    assert fields_of(spark, lake) == []


def test_directory_names_of_other_parquet_stay_text(spark: Any, tmp_path: Path) -> None:
    table = spark.createDataFrame(
        [("1-0", "001", "2026-11-16", 1)], "_id string, store string, day string, `v.w` int"
    )
    table.write.partitionBy("store").parquet(str(tmp_path / "inside"))
    assert fields_of(spark, tmp_path / "inside") == [
        {"day": "2026-11-16", "v.w": 1, "store": "001"}
    ]
    table.write.partitionBy("day", "store").parquet(str(tmp_path / "outside"))
    assert fields_of(spark, tmp_path / "outside") == [{"v.w": 1, "store": "001"}]


@pytest.mark.parametrize(
    ("columns", "reason"), [("a int", "no column _id"), ("_id string", "no columns except the id")]
)
def test_parquet_that_is_not_an_archive_is_refused(
    spark: Any, penstock: Broker, tmp_path: Path, columns: str, reason: str
) -> None:
    spark.createDataFrame([], columns).write.parquet(str(tmp_path / "other"))
    with pytest.raises(NotReplayable, match=reason):
        replay(spark, penstock, Replay(None, str(tmp_path / "other"), "b"))


def test_a_missing_lake_is_refused(spark: Any, penstock: Broker, tmp_path: Path) -> None:
    with pytest.raises(NotReplayable, match="cannot be read as Parquet"):
        replay(spark, penstock, Replay(None, str(tmp_path / "none"), "b"))
