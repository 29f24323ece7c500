"""Records of batches: from Spark's reports, completed by the server, published."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker, fill

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from pyspark.sql.streaming.listener import StreamingQueryProgress

from penstock.core.stream_id import StreamID
from penstock.spark.pipeline.progress import (
    BatchRecord,
    Metrics,
    ProgressListener,
    counted,
    lag_or_none,
    names_text,
    record_of,
)
from penstock.spark.source.offsets import Offset, Position
from penstock.spark.source.options import parse_options


def offset(*positions: tuple[str, int | None]) -> Offset:
    return Offset({name: Position(StreamID(n or 1, 0), n) for name, n in positions})


def report(end: Offset, latest: Offset | None) -> StreamingQueryProgress:
    source = {
        "description": "PythonMicroBatchStream",
        "startOffset": None,
        "endOffset": end.to_json(),
        "latestOffset": None if latest is None else latest.to_json(),
        "numInputRows": 100,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 50.0,
        "metrics": {},
    }
    return StreamingQueryProgress.fromJson(
        {
            "id": "00000000-0000-0000-0000-000000000001",
            "runId": "00000000-0000-0000-0000-000000000002",
            "name": "shop/silver",
            "timestamp": "2026-11-16T02:29:09.000Z",
            "batchId": 7,
            "batchDuration": 2000,
            "durationMs": {},
            "eventTime": {},
            "stateOperators": [],
            "sources": [source],
            "sink": {"description": "x", "numOutputRows": -1, "metrics": {}},
            "numInputRows": 100,
            "inputRowsPerSecond": 0.0,
            "processedRowsPerSecond": 50.0,
            "observedMetrics": {},
        }
    )


def test_a_record_has_the_numbers_of_its_batch() -> None:
    found = record_of("shop", "silver", report(offset(("a", 100)), offset(("a", 130))))
    assert found.to_json() == {
        "pipeline": "shop",
        "output": "silver",
        "batch": 7,
        "at": "2026-11-16T02:29:09.000Z",
        "read": 100,
        "rows": 100,
        "rows_per_second": 50.0,
        "seconds": 2.0,
        "lag": 30,
        "pending": None,
        "late": 0,
        "duplicates": 0,
        "query": "silver",
        "source": "a",
        "ends": "100-0",
    }
    assert found.end == offset(("a", 100))


def test_an_unknown_lag_is_none() -> None:
    assert lag_or_none(offset(("a", 1), ("b", 2)), offset(("a", 4), ("b", 2))) == 3
    assert lag_or_none(offset(("a", 1)), offset(("a", 1), ("new", 5))) == 5
    assert lag_or_none(offset(("a", None)), offset(("a", 4))) is None
    assert lag_or_none(offset(("a", 1)), offset(("a", None))) is None
    assert lag_or_none(None, offset(("a", 4))) is None
    assert record_of("shop", "x", report(offset(("a", 1)), None)).lag is None


def record(end: Offset) -> BatchRecord:
    return BatchRecord("shop", "bronze", 1, "now", 1, 1, 1.0, 1.0, lag=0, end=end)


def test_a_record_is_completed_and_published(server: Broker) -> None:
    ids = fill(server.client, "orders", 5)
    server.client.xgroup_create("orders", "lake", id="0")
    server.client.xreadgroup("lake", "c", {"orders": ">"}, count=3)
    place = parse_options({**server.options, "stream": "x"}).place
    metrics = Metrics(place, "lake", "penstock:metrics")
    ms, seq = map(int, ids[1].split("-"))
    end = Offset({"orders": Position(StreamID(ms, seq), 2)})
    assert metrics.complete(record(end)).pending == 3
    assert metrics.lag_or_none(end) == 3
    metrics.close()
    ((_, fields),) = server.client.xrange("penstock:metrics")
    assert fields[b"pipeline"] == b"shop"
    assert fields[b"pending"] == b"3"
    assert b"end" not in fields


def test_a_missing_group_has_no_pending_entries(server: Broker) -> None:
    fill(server.client, "orders", 1)
    place = parse_options({**server.options, "stream": "x"}).place
    metrics = Metrics(place, "lake", "")
    assert metrics.complete(record(offset(("orders", 1)))).pending == 0
    assert not server.client.exists("penstock:metrics")
    metrics.close()


def test_an_error_is_published_if_the_server_is_there(server: Broker) -> None:
    place = parse_options({**server.options, "stream": "x"}).place
    metrics = Metrics(place, "", "penstock:metrics")
    metrics.publish_failure("shop", "silver", "disk full")
    metrics.close()
    ((_, fields),) = server.client.xrange("penstock:metrics")
    assert fields == {b"pipeline": b"shop", b"output": b"silver", b"error": b"disk full"}
    away = parse_options({"url": "redis://127.0.0.1:1", "stream": "x"}).place
    Metrics(away, "", "penstock:metrics").publish_failure("shop", "silver", "disk full")


def test_a_server_that_is_down_or_refuses_does_not_stop_the_pipeline(penstock: Broker) -> None:
    place = parse_options({"url": "redis://127.0.0.1:1", "stream": "x"}).place
    metrics = Metrics(place, "lake", "penstock:metrics")
    given = record(offset(("orders", 1)))
    assert metrics.complete(given) == given
    assert metrics.complete(given) == given  # no retry yet
    assert metrics.lag_or_none(given.end) is None
    penstock.client.set("penstock:metrics", "no stream")
    place = parse_options({**penstock.options, "stream": "x"}).place
    metrics = Metrics(place, "", "penstock:metrics")
    assert metrics.complete(given) == given
    metrics.close()


def test_the_newest_record_is_published_when_the_server_is_back(
    penstock: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = parse_options({**penstock.options, "stream": "x"}).place
    metrics = Metrics(place, "", "penstock:metrics")
    penstock.client.set("penstock:metrics", "no stream")  # as good as a server that is down
    for output, batch in (("bronze", 1), ("silver", 1), ("bronze", 2)):
        metrics.complete(replace(record(offset(("orders", 1))), output=output, batch=batch))
    penstock.client.delete("penstock:metrics")
    assert metrics.publish_unsent() == {}  # not so soon
    monkeypatch.setattr(metrics, "_again_at", 0.0)
    assert len(metrics.publish_unsent()) == 2
    assert metrics.publish_unsent() == {}
    metrics.close()
    published = [fields for _, fields in penstock.client.xrange("penstock:metrics")]
    assert [(one[b"output"], one[b"batch"]) for one in published] == [
        (b"bronze", b"2"),
        (b"silver", b"1"),
    ]


def test_a_start_names_its_queries(server: Broker) -> None:
    place = parse_options({**server.options, "stream": "x"}).place
    metrics = Metrics(place, "", "penstock:metrics")
    metrics.publish_run("shop", "started", ["main", "by_day"])
    metrics.publish_run("shop", "ended")
    metrics.close()
    (_, start), (_, end) = server.client.xrange("penstock:metrics")
    assert start == {b"pipeline": b"shop", b"run": b"started", b"queries": b"main,by_day"}
    assert end == {b"pipeline": b"shop", b"run": b"ended"}


def test_names_of_streams_are_unambiguous_in_a_record(server: Broker) -> None:
    assert names_text(["a", "b"]) == "a,b"
    assert names_text([]) == ""
    for odd in ("a,b", "\udcff", "[a"):
        assert json.loads(names_text([odd, "b"])) == [odd, "b"]
    # Bytes that are not UTF-8 must not stop the pipeline.
    place = parse_options({**server.options, "stream": "x"}).place
    metrics = Metrics(place, "", "penstock:metrics")
    metrics.complete(replace(record(offset(("orders", 1))), source=names_text(["\udcff"])))
    metrics.close()
    assert server.client.xlen("penstock:metrics") == 1


def test_a_listener_reports_only_the_queries_of_its_pipeline(
    spark: Any, penstock: Broker, tmp_path: Any
) -> None:
    fill(penstock.client, "orders", 20)
    records: list[BatchRecord] = []
    ends: list[Any] = []
    listener = ProgressListener("shop", records.append, ends.append)
    spark.streams.addListener(listener)
    try:
        for name in ("shop/orders", "other/orders"):
            options = {**penstock.options, "stream": "orders", "startingOffsets": "earliest"}
            frame = spark.readStream.format("penstock").options(**options).schema("v int").load()
            query = (
                counted(frame.where("v % 2 = 0"))
                .writeStream.queryName(name)
                .format("noop")
                .option("checkpointLocation", str(tmp_path / name))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)
    assert sum(one.rows for one in records) == 10
    assert sum(one.read for one in records) == 20
    assert {one.output for one in records} == {"orders"}
    assert [(one.output, one.error) for one in ends] == [("orders", "")]
    assert json.dumps(records[0].to_json())
