"""Clients that wait for lists on a real Redis and on our engine are served by the same command, alike.

The set-up is that of test_blocking. If one command fills several lists, a client that waits for more than one
of them may be served from another one than with 7.0 (see the docstring of engine/commands/list_pops). So
such clients wait for a and b only, no waiting command moves elements to a or b, and a transaction pushes to
one of them only.
"""

from __future__ import annotations

import select

from penstock.errors import CommandError
from tests.differential.replies.test_blocking import READERS, STEPS, Stage
from tests.support.campaign import cases, seed
from tests.support.engine.engines import STRING_KEY, command_of, plain
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal
from tests.support.servers.redis_server import RedisServer

KEYS = ["a", "b", "c", "d"]
TARGETS = ["c", "d", "c", "d", STRING_KEY.decode()]
ENDS = ["LEFT", "RIGHT"]


def test_clients_that_wait_for_lists_are_served_as_in_redis(redis_server: RedisServer) -> None:
    start = seed()
    for n in range(cases(200)):
        stage = ListStage(redis_server.port, f"{start}/{n}")
        try:
            stage.play()
        finally:
            stage.close()


class ListStage(Stage):
    """Lists, and the clients that wait for them."""

    def play(self) -> None:
        self.main.ask([[b"SET", STRING_KEY, b"x"]])
        for _ in range(STEPS):
            free = [n for n in range(READERS) if n not in self.parked]
            kind = self.dice.random()
            if free and kind < 0.5:
                self.block(self.dice.choice(free))
            elif kind < 0.85:
                self.run(self.command())
            elif kind < 0.95:
                pushed = self.dice.choice(["a", "b"])
                self.run_together([self.pushing(pushed), *self.others(pushed)])
            else:
                self.replace(self.dice.choice(KEYS))
        for key in KEYS:
            self.run(f"LRANGE {key} 0 -1")

    def command(self) -> str:
        key, other = self.dice.choice(KEYS), self.dice.choice(KEYS)
        first, second = self.dice.choice(ENDS), self.dice.choice(ENDS)
        return self.dice.choice(
            [
                *[self.pushing(key)] * 6,
                f"LPUSHX {key} x",
                f"LPOP {key}",
                f"RPOP {key} 2",
                f"LTRIM {key} 1 -1",
                f"LMOVE {key} {other} {first} {second}",
                f"RPOPLPUSH {key} {other}",
                f"LMPOP 2 {key} {other} {first} COUNT 2",
                f"LINSERT {key} BEFORE {self.last}:0 x",
                f"LSET {key} -1 y",
            ]
        )

    def pushing(self, key: str) -> str:
        self.last += 1
        many = [f"{self.last}:{n}" for n in range(self.dice.choice([1, 1, 2, 3, 7]))]
        return f"{self.dice.choice(['LPUSH', 'RPUSH'])} {key} {' '.join(many)}"

    def others(self, pushed: str) -> list[str]:
        """Commands that may follow a push in a transaction, without another push to a or b."""
        possible = [f"LPOP {pushed}", f"RPOP {pushed} 9", self.pushing("c"), self.pushing("d")]
        possible += [f"LMOVE {pushed} {pushed} LEFT RIGHT", f"RPOPLPUSH {pushed} c"]
        possible += [self.pushing(pushed), f"BLPOP {pushed} 0", "BLMOVE c d LEFT LEFT 0"]
        possible += [f"BLMPOP 0 2 {pushed} c LEFT COUNT 2", f"LSET {pushed} 0 y"]
        return self.dice.sample(possible, self.dice.randrange(4))

    def reading(self, reader: int) -> str:
        first, second = self.dice.choice(ENDS), self.dice.choice(ENDS)
        key, target = self.dice.choice(KEYS), self.dice.choice(TARGETS)
        kind = self.dice.random()
        if kind < 0.3:
            return f"BLMOVE {key} {target} {first} {second} 0"
        if kind < 0.4:
            return f"BRPOPLPUSH {key} {target} 0"
        keys = self.dice.choice(["a", "b", "c", "d", "a b", "b a", "a b a"])
        if kind < 0.65:
            count = self.dice.choice(["", "COUNT 1", "COUNT 2", "COUNT 9"])
            return f"BLMPOP 0 {len(keys.split())} {keys} {first} {count}"
        return f"{self.dice.choice(['BLPOP', 'BRPOP'])} {keys} 0"

    def block(self, n: int) -> None:
        """Like for streams. A move that does not block may serve other clients."""
        super().block(n)
        self.main.ask([[b"PING"]])
        self.compare_woken()

    def run_together(self, lines: list[str]) -> None:
        """Run commands as a transaction."""
        self.said.append(f"transaction: {'; '.join(lines)}")
        words = [line.encode().split() for line in lines]
        theirs = self.main.ask([[b"MULTI"], *words, [b"EXEC"], [b"PING"]])[-2]
        ours = []
        engine = self.bench.engine
        engine.context.instant.advance()
        engine.context.may_block = False
        for line in lines:
            command, pieces = command_of(line.split())
            try:
                ours.append(plain(engine.run(command, frame_of(*pieces))))
            except CommandError as error:
                ours.append(Refusal(error.wire_text))
        engine.context.may_block = True
        engine.serve_waiters()
        self.compare(ours, theirs)
        self.compare_woken()

    def replace(self, key: str) -> None:
        """Store a string under a key for a moment. Clients that wait for the key keep waiting."""
        self.said.append(f"{key} is a string, then gone")
        name = key.encode()
        self.main.ask([[b"SET", name, b"x"], [b"DEL", name], [b"PING"]])
        context = self.bench.engine.context
        context.keyspace.put(name, b"x")
        context.touch(name)
        self.bench.engine.serve_waiters()
        context.keyspace.remove(name)
        self.compare_woken()

    def compare_woken(self) -> None:
        ready, _, _ = select.select([end.socket for end in self.ends], [], [], 0)
        theirs = {n: self.ends[n].read() for n in self.parked if self.ends[n].socket in ready}
        ours = {n: reader.got for n, reader in self.parked.items() if reader.woken}
        self.compare(ours, theirs)
        self.parked = {n: reader for n, reader in self.parked.items() if n not in ours}
