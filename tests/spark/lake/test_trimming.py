"""Trimming archived entries: none is removed too early, and the source detects no loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker, fill

pytest.importorskip("pyspark", reason=NO_PYSPARK)
offsets = pytest.importorskip("penstock.spark.source.offsets")
options = pytest.importorskip("penstock.spark.source.options")
option_reader = pytest.importorskip("penstock.spark.option_reader")
stream_id = pytest.importorskip("penstock.core.stream_id")
trimming = pytest.importorskip("penstock.spark.lake.trimming")

SCHEMA = "_id string, v int"


def trim(broker: Broker, ids: dict[str, str], mode: str = "archived") -> dict[str, int]:
    place = options.parse_options({**broker.options, "stream": "s"}).place
    positions = {name: offsets.Position(stream_id.parse(at.encode())) for name, at in ids.items()}
    found: dict[str, int] = trimming.trim_archived(place, offsets.Offset(positions), mode)
    return found


def left(broker: Broker, stream: str = "s") -> list[str]:
    return [one.decode() for one, _ in broker.client.xrange(stream)]


def test_exactly_the_entries_up_to_the_offset_are_removed(broker: Broker) -> None:
    a, b = fill(broker.client, "a", 5), fill(broker.client, "b", 3)
    assert trim(broker, {"a": a[2], "b": "0-0", "gone": "5-5"}) == {"a": 3, "b": 0, "gone": 0}
    assert (left(broker, "a"), left(broker, "b")) == (a[3:], b)
    assert trim(broker, {"a": a[2], "b": b[2]}) == {"a": 0, "b": 3}


def test_acked_stops_at_the_smallest_pending_entry_of_any_group(broker: Broker) -> None:
    added = fill(broker.client, "s", 10)
    assert trim(broker, {"s": added[0]}, "acked") == {"s": 1}  # there is no group
    broker.client.xgroup_create("s", "fast", added[8])
    broker.client.xgroup_create("s", "slow", "0")
    assert trim(broker, {"s": added[7]}, "acked") == {"s": 0}
    broker.client.xreadgroup("slow", "c", {"s": ">"}, count=6)  # up to number 6
    broker.client.xack("s", "slow", *added[1:4], added[6])
    assert trim(broker, {"s": added[7]}, "acked") == {"s": 3}
    assert left(broker) == added[4:]
    broker.client.xack("s", "slow", *added[4:6])
    assert trim(broker, {"s": added[7]}, "acked") == {"s": 3}  # up to the last delivered entry
    broker.client.xgroup_setid("s", "slow", added[9])
    assert trim(broker, {"s": added[7]}, "acked") == {"s": 1}  # never beyond the offset
    assert left(broker) == added[8:]


def test_a_group_that_was_set_back_keeps_the_entries_it_will_read_again(server: Broker) -> None:
    added = fill(server.client, "s", 5)
    server.client.xgroup_create("s", "g", "0")
    server.client.xreadgroup("g", "c", {"s": ">"})
    server.client.xack("s", "g", *added[:4])
    server.client.xgroup_setid("s", "g", added[1])
    assert trim(server, {"s": added[4]}, "acked") == {"s": 2}


def test_an_offset_at_the_largest_id_removes_everything(server: Broker) -> None:
    largest = f"{2**64 - 1}-{2**64 - 1}"
    server.client.xadd("s", {"v": 1}, id=largest)
    assert trim(server, {"s": largest}) == {"s": 1}


def test_an_unknown_mode_is_refused() -> None:
    broker = Broker("none", {"url": "redis://127.0.0.1:1"}, None)
    with pytest.raises(
        option_reader.OptionError, match="'never' is not allowed; expected archived or"
    ):
        trim(broker, {}, "never")


@contextmanager
def running(spark: Any, broker: Broker, folder: Path, rows: list[int]) -> Iterator[Any]:
    frame = (
        spark.readStream.format("penstock")
        .options(**broker.options, stream="s", group="mirror", startingOffsets="earliest")
        .option("maxEntriesPerTrigger", 7)
        .schema(SCHEMA)
        .load()
    )
    query = (
        frame.writeStream.foreachBatch(
            lambda batch, _: rows.extend(row.v for row in batch.collect())
        )
        .option("checkpointLocation", str(folder))
        .start()
    )
    try:
        yield query
    finally:
        query.stop()


def committed(query: Any) -> Any:
    """The end offset of the last batch."""
    done = [one for one in query.recentProgress if one["numInputRows"]]
    return offsets.parse_offset(json.loads(done[-1]["sources"][0]["endOffset"]))


@pytest.mark.parametrize("mode", ["archived", "acked"])
def test_a_running_query_detects_no_loss(
    spark: Any, server: Broker, tmp_path: Path, mode: str
) -> None:
    place = options.parse_options({**server.options, "stream": "s"}).place
    rows: list[int] = []
    trimmed = count = 0
    for _ in range(2):  # the second run continues the first
        with running(spark, server, tmp_path, rows) as query:
            for _ in range(3):
                fill(server.client, "s", 10, count)
                count += 10
                query.processAllAvailable()
                trimmed += trimming.trim_archived(place, committed(query), mode)["s"]
    assert rows == list(range(count))
    assert trimmed + server.client.xlen("s") == count
    # The group is updated with the next batch, so `acked` may be one batch behind.
    assert server.client.xlen("s") <= (7 if mode == "acked" else 0)
