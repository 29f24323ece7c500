"""Sends the same random list commands to our engine and to a real Redis.

Compares, for each command, the reply, the keyspace events in their order, the number of changes and whether a
watch was broken. Every few commands it compares all elements, and all nodes byte for byte.

A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import random
from typing import Any

from penstock.core.check import check_list
from penstock.core.list_value import ListValue
from penstock.engine.keyspace import Watch
from penstock.engine.waiters import Blocked
from tests.support.campaign import cases, seed
from tests.support.engine.engines import STRING_KEY, Bench
from tests.support.engine.keyspace_events import COUNT_CHANGES, EventRecorder, changes_of
from tests.support.random.list_commands import LIST_KEYS, ListWorld
from tests.support.random.stream_commands import Words
from tests.support.rdb.dump_payloads import list_nodes
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer

ROUND_COMMANDS = 250
BATCH_COMMANDS = 25
SHOWN_COMMANDS = 20
KINDS = "KEAnm"
MARK = b"between two commands"


def test_random_list_commands_do_the_same_as_in_redis(redis_server: RedisServer) -> None:
    start = seed()
    with RawRedis(redis_server.port) as redis, RawRedis(redis_server.port) as subscriber:
        redis.ask([[b"CONFIG", b"SET", b"notify-keyspace-events", KINDS.encode()]])
        redis.ask([[b"CONFIG", b"SET", b"rdbcompression", b"no"]])
        subscriber.ask([[b"PSUBSCRIBE", b"__key*__:*", MARK]])
        subscriber.read()
        for n in range(max(1, cases(50_000) // ROUND_COMMANDS)):
            Round(redis, subscriber, f"{start}/{n}").play()


class Round:
    """Two empty servers, and one world of commands for both."""

    def __init__(self, redis: RawRedis, subscriber: RawRedis, name: str) -> None:
        self.redis = redis
        self.subscriber = subscriber
        self.name = name
        self.world = ListWorld(random.Random(name))
        self.bench = Bench("7.0")
        self.sent: list[Words] = []
        self.events = EventRecorder(self.bench.engine, KINDS)
        self.bench.engine.context.watching = 1
        self.bench.engine.list_limits.set_listpack_size(self.world.listpack_size)
        size = [b"list-max-listpack-size", b"%d" % self.world.listpack_size]
        redis.ask([[b"FLUSHALL"], [b"SET", STRING_KEY, b"x"], [b"CONFIG", b"SET", *size]])
        redis.ask([[b"PUBLISH", MARK, b""]])
        self.their_events()
        self.changes = changes_of(redis.ask([COUNT_CHANGES])[0])

    def play(self) -> None:
        for _ in range(ROUND_COMMANDS // BATCH_COMMANDS):
            for _ in range(BATCH_COMMANDS):
                self.compare(self.world.command())
            for key in LIST_KEYS:
                self.compare([b"LRANGE", key, b"0", b"-1"])
                self.compare_nodes(key)

    def compare(self, words: Words) -> None:
        self.sent.append(words)
        watched = self.world.dice.choice(LIST_KEYS)
        # The commands of a client break its own watches.
        asked = [[b"WATCH", watched], words, [b"MULTI"], [b"EXEC"]]
        asked += [COUNT_CHANGES, [b"PUBLISH", MARK, b""]]
        _, reply, _, done, info, _ = self.redis.ask(asked)
        changes = changes_of(info)
        theirs = (reply, self.their_events(), changes - self.changes, done != [])
        self.changes = changes
        ours = self.ours(words, watched)
        if repr(ours) != repr(theirs):
            raise AssertionError(self.story(f"ours   {ours}\ntheirs {theirs}"))

    def ours(self, words: Words, watched: bytes) -> tuple[Any, ...]:
        context = self.bench.engine.context
        watch = Watch()
        context.keyspace.watch(watched, watch)
        before = context.dirty
        reply = self.bench.run(*words)
        context.keyspace.unwatch(watched, watch)
        if isinstance(reply, Blocked):
            reply = reply.on_timeout  # a blocked client times out
        return reply, self.events.take_messages(), context.dirty - before, watch.broken

    def compare_nodes(self, key: bytes) -> None:
        value = self.bench.engine.context.keyspace.find(key)
        payload, _ = self.redis.ask([[b"DUMP", key], [b"PUBLISH", MARK, b""]])
        self.their_events()  # DUMP of a missing key causes a keymiss event
        if value is None:
            assert payload is None, self.story(f"only they have {key!r}")
            return
        assert isinstance(value, ListValue)
        check_list(value, self.bench.engine.list_limits, edited=True)
        if list(map(bytes, value.nodes())) != list_nodes(payload):
            raise AssertionError(self.story(f"the nodes of {key!r} differ"))

    def their_events(self) -> list[tuple[bytes, bytes]]:
        """The events of Redis before the next mark."""
        found: list[tuple[bytes, bytes]] = []
        while True:
            _, _, channel, text = self.subscriber.read()
            if channel == MARK:
                return found
            found.append((channel, text))

    def story(self, found: str) -> str:
        last = "\n".join(f"  {words}" for words in self.sent[-SHOWN_COMMANDS:])
        return (
            f"seed {self.name} (list-max-listpack-size {self.world.listpack_size}),"
            f" command {len(self.sent)}:\n  {self.sent[-1]}\n{found}\nafter\n{last}"
        )
