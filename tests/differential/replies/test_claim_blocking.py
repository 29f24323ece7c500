"""Readers that are blocked with CLAIM, on a live Redis 8.6 and on our server: the same readers get the same.

Both servers use real time. A scene is a list of lines: `b: XREADGROUP ...` lets a reader block; `wait b`
waits for its reply; `sleep 20` waits 20 ms; all other lines are commands that must not block. At the end,
readers that have no reply yet are still waiting.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_8_6
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import running_redis

PARK_SECONDS_MAX = 20.0
LATE_MS = 3000  # a busy machine may be slow, but not that slow

TWO = ["XADD s 1-0 k v", "XADD s 2-0 k v", "XGROUP CREATE s g 0"]
READ = [*TWO, "XREADGROUP GROUP g a STREAMS s >"]
EMPTY = ["XGROUP CREATE s g 0 MKSTREAM"]
ROWS = "XPENDING s g - + 100"


def reading(claim: int, more: str = "BLOCK 0", streams: str = "s >", consumer: str = "b") -> str:
    return f"{consumer}: XREADGROUP GROUP g {consumer} {more} CLAIM {claim} STREAMS {streams}"


NEVER = 10_000_000
SCENES = {
    "an entry becomes idle enough": [*READ, reading(150), "wait b", ROWS],
    "entries become idle one after the other": [
        *(*TWO, "XREADGROUP GROUP g a COUNT 1 STREAMS s >", "sleep 100"),
        *("XREADGROUP GROUP g a COUNT 1 STREAMS s >", reading(300), "wait b", ROWS),
    ],
    "readers are served in the order in which they blocked": [
        *(*READ, *(reading(200, "BLOCK 0 COUNT 1", consumer=name) for name in ("d", "b", "c"))),
        *("wait d", "wait b", ROWS),
    ],
    "the reader with the shortest time is first": [
        *(*READ, reading(NEVER, consumer="d"), reading(150, consumer="b"), "wait b", ROWS),
    ],
    "a new entry wakes the first reader": [
        *(*READ, reading(NEVER, consumer="d"), reading(NEVER, consumer="b"), "XADD s 3-0 k v"),
        *("wait d", ROWS),
    ],
    "a new entry wakes a reader of an empty stream": [
        *(*EMPTY, reading(0), "XADD s 3-0 k v", "wait b", ROWS)
    ],
    "nothing becomes idle enough before the timeout": [
        *(*READ, reading(NEVER, "BLOCK 120"), "wait b", ROWS)
    ],
    "nothing is pending before the timeout": [*(*EMPTY, reading(0, "BLOCK 120"), "wait b")],
    "an entry that becomes pending later becomes idle": [
        *(*EMPTY, "XADD s 1-0 k v", "XREADGROUP GROUP g a STREAMS s >", "XACK s g 1-0"),
        *(reading(200), "XCLAIM s g a 0 1-0 FORCE JUSTID", "wait b", ROWS),
    ],
    "an entry is made idle by XCLAIM": [
        *(*READ, reading(500), "XCLAIM s g a 0 1-0 IDLE 3000 JUSTID", "wait b", ROWS),
    ],
    "an acknowledged entry wakes nobody": [
        *(*READ, reading(200, "BLOCK 400"), "XACK s g 1-0 2-0", "wait b", ROWS),
    ],
    "a deleted entry wakes nobody": [
        *(*READ, reading(200, "BLOCK 400"), "XDEL s 1-0 2-0", "wait b", ROWS),
    ],
    "an entry that another claims starts again": [
        *(*READ, reading(300), "sleep 150", "XCLAIM s g c 0 1-0 2-0 JUSTID", "wait b", ROWS),
    ],
    "UNBLOCK with TIMEOUT": [*(*READ, reading(NEVER), "unblock b TIMEOUT", "wait b", ROWS)],
    "UNBLOCK with ERROR": [*(*READ, reading(NEVER), "unblock b ERROR", "wait b", ROWS)],
    "the key is deleted": [*(*READ, reading(NEVER), "DEL s", "wait b")],
    "the key is unlinked before the entry is idle": [
        *(*READ, reading(300), "UNLINK s", "wait b"),
    ],
    "the group is destroyed": [*(*READ, reading(NEVER), "XGROUP DESTROY s g", "wait b")],
    "the key becomes a string": [*(*READ, reading(NEVER), "SET s x", "wait b")],
    "the key is renamed": [*(*READ, reading(NEVER), "RENAME s t", "wait b")],
    "the database is emptied": [*(*READ, reading(NEVER), "FLUSHALL", "wait b")],
    "the databases are swapped": [*(*READ, reading(NEVER), "SWAPDB 0 1", "wait b")],
    "the key expires": [*(*READ, reading(NEVER), "PEXPIRE s 100", "wait b")],
    "another stream takes the place": [
        *(*READ, "COPY s t", "XADD t 5-0 k v", reading(NEVER), "RENAME t s", "wait b", ROWS),
    ],
    "the second stream has the idle entry": [
        *(*EMPTY, "XADD t 1-0 k v", "XGROUP CREATE t g 0", "XREADGROUP GROUP g a STREAMS t >"),
        *(reading(150, streams="s t > >"), "wait b"),
    ],
    "NOACK while nothing is new": [*(*READ, reading(150, "BLOCK 0 NOACK"), "wait b", ROWS)],
    "the consumer that has the entries is deleted": [
        *(*READ, reading(200, "BLOCK 400"), "XGROUP DELCONSUMER s g a", "wait b", ROWS),
    ],
    "the reader itself is deleted": [
        *(*READ, reading(200), "XGROUP DELCONSUMER s g b", "wait b", ROWS),
    ],
    "the group is set back": [
        *(*READ, reading(NEVER), "XGROUP SETID s g 0", "XADD s 3-0 k v", "wait b", ROWS),
    ],
    "a time that is too long to end": [
        *(*READ, reading(2**63 - 1, "BLOCK 100"), "wait b", ROWS),
    ],
}  # fmt: skip


class Side:
    """One server, and what its clients have received."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.main = RawRedis(port)
        self.readers: dict[str, RawRedis] = {}
        self.ids: dict[str, int] = {}
        self.said: list[Any] = []

    def close(self) -> None:
        for connection in (self.main, *self.readers.values()):
            connection.__exit__()

    def play(self, lines: list[str]) -> list[Any]:
        self.main.ask([[b"FLUSHALL"]])
        for line in lines:
            self.step(line)
        links = [link.socket for link in self.readers.values()]
        ready, _, _ = select.select(links, [], [], 0)
        assert not ready, "somebody else was served"
        return self.said

    def step(self, line: str) -> None:
        name, colon, command = line.partition(": ")
        first, *words = line.split()
        if colon:
            self.block(name, command)
        elif first == "sleep":
            time.sleep(int(words[0]) / 1000)
        elif first == "wait":
            began = time.monotonic()
            with self.readers.pop(words[0]) as reader:
                self.said.append((line, without_idle(reader.read())))
            assert time.monotonic() - began < LATE_MS / 1000, line
        elif first == "unblock":
            unblock = [b"CLIENT", b"UNBLOCK", b"%d" % self.ids[words[0]], words[1].encode()]
            self.said.append((line, self.main.ask([unblock])))
        else:
            self.said.append((line, without_idle(self.main.ask([line.encode().split()]))))

    def block(self, name: str, command: str) -> None:
        reader = self.readers[name] = RawRedis(self._port)
        [self.ids[name]] = reader.ask([[b"CLIENT", b"ID"]])
        reader.send([command.encode().split()])
        wanted = b"blocked_clients:%d\r" % len(self.readers)
        deadline = time.monotonic() + PARK_SECONDS_MAX
        while wanted not in self.main.ask([[b"INFO", b"clients"]])[0]:
            if select.select([reader.socket], [], [], 0)[0]:
                return  # it had to wait so briefly that it has its reply
            assert time.monotonic() < deadline


def without_idle(reply: Any) -> Any:
    """A reply without idle times: the third of four items."""
    if isinstance(reply, list):
        if len(reply) == 4 and isinstance(reply[2], int):
            return [*reply[:2], "idle", reply[3]]
        return [without_idle(item) for item in reply]
    return reply


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """The ports of Redis and penstock."""
    REDIS_8_6.need()
    with running_redis(program=REDIS_8_6) as theirs, running_penstock() as ours:
        yield theirs.port, ours.port


@pytest.mark.parametrize("name", SCENES)
def test_blocked_claims_are_served_as_in_redis(ports: tuple[int, int], name: str) -> None:
    said = []
    for port in ports:
        side = Side(port)
        try:
            said.append(side.play(SCENES[name]))
        finally:
            side.close()
    theirs, ours = said
    assert ours == theirs
