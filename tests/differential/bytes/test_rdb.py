"""Snapshots and DUMP payloads are exchanged with a real Redis in both directions, without loss."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.persist.rdb.dump import dump_value
from penstock.persist.rdb.reader import RdbReader, load_databases
from penstock.persist.rdb.value import Value, ValueLimits
from tests.conftest import NO_REDIS
from tests.support.campaign import cases
from tests.support.random.rdb_workload import workload
from tests.support.rdb.by_hand import NODE_KEY, ZIPLIST_FORMS, group_bytes, stream_bytes, ziplist_of
from tests.support.rdb.dump_payloads import DumpBench, body_of, sealed
from tests.support.rdb.whole_files import check_value, length, string, write_all
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer, redis_program_or_none, running_redis

Ask = Callable[[list[bytes]], Any]
DATABASES = 16


def ask_of(redis: RawRedis) -> Ask:
    return lambda words: redis.ask([words])[0]


def ask_bench(bench: DumpBench) -> Ask:
    """An engine with SELECT, which in penstock is a command of the session."""

    def ask(words: list[bytes]) -> Any:
        if words[0] == b"SELECT":
            bench.engine.context.keyspace = bench.engine.context.databases[int(words[1])]
            return "OK"
        return bench.run(*words)

    return ask


def empty_bench() -> DumpBench:
    bench = DumpBench("7.0", 1_750_000_000_000)
    bench.engine.context.keyspace.clear()
    return bench


def everything(ask: Ask) -> dict[tuple[int, bytes], Any]:
    """All data of all keys, in a form that does not depend on the clock."""
    found: dict[tuple[int, bytes], Any] = {}
    for database in range(DATABASES):
        ask([b"SELECT", b"%d" % database])
        for key in sorted(ask([b"KEYS", b"*"])):
            found[database, key] = [ask([b"PEXPIRETIME", key]), *_value(ask, key)]
    ask([b"SELECT", b"0"])
    return found


def _value(ask: Ask, key: bytes) -> list[Any]:
    kind = ask([b"TYPE", key])
    if kind == "string":
        return [ask([b"GET", key])]
    if kind == "list":
        return [ask([b"LRANGE", key, b"0", b"-1"])]
    groups = [row[1] for row in ask([b"XINFO", b"GROUPS", key])]
    return [
        ask([b"XRANGE", key, b"-", b"+"]),
        ask([b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]),
        ask([b"XINFO", b"GROUPS", key]),
        [ask([b"XPENDING", key, group]) for group in groups],
    ]


def load(path: Path, bench: DumpBench) -> None:
    limits = ValueLimits(bench.engine.limits, bench.engine.list_limits)
    with path.open("rb", buffering=0) as file:
        load_databases(RdbReader(file, str(path), limits), bench.engine.context.databases)
    for keyspace in bench.engine.context.databases:
        for value in keyspace.values.values():
            check_value(value)


@pytest.mark.parametrize("compression", ["yes", "no"])
@pytest.mark.parametrize("seed", range(cases(60)))
def test_we_read_what_redis_writes(redis_server: RedisServer, seed: int, compression: str) -> None:
    redis_server.client.config_set("rdbcompression", compression)
    with RawRedis(redis_server.port) as redis:
        ask = ask_of(redis)
        redis.ask(workload(seed))
        theirs = everything(ask)
        ask([b"SAVE"])
        folder = ask([b"CONFIG", b"GET", b"dir"])[1].decode()
    bench = empty_bench()
    load(Path(folder, "dump.rdb"), bench)
    assert everything(ask_bench(bench)) == theirs


@pytest.mark.parametrize("seed", range(cases(30)))
def test_redis_reads_what_we_write(tmp_path: Path, seed: int) -> None:
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    bench = empty_bench()
    ask = ask_bench(bench)
    for words in workload(seed):
        ask(words)
    path = tmp_path / "dump.rdb"
    path.write_bytes(write_all(bench.engine.context.databases, 10, compress=seed % 2 == 0))
    checker = shutil.which("redis-check-rdb")
    if checker is not None:
        checked = subprocess.run([checker, str(path)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout
    with running_redis("--dir", str(tmp_path)) as server, RawRedis(server.port) as redis:
        assert everything(ask_of(redis)) == everything(ask)


@pytest.mark.parametrize("seed", range(100, 100 + cases(100)))
def test_payloads_have_the_bytes_of_redis(redis_server: RedisServer, seed: int) -> None:
    """Both servers dump the data of the other to the same bytes, if nothing is compressed."""
    redis_server.client.config_set("rdbcompression", "no")
    bench = empty_bench()
    with RawRedis(redis_server.port) as redis:
        redis.ask(workload(seed))
        redis.ask([[b"SELECT", b"0"]])
        for key in redis.ask([[b"KEYS", b"*"]])[0]:
            payload = redis.ask([[b"DUMP", key]])[0]
            assert bench.run("RESTORE", key, 0, payload) == "OK"
            value: Value = bench.engine.context.keyspace.values[key]
            check_value(value)
            assert dump_value(value, 10, compress=False) == payload
            packed = bench.run("DUMP", key)
            assert redis.ask([[b"RESTORE", b"copy", b"0", packed, b"REPLACE"]])[0] == "OK"
            assert redis.ask([[b"DUMP", b"copy"]])[0] == payload


ZIPLIST = ziplist_of(*(element for element, _ in ZIPLIST_FORMS))
PENDING = group_bytes(15, [NODE_KEY], [(b"a", [NODE_KEY]), (b"b", [])])
OLD_BODIES = [
    bytes([1]) + length(3) + b"\x01a" + b"\xc0\x07" + string(b"x" * 100),
    bytes([10]) + string(ZIPLIST),
    bytes([14]) + length(2) + string(ZIPLIST) + string(ziplist_of(b"\xf3")),
    bytes([18])
    + b"\x02\x01"
    + string(b"plain")
    + b"\x02"
    + string(bytes.fromhex("0900000001000201ff")),
    bytes([15]) + stream_bytes(15),
    bytes([15]) + stream_bytes(15, groups=PENDING),
    bytes([15]) + stream_bytes(15, groups=b"\x02\x01g\x00\x00\x00\x00\x01h\x05\x00\x00\x00"),
]


@pytest.mark.parametrize("body", OLD_BODIES, ids=lambda body: f"type {body[0]}, {len(body)} bytes")
def test_old_formats_are_converted_as_in_redis(redis_server: RedisServer, body: bytes) -> None:
    redis_server.client.config_set("rdbcompression", "no")
    bench = empty_bench()
    payload = sealed(body, 9)
    with RawRedis(redis_server.port) as redis:
        ask = ask_of(redis)
        assert ask([b"RESTORE", b"k", b"0", payload]) == "OK"
        assert bench.run("RESTORE", "k", 0, payload) == "OK"
        assert everything(ask_bench(bench)) == everything(ask)
        if b"plain" not in body:  # Redis keeps it as a plain node until it is changed
            value: Value = bench.engine.context.keyspace.values[b"k"]
            assert body_of(dump_value(value, 10, False)) == body_of(ask([b"DUMP", b"k"]))


def test_an_empty_old_stream_has_no_first_id(redis_server: RedisServer) -> None:
    """Redis 7.0 stores the largest possible id as its first, and shows it in XINFO. All else is equal."""
    payload = sealed(
        bytes([15]) + stream_bytes(15, [], b"\x00\x05\x03", b"\x01\x01g\x05\x03\x00\x00"), 9
    )
    bench = empty_bench()
    with RawRedis(redis_server.port) as redis:
        ask = ask_of(redis)
        assert ask([b"RESTORE", b"k", b"0", payload]) == "OK"
        assert bench.run("RESTORE", "k", 0, payload) == "OK"
        theirs = ask([b"XINFO", b"STREAM", b"k"])
        ours = bench.ask("XINFO STREAM k")
        first = ours.index(b"recorded-first-entry-id") + 1
        assert (ours.pop(first), theirs.pop(first)) == (b"0-0", b"%d-%d" % (2**64 - 1, 2**64 - 1))
        assert ours == theirs
        assert bench.ask("XINFO GROUPS k") == ask([b"XINFO", b"GROUPS", b"k"])


SEVENTEEN = sealed(b"\x00\xc0\x11")
OTHER_END = SEVENTEEN[:-1] + b"!"
WORDS: list[list[Any]] = [
    ["a", 0, SEVENTEEN], ["a", 0, SEVENTEEN], ["a", "x", b"y"], ["a", -1, SEVENTEEN],
    ["b", -1, SEVENTEEN], ["b", "x", SEVENTEEN], ["b", 0, SEVENTEEN[:-1]],
    ["a", 0, SEVENTEEN, "REPLACE"], ["a", 0, SEVENTEEN, "replace", "X"],
    ["c", 0, SEVENTEEN, "IDLETIME"], ["c", 0, SEVENTEEN, "IDLETIME", "x"],
    ["c", 0, SEVENTEEN, "IDLETIME", -1], ["c", 0, SEVENTEEN, "IDLETIME", 4],
    ["d", 0, SEVENTEEN, "FREQ", 256], ["d", 0, SEVENTEEN, "FREQ", -1], ["d", 0, SEVENTEEN, "FREQ", 5],
    ["e", 0, SEVENTEEN, "FREQ", 5, "IDLETIME", 1], ["e", 0, SEVENTEEN, "IDLETIME", 1, "FREQ", 1],
    ["f", 9**13, SEVENTEEN, "ABSTTL"], ["f", 1000, SEVENTEEN, "ABSTTL", "REPLACE"],
    ["f", 1000, SEVENTEEN, "ABSTTL"], ["g", 2**63 - 1, SEVENTEEN], ["g", 2**63, SEVENTEEN],
    ["h", 0, sealed(b"\x00\xc0\x11", 11)], ["i", 0, sealed(b"")], ["i", 0, sealed(b"\x63")],
    ["i", 0, sealed(b"\x12\x00")], ["i", 0, b""], ["i", 0, b"123456789"], ["i", 0],
    ["j", 0, sealed(b"\x00\x01a", 0), "ABSTTL"], ["j", 5, OTHER_END, "REPLACE"],
]  # fmt: skip


def test_restore_replies_as_redis_does(redis_server: RedisServer) -> None:
    bench = empty_bench()
    ours = ask_bench(bench)
    with RawRedis(redis_server.port) as redis:
        theirs = ask_of(redis)
        for words in WORDS:
            line = [b"RESTORE", *(w if isinstance(w, bytes) else str(w).encode() for w in words)]
            before = bench.engine.context.dirty
            changes = redis_server.client.info("persistence")["rdb_changes_since_last_save"]
            assert ours(line) == theirs(line), line
            changed = (
                redis_server.client.info("persistence")["rdb_changes_since_last_save"] - changes
            )
            assert bench.engine.context.dirty - before == changed, line
            assert everything(ours) == everything(theirs), line


@pytest.mark.parametrize(
    "lines",
    [
        ["XADD s 1-0 k v", "XADD s 2-0 k v", "XADD s 3-0 k v", "XDEL s 3-0", "XSETID s 2-0"],
        [
            *("XADD s 1-0 k v", "XADD s 2-0 k v", "XADD s 3-0 k v", "XADD s 4-0 k v"),
            *("XDEL s 3-0 4-0", "XSETID s 2-0", "XADD s 3-0 k again", "XADD s 3-1 k v"),
        ],
        [
            *(
                "CONFIG SET stream-node-max-entries 2",
                "XADD s 1-0 k v",
                "XADD s 2-0 k v",
                "XADD s 3-0 k v",
            ),
            *("XDEL s 2-0", "XTRIM s MINID 2", "CONFIG SET stream-node-max-entries 100"),
        ],
    ],
    ids=["the last id is a tombstone's", "ids given again", "a node of tombstones"],
)
def test_tombstones_that_only_redis_leaves_can_be_read(
    redis_server: RedisServer, lines: list[str]
) -> None:
    bench = empty_bench()
    with RawRedis(redis_server.port) as redis:
        ask = ask_of(redis)
        for line in lines:
            ask(line.encode().split())
        assert bench.run("RESTORE", "s", 0, ask([b"DUMP", b"s"])) == "OK"
        check_value(bench.stream())
        for line in ("XRANGE s - +", "XLEN s", "XADD s * a b", "XREVRANGE s + - COUNT 1"):
            words = line.replace("*", "9-9").encode().split()
            assert ask_bench(bench)(words) == ask(words)
