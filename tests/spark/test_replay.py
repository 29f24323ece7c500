"""Entries once more: from a stream, from rejects, from a lake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.core.stream_id import StreamID
from penstock.spark.replay import (
    NotReplayable,
    Replay,
    default_name,
    forget,
    frame_of,
    is_done,
    write_replay,
)
from tests.spark.conftest import Broker, fill


def replay(spark: Any, broker: Broker, what: Replay, name: str | None = None) -> int:
    frame = frame_of(spark, what, broker.options)
    return write_replay(frame, what, name or default_name(what), broker.options)


def entries(broker: Broker, stream: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    found: list[tuple[bytes, dict[bytes, bytes]]] = broker.client.xrange(stream)
    return found


def test_a_range_of_a_stream_keeps_its_order_and_tells_its_origin(
    spark: Any, broker: Broker
) -> None:
    ids = fill(broker.client, "{a}", 50)
    first, last = (StreamID(*map(int, ids[at].split("-"))) for at in (10, 39))
    assert replay(spark, broker, Replay("{a}", None, "{a}:again", first, last)) == 30
    found = [fields for _, fields in entries(broker, "{a}:again")]
    assert [fields[b"v"] for fields in found] == [b"%d" % n for n in range(10, 40)]
    assert [fields[b"_source_id"].decode() for fields in found] == ids[10:40]
    assert {fields[b"_source_stream"] for fields in found} == {b"{a}"}


def test_a_replay_is_done_once_for_its_name_until_it_is_forgotten(
    spark: Any, server: Broker
) -> None:
    fill(server.client, "a", 5)
    what = Replay("a", None, "b")
    name = default_name(what)
    assert not is_done(server.options, what, name)
    replay(spark, server, what)
    assert is_done(server.options, what, name)
    replay(spark, server, what)
    assert len(entries(server, "b")) == 5
    forget(server.options, what, name)
    replay(spark, server, what)
    assert len(entries(server, "b")) == 10


def test_a_reject_goes_back_without_its_reason_and_keeps_its_first_origin(
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
    frame.orderBy("_id").write.parquet(str(tmp_path / "lake"))  # as texts: 10 before 9
    what = Replay(None, str(tmp_path / "lake"), "b", last=StreamID(99, 0))
    assert replay(spark, penstock, what) == 2
    found = entries(penstock, "b")
    assert [fields[b"_source_id"] for _, fields in found] == ids[:2]
    assert [fields[b"v"] for _, fields in found] == [b"9", b"10"]


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


@pytest.mark.parametrize(
    ("columns", "reason"), [("a int", "no column _id"), ("_id string", "no columns beside the id")]
)
def test_what_is_no_archive_is_refused(
    spark: Any, penstock: Broker, tmp_path: Path, columns: str, reason: str
) -> None:
    spark.createDataFrame([], columns).write.parquet(str(tmp_path / "other"))
    with pytest.raises(NotReplayable, match=reason):
        replay(spark, penstock, Replay(None, str(tmp_path / "other"), "b"))


def test_a_lake_that_is_not_there_is_refused(spark: Any, penstock: Broker, tmp_path: Path) -> None:
    with pytest.raises(NotReplayable, match="cannot be read as Parquet"):
        replay(spark, penstock, Replay(None, str(tmp_path / "none"), "b"))
