"""One long recorded session on a server without sockets: replies, log bytes and snapshot bytes.

    python -m tests.support.servers.recorded_session FILE

writes to FILE what the penstock on the path does with a fixed sequence of commands: first the build, then for
each command the bytes that every client receives (RESP2 and RESP3) and the bytes that the journal of the
append-only file gets. Every SNAPSHOT_STEPS commands all data follows as RDB bytes, in each version that can
be written. The clock and the seed are fixed, so two builds that agree write the same file except for the
first line (see tests/test_builds_agree.py).

The commands come from EffectWorld: streams, groups, claims, strings, lists, expiry, blocking reads. This
module adds transactions, WATCH, DUMP and RESTORE, connections that break, and time that passes.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.build import KIND
from penstock.engine import events
from penstock.engine.execute import TABLE
from penstock.persist.aof.journal import Journal
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.writer import VERSION_MIN, RdbWriter, aux_fields, write_databases
from penstock.server.session.states import BLOCKED
from tests.support.engine.keyspace_events import EVENT_KINDS
from tests.support.random.effects import STEPS_MS, EffectWorld, shown_words
from tests.support.random.key_commands import ALL_KEYS
from tests.support.random.list_commands import LIST_KEYS
from tests.support.random.stream_commands import STREAM_KEYS, Words
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import encode

SEED = "retention"
ROUNDS = 14
STEPS = 500
SNAPSHOT_STEPS = 125
VERSIONS = ["8.10", "8.10", "8.6", "7.2", "7.0"]
CLIENTS_OF_PROTOCOL = [b"2", b"2", b"3", b"3"]
# Commands that EffectWorld does not send, or sends rarely.
EXTRA: list[Words] = [
    *([b"RANDOMKEY"], [b"FLUSHDB"], [b"FLUSHALL"], [b"UNWATCH"], [b"PUBLISH", b"news", b"sun"]),
    *([b"OBJECT", word, b"a"] for word in (b"ENCODING", b"FREQ", b"IDLETIME", b"REFCOUNT")),
    *([word, b"HELP"] for word in (b"OBJECT", b"PENSTOCK", b"XGROUP", b"XINFO")),
    *([b"PENSTOCK", b"NODES", b"s", b"-", b"+"], [b"PENSTOCK", b"SPLITS", b"s", b"-", b"+", b"3"]),
    *(
        [b"PENSTOCK", *line.split()]
        for line in (
            b"TAKE 3 s s:dead s:delayed g c 1000 2 5 ANY",
            b"ADOPT 3 s s:dead s:owner g c 1000 2 - 5",
            b"RENEW 1 s g c 1000",
            b"SETTLE 2 s s:dead g c",
            b"SEND 1 s 1 0 0 0 0 1 data x",
            b"OWN 1 s:owner c 1000",
            b"REAP 1 s g 0",
            b"GROUPS s",
            b"RETENTION s length 1 acked yes",
        )
    ),
    *([b"DEBUG", b"DIGEST"], [b"TIME"], [b"PING"], [b"CLIENT", b"LIST"], [b"COMMAND", b"DOCS"]),
]


class RecordedSession:
    """One server, four clients and one subscriber. The name decides everything that happens."""

    def __init__(self, name: str) -> None:
        self.dice = random.Random(name)
        version = self.dice.choice(VERSIONS)
        self.world = EffectWorld(self.dice, version)
        self.bench = ServerBench(version)
        self.journal = Journal()
        engine = self.bench.engine
        engine.context.effects = self.journal
        engine.context.event_kinds = events.parse_kinds_or_none(EVENT_KINDS) or 0
        engine.limits.bytes_max = self.world.bytes_max
        engine.limits.entries_max = self.world.entries_max
        engine.list_limits.set_listpack_size(self.world.listpack_size)
        self.clients = [self._connect(protocol) for protocol in CLIENTS_OF_PROTOCOL]
        self.subscriber = self._connect(b"3")
        self.subscriber.run(b"PSUBSCRIBE", b"*")
        self.dumped = b""

    def _connect(self, protocol: bytes) -> ManualClient:
        client = self.bench.connect()
        client.run(b"HELLO", protocol)
        return client

    def lines(self, steps: int) -> Iterator[str]:
        """Run the session. Yields a line for each command, reply, batch of effects and snapshot."""
        for n in range(steps):
            self._pass_time()
            place = self.dice.randrange(len(self.clients))
            client = self.clients[place]
            if client.session.state & BLOCKED:
                yield f"{self.bench.clock.at_ms} {place} breaks off"
                client.vanish()
                self.clients[place] = self._connect(CLIENTS_OF_PROTOCOL[place])
            else:
                yield from self._run(place, self._command(client))
            yield from self._results()
            if n % SNAPSHOT_STEPS == SNAPSHOT_STEPS - 1:
                yield from self._snapshots()
        for place in (0, len(self.clients) - 1):
            self.clients[place] = self._connect(CLIENTS_OF_PROTOCOL[place])
            for words in self._questions():
                yield from self._run(place, words)
                yield from self._results()

    def _pass_time(self) -> None:
        ms = self.dice.choice(STEPS_MS)
        if ms < 0:
            self.bench.clock.step(ms)
        else:
            self.bench.advance(ms)
        if self.dice.random() < 0.02:
            self.bench.engine.expire_due(2)

    def _command(self, client: ManualClient) -> Words:
        if client.session.transaction is not None and self.dice.random() < 0.25:
            return [b"DISCARD"] if self.dice.random() < 0.1 else [b"EXEC"]
        roll = self.dice.random()
        if roll < 0.03:
            return [b"MULTI"]
        if roll < 0.05:
            return [b"WATCH", self.world.key(), self.world.key()]
        if roll < 0.07:
            return [b"DUMP", self.world.key()]
        if roll < 0.08:
            return [b"RESTORE", self.world.key(), b"0", self.dumped, b"REPLACE"]
        return self.dice.choice(EXTRA) if roll < 0.10 else self.world.command()

    def _run(self, place: int, words: Words) -> Iterator[str]:
        yield f"{self.bench.clock.at_ms} {place} {shown_words(words)}"
        client = self.clients[place]
        client.put(encode(words))
        self.bench.loop.run()
        received = bytes(client.transport.taken)
        if words[0].upper() == b"XADD" and received[:1] == b"$" and received[:2] != b"$-":
            self.world.known.append(received.split(b"\r\n")[1])
        if words[0] == b"DUMP" and received.startswith(b"$") and len(received) > 5:
            self.dumped = received.partition(b"\r\n")[2][:-2]

    def _results(self) -> Iterator[str]:
        """The bytes that each client received, and the bytes of the journal."""
        for place, client in enumerate([*self.clients, self.subscriber]):
            received = client.heard()
            if received:
                yield f"  {place} <- {received!r}"
        effects = self.journal.take()
        if effects:
            yield f"  log {effects!r}"

    def _snapshots(self) -> Iterator[str]:
        engine = self.bench.engine
        for version in range(VERSION_MIN, rdb_format.VERSION_MAX + 1):
            for compress in (True, False):
                written = bytearray()
                writer = RdbWriter(written.extend, version, compress)
                writer.begin(aux_fields("7.0.15", engine.context.now_ms(), 0))
                write_databases(writer, engine.context.databases)
                writer.end()
                yield f"  rdb {version} {written.hex()}"

    def _questions(self) -> list[Words]:
        """Commands whose replies show all data of all databases."""
        asked: list[Words] = []
        for keyspace in self.bench.engine.context.databases:
            asked += [[b"SELECT", b"%d" % keyspace.index], [b"DBSIZE"]]
            for key in [*ALL_KEYS, *LIST_KEYS] if keyspace.values else []:
                asked += [[b"TYPE", key], [b"PEXPIRETIME", key], [b"DUMP", key], [b"GET", key]]
                asked += [[b"LRANGE", key, b"0", b"-1"], [b"XRANGE", key, b"-", b"+"]]
            for key in STREAM_KEYS if keyspace.values else []:
                asked += [[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]]
                asked += [[b"XINFO", b"GROUPS", key], [b"XPENDING", key, b"g"]]
        return asked


def all_lines(rounds: int = ROUNDS) -> Iterator[str]:
    """The lines of all rounds. Each round starts with an empty server."""
    for n in range(rounds):
        yield f"round {n}"
        yield from RecordedSession(f"{SEED}/{n}").lines(STEPS)


def commands_in(lines: list[str]) -> set[str]:
    """The commands of the engine that were sent, by the names of their rows."""
    sent = [line.upper().replace("'", "").split()[2:4] for line in lines if line[0].isdigit()]
    words = {name for pair in sent for name in (pair[0], " ".join(pair))}
    return {name for name in TABLE if name in words}


def main(path: Path) -> None:
    text = "\n".join(all_lines())
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(f"{KIND}\n{digest}\n{text}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
