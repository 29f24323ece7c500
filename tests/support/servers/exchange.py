"""Lets penstock and Redis take turns on one data directory, and reads all data of a server.

with ours(folder) as server: server.load(world, 300)
with theirs(folder) as server: found = server.state()
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.random.effects import EffectWorld
from tests.support.random.key_commands import KeyWorld
from tests.support.random.stream_commands import Words
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import redis_program_or_none, running_redis

DATABASES = 16
AT_ONCE = 10
WAIT_SECONDS_MAX = 30.0
# Counters that differ between the servers, and the seen-time of consumers, which is in no file of 7.0.
APART = (b"radix-tree-keys", b"radix-tree-nodes", b"seen-time")


class ExchangeWorld(EffectWorld):
    """All kinds of commands; no key expires before the other server is asked for it, and none blocks."""

    def from_now(self, unit: int) -> bytes:
        return KeyWorld.from_now(self, unit) if len(self._hours) > 1 else b"%d" % (7200 * unit)

    def whole(self) -> Words:
        return [
            b"SWAPDB",
            self.database(),
            self.database(),
        ]  # never FLUSHALL: some data must be left

    def waiting_read(self) -> Words:
        return self.xreadgroup()

    def command(self) -> Words:
        # XSETID of Redis 7.0 accepts ids below tombstones, and then its file differs from all others.
        while {b"BLOCK", b"XSETID"} & set(map(bytes.upper, words := super().command())):
            pass
        return words


class Side:
    """A server on a directory."""

    def __init__(self, port: int) -> None:
        self.port = port

    def load(self, dice: random.Random, commands: int) -> None:
        """Run random commands."""
        world = ExchangeWorld(dice)
        with RawRedis(self.port) as client:
            for _ in range(commands // AT_ONCE):
                made = [world.command() for _ in range(AT_ONCE)]
                for words, reply in zip(made, client.ask(made), strict=True):
                    if words[0].upper() == b"XADD" and isinstance(reply, bytes):
                        world.known.append(reply)

    def ask(self, *words: bytes) -> Any:
        """The reply to one command."""
        with RawRedis(self.port) as client:
            return client.ask([words])[0]

    def rewrite(self) -> None:
        """Rewrite the log, and wait until that is done."""
        assert self.ask(b"BGREWRITEAOF") == "Background append only file rewriting started"
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while b"aof_rewrite_in_progress:1" in self._facts():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert b"aof_last_bgrewrite_status:ok" in self._facts()

    def _facts(self) -> bytes:
        reply = self.ask(b"INFO", b"persistence")
        assert isinstance(reply, bytes), reply
        return reply

    def state(self) -> dict[tuple[int, bytes], list[Any]]:
        """All keys of all databases, with all that commands say about them."""
        found: dict[tuple[int, bytes], list[Any]] = {}
        with RawRedis(self.port) as client:
            for database in range(DATABASES):
                for key in _keys(client, database):
                    found[database, key] = _all_about(client, key)
        return found


def _keys(client: RawRedis, database: int) -> list[bytes]:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    questions = [[b"SELECT", b"%d" % database], [b"KEYS", b"*"], [b"DBSIZE"]]
    while True:
        _, keys, size = client.ask(questions)
        assert isinstance(keys, list)
        if size == len(keys):
            return keys
        assert time.monotonic() < deadline  # expired keys are counted until they are removed
        time.sleep(0.01)


def _all_about(client: RawRedis, key: bytes) -> list[Any]:
    kind, goes = client.ask([[b"TYPE", key], [b"PEXPIRETIME", key]])
    if kind == "string":
        return [goes, *client.ask([[b"GET", key]])]
    if kind == "list":
        return [goes, *client.ask([[b"LRANGE", key, b"0", b"-1"], [b"LLEN", key]])]
    full, forth, back, groups = client.ask(
        [
            [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"],
            [b"XRANGE", key, b"-", b"+"],
            [b"XREVRANGE", key, b"+", b"-"],
            [b"XINFO", b"GROUPS", key],
        ]
    )
    pending = []
    for group in groups:
        name = group[1]
        summary, rows = client.ask(
            [[b"XPENDING", key, name], [b"XPENDING", key, name, b"-", b"+", b"100000"]]
        )
        # The idle time depends on the moment of the question. FULL has the delivery times.
        pending += [summary, [(row[0], row[1], row[3]) for row in rows]]
    return [goes, comparable(full), forth, back, groups, pending]


def comparable(reply: Any) -> Any:
    """A reply without the fields that differ between servers."""
    if not isinstance(reply, list):
        return reply
    named = dict(zip(reply[::2], reply[1::2], strict=False)) if _has_names(reply) else None
    if named is None:
        return [comparable(part) for part in reply]
    return {name: comparable(part) for name, part in named.items() if name not in APART}


def _has_names(reply: list[Any]) -> bool:
    return bool(reply) and reply[0] in (b"length", b"name")


@contextmanager
def ours(folder: Path, *options: str) -> Iterator[Side]:
    """Run penstock on a directory. It must stop with exit status 0."""
    with running_penstock("--compat-version", "7.0", *options, data=folder) as server:
        yield Side(server.port)
        assert server.end() == 0, server.log()


@contextmanager
def theirs(folder: Path, *options: str) -> Iterator[Side]:
    """Run Redis on a directory."""
    folder.mkdir(exist_ok=True)
    with running_redis("--dir", str(folder), "--appendonly", "yes", *options) as server:
        yield Side(server.port)


def check_files(folder: Path) -> None:
    """Check the files of a directory with redis-check-aof and redis-check-rdb."""
    program = redis_program_or_none()
    assert program is not None
    tools = Path(program).parent
    jobs = [("redis-check-aof", path) for path in folder.glob("appendonlydir/*.manifest")]
    jobs += [("redis-check-rdb", path) for path in folder.rglob("*.rdb")]
    assert jobs
    for tool, path in jobs:
        if (tools / tool).exists():
            done = subprocess.run([tools / tool, path], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
