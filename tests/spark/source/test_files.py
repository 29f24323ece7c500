"""Streams from files of penstock and Redis, without a server."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import redis

from penstock.core import stream_id
from penstock.errors import ConfigError, CorruptData
from penstock.spark.source.files import GROUPS, PENDING, OfflineQuery, batches_in
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import redis_program_or_none, running_redis

SCHEMA = pa.schema({"_stream": pa.string(), "_id": pa.string(), "n": pa.int32()})
EXPECTED = [("a", f"{ms}-0", ms) for ms in range(1, 251) if ms != 7] + [("b", "1-1", None)]


def fill(client: redis.Redis) -> None:
    for ms in range(1, 251):
        client.xadd("a", {"n": ms}, id=f"{ms}-0")
    client.xdel("a", "7-0")
    client.xadd("b", {"other": "x"}, id="1-1")
    client.set("text", "x")
    client.xgroup_create("a", "g", id="0")
    client.xreadgroup("g", "c", {"a": ">"}, count=3)
    client.xack("a", "g", "2-0")


def fill_with_foreign(client: redis.Redis) -> None:
    fill(client)
    client.sadd("set", *range(1000))
    client.hset("hash", mapping={"a": 1, "b": "x" * 100})
    client.zadd("scores", {f"m{n}": n for n in range(300)} | {"top": float("inf")})
    client.hset("packed", mapping={"a": 1})
    client.sadd("numbers", 1, 2)


def rows(path: Path, query: OfflineQuery = OfflineQuery()) -> list[tuple[object, ...]]:  # noqa: B008
    schema = {"entries": SCHEMA, "pending": PENDING, "groups": GROUPS}[query.what]
    batches = list(batches_in(str(path), schema, query))
    assert all(batch.schema == schema for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def check(path: Path) -> None:
    assert sorted(rows(path), key=str) == sorted(EXPECTED, key=str)
    assert [row[:5] + row[6:] for row in rows(path, OfflineQuery("pending"))] == [
        ("a", 0, "g", "c", "1-0", 1),
        ("a", 0, "g", "c", "3-0", 1),
    ]
    groups = rows(path, OfflineQuery("groups"))
    assert [row[:4] + row[6:] for row in groups] == [("a", 0, "g", "3-0", 2, 1)]


def test_files_of_penstock(tmp_path: Path) -> None:
    with (
        running_penstock("--appendonly", "yes", data=tmp_path) as server,
        server.client() as client,
    ):
        fill(client)
        client.save()
        check(tmp_path / "appendonlydir")  # while it runs
        check(tmp_path)
        server.kill()
    check(tmp_path / "dump.rdb")
    (increment,) = (tmp_path / "appendonlydir").glob("*.incr.aof")
    check(increment)
    whole = increment.read_bytes()
    increment.write_bytes(whole[:-3])
    rows(tmp_path)  # torn: complete commands are read, and the file is not changed
    assert increment.read_bytes() == whole[:-3]


@pytest.mark.skipif(redis_program_or_none() is None, reason="no redis-server on PATH")
def test_files_of_redis_with_unsupported_types(tmp_path: Path) -> None:
    with running_redis("--dir", str(tmp_path), "--appendonly", "yes") as server:
        fill_with_foreign(server.client)
        check(tmp_path / "appendonlydir")
        server.client.save()
    check(tmp_path / "dump.rdb")


def test_streams_and_ids_are_selected(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server, server.client() as client:
        fill(client)
        client.save()
    path = tmp_path / "dump.rdb"
    assert rows(path, OfflineQuery(streams=("b*",))) == EXPECTED[-1:]
    first, last = stream_id.parse(b"5"), stream_id.parse(b"8")
    chosen = OfflineQuery(streams=("a",), start=first, end=last)
    assert [row[2] for row in rows(path, chosen)] == [5, 6, 8]
    assert rows(path, OfflineQuery(database=3)) == []


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(b"REDIS0010\xfa\x05hello")
    with pytest.raises(CorruptData, match=r"dump\.rdb"):
        rows(path)


def test_a_directory_without_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="neither a log nor a snapshot"):
        rows(tmp_path)
    (tmp_path / "monday.rdb").write_bytes(b"REDIS")
    with pytest.raises(
        FileNotFoundError, match=r"give the path of a file: \S+monday\.rdb or \S+/\*\.rdb"
    ):
        rows(tmp_path)
    with pytest.raises(FileNotFoundError, match="tuesday"):
        rows(tmp_path / "tuesday.rdb")


def test_what_is_one_of_three() -> None:
    with pytest.raises(ConfigError, match="allowed are entries, pending, groups"):
        OfflineQuery("consumers")
