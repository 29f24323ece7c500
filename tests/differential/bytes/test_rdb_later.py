"""Snapshots and DUMP payloads are exchanged with Redis 8 and Valkey 9 in both directions, without loss.

Data are compared as uncompressed payloads of DUMP, which hold everything that a file holds. Lists are
compared by their elements: from 7.2 on, Redis keeps a large element outside of the listpacks.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine import compat
from penstock.engine.keyspace import Keyspace
from penstock.persist.aof.commands_out import write_commands
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.dump import dump_value, restore_value
from penstock.persist.rdb.reader import RdbReader
from penstock.persist.rdb.value import ValueLimits
from tests.support.campaign import cases
from tests.support.random.rdb_workload import workload
from tests.support.random.stream_extras import add_producers, add_returned
from tests.support.rdb.by_hand import NODE_KEY, group_bytes, producers_bytes, stream_bytes
from tests.support.rdb.dump_payloads import DumpBench, body_of, sealed
from tests.support.rdb.whole_files import check_value, write_all
from tests.support.servers.programs import REDIS_8_0, REDIS_8_6, VALKEY_9, Program
from tests.support.servers.raw_redis import RawRedis, Refusal
from tests.support.servers.redis_server import RedisServer, running_redis

PROGRAMS = (REDIS_8_0, REDIS_8_6, VALKEY_9)
VERSIONS = {"8.0": 12, "8.6": 13, "7.2": 11}
# Valkey reads files of Redis up to 7.2, whose values are its own.
READ = [(one, version) for one in PROGRAMS for version in range(10, VERSIONS[one.level] + 1)]
DATABASES = 16
HOUR_MS = 3_600_000

Bodies = dict[tuple[int, bytes], Any]


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.title, scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[tuple[Program, RedisServer]]:
    """A running server that does not compress."""
    request.param.need()
    with running_redis("--rdbcompression", "no", program=request.param) as running:
        yield request.param, running


def body_or_elements(payload: bytes) -> Any:
    """A payload without version and checksum, or the elements of a list."""
    if payload[0] != rdb_format.LIST_NODES:
        return body_of(payload)
    value = restore_value(payload, rdb_format.VERSION_MAX, ValueLimits())
    assert isinstance(value, ListValue)
    return value.range(0, value.length - 1)


def bodies_of(redis: RawRedis) -> Bodies:
    """The payloads of all keys."""
    found = {}
    for database in range(DATABASES):
        _, keys = redis.ask([[b"SELECT", b"%d" % database], [b"KEYS", b"*"]])
        for key in keys:
            found[database, key] = body_or_elements(redis.ask([[b"DUMP", key]])[0])
    redis.ask([[b"SELECT", b"0"]])
    return found


def bodies_in(path: Path, version: int) -> Bodies:
    """The same of a file, as this version writes it."""
    found = {}
    with path.open("rb", buffering=0) as file:
        for item in RdbReader(file, str(path)).items():
            check_value(item.value)
            payload = dump_value(item.value, version, False)
            found[item.database, item.key] = body_or_elements(payload)
    return found


def worked(seed: int, level: str) -> list[Keyspace]:
    """The databases of an engine after random work, with everything that snapshots can hold.

    No name of a producer expires for hours.
    """
    bench = DumpBench(level)
    bench.engine.context.keyspace.clear()
    for words in workload(seed, level=level):
        if words[0] == b"SELECT":
            bench.engine.context.keyspace = bench.engine.context.databases[int(words[1])]
        else:
            bench.run(*words)
    dice = random.Random(seed)
    later_ms = int(time.time() * 1000) + HOUR_MS
    for keyspace in bench.engine.context.databases:
        for value in keyspace.values.values():
            if isinstance(value, Stream):
                value.idempotency = None  # the clock of the engine is years behind
                add_producers(dice, value, later_ms, odd=0.0)
                add_returned(dice, value)
    return bench.engine.context.databases


@pytest.mark.parametrize("seed", range(cases(60)))
def test_we_read_what_it_writes(server: tuple[Program, RedisServer], seed: int) -> None:
    program, running = server
    running.reset()
    with RawRedis(running.port) as redis:
        redis.ask(workload(seed, level=program.level))
        redis.ask([[b"SAVE"]])
        theirs = bodies_of(redis)
        folder = redis.ask([[b"CONFIG", b"GET", b"dir"]])[0][1].decode()
    assert bodies_in(Path(folder, "dump.rdb"), VERSIONS[program.level]) == theirs


@pytest.mark.parametrize(
    ("program", "version"), READ, ids=lambda one: getattr(one, "title", str(one))
)
def test_it_reads_what_we_write(tmp_path: Path, program: Program, version: int) -> None:
    program.need()
    for seed in range(cases(20)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = folder / "dump.rdb"
        path.write_bytes(write_all(worked(seed, "8.10"), version, compress=seed % 2 == 0))
        with (
            running_redis(
                "--dir", str(folder), "--rdbcompression", "no", program=program
            ) as running,
            RawRedis(running.port) as redis,
        ):
            assert bodies_of(redis) == bodies_in(path, VERSIONS[program.level]), f"seed {seed}"


@pytest.mark.parametrize("seed", range(100, 100 + cases(60)))
def test_payloads_are_taken_in_both_directions(
    server: tuple[Program, RedisServer], seed: int
) -> None:
    program, running = server
    running.reset()
    version = VERSIONS[program.level]
    bench = DumpBench(program.level)
    bench.engine.context.keyspace.clear()
    with RawRedis(running.port) as redis:
        redis.ask(workload(seed, level=program.level))
        redis.ask([[b"SELECT", b"0"]])
        for key in redis.ask([[b"KEYS", b"*"]])[0]:
            payload = redis.ask([[b"DUMP", key]])[0]
            assert bench.run("RESTORE", key, 0, payload) == "OK"
            value: Any = bench.engine.context.keyspace.values[key]
            check_value(value)
            ours = dump_value(value, version, compress=False)
            assert body_or_elements(ours) == body_or_elements(payload)
            packed = bench.run("DUMP", key)
            assert packed[-10:-8] == bytes([version, 0])
            assert redis.ask([[b"RESTORE", b"copy", b"0", packed, b"REPLACE"]])[0] == "OK"
            [again] = redis.ask([[b"DUMP", b"copy"]])
            assert body_or_elements(again) == body_or_elements(payload)


def test_redis_reads_names_and_returned_entries_from_commands(tmp_path: Path) -> None:
    """A base of commands at level 8.6: all but the counters of names arrives, also of deleted entries."""
    REDIS_8_6.need()
    for seed in range(cases(30)):
        databases = worked(seed, "8.10")
        log = tmp_path / str(seed) / "appendonlydir"
        log.mkdir(parents=True)
        pieces: list[bytes] = []
        write_commands(pieces.append, databases, compat.LEVELS["8.6"])
        (log / "appendonly.aof.1.base.aof").write_bytes(b"".join(pieces))
        (log / "appendonly.aof.manifest").write_text(
            "file appendonly.aof.1.base.aof seq 1 type b\n"
        )
        arguments = ("--dir", str(log.parent), "--appendonly", "yes", "--rdbcompression", "no")
        with (
            running_redis(*arguments, program=REDIS_8_6) as running,
            RawRedis(running.port) as redis,
        ):
            for keyspace in databases:
                redis.ask([[b"SELECT", b"%d" % keyspace.index]])
                for key, value in keyspace.values.items():
                    if isinstance(value, Stream):
                        payload = redis.ask([[b"DUMP", key]])[0]
                        assert names_in(payload) == names_of(value), f"seed {seed}, {key!r}"
                        assert pending_in(payload) == pending_of(value), f"seed {seed}, {key!r}"


def stream_in(payload: bytes) -> Stream:
    bench = DumpBench("8.6")
    assert bench.run("RESTORE", "s", 0, payload) == "OK"
    return bench.stream()


def names_in(payload: bytes) -> Any:
    return names_of(stream_in(payload))


def names_of(stream: Stream) -> Any:
    known = stream.idempotency
    settings = stream.idempotency_settings
    producers = {} if known is None else {p: list(n.items()) for p, n in known.producers.items()}
    return settings.duration_s, settings.size_max, producers


def pending_in(payload: bytes) -> Any:
    return pending_of(stream_in(payload))


def pending_of(stream: Stream) -> Any:
    """Every pending entry: its consumer (empty if it was returned), time and count."""
    found = {}
    for name, group in [] if stream.groups is None else stream.groups.pairs():
        for record in group.pending:
            owner = b""
            if record.key() not in group.returned:
                owner = group.consumer_by_number(record.consumer_number).name
            found[name, record.key()] = owner, record.delivery_ms, record.delivery_count
    return found


# --- What Redis 8.6 accepts and refuses -----------------------------------------------------------

A = (b"a", "1700000000000-0")
ALIKE = {
    "as it should be": producers_bytes((b"p", [A]), added=1),
    "without names": producers_bytes((b"p", []), (b"q", [A])),
    "a duration of 0": producers_bytes(duration_s=0),
    "a duration of more than a day": producers_bytes(duration_s=86_401),
    "no names allowed": producers_bytes(size_max=0),
    "too many names allowed": producers_bytes(size_max=10_001),
    "a producer twice": producers_bytes((b"p", [A]), (b"p", [(b"b", "1-1")])),
    "the largest numbers": producers_bytes(
        (b"p", [A]), duration_s=86_400, size_max=10_000, added=2**64 - 1, duplicates=2**63
    ),
    "no entry has the id": producers_bytes((b"p", [(b"a", f"{2**64 - 1}-{2**64 - 1}")])),
}


@pytest.mark.parametrize("name", ALIKE)
def test_producers_are_accepted_or_refused_as_in_redis(name: str) -> None:
    REDIS_8_6.need()
    payload = sealed(bytes([26]) + stream_bytes(26, producers=ALIKE[name]), 13)
    bench = DumpBench("8.6")
    with running_redis(program=REDIS_8_6) as running, RawRedis(running.port) as redis:
        [theirs] = redis.ask([[b"RESTORE", b"s", b"0", payload]])
    assert bench.run("RESTORE", "s", 0, payload) == theirs


def test_a_row_of_two_consumers_is_refused_here_whatever_the_server_does() -> None:
    """E3: Redis and Valkey before July 2026 crash on it or later, so it is not sent to them."""
    bench = DumpBench("8.6")
    groups = group_bytes(26, [NODE_KEY], [(b"a", [NODE_KEY]), (b"b", [NODE_KEY])])
    payload = sealed(bytes([26]) + stream_bytes(26, groups=groups), 13)
    assert bench.run("RESTORE", "s", 0, payload) == Refusal("ERR Bad data format")


def test_redis_writes_a_producer_without_names_after_a_failed_append() -> None:
    REDIS_8_6.need()
    largest = b"%d-%d" % (2**64 - 1, 2**64 - 1)
    with running_redis(program=REDIS_8_6) as running, RawRedis(running.port) as redis:
        redis.ask([[b"XADD", b"s", largest, b"k", b"v"]])
        [refused] = redis.ask([[b"XADD", b"s", b"IDMP", b"p", b"a", b"*", b"k", b"v"]])
        assert isinstance(refused, Refusal)
        [payload] = redis.ask([[b"DUMP", b"s"]])
    assert body_of(payload).endswith(producers_bytes((b"p", [])))
    assert stream_in(payload).idempotency is None
