"""Sends the same random commands for strings, keys and expiry to our engine and to a real Redis.

Like test_random_commands. Compares, for each command, the reply, the keyspace events in their order and the
number of changes. Active expiry is off on both sides: an expired key is removed when a command looks at it.
"""

from __future__ import annotations

import random
from typing import Any

from penstock.core.stream import Stream
from penstock.engine.keyspace import Keyspace
from tests.differential.random.test_random_commands import (
    BATCH_COMMANDS,
    GAP_MS_MAX,
    ROUND_COMMANDS,
    TIME,
    Round,
    questions,
)
from tests.support.campaign import cases, seed
from tests.support.engine.engines import STRING_KEY, Bench
from tests.support.engine.keyspace_events import EventRecorder
from tests.support.random.key_commands import ALL_KEYS, DATABASES, KeyWorld
from tests.support.random.stream_commands import Words
from tests.support.servers.raw_redis import RawRedis

KINDS = "KEAnm"
LONG_AGO_MS = 1_600_000_000_000
INFO = [b"INFO", b"persistence"]
MARK = b"between two commands"
IN_SECONDS = (b"TTL", b"EXPIRETIME")
IN_MS = (b"PTTL", b"PEXPIRETIME")
IN_ANY_ORDER = (b"KEYS", b"SCAN")
# These read streams, which causes keymiss events, or make groups: not tested here.
SILENT = (b"XLEN", b"XREADGROUP", b"XGROUP", b"XACK", b"XINFO", b"XPENDING", b"XREVRANGE")


