"""Blocked readers on a real Redis and on our engine are served by the same command, with the same entries.

Each reader has its own connection. Redis writes to the readers that a command has unblocked before it reads
the next command. So after the reply to a PING that follows the command, all replies to readers are there.

Penstock runs a blocked command again, as 7.2 does, at every compatibility level. Redis 7.0 replies with the
new entries of the one key that was touched. That makes a difference in three cases. If all entries after a
reader's position are already deleted (XADD MAXLEN 0), 7.0 replies with an empty list, and penstock leaves the
reader waiting. A key that is named twice is served once by 7.0. A group that was set back while its reader
waited is served from that one key only. The last two do not occur here.

Since 7.2 two things differ for a reader of two keys (docs/compatibility.md). If one key is now a string, a
blocked XREAD gets WRONGTYPE when the other key gets an entry; penstock serves that entry. A reader that was
woken for one key and found nothing loses its turn for the other key; here it keeps it. So at newer levels
each reader has one key.
"""

from __future__ import annotations

import random
import select
import time
from typing import Any

import pytest

from penstock.engine.waiters import Blocked
from penstock.errors import CommandError
from tests.support.campaign import cases_per_level, levels, seed
from tests.support.engine.engines import Bench, Reader, command_of, plain
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import RawRedis, Refusal

STEPS = 60
READERS = 5
PARK_SECONDS_MAX = 20.0
KEYS = ["s", "t"]
GROUPS = ["g", "h"]


@pytest.mark.parametrize("level", levels("8.0", "8.2", "8.6"))
def test_blocked_readers_are_served_as_in_redis(port: int, level: str) -> None:
    start = seed()
    for n in range(cases_per_level(200)):
        stage = Stage(port, f"{start}/{n}", level)
        try:
            stage.play()
        finally:
            stage.close()


