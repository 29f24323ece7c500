"""Streaming in mode shared: other consumers, acknowledgements, claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker, fill

pytest.importorskip("pyspark", reason=NO_PYSPARK)
options_module = pytest.importorskip("penstock.spark.source.options")
shared_module = pytest.importorskip("penstock.spark.source.shared_reader")
source_module = pytest.importorskip("penstock.spark.source.data_source")

Drain = Callable[..., list[Any]]
SCHEMA = "_id string, v int, _deliveries bigint"
SHARED = {"stream": "s", "mode": "shared", "group": "g"}


def pending(broker: Broker) -> int:
    return int(broker.client.xpending("s", "g")["pending"])


def test_a_query_and_an_ordinary_consumer_share_a_group(
    broker: Broker, drain: Drain, tmp_path: Path
) -> None:
    added = fill(broker.client, "s", 10)
    broker.client.xgroup_create("s", "g", "0")
    other = broker.client.xreadgroup("g", "other", {"s": ">"}, count=4)
    theirs = [one.decode() for one, _ in other[0][1]]
    rows = drain(broker, tmp_path, SCHEMA, **SHARED, maxEntriesPerTrigger=4)
    assert sorted(row.v for row in rows) == [4, 5, 6, 7, 8, 9]
    assert {row._deliveries for row in rows} == {1}
    broker.client.xack("s", "g", *theirs)
    added += fill(broker.client, "s", 2, 10)
    rows = drain(broker, tmp_path, SCHEMA, **SHARED)
    assert {row._id for row in rows} == set(added) - set(theirs)
    drain(broker, tmp_path, SCHEMA, **SHARED)  # the last batch is acknowledged by the next run
    assert pending(broker) == 0


def test_entries_of_a_dead_consumer_are_claimed_and_counted(
    server: Broker, drain: Drain, tmp_path: Path
) -> None:
    fill(server.client, "s", 5)
    server.client.xgroup_create("s", "g", "0")
    server.client.xreadgroup("g", "dead", {"s": ">"}, count=2)
    rows = drain(server, tmp_path, SCHEMA, **SHARED, claimIdleMs=0)
    assert {row.v: row._deliveries for row in rows} == {0: 2, 1: 2, 2: 1, 3: 1, 4: 1}


def test_a_missing_group_is_created_at_the_starting_offset(
    penstock: Broker, drain: Drain, tmp_path: Path
) -> None:
    fill(penstock.client, "s", 3)
    assert len(drain(penstock, tmp_path, SCHEMA, **SHARED)) == 3


def reader_of(spark: Any, broker: Broker, **options: Any) -> Any:
    """The reader as Spark's driver has it."""
    parsed = options_module.parse_options({**broker.options, **SHARED, **options})
    schema = spark.createDataFrame([], SCHEMA).schema
    return shared_module.SharedReader(parsed, source_module.entry_schema(schema, parsed))


def test_entries_claimed_for_no_batch_are_read_first_after_a_restart(
    spark: Any, broker: Broker
) -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource")
    added = fill(broker.client, "s", 6)
    reader = reader_of(spark, broker, startingOffsets="earliest", claimIdleMs="1000000")
    start = reader.initialOffset()
    lost = reader.latestOffset(start, limits.ReadMaxRows(2))
    assert lost["claimed"]["s"]["ids"] == added[:2]
    # The process ends here, before the offset is written.
    again = reader_of(spark, broker, claimIdleMs="1000000")
    end = again.latestOffset(start, limits.ReadMaxRows(4))
    assert end["claimed"]["s"]["ids"] == added[:4]
    assert end["claimed"]["s"]["deliveries"] == dict.fromkeys(added[:2], 2)
    assert pending(broker) == 4
    again.commit(end)
    assert pending(broker) == 0
    assert again.partitions(start, start) == []


def test_an_entry_deleted_after_the_claim_is_acknowledged(spark: Any, broker: Broker) -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource")
    added = fill(broker.client, "s", 2)
    reader = reader_of(spark, broker, startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, limits.ReadMaxRows(4))
    broker.client.xdel("s", added[0])
    (partition,) = reader.partitions(start, end)
    assert [row["v"] for batch in reader.read(partition) for row in batch.to_pylist()] == [1]
    reader.commit(end)
    assert pending(broker) == 0


def test_a_busy_stream_does_not_starve_the_others(spark: Any, penstock: Broker) -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource")
    fill(penstock.client, "a", 20)
    fill(penstock.client, "b", 20)
    reader = reader_of(spark, penstock, stream="a,b", startingOffsets="earliest")
    offset, streams = reader.initialOffset(), []
    for _ in range(4):
        offset = reader.latestOffset(offset, limits.ReadMaxRows(4))
        streams += offset["claimed"]
    assert streams == ["a", "b", "a", "b"]
