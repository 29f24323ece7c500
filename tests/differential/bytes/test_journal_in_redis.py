"""Exchanges logs with a real Redis 7.0: both servers load our journal and its own file with the same result.

The commands are random. Our clock is either far in the past, so that Redis accepts delivery times (it changes
those that are ahead of its clock), or far in the future, so that no key has expired yet.

A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NO_REDIS
from tests.support.campaign import cases, seed
from tests.support.engine.effects import Recorder, Replay
from tests.support.random.effects import EffectWorld, Work
from tests.support.random.stream_commands import Words
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import redis_program_or_none, running_redis

COMMANDS = 400
DATABASES = 16
LONG_AGO_MS = 1_700_000_000_000
FAR_AHEAD_MS = 4_050_000_000_000
NEAR_MS = 120_000
INCREMENT = "appendonly.aof.1.incr.aof"
MANIFEST = f"file {INCREMENT} seq 1 type i\n"
# Counters that differ between the servers, and when consumers were seen.
APART = (b"radix-tree-keys", b"radix-tree-nodes", b"seen-time")


@pytest.mark.parametrize("start_ms", [LONG_AGO_MS, FAR_AHEAD_MS])
def test_redis_starts_from_the_journal_of_random_work(tmp_path: Path, start_ms: int) -> None:
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    start = seed()
    for n in range(cases(50)):
        name = f"{start}/{n}"
        folder = tmp_path / str(n)
        data = journal_of(name, start_ms)
        arguments = write_parts(folder, data) if n % 2 else write_single(folder, data)
        replay = Replay("7.0")
        replay.feed(data)
        replay.clock.at_ms = int(time.time() * 1000)  # not later than the start of Redis
        with (
            running_redis("--dir", str(folder), *arguments) as server,
            RawRedis(server.port) as redis,
        ):
            for database in range(DATABASES):
                compare(redis, replay, database, f"seed {name}, database {database}")


def test_we_replay_the_file_of_redis_as_redis_does() -> None:
    """Redis reads its file again too: it does not write everything, for example entries-read of a group."""
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    start = seed()
    options = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no"]
    for n in range(cases(50)):
        name = f"{start}/{n}"
        with running_redis(*options, "--enable-debug-command", "yes") as server:
            [folder] = server.client.config_get("dir").values()
            with RawRedis(server.port) as redis:
                redis.ask(commands_of(name))
                replay = Replay("7.0", ours=False)
                replay.feed(Path(str(folder), "appendonlydir", INCREMENT).read_bytes())
                replay.clock.at_ms = int(time.time() * 1000)
                assert redis.ask([[b"DEBUG", b"LOADAOF"]]) == ["OK"]
                for database in range(DATABASES):
                    compare(redis, replay, database, f"seed {name}, database {database}")


def commands_of(name: str) -> list[Words]:
    """Random commands. None blocks for long, and none is XSETID, with which 7.0 goes below tombstones."""
    world = EffectWorld(random.Random(name))
    made = (world.command() for _ in range(COMMANDS))
    return [words for words in made if not {b"BLOCK", b"XSETID"} & set(map(bytes.upper, words))]


def journal_of(name: str, start_ms: int) -> bytes:
    """The journal of random commands."""
    recorder = Recorder("7.0", start_ms)
    work = Work(recorder, name)
    for _ in range(COMMANDS):
        work.step()
    return recorder.take()


def write_parts(folder: Path, data: bytes) -> list[str]:
    """Write an append-only file in the format of Redis 7: increments and a manifest."""
    parts = folder / "appendonlydir"
    parts.mkdir(parents=True)
    (parts / INCREMENT).write_bytes(data)
    manifest = parts / "appendonly.aof.manifest"
    manifest.write_text(MANIFEST)
    check(manifest)
    return ["--appendonly", "yes"]


def write_single(folder: Path, data: bytes) -> list[str]:
    """Write an append-only file in the format before Redis 7."""
    folder.mkdir(parents=True)
    single = folder / "appendonly.aof"
    single.write_bytes(data)
    check(single)
    return ["--appendonly", "yes"]


def check(path: Path) -> None:
    """Check a file with redis-check-aof."""
    program = redis_program_or_none()
    assert program is not None
    tool = Path(program).with_name("redis-check-aof")
    if tool.exists():
        done = subprocess.run([tool, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def compare(redis: RawRedis, replay: Replay, database: int, place: str) -> None:
    """Compare every key of a database, with all of its data."""
    replay.engine.context.keyspace = keyspace = replay.engine.context.databases[database]
    # Keys that expire during the comparison are not a difference.
    near = {key for key, at_ms in keyspace.expires.items() if is_near(at_ms, replay.clock.at_ms)}
    _, found = redis.ask([[b"SELECT", b"%d" % database], [b"KEYS", b"*"]])
    keys = sorted(set(found) - near)
    assert keys == sorted(set(replay.ask([b"KEYS", b"*"])) - near), place
    for key in keys:
        [kind, goes] = redis.ask([[b"TYPE", key], [b"PEXPIRETIME", key]])
        assert (kind, goes) == (replay.ask([b"TYPE", key]), replay.ask([b"PEXPIRETIME", key]))
        for words in questions(kind, key, replay):
            [theirs] = redis.ask([words])
            ours = replay.ask(words)
            assert comparable(ours, replay) == comparable(theirs, replay), f"{place}: {words}"


def is_near(one_ms: int, other_ms: int) -> bool:
    return abs(one_ms - other_ms) < NEAR_MS


def questions(kind: str, key: bytes, replay: Replay) -> list[list[bytes]]:
    """Commands whose replies show all data of a key."""
    if kind == "string":
        return [[b"GET", key]]
    if kind == "list":
        return [[b"LRANGE", key, b"0", b"-1"]]
    asked = [[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"], [b"XRANGE", key, b"-", b"+"]]
    asked.append([b"XINFO", b"GROUPS", key])
    for group in replay.ask([b"XINFO", b"GROUPS", key]):
        asked.append([b"XPENDING", key, group[1]])
    return asked


def comparable(reply: Any, replay: Replay) -> Any:
    """A reply without the fields in APART and the times that Redis has changed.

    A counter that has reached its end stays there in penstock, and wraps in Redis.
    """
    if not isinstance(reply, list):
        is_ahead = isinstance(reply, int) and (reply >= replay.clock.at_ms or reply < -(2**62))
        return "ahead" if is_ahead else reply
    kept = [reply[at] for at in range(len(reply)) if at == 0 or reply[at - 1] not in APART]
    return [comparable(item, replay) for item in kept]
