"""Batch reads through Spark: every kind of server, every type, bounds and patterns."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker, fill

pytest.importorskip("pyspark", reason=NO_PYSPARK)

Read = Callable[..., Any]


def entries(broker: Broker, stream: str) -> list[tuple[str, dict[str, str]]]:
    found = broker.client.xrange(stream)
    return [(i.decode(), {k.decode(): v.decode() for k, v in f.items()}) for i, f in found]


def test_a_batch_has_the_entries_of_xrange(broker: Broker, read: Read) -> None:
    for number in range(20):
        broker.client.xadd("orders", {"n": number, "name": f"ä{number}"})
    frame = read(broker, stream="orders", minPartitions=3, fetchSize=4)
    assert frame.schema.simpleString() == (
        "struct<_stream:string,_id:string,_timestamp:timestamp,fields:map<string,string>>"
    )
    assert frame.rdd.getNumPartitions() == 3
    rows = frame.collect()
    assert [(row._id, row.fields) for row in rows] == entries(broker, "orders")
    assert {row._stream for row in rows} == {"orders"}


def test_every_type_is_read(penstock: Broker, read: Read) -> None:
    values = {
        "flag": "true",
        "tiny": -128,
        "small": 300,
        "whole": 70_000,
        "long": 2**63 - 1,
        "single": 0.5,
        "real": 1e300,
        "price": "12.30",
        "text": "x" * 10_000,
        "raw": b"\xff\x00",
        "day": "2024-02-29",
        "moment": "2024-02-29T10:20:30.123456+02:00",
        "local": "2024-02-29 10:20:30",
        "span": "P1DT1S",
        "list": "[1, null]",
        "map": '{"a": "2024-02-29"}',
        "inner": '{"x": 1, "y": ["b"]}',
    }
    penstock.client.xadd("types", values)
    penstock.client.xadd("types", dict.fromkeys(values, b"\xfe"))
    penstock.client.xadd("types", {"other": 1})
    schema = (
        "flag boolean, tiny byte, small short, whole int, long bigint, single float, real double,"
        " price decimal(5,2), text string, raw binary, day date, moment timestamp,"
        " local timestamp_ntz, span interval day to second, list array<int>, map map<string,date>,"
        " inner struct<x:int,y:array<string>>, nothing void, _corrupt map<string,string>"
    )
    good, bad, missing = read(penstock, schema, stream="types").collect()
    moment = good.moment.astimezone(UTC)
    found = good.asDict(recursive=True) | {"moment": moment}
    assert found == {
        "flag": True,
        "tiny": -128,
        "small": 300,
        "whole": 70_000,
        "long": 2**63 - 1,
        "single": 0.5,
        "real": 1e300,
        "price": Decimal("12.30"),
        "text": "x" * 10_000,
        "raw": bytearray(b"\xff\x00"),
        "day": date(2024, 2, 29),
        "moment": datetime(2024, 2, 29, 8, 20, 30, 123456, UTC),
        "local": datetime(2024, 2, 29, 10, 20, 30),
        "span": timedelta(days=1, seconds=1),
        "list": [1, None],
        "map": {"a": date(2024, 2, 29)},
        "inner": {"x": 1, "y": ["b"]},
        "nothing": None,
        "_corrupt": None,
    }
    assert bad._corrupt == {name: "\\xfe" for name in values if name != "raw"}
    assert not any(value for name, value in missing.asDict().items())


def test_repeated_names_and_the_largest_id_are_kept(penstock: Broker, read: Read) -> None:
    largest = f"{2**64 - 1}-{2**64 - 1}"
    penstock.client.execute_command("XADD", "s", largest, "a", "1", "a", "2")
    (row,) = read(penstock, stream="s", fieldsType="entries").collect()
    assert (row._id, row._timestamp) == (largest, None)
    assert [tuple(pair) for pair in row.fields] == [("a", "1"), ("a", "2")]
    (row,) = read(penstock, stream="s", fieldsType="binary").collect()
    assert row.fields == {"a": bytearray(b"2")}


def test_bounds_are_inclusive_ids_or_times(broker: Broker, read: Read) -> None:
    for ms in range(1, 10):
        broker.client.xadd("s", {"v": ms}, id=f"{ms}-0")

    def found(**options: Any) -> list[int]:
        return [row.v for row in read(broker, "v int", stream="s", **options).collect()]

    by_id = {"startingOffsets": json.dumps({"s": "3-0"}), "endingOffsets": json.dumps({"s": "5"})}
    assert found(**by_id) == [3, 4, 5]
    assert found(startingTimestamp=8) == [8, 9]
    assert found(endingTimestamp=2, minPartitions=2) == [1, 2]
    assert found(startingOffsets="latest") == []
    assert found(startingTimestamp=100) == []


def test_a_pattern_finds_streams_on_every_node(broker: Broker, read: Read) -> None:
    for number in range(6):
        fill(broker.client, f"part:{{{number}}}", 5, 5 * number)
    broker.client.set("part:string", "x")
    frame = read(broker, "_stream string, v int", streamPattern="part:*")
    rows = frame.collect()
    assert sorted(row.v for row in rows) == list(range(30))
    assert len({row._stream for row in rows}) == 6


def test_several_servers_are_read_as_one(
    penstock: Broker, redis_broker: Broker, read: Read
) -> None:
    redis_broker.client.flushall()
    fill(penstock.client, "s", 3)
    fill(redis_broker.client, "s", 3, 3)
    both = Broker("both", {"url": f"{penstock.options['url']},{redis_broker.options['url']}"}, None)
    assert sorted(row.v for row in read(both, "v int", stream="s").collect()) == list(range(6))


def test_each_server_can_have_its_own_bounds(
    penstock: Broker, redis_broker: Broker, read: Read
) -> None:
    redis_broker.client.flushall()
    for one in (penstock, redis_broker):
        for number in range(1, 6):
            one.client.xadd("s", {"v": number}, id=f"{number}-0")
    urls = [penstock.options["url"], redis_broker.options["url"]]
    ours = f"{urls[0].removeprefix('redis://')}/0 s"
    offsets = {"startingOffsets": json.dumps({ours: "4", "s": "2"}), "endingOffsets": '{"s": "4"}'}
    rows = read(Broker("both", {"url": ",".join(urls)}, None), "v int", stream="s", **offsets)
    assert sorted(row.v for row in rows.collect()) == [2, 3, 4, 4]


def test_missing_streams_are_empty(broker: Broker, read: Read) -> None:
    assert read(broker, stream="nothing").collect() == []
    assert read(broker, streamPattern="nothing*").collect() == []


def test_a_bad_value_fails_the_job_with_on_parse_error_fail(penstock: Broker, read: Read) -> None:
    penstock.client.xadd("s", {"v": "x"}, id="7-1")
    with pytest.raises(Exception, match=r"stream s, entry 7-1: the field v is 'x'"):
        read(penstock, "v int", stream="s", onParseError="fail").collect()


def test_a_bad_option_is_named(penstock: Broker, read: Read) -> None:
    with pytest.raises(Exception, match="option minPartitions: 'x' is not allowed"):
        read(penstock, stream="s", minPartitions="x").collect()
    with pytest.raises(Exception, match="option mode"):
        read(penstock, stream="s", mode="shared", group="g").collect()


def test_no_plan_and_no_error_shows_a_password(
    spark: Any, penstock: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    url = penstock.options["url"].replace("redis://", "redis://nobody:sesame@")
    frame = spark.read.format("penstock").option("url", url).option("stream", "s").load()
    frame.explain("extended")
    with pytest.raises(Exception, match="invalid username-password pair") as caught:
        frame.collect()
    shown = capsys.readouterr()
    assert "sesame" not in shown.out + shown.err + str(caught.value)
