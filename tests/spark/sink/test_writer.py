"""Writing to each kind of server: fields, targets, trimming, exactly once."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.spark import write_stream
from tests.spark.conftest import Broker, fill

UTC = dt.UTC


def entries(broker: Broker, stream: str = "out") -> list[dict[bytes, bytes]]:
    """The fields of all entries, in order."""
    return [fields for _, fields in broker.client.xrange(stream)]


def numbers(broker: Broker, stream: str = "out") -> list[int]:
    """The field v of all entries."""
    return [int(fields[b"v"]) for fields in entries(broker, stream)]


def keys_left(broker: Broker) -> list[bytes]:
    """Every staging key."""
    return sorted(broker.client.scan_iter(match="penstock:staging:*"))


@pytest.fixture
def write() -> Callable[..., None]:
    """Write a batch: write(broker, frame, **options)."""

    def writing(broker: Broker, frame: Any, mode: str = "append", **options: Any) -> None:
        frame.write.format("penstock").mode(mode).options(**broker.options, **options).save()

    return writing


# --- Batches ---------------------------------------------------------------------------------------


def test_every_row_becomes_an_entry_in_the_order_of_partitions(
    broker: Broker, spark: Any, write: Any
) -> None:
    write(broker, spark.range(1000, numPartitions=4).selectExpr("id as v"), stream="out")
    assert numbers(broker) == list(range(1000))
    assert keys_left(broker) == []
    assert list(broker.client.scan_iter(match="penstock:sink:*")) == []


def test_columns_of_every_type_become_text(server: Broker, spark: Any, write: Any) -> None:
    moment = dt.datetime(2026, 11, 16, 2, 29, 9, 123456)
    schema = (
        "b boolean, t byte, s short, i int, l long, f float, d double, dec decimal(20,3), str string,"
        " bin binary, day date, at timestamp, local timestamp_ntz, span interval day to second,"
        " list array<int>, map map<string,double>, row struct<a:int,b:binary>, none void"
    )
    row = (
        *(True, -1, 2, 3, 2**63 - 1, 0.5, 1e100, Decimal("12.500"), "é", b"\xff\x00"),
        *(dt.date(2026, 11, 16), moment.replace(tzinfo=UTC), moment),
        *(dt.timedelta(days=1, seconds=2, microseconds=5), [1, None], {"x": 1.5}, (7, b"hi"), None),
    )
    write(server, spark.createDataFrame([row], schema), stream="out")
    assert entries(server) == [
        {
            b"b": b"true",
            b"t": b"-1",
            b"s": b"2",
            b"i": b"3",
            b"l": b"9223372036854775807",
            b"f": b"0.5",
            b"d": b"1e+100",
            b"dec": b"12.500",
            b"str": "é".encode(),
            b"bin": b"\xff\x00",
            b"day": b"2026-11-16",
            b"at": b"2026-11-16T02:29:09.123456Z",
            b"local": b"2026-11-16T02:29:09.123456",
            b"span": b"P1DT2.000005S",
            b"list": b"[1,null]",
            b"map": b'{"x":1.5}',
            b"row": b'{"a":7,"b":"aGk="}',
        }
    ]


def test_written_values_are_read_back_unchanged(
    penstock: Broker, spark: Any, write: Any, read: Any
) -> None:
    schema = (
        "n int, d double, dec decimal(38,18), at timestamp, day date, bin binary,"
        " span interval day to second, list array<struct<x:decimal(9,2),at:timestamp>>, m map<int,float>"
    )
    at = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    small = Decimal("0.000000000000000001")
    rows = [
        (1, float("-inf"), small, at, dt.date(1, 1, 1), b"", -dt.timedelta(0, 1), [], {1: 0.1}),
        (None, 1e-300, -small, at, None, None, dt.timedelta(9), [(Decimal("1.50"), at)], {}),
        (3, None, None, None, None, None, None, None, None),
    ]
    frame = spark.createDataFrame(rows, schema)
    write(penstock, frame.coalesce(1), stream="out")
    assert read(penstock, schema, stream="out").collect() == frame.collect()


def test_a_time_is_read_back_and_a_variant_refused(
    penstock: Broker, spark: Any, write: Any
) -> None:
    frame = spark.sql("select time'01:02:03.5' as t, time'23:59:59' as u")
    write(penstock, frame, stream="out")
    assert entries(penstock) == [{b"t": b"01:02:03.500000", b"u": b"23:59:59.000000"}]
    reader = spark.read.format("penstock").options(**penstock.options, stream="out")
    assert reader.schema("t time(6), u time(0)").load().collect() == frame.collect()
    for sql in ("parse_json('1')", "array(parse_json('1'))"):
        with pytest.raises(Exception, match="values of type variant cannot be written as text"):
            write(penstock, spark.sql(f"select {sql} as v"), stream="out")


def test_nulls_are_no_fields_and_names_repeat_across_rows(
    server: Broker, spark: Any, write: Any
) -> None:
    rows = [(1, None), (None, "b"), (3, "c")]
    write(server, spark.createDataFrame(rows, "v int, w string").coalesce(1), stream="out")
    assert entries(server) == [{b"v": b"1"}, {b"w": b"b"}, {b"v": b"3", b"w": b"c"}]


def test_a_row_without_any_field_is_refused_and_nothing_is_written(
    server: Broker, spark: Any, write: Any
) -> None:
    frame = spark.createDataFrame([(1,), (None,)], "v int").coalesce(1)
    with pytest.raises(Exception, match="every column is null, and an entry needs a field"):
        write(server, frame, stream="out")
    assert server.client.exists("out") == 0
    assert keys_left(server) == []


@pytest.mark.parametrize(
    ("kind", "pairs", "found"),
    [
        ("map<string,string>", {"a": "1", "b": None, "": "3"}, {b"a": b"1", b"": b"3"}),
        ("map<binary,int>", {b"a": 1, b"\xff": 2}, {b"a": b"1", b"\xff": b"2"}),
        ("array<struct<name:string,value:double>>", [("a", 1.5), None], {b"a": b"1.5"}),
    ],
)
def test_the_column_fields_is_expanded(
    server: Broker, spark: Any, write: Any, kind: str, pairs: Any, found: dict[bytes, bytes]
) -> None:
    frame = spark.createDataFrame([(7, pairs), (8, None)], f"v int, fields {kind}").coalesce(1)
    write(server, frame, stream="out")
    assert entries(server) == [{b"v": b"7", **found}, {b"v": b"8"}]


@pytest.mark.parametrize("column", ["stream", "_stream"])
def test_a_column_names_the_stream(broker: Broker, spark: Any, write: Any, column: str) -> None:
    streams = ["a", "{a}b", "c}d", "{}e", "é"]
    array = ", ".join(f"'{stream}'" for stream in streams)
    chosen = f"element_at(array({array}), int(id % 5) + 1) as `{column}`"
    frame = spark.range(500, numPartitions=3).selectExpr("id as v", chosen)
    write(broker, frame)
    for number, stream in enumerate(streams):
        assert numbers(broker, stream) == list(range(number, 500, 5)), stream
        assert set(entries(broker, stream)[0]) == {b"v"}
    assert keys_left(broker) == []


def test_with_the_option_the_column_stream_is_a_field(
    penstock: Broker, spark: Any, write: Any
) -> None:
    write(penstock, spark.createDataFrame([("x", 1)], "stream string, v int"), stream="out")
    assert entries(penstock) == [{b"stream": b"x", b"v": b"1"}]


def test_a_row_without_a_target_is_refused(penstock: Broker, spark: Any, write: Any) -> None:
    frame = spark.createDataFrame([("a", 1), (None, 2)], "stream string, v int").coalesce(1)
    with pytest.raises(Exception, match="column stream is null in a row"):
        write(penstock, frame)


def test_hundreds_of_streams_are_written_at_once(server: Broker, spark: Any, write: Any) -> None:
    frame = spark.range(3000, numPartitions=2).selectExpr("id as v", "'s' || id % 300 as stream")
    write(server, frame)
    assert sum(server.client.xlen(f"s{n}") for n in range(300)) == 3000
    assert numbers(server, "s7") == list(range(7, 3000, 300))


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"maxlen": "10", "approximate": "false"}, 10),
        ({"maxlen": "50000"}, 1000),
        ({"minid": "99999999999999", "approximate": "false"}, 0),
    ],
)
def test_the_stream_is_trimmed(
    server: Broker, spark: Any, write: Any, options: dict[str, str], left: int
) -> None:
    write(server, spark.range(1000).selectExpr("id as v"), stream="out", **options)
    assert server.client.xlen("out") == left


def test_an_approximate_trim_keeps_less_than_one_extra_node(
    server: Broker, spark: Any, write: Any
) -> None:
    write(server, spark.range(30_000).selectExpr("id as v"), stream="out", maxlen="100")
    assert 100 <= server.client.xlen("out") <= 200


def test_long_values_and_many_fields_are_written(server: Broker, spark: Any, write: Any) -> None:
    fields = ["repeat('x', int(id) * 70000) as v", *[f"{n} as f{n}" for n in range(300)]]
    write(server, spark.range(20, numPartitions=1).selectExpr(*fields), stream="out")
    assert [len(one[b"v"]) for one in entries(server)] == [n * 70000 for n in range(20)]
    assert {len(one) for one in entries(server)} == {301}


def test_a_write_id_writes_once(broker: Broker, spark: Any, write: Any) -> None:
    frame = spark.range(100, numPartitions=2).selectExpr("id as v")
    for _ in range(2):
        write(broker, frame, stream="out", writeId="load-7")
    assert numbers(broker) == list(range(100))
    write(broker, frame, stream="out", writeId="load-8")
    assert broker.client.xlen("out") == 200
    assert keys_left(broker) == []


def test_a_write_id_that_reached_one_of_two_streams_is_completed(
    server: Broker, spark: Any, write: Any
) -> None:
    server.client.rpush("b", "no stream")
    frame = spark.createDataFrame([("a", 1), ("b", 2)], "stream string, v int")
    with pytest.raises(Exception, match="WRONGTYPE"):
        write(server, frame, writeId="load")
    server.client.delete("b")
    write(server, frame, writeId="load")
    assert (numbers(server, "a"), numbers(server, "b")) == ([1], [2])


def test_a_target_of_another_type_is_refused_and_staging_is_deleted(
    server: Broker, spark: Any, write: Any
) -> None:
    server.client.set("out", "text")
    with pytest.raises(Exception, match="stream 'out': WRONGTYPE"):
        write(server, spark.range(10).selectExpr("id as v"), stream="out")
    assert server.client.get("out") == b"text"
    assert keys_left(server) == []


def test_a_stream_without_enough_ids_gets_nothing(server: Broker, spark: Any, write: Any) -> None:
    server.client.xadd("out", {"v": 0}, id=f"{2**64 - 1}-{2**64 - 4}")
    with pytest.raises(Exception, match=r"stream 'out': .*(no more ids|exhausted)"):
        write(server, spark.range(10).selectExpr("id as v"), stream="out")
    assert numbers(server) == [0]
    assert keys_left(server) == []


def test_overwriting_is_refused(penstock: Broker, spark: Any, write: Any) -> None:
    with pytest.raises(Exception, match="a stream can only be appended to"):
        write(penstock, spark.range(1), mode="overwrite", stream="out")


def test_an_unknown_option_is_refused_before_anything_runs(
    penstock: Broker, spark: Any, write: Any
) -> None:
    with pytest.raises(Exception, match=r"option maxlength: .* \(did you mean maxlen\?\)"):
        write(penstock, spark.range(1), stream="out", maxLength="5")


def test_no_error_shows_a_password(spark: Any, write: Any) -> None:
    broker = Broker("none", {"url": "redis://:s3cret@127.0.0.1:1"}, None)
    with pytest.raises(Exception) as refusal:  # noqa: PT011
        write(broker, spark.range(1), stream="out")
    assert "s3cret" not in str(refusal.value)


# --- Streaming -------------------------------------------------------------------------------------


def pump(broker: Broker, spark: Any, folder: Path, entries_max: int = 40, **options: Any) -> None:
    """Run a query from the stream `in` to the stream `out` over all existing entries."""
    frame = (
        spark.readStream.format("penstock")
        .options(**broker.options, stream="in", startingOffsets="earliest")
        .option("maxEntriesPerTrigger", str(entries_max))
        .schema("v long")
        .load()
    )
    target = {**broker.options, "stream": "out", **options}
    query = write_stream(frame, str(folder), trigger={"availableNow": True}, **target)
    query.awaitTermination()


def test_a_query_appends_new_rows_and_continues_from_its_checkpoint(
    broker: Broker, spark: Any, tmp_path: Path
) -> None:
    fill(broker.client, "in", 100)
    pump(broker, spark, tmp_path)
    assert numbers(broker) == list(range(100))
    fill(broker.client, "in", 30, 100)
    pump(broker, spark, tmp_path)
    assert numbers(broker) == list(range(130))
    assert keys_left(broker) == []


def test_a_committed_batch_appends_nothing_when_repeated(
    broker: Broker, spark: Any, tmp_path: Path
) -> None:
    """The situation after a crash between the sink's commit and Spark's commit."""
    fill(broker.client, "in", 100)
    pump(broker, spark, tmp_path)
    notes = sorted((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    notes[-1].unlink()
    (tmp_path / "commits" / f".{notes[-1].name}.crc").unlink(missing_ok=True)
    fill(broker.client, "in", 30, 100)
    pump(broker, spark, tmp_path)
    assert numbers(broker) == list(range(130))
    assert keys_left(broker) == []


def test_a_checkpoint_older_than_the_stream_is_refused_and_the_newer_one_works(
    server: Broker, spark: Any, tmp_path: Path
) -> None:
    """The situation after restoring an old checkpoint: batch 1 would now have later entries too."""
    checkpoint, backup, newer = (tmp_path / name for name in ("checkpoint", "backup", "newer"))
    fill(server.client, "in", 40)
    pump(server, spark, checkpoint)
    shutil.copytree(checkpoint, backup)
    fill(server.client, "in", 80, 40)
    pump(server, spark, checkpoint)
    fill(server.client, "in", 10, 120)
    checkpoint.rename(newer)
    backup.rename(checkpoint)
    for _ in range(2):
        with pytest.raises(Exception, match="its checkpoint is older than the stream"):
            pump(server, spark, checkpoint, 1000)
        assert numbers(server) == list(range(120))
        assert keys_left(server) == []
    shutil.rmtree(checkpoint)
    newer.rename(checkpoint)
    pump(server, spark, checkpoint)
    assert numbers(server) == list(range(130))


def test_two_queries_to_one_stream_do_not_interfere(
    server: Broker, spark: Any, tmp_path: Path
) -> None:
    fill(server.client, "in", 50)
    pump(server, spark, tmp_path / "one")
    pump(server, spark, tmp_path / "two")
    assert numbers(server) == [*range(50), *range(50)]


def test_a_query_into_a_key_of_another_type_fails_and_can_be_resumed(
    server: Broker, spark: Any, tmp_path: Path
) -> None:
    fill(server.client, "in", 10)
    server.client.set("out", "text")
    with pytest.raises(Exception, match="WRONGTYPE"):
        pump(server, spark, tmp_path)
    assert keys_left(server) == []
    server.client.delete("out")
    pump(server, spark, tmp_path)
    assert numbers(server) == list(range(10))


def test_a_write_id_is_not_for_a_query(penstock: Broker, spark: Any, tmp_path: Path) -> None:
    fill(penstock.client, "in", 1)
    with pytest.raises(Exception, match="option writeId"):
        pump(penstock, spark, tmp_path, writeId="x")


def test_a_script_that_the_server_has_forgotten_is_sent_again(
    redis_broker: Broker, spark: Any, write: Any
) -> None:
    redis_broker.client.flushall()
    assert isinstance(redis_broker.client, redis.Redis)
    for _ in range(2):
        redis_broker.client.script_flush()
        write(redis_broker, spark.range(3).selectExpr("id as v"), stream="out")
    assert redis_broker.client.xlen("out") == 6
