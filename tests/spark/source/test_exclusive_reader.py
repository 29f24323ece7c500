"""Streaming in mode exclusive: each entry once, limits, restarts, losses, the position of the group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker, fill

pytest.importorskip("pyspark", reason=NO_PYSPARK)

Drain = Callable[..., list[Any]]
SCHEMA = "_id string, v int"


def ids(rows: list[Any]) -> list[str]:
    return sorted((row._id for row in rows), key=lambda one: [int(half) for half in one.split("-")])


def group(broker: Broker, stream: str) -> dict[str, Any]:
    (found,) = broker.client.xinfo_groups(stream)
    return dict(found)


def test_a_query_continues_from_its_checkpoint(
    broker: Broker, drain: Drain, tmp_path: Path
) -> None:
    added = fill(broker.client, "s", 50)
    options = {"stream": "s", "maxEntriesPerTrigger": 20, "minPartitions": 2, "group": "mirror"}
    assert ids(drain(broker, tmp_path, SCHEMA, **options)) == added
    added += fill(broker.client, "s", 30, 50)
    assert ids(drain(broker, tmp_path, SCHEMA, **options)) == added
    # Without new entries Spark commits the last batch, and the group follows.
    assert ids(drain(broker, tmp_path, SCHEMA, **options)) == added
    found = group(broker, "s")
    assert found["last-delivered-id"].decode() == added[-1]
    assert (found["entries-read"], found["lag"], found["pending"]) == (80, 0, 0)


def test_a_group_with_other_consumers_is_not_changed(
    server: Broker, drain: Drain, tmp_path: Path
) -> None:
    fill(server.client, "s", 10)
    server.client.xgroup_create("s", "packers", "0")
    server.client.xreadgroup("packers", "ann", {"s": ">"}, count=3)
    before = group(server, "s")
    with pytest.raises(Exception, match="the group packers of the stream s has consumers"):
        drain(server, tmp_path, SCHEMA, stream="s", group="packers")
    assert group(server, "s")["last-delivered-id"] == before["last-delivered-id"]


def test_a_stream_removed_from_the_option_is_no_longer_read(
    server: Broker, drain: Drain, tmp_path: Path
) -> None:
    added = fill(server.client, "a", 3)
    drain(server, tmp_path, SCHEMA, stream="a")
    fill(server.client, "a", 2, 3)
    added += fill(server.client, "b", 4)
    assert sorted(ids(drain(server, tmp_path, SCHEMA, stream="b"))) == sorted(added)


def test_batches_keep_the_limit(spark: Any, server: Broker, tmp_path: Path) -> None:
    fill(server.client, "a", 25)
    fill(server.client, "b", 5)
    sizes: list[int] = []
    frame = (
        spark.readStream.format("penstock")
        .options(**server.options, stream="a,b", startingOffsets="earliest")
        .option("maxEntriesPerTrigger", 10)
        .schema(SCHEMA)
        .load()
    )
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count()))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sizes == [10, 10, 10]


def test_a_query_that_starts_at_latest_skips_existing_entries(
    spark: Any, penstock: Broker, tmp_path: Path
) -> None:
    fill(penstock.client, "s", 5)
    frame = (
        spark.readStream.format("penstock")
        .options(**penstock.options, stream="s")
        .schema(SCHEMA)
        .load()
    )
    query = (
        frame.writeStream.format("memory")
        .queryName("latest")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        query.processAllAvailable()
        added = fill(penstock.client, "s", 3, 5)
        query.processAllAvailable()
        assert ids(spark.table("latest").collect()) == added
    finally:
        query.stop()


def test_a_new_stream_of_a_pattern_is_read_from_its_beginning(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    added = fill(broker.client, "p:1", 5)
    frame = (
        spark.readStream.format("penstock")
        .options(**broker.options, streamPattern="p:*", startingOffsets="earliest")
        .schema(SCHEMA)
        .load()
    )
    name = f"pattern_{broker.kind}"
    query = (
        frame.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        query.processAllAvailable()
        added += fill(broker.client, "p:2", 5)
        query.processAllAvailable()
        assert ids(spark.table(name).collect()) == sorted(
            added, key=lambda one: [int(half) for half in one.split("-")]
        )
    finally:
        query.stop()


def test_a_trim_of_unread_entries_is_an_error_that_names_them(
    server: Broker, drain: Drain, tmp_path: Path
) -> None:
    added = fill(server.client, "s", 10)
    assert len(drain(server, tmp_path, SCHEMA, stream="s")) == 10
    added += fill(server.client, "s", 10, 10)
    server.client.xtrim("s", maxlen=4, approximate=False)
    with pytest.raises(Exception, match=f"after {added[9]} and before {added[16]} were removed"):
        drain(server, tmp_path, SCHEMA, stream="s")
    rows = drain(server, tmp_path, SCHEMA, stream="s", failOnDataLoss="false")
    assert ids(rows) == added[:10] + added[16:]


def test_a_trim_of_read_entries_is_not_a_loss(server: Broker, drain: Drain, tmp_path: Path) -> None:
    added = fill(server.client, "s", 10)
    drain(server, tmp_path, SCHEMA, stream="s")
    server.client.xtrim("s", maxlen=0, approximate=False)
    added += fill(server.client, "s", 3, 10)
    assert ids(drain(server, tmp_path, SCHEMA, stream="s")) == added


def test_a_stream_that_was_deleted_is_a_loss(
    penstock: Broker, drain: Drain, tmp_path: Path
) -> None:
    fill(penstock.client, "s", 10)
    drain(penstock, tmp_path, SCHEMA, stream="s")
    penstock.client.delete("s")
    with pytest.raises(Exception, match="deleted or replaced"):
        drain(penstock, tmp_path, SCHEMA, stream="s")


def test_a_stream_that_was_created_again_is_a_loss(
    server: Broker, drain: Drain, tmp_path: Path
) -> None:
    """Without this check the new stream would be ignored until it had as many entries as the old one."""
    fill(server.client, "s", 9)
    options = {"stream": "s", "maxEntriesPerTrigger": "4"}
    drain(server, tmp_path, SCHEMA, **options)
    server.client.delete("s")
    fill(server.client, "s", 5, 9)
    with pytest.raises(Exception, match="has had 5 entries, but 9 were read"):
        drain(server, tmp_path, SCHEMA, **options)
    rows = drain(server, tmp_path, SCHEMA, failOnDataLoss="false", **options)
    assert sorted(row.v for row in rows) == list(range(14))