def test_random_commands_about_keys_do_the_same_as_in_redis(port: int) -> None:
    start = seed()
    with RawRedis(port) as redis, RawRedis(port) as subscriber:
        redis.ask([[b"DEBUG", b"SET-ACTIVE-EXPIRE", b"0"]])
        redis.ask([[b"CONFIG", b"SET", b"notify-keyspace-events", KINDS.encode()]])
        subscriber.ask([[b"PSUBSCRIBE", b"__key*__:*", MARK]])
        subscriber.read()
        for n in range(max(1, cases(100_000) // ROUND_COMMANDS)):
            KeyRound(redis, subscriber, f"{start}/{n}").play()


class KeyRound(Round):
    """Two empty servers, and one world of commands about keys for both."""

    def __init__(self, redis: RawRedis, subscriber: RawRedis, name: str) -> None:
        self.redis = redis
        self.subscriber = subscriber
        self.name = name
        self.world: KeyWorld = KeyWorld(random.Random(name))
        self.bench = Bench("7.0")
        self.bench.engine.context.keyspace.values[STRING_KEY] = b"x"
        self.bench.engine.limits.bytes_max = self.world.bytes_max
        self.bench.engine.limits.entries_max = self.world.entries_max
        self.recorder = EventRecorder(self.bench.engine, KINDS)
        self.gap_ms = 0
        self.sent: list[Words] = []
        settings = [b"stream-node-max-bytes", b"%d" % self.world.bytes_max]
        settings += [b"stream-node-max-entries", b"%d" % self.world.entries_max]
        emptied = [[b"SELECT", b"0"], [b"FLUSHALL"], [b"SET", STRING_KEY, b"x"]]
        asked = [*emptied, [b"CONFIG", b"SET", *settings], [b"PUBLISH", MARK, b""], INFO]
        self.changes = _changes_in(self.redis.ask(asked)[-1])
        self.their_events()

    def play(self) -> None:
        for _ in range(ROUND_COMMANDS // BATCH_COMMANDS):
            self.compare([self.world.command() for _ in range(BATCH_COMMANDS)])
            context = self.bench.engine.context
            selected = context.keyspace.index
            for keyspace in context.databases[:DATABASES]:
                asked = [[b"SELECT", b"%d" % keyspace.index], [b"DBSIZE"], [b"KEYS", b"*"]]
                self.compare(asked + [words for key in ALL_KEYS for words in about(keyspace, key)])
            self.compare([[b"SELECT", b"%d" % selected]])

    def compare(self, commands: list[Words]) -> None:
        asked = [[TIME, words, INFO, [b"PUBLISH", MARK, b""]] for words in commands]
        replies = self.redis.ask([*(words for four in asked for words in four), TIME])
        times = [int(second) * 1000 + int(micro) // 1000 for second, micro in replies[::4]]
        for n, words in enumerate(commands):
            self.gap_ms = max(self.gap_ms, times[n + 1] - times[n])
            assert self.gap_ms < GAP_MS_MAX
            _, theirs, info, _ = replies[4 * n : 4 * n + 4]
            self.bench.clock.at_ms = self.time_of(words, theirs, times[n])
            self.compare_one(words, theirs, _changes_in(info))

    def compare_one(self, words: Words, theirs: Any, changes: int) -> None:
        """Run a command. `theirs` is the reply of Redis, `changes` the number of changes it counted."""
        self.sent.append(words)
        before = self.bench.engine.context.dirty
        found = self.difference(words, self.ours(words), theirs)
        our_messages, their_messages = self.recorder.take_messages(), self.their_events()
        if words[0].upper() in IN_ANY_ORDER:
            our_messages, their_messages = sorted(our_messages), sorted(their_messages)
        # We count the removal of an expired key: it must be saved like any other change.
        over = sum(text == b"expired" for _, text in our_messages)
        counted = self.bench.engine.context.dirty - before - over
        counted_theirs, self.changes = changes - self.changes, changes
        if found is None and words[0].upper() not in SILENT:
            if our_messages != their_messages:
                found = f" its events: ours {our_messages}, theirs {their_messages}"
            elif counted != counted_theirs:
                found = f" its changes: ours {counted}, theirs {counted_theirs}"
        if found is not None:
            raise AssertionError(self.story(found))

    def their_events(self) -> list[tuple[bytes, bytes]]:
        """The events of Redis before the next mark."""
        events: list[tuple[bytes, bytes]] = []
        while True:
            _, _, channel, text = self.subscriber.read()
            if channel == MARK:
                return events
            events.append((channel, text))

    def ours(self, words: Words) -> Any:
        if words[0].upper() == b"SELECT":
            context = self.bench.engine.context
            context.keyspace = context.databases[int(words[1])]
            return "OK"
        return super().ours(words)

    def difference(self, words: Words, ours: Any, theirs: Any) -> str | None:
        name = words[0].upper()
        if name in IN_ANY_ORDER and isinstance(ours, list) and isinstance(theirs, list):
            return super().difference(words, _sorted(ours), _sorted(theirs))
        if name == b"RANDOMKEY" and isinstance(ours, bytes) and isinstance(theirs, bytes):
            return None
        if name in IN_MS + IN_SECONDS and isinstance(ours, int) and isinstance(theirs, int):
            close = 2 * self.gap_ms if name in IN_MS else 2 * self.gap_ms // 1000 + 1
            if ours >= 0 and theirs >= 0 and abs(ours - theirs) <= close:
                return None
        return super().difference(words, ours, theirs)


def about(keyspace: Keyspace, key: bytes) -> list[Words]:
    """Commands whose replies show all data of a key, unless it has expired: they would remove it."""
    if keyspace.expires.get(key, LONG_AGO_MS) < LONG_AGO_MS:
        return []
    asked = [[b"TYPE", key], [b"GET", key], [b"PEXPIRETIME", key]]
    return asked + (questions(key) if isinstance(keyspace.values.get(key), Stream) else [])


def _changes_in(info: bytes) -> int:
    """The number of changes that a server has counted."""
    return int(info.partition(b"rdb_changes_since_last_save:")[2].split(b"\r", 1)[0])


def _sorted(reply: list[Any]) -> list[Any]:
    """A list of keys, or a cursor and a list of keys, with the keys sorted."""
    if len(reply) == 2 and isinstance(reply[1], list):
        return [reply[0], sorted(reply[1])]
    return sorted(reply)
