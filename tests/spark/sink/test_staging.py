"""Staging and commit of a batch without Spark: failed tasks, repeats and orphans."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.row_blobs import RowBlobs
from tests.spark.conftest import NO_PYSPARK, Broker
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import redis_program_or_none, running_redis

pa = pytest.importorskip("pyarrow", reason=NO_PYSPARK)
pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.connection import Servers  # noqa: E402
from penstock.spark.sink.commit import append_batch  # noqa: E402
from penstock.spark.sink.options import SinkOptions, parse_sink_options  # noqa: E402
from penstock.spark.sink.rows import RowError, SinkRows  # noqa: E402
from penstock.spark.sink.staging import (  # noqa: E402
    EXPIRE_SECONDS,
    SLOTS,
    SinkError,
    Stage,
    StagingKey,
    Write,
    hash_tag,
)
from penstock.spark.sink.writer import BatchSink, Staged, StreamSink  # noqa: E402

SCHEMA = pa.schema([("v", pa.int64())])
# The permissions that docs/spark.md lists for a user of Redis.
NEEDED = (
    *("+rpush", "+expire", "+get", "+set", "+del", "+type", "+llen", "+lindex"),
    *("+xadd", "+xinfo", "+xtrim", "+eval", "+evalsha"),
)


def batch(*values: int) -> Any:
    return pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA)


def options_of(broker: Broker, **given: str) -> SinkOptions:
    return parse_sink_options({**broker.options, "stream": "out", **given}, ["v"], False)


def sink(broker: Broker, **given: str) -> BatchSink:
    return BatchSink(options_of(broker, **given), SinkRows(SCHEMA, "out"))


def staged(broker: Broker) -> list[bytes]:
    return sorted(broker.client.scan_iter(match="penstock:staging:*"))


def numbers(broker: Broker, stream: str = "out") -> list[int]:
    return [int(fields[b"v"]) for _, fields in broker.client.xrange(stream)]


def slot_of(key: bytes) -> int:
    """The slot of a key, by the specification of Redis Cluster."""
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        key = key[start + 1 : end]
    return crc_hqx(key, 0) % SLOTS


@pytest.mark.parametrize(
    "key", [b"orders", b"{a}b", b"a{b}c", b"{}a", b"a}b", b"}", b"", b"{", b"a{b", b"\xff{\xfe}"]
)
def test_staging_keys_share_the_slot_of_the_stream(key: bytes) -> None:
    assert slot_of(b"penstock:staging:{%b}:x" % hash_tag(key)) == slot_of(key)
    assert slot_of(Write("query", 3).record_key(key)) == slot_of(key)


def test_staging_expires_unless_it_is_committed(server: Broker) -> None:
    with Servers(options_of(server).place) as servers:
        stage = Stage(servers, Write("dead", 1), 0)
        [(stream, rows)] = SinkRows(SCHEMA, "out").routed(batch(1, 2))
        stage.add(stream, rows)
        stage.finish()
    [key] = staged(server)
    assert 0 < server.client.ttl(key) <= EXPIRE_SECONDS
    writer = sink(server)
    writer.commit([writer.write(iter([batch(3)]))])
    assert numbers(server) == [3]
    assert staged(server) == [key]


def test_a_failed_attempt_leaves_nothing_and_only_the_next_one_is_appended(
    server: Broker,
) -> None:
    writer = sink(server)
    many = batch(*range(200_000))

    def failing() -> Iterator[Any]:
        yield many
        assert staged(server) != []
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        writer.write(failing())
    assert staged(server) == []
    writer.commit([writer.write(iter([many])), None])
    assert numbers(server) == list(range(200_000))


def test_an_aborted_batch_leaves_nothing(server: Broker) -> None:
    writer = sink(server)
    message = writer.write(iter([batch(1)]))
    assert len(staged(server)) == 1
    writer.abort([message, None])
    assert server.client.dbsize() == 0


def test_a_commit_that_is_repeated_appends_nothing(server: Broker) -> None:
    writer = sink(server, writeId="once")
    message = writer.write(iter([batch(1, 2)]))
    writer.commit([message])
    writer.commit([message])
    assert numbers(server) == [1, 2]


def test_a_batch_without_its_staging_keys_appends_nothing(server: Broker) -> None:
    writer = sink(server)
    messages: list[Any] = [writer.write(iter([batch(n)])) for n in range(2)]
    server.client.delete(messages[1].keys[b"out"].name)
    with pytest.raises(SinkError, match="has 0 blobs, but 1 were staged: it has expired"):
        writer.commit(messages)
    assert server.client.exists("out") == 0


@pytest.mark.parametrize("change", ["lpop", "rpop", "rpush"])
def test_a_batch_with_incomplete_staging_is_refused_and_complete_when_repeated(
    server: Broker, change: str
) -> None:
    """The situation after a failover to a replica without the last writes."""
    writer = sink(server, writeId="whole")
    rows = batch(*range(200_000))
    messages: list[Any] = [writer.write(iter([rows]))]
    key = messages[0].keys[b"out"].name
    blobs = server.client.llen(key)
    assert blobs > 1
    if change == "rpush":
        server.client.rpush(key, server.client.lindex(key, 0))
    else:
        getattr(server.client, change)(key)
    left = server.client.llen(key)
    with pytest.raises(SinkError, match=f"has {left} blobs, but {blobs} were staged"):
        writer.commit(messages)
    assert server.client.exists("out") == 0
    writer.abort(messages)
    writer.commit([writer.write(iter([rows]))])
    assert numbers(server) == list(range(200_000))


def test_a_batch_with_damaged_staging_appends_nothing(
    server: Broker,
) -> None:
    writer = sink(server)
    messages: list[Any] = [writer.write(iter([batch(n)])) for n in range(2)]
    key = messages[1].keys[b"out"].name
    server.client.rpush(key, b"\x92\x91")
    server.client.lpop(key)
    with pytest.raises(SinkError):
        writer.commit(messages)
    assert server.client.exists("out") == 0


def staged_for(broker: Broker, streams: dict[bytes, int]) -> Any:
    """The message of a task of query q that has staged one row for each stream."""
    with Servers(options_of(broker).place) as servers:
        stage = Stage(servers, Write("q", 0), 0)
        for stream, value in streams.items():
            [(_, rows)] = SinkRows(SCHEMA, "out").routed(batch(value))
            stage.add(stream, rows)
        return Staged("q", 0, stage.finish())


def test_a_record_ahead_of_the_batch_stops_it_for_all_streams(server: Broker) -> None:
    """After a restore of the checkpoint the same batch numbers may have other rows."""
    query = StreamSink(options_of(server), SinkRows(SCHEMA, "out"))
    query.commit([staged_for(server, {b"a": 1})], 6)
    query.commit([staged_for(server, {b"b": 2})], 8)
    message = staged_for(server, {b"a": 3, b"b": 4})
    with pytest.raises(SinkError, match="batch 7 for stream 'b': the stream has batches up to 8"):
        query.commit([message], 7)
    assert (numbers(server, "a"), numbers(server, "b")) == ([1], [2])
    assert len(staged(server)) == 2
    query.abort([message], 7)
    query.commit([staged_for(server, {b"a": 3, b"b": 4})], 9)
    assert (numbers(server, "a"), numbers(server, "b")) == ([1, 3], [2, 4])


def test_a_batch_that_reached_one_of_two_streams_is_completed(server: Broker) -> None:
    """The situation after a crash of the driver between the two streams."""
    query = StreamSink(options_of(server), SinkRows(SCHEMA, "out"))
    query.commit([staged_for(server, {b"a": 1})], 7)
    for _ in range(2):
        query.commit([staged_for(server, {b"a": 1, b"b": 2})], 7)
    assert (numbers(server, "a"), numbers(server, "b")) == ([1], [2])
    assert staged(server) == []


def test_partitions_are_appended_in_their_order(server: Broker) -> None:
    writer = sink(server)
    messages: list[Any] = [
        Staged("q", part, one.keys)
        for part in (2, 0, 1)
        if isinstance(one := writer.write(iter([batch(part)])), Staged)
    ]
    writer.commit(messages)
    assert numbers(server) == [0, 1, 2]


def test_a_row_too_wide_for_the_script_is_refused_before_staging(server: Broker) -> None:
    schema = pa.schema([("fields", pa.map_(pa.string(), pa.string()))])
    pairs = [(f"f{n}", "v") for n in range(5000)]
    rows = pa.record_batch([pa.array([pairs], schema[0].type)], schema=schema)
    writer = BatchSink(options_of(server), SinkRows(schema, "out"))
    if server.kind == "redis":
        with pytest.raises(RowError, match="5000 fields; an entry may have 3900"):
            writer.write(iter([rows]))
        pairs = pairs[:3900]
        rows = pa.record_batch([pa.array([pairs], schema[0].type)], schema=schema)
    writer.commit([writer.write(iter([rows]))])
    [(_, fields)] = server.client.xrange("out")
    assert len(fields) == len(pairs)


@pytest.mark.parametrize("record", ["text", "list"])
def test_a_record_that_is_not_a_number_is_refused(server: Broker, record: str) -> None:
    options = options_of(server)
    write = Write("q", 1)
    key = write.record_key(b"out")
    if record == "text":
        server.client.set(key, "text")
    else:
        server.client.rpush(key, "x")
    blobs = RowBlobs(1000, 10)
    [(_, rows)] = SinkRows(SCHEMA, "out").routed(batch(1))
    rows.put(blobs)
    blobs.close()
    server.client.rpush("p", *blobs.take())
    with (
        Servers(options.place) as servers,
        pytest.raises(SinkError, match="batch 1 for stream 'out'"),
    ):
        append_batch(servers, {b"out": [StagingKey(b"p", 1)]}, write, ())
    assert server.client.exists("out", "p") == 1


@pytest.mark.parametrize("has_record", [False, True])
@pytest.mark.parametrize("command", ["set", "xtrim", "del"])
def test_a_user_without_all_permissions_appends_nothing(
    redis_broker: Broker, command: str, has_record: bool
) -> None:
    """A script is not rolled back if one of its calls is refused."""
    client = redis_broker.client
    client.flushall()
    client.acl_setuser(
        "writer", enabled=True, passwords=["+secret"], keys=["*"], commands=[*NEEDED]
    )
    try:
        url = redis_broker.options["url"].replace("//", "//writer:secret@")
        user = Broker("redis", {"url": url}, client)
        options = options_of(user, maxlen="1", approximate="false")
        query = StreamSink(options, SinkRows(SCHEMA, "out"))
        if has_record:
            query.commit([staged_for(user, {b"out": 0})], 0)
        client.execute_command("ACL", "SETUSER", "writer", f"-{command}")
        message = staged_for(user, {b"out": 1})
        for _ in range(2):
            with pytest.raises(SinkError, match=r"permission|can't run"):
                query.commit([message], 1)
            assert numbers(user) == ([0] if has_record else [])
        assert client.get(Write("q", 1).record_key(b"out")) == (b"0" if has_record else None)
        client.execute_command("ACL", "SETUSER", "writer", f"+{command}")
        query.commit([message], 1)
        assert numbers(user) == [1]
    finally:
        client.acl_deluser("writer")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.struct([("x", pa.month_day_nano_interval())]), "column c: values of type"),
        (pa.map_(pa.struct([("x", pa.int32())]), pa.int32()), "column c: keys of type"),
    ],
)
def test_a_type_that_text_cannot_express_is_refused_before_anything_runs(
    kind: Any, text: str
) -> None:
    with pytest.raises(RowError, match=text):
        SinkRows(pa.schema([("c", kind)]), "out")


def test_a_timestamp_that_cannot_be_read_back_is_refused() -> None:
    kind = pa.timestamp("us", "UTC")
    rows = SinkRows(pa.schema([pa.field("at", kind)]), "out")
    beyond = pa.record_batch([pa.array([None, 2**58], kind)], names=["at"])
    with pytest.raises(RowError, match="after 9999"):
        list(rows.routed(beyond))


def test_redis_starts_from_the_log_of_a_server_that_appended_batches(tmp_path: Any) -> None:
    if redis_program_or_none() is None:
        pytest.skip("no redis-server on PATH")
    arguments = ("--appendonly", "yes", "--compat-version", "7.0")
    with running_penstock(*arguments, data=tmp_path) as server, server.client() as client:
        broker = Broker("penstock", {"url": f"redis://127.0.0.1:{server.port}"}, client)
        for number in range(3):
            writer = sink(broker, writeId=f"w{number}", maxlen="150", approximate="false")
            writer.commit([writer.write(iter([batch(*range(100))]))])
        expected = client.xrange("out")
        records = sorted(client.scan_iter(match="penstock:sink:*"))
    assert len(expected) == 150
    with running_redis("--dir", str(tmp_path), "--appendonly", "yes") as other:
        assert other.client.xrange("out") == expected
        assert sorted(other.client.scan_iter(match="penstock:sink:*")) == records
        assert other.client.dbsize() == 4
