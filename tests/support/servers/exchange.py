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
from tests.support.servers.programs import REDIS_7_0, Program
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import redis_program_or_none, running_redis

DATABASES = 16
AT_ONCE = 10
WAIT_SECONDS_MAX = 30.0
FAR_DIGITS = 9
# Counters that differ between the servers, and times of consumers: no log has them.
APART = (b"radix-tree-keys", b"radix-tree-nodes", b"seen-time", b"active-time")
NAMES_COUNTED = (b"iids-added", b"iids-duplicates")


class ExchangeWorld(EffectWorld):
    """All kinds of commands; no key expires before the other server is asked for it, and none blocks.

    Left out of the commands of Redis 8:

    - DELREF on a trim: Redis leaves records of entries that are gone already (World).
    - ACKED on a trim: the log has the length that it left, and Redis stops at another node in a replay.
    - ENTRIESREAD: from 8.2 on Redis lowers it, also in a replay, to the number of entries added.
    - IDMPAUTO: Redis computes other names, and does not recognize a duplicate that was logged as it came.
    - XIDMPRECORD: an entry that is not from now has expired, and Redis forgets its name a moment later.
    """

    def __init__(self, dice: random.Random, level: str = "7.0") -> None:
        super().__init__(dice, level)
        self._has_bounds = bool(self.references)
        self.references = self.references[:1]
        self._of_streams[:] = [one for one in self._of_streams if one != self.xidmprecord]

    def xadd_once(self) -> Words:
        while b"IDMPAUTO" in (words := super().xadd_once()):
            pass
        return words

    def _entries_read(self) -> Words:
        return [] if self._has_bounds else super()._entries_read()

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
        while {b"BLOCK", b"XSETID"} & set(map(bytes.upper, words := super().command())) or (
            self._has_far_index(words) or self._may_wait(words) or self._counts_to_the_end(words)
        ):
            pass
        return words

    @staticmethod
    def _counts_to_the_end(words: Words) -> bool:
        """A number of deliveries that soon wraps in Redis, and stays in penstock."""
        return words[0].upper() in (b"XCLAIM", b"XNACK") and any(
            word.isdigit() and int(word) > 2**62 for word in words
        )

    @staticmethod
    def _may_wait(words: Words) -> bool:
        """A blocking command with another timeout than the usual one, for example 0: for ever."""
        return words[0].upper().startswith((b"BL", b"BR")) and b"0.001" not in words

    @staticmethod
    def _has_far_index(words: Words) -> bool:
        """LSET of Redis 7.2 and later uses only 32 bits of the index, and its log has the whole."""
        return words[0].upper() == b"LSET" and len(words) > 2 and len(words[2]) > FAR_DIGITS


class Side:
    """A server on a directory. It is given commands of its level."""

    def __init__(self, port: int, level: str) -> None:
        self.port = port
        self.level = level

    def load(self, dice: random.Random, commands: int) -> None:
        """Run random commands."""
        world = ExchangeWorld(dice, self.level)
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


def without_lag(state: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    """A state without the lag of groups, which is in no file. Valkey has rules of its own for it."""
    return {place: [_without_lag(part) for part in value] for place, value in state.items()}


def _without_lag(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_lag(inner) for name, inner in part.items() if name != b"lag"}
    if not isinstance(part, list):
        return part
    if b"lag" in part and part[0] == b"name":
        at = part.index(b"lag")
        part = part[:at] + part[at + 2 :]
    return [_without_lag(inner) for inner in part]


def without_counts(state: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    """A state without the counters of names, which commands cannot express."""
    for value in state.values():
        for part in value:
            if isinstance(part, dict):
                for name in NAMES_COUNTED:
                    part.pop(name, None)
    return state


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
def ours(folder: Path, *options: str, level: str = "7.0") -> Iterator[Side]:
    """Run penstock on a directory. It must stop with exit status 0."""
    with running_penstock("--compat-version", level, *options, data=folder) as server:
        yield Side(server.port, level)
        assert server.end() == 0, server.log()


@contextmanager
def theirs(folder: Path, *options: str, program: Program = REDIS_7_0) -> Iterator[Side]:
    """Run Redis on a directory."""
    folder.mkdir(exist_ok=True)
    arguments = ("--dir", str(folder), "--appendonly", "yes", *options)
    with running_redis(*arguments, program=program) as server:
        yield Side(server.port, program.level)


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