class Stage:
    """Two servers, the readers that wait on both, and the commands so far."""

    def __init__(self, port: int, name: str, level: str = "7.0") -> None:
        self.name = name
        self.level = level
        self.dice = random.Random(name)
        self.main = RawRedis(port)
        self.ends = [RawRedis(port) for _ in range(READERS)]
        self.bench = Bench(level)
        self.parked: dict[int, Reader] = {}
        self.said: list[str] = []
        self.last = 0
        self.main.ask([[b"FLUSHALL"]])

    def close(self) -> None:
        for connection in (self.main, *self.ends):
            connection.__exit__()

    def play(self) -> None:
        for key in KEYS:
            for group in GROUPS:
                self.run(f"XGROUP CREATE {key} {group} 0 MKSTREAM")
        for _ in range(STEPS):
            free = [n for n in range(READERS) if n not in self.parked]
            if free and self.dice.random() < 0.5:
                self.block(self.dice.choice(free))
            else:
                self.run(self.command())
        for key in KEYS:
            self.run(f"XREVRANGE {key} + -")
            for group in GROUPS:
                self.run(f"XPENDING {key} {group}")

    def command(self) -> str:
        key, group = self.dice.choice(KEYS), self.dice.choice(GROUPS)
        self.last += 1
        entry = f"{self.last}-0 k v"
        return self.dice.choice(
            [
                *[f"XADD {key} {entry}"] * 8,
                f"XADD {key} MAXLEN 0 {entry}",
                f"XADD {key} MAXLEN 2 {entry}",
                f"XDEL {key} {self.last - 1}-0 {self.last - 2}-0",
                f"XTRIM {key} MAXLEN 1",
                f"XGROUP DESTROY {key} {group}",
                f"XGROUP CREATE {key} {group} $ MKSTREAM",
                f"XGROUP SETID {key} {group} $",
                f"XREADGROUP GROUP {group} m STREAMS {key} >",
                f"XGROUP DELCONSUMER {key} {group} c0",
                *self.replacing(key),
            ]
        )

    def replacing(self, key: str) -> list[str]:
        """Commands that replace or remove the value of a key."""
        other = self.dice.choice([*KEYS, "spare"])
        create = f"XGROUP CREATE {key} {self.dice.choice(GROUPS)} 0 MKSTREAM"
        removing = [f"DEL {key}", f"PEXPIRE {key} -1", f"MOVE {key} 1", f"RENAME {key} {other}"]
        putting = [f"SET {key} v", f"RENAME spare {key}", f"COPY spare {key} REPLACE"]
        filling = [f"XADD spare {self.last}-0 k v", f"COPY {key} spare REPLACE", create, create]
        return [*removing, *putting, *filling, self.dice.choice(["FLUSHALL", "SWAPDB 0 1"])]

    def reading(self, reader: int) -> str:
        keys = self.dice.choice([["s"], ["t"], ["s", "t"], ["t", "s"]])
        if self.level != "7.0":
            keys = keys[:1]
        count = self.dice.choice(["", "COUNT 1", "COUNT 2"])
        streams = f"BLOCK 0 STREAMS {' '.join(keys)} "
        if self.dice.random() < 0.4:
            ids = [self.dice.choice(["$", "$", str(self.last + 1), str(self.last)]) for _ in keys]
            return f"XREAD {count} {streams} {' '.join(ids)}"
        noack = self.dice.choice(["", "", "NOACK"])
        group = self.dice.choice(GROUPS)
        consumer = self.dice.choice([f"c{reader}", "shared"])
        return f"XREADGROUP GROUP {group} {consumer} {count} {noack} {streams} {' '.join('>' for _ in keys)}"

    def run(self, line: str) -> None:
        """Run a command that does not block on both servers, and compare the readers that it unblocked."""
        self.said.append(line)
        theirs = self.main.ask([line.encode().split(), [b"PING"]])[0]
        self.compare(self.bench.ask(line), theirs)
        self.compare_woken()

    def compare_woken(self) -> None:
        ready, _, _ = select.select([end.socket for end in self.ends], [], [], 0)
        theirs = {n: self.ends[n].read() for n in self.parked if self.ends[n].socket in ready}
        for n in [n for n, reply in theirs.items() if _is_empty(reply)]:
            del theirs[n]
            self.bench.engine.unpark(self.parked.pop(n))
        ours = {n: reader.got for n, reader in self.parked.items() if reader.woken}
        self.compare(ours, theirs)
        self.parked = {n: reader for n, reader in self.parked.items() if n not in ours}

    def block(self, n: int) -> None:
        """Send a blocking read to both servers. It may get a reply at once."""
        line = self.reading(n)
        self.said.append(f"reader {n}: {line}")
        self.ends[n].send([line.encode().split()])
        command, pieces = command_of(line.split())
        try:
            reply = self.bench.engine.execute(command, frame_of(*pieces))
        except CommandError as error:
            self.compare(Refusal(error.wire_text), self.ends[n].read())
            return
        if isinstance(reply, Blocked):
            self.parked[n] = Reader(command, reply, self.bench.engine.context.keyspace)
            self.bench.engine.park(self.parked[n])
            self.wait_for(len(self.parked))
        else:
            self.compare(plain(reply), self.ends[n].read())

    def wait_for(self, count: int) -> None:
        """Wait until Redis has this number of blocked clients."""
        deadline = time.monotonic() + PARK_SECONDS_MAX
        while b"blocked_clients:%d\r" % count not in self.main.ask([[b"INFO", b"clients"]])[0]:
            self.compare_woken()
            assert time.monotonic() < deadline, self.story()

    def compare(self, ours: Any, theirs: Any) -> None:
        assert repr(ours) == repr(theirs), self.story()

    def story(self) -> str:
        return f"seed {self.name}, readers {sorted(self.parked)} wait, after\n" + "\n".join(
            f"  {line}" for line in self.said[-30:]
        )


def _is_empty(reply: Any) -> bool:
    """Whether the reply to a read is a stream without entries."""
    return isinstance(reply, list) and all(entries == [] for _, entries in reply)
