"""Sends the same random stream commands to our engine and to a real Redis. Compares replies, events, data.

TIME before and after each command shows when Redis ran it; our clock is set to the earlier time. So all times
in replies may differ by at most twice the longest gap.

A round ends early if XSETID goes below a tombstone, which only Redis 7.0 allows (docs/compatibility.md).

A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from penstock.core.check import check_stream
from penstock.core.stream import Stream
from penstock.engine.waiters import Blocked
from penstock.reply import NULL_ARRAY
from tests.support.campaign import cases_per_level, levels, seed
from tests.support.engine.engines import STRING_KEY, Bench
from tests.support.engine.keyspace_events import (
    COUNT_CHANGES,
    MARK,
    SWITCH_ON,
    RedisEvents,
    changes_of,
)
from tests.support.random.stream_commands import HOUR_MS, STREAM_KEYS, Words, World
from tests.support.servers.raw_redis import RawRedis, Refusal

ROUND_COMMANDS = 250
BATCH_COMMANDS = 25
SHOWN_COMMANDS = 20
ENTRIES_ADDED_TOO_SMALL = Refusal(
    "ERR The entries_added specified in XSETID is smaller than the target stream length"
)
GAP_MS_MAX = HOUR_MS // 8  # with a longer gap, an idle limit could decide differently
TIME = [b"TIME"]
IsTime = Callable[[int, list[Any]], bool]


@pytest.mark.parametrize("level", levels("8.0", "8.2", "8.6"))
def test_random_commands_do_the_same_as_in_redis(port: int, level: str) -> None:
    start = seed()
    with RawRedis(port) as redis, RedisEvents(port) as listener:
        redis.ask([SWITCH_ON])
        for n in range(max(1, cases_per_level(200_000) // ROUND_COMMANDS)):
            Round(redis, listener, f"{start}/{n}", level).play()


class Round:
    """Two empty servers, and one world of commands for both."""

    def __init__(self, redis: RawRedis, listener: RedisEvents, name: str, level: str) -> None:
        self.redis = redis
        self.listener = listener
        self.world = World(random.Random(name), level)
        self.name = name
        self.bench = Bench(level)
        self.bench.engine.limits.bytes_max = self.world.bytes_max
        self.bench.engine.limits.entries_max = self.world.entries_max
        self.our_events = self.bench.listen()
        self.gap_ms = 0
        self.has_parted = False
        self.sent: list[Words] = []
        settings = [b"stream-node-max-bytes", b"%d" % self.world.bytes_max]
        settings += [b"stream-node-max-entries", b"%d" % self.world.entries_max]
        redis.ask([[b"FLUSHALL"], [b"SET", STRING_KEY, b"x"], [b"CONFIG", b"SET", *settings]])
        [changes, _] = redis.ask([COUNT_CHANGES, MARK])
        self.changes = changes_of(changes)
        listener.until_mark()

    def play(self) -> None:
        for _ in range(ROUND_COMMANDS // BATCH_COMMANDS):
            commands = [self.world.command() for _ in range(BATCH_COMMANDS)]
            self.compare(commands + [words for key in STREAM_KEYS for words in questions(key)])
            if self.has_parted:
                return
            for value in self.bench.engine.context.keyspace.values.values():
                if isinstance(value, Stream):
                    check_stream(value)

    def compare(self, commands: list[Words]) -> None:
        asked = [words for command in commands for words in (TIME, command, COUNT_CHANGES, MARK)]
        replies = self.redis.ask([*asked, TIME])
        times = [int(second) * 1000 + int(micro) // 1000 for second, micro in replies[::4]]
        for n, words in enumerate(commands):
            self.sent.append(words)
            _, theirs, changes, _ = replies[4 * n : 4 * n + 4]
            self.gap_ms = max(self.gap_ms, times[n + 1] - times[n])
            assert self.gap_ms < GAP_MS_MAX
            self.bench.clock.at_ms = self.time_of(words, theirs, times[n])
            dirty = self.bench.engine.context.dirty
            ours = self.ours(words)
            events = self.listener.until_mark()
            if self.parts(words, ours, theirs):
                self.has_parted = True
                for _ in commands[n + 1 :]:
                    self.listener.until_mark()
                return
            found = self.difference(words, ours, theirs)
            found = found or _unless_equal("events", self.our_events.take(), events)
            change = changes_of(changes) - self.changes
            dirty = self.bench.engine.context.dirty - dirty
            if not removes_orphans(words, ours):
                found = found or _unless_equal("changes", dirty, change)
            if found is not None:
                raise AssertionError(self.story(found))
            self.changes += change

    def parts(self, words: Words, ours: Any, theirs: Any) -> bool:
        """Whether Redis accepted an id below a tombstone or a MAXDELETEDID, which we refuse.

        Redis may still refuse the command because of its ENTRIESADDED, which it checks after the id.
        """
        below = isinstance(ours, Refusal) and "in XSETID is smaller than" in ours.line
        accepted = theirs in ("OK", ENTRIES_ADDED_TOO_SMALL)
        return below and accepted and words[0].upper() == b"XSETID"

    def ours(self, words: Words) -> Any:
        reply = self.bench.run(*words)
        return NULL_ARRAY if isinstance(reply, Blocked) else reply  # a blocked reader times out

    def time_of(self, words: Words, theirs: Any, before_ms: int) -> int:
        """When a command ran. A generated id shows it exactly, unless the stream is ahead of the clock."""
        if words[0].upper() == b"XADD" and b"*" in words and isinstance(theirs, bytes):
            shown_ms = int(theirs.split(b"-")[0])
            if before_ms <= shown_ms < before_ms + GAP_MS_MAX:
                return shown_ms
        return before_ms

    def difference(self, words: Words, ours: Any, theirs: Any) -> str | None:
        """The difference between two replies to a command, or None."""
        question = b" ".join(words[:2]).upper()
        if question.startswith(b"XPENDING"):
            return self._difference(ours, theirs, _is_time_of_pending)
        if question.startswith(b"XREADGROUP") and b"CLAIM" in [word.upper() for word in words]:
            return self._difference(by_id(ours), by_id(theirs), _is_time_of_pending)
        if question.startswith(b"XINFO"):
            return self._difference(ours, theirs, _is_time_of_info)
        return self._difference(ours, theirs, _is_no_time)

    def _difference(self, ours: Any, theirs: Any, is_time: IsTime) -> str | None:
        if type(ours) is not type(theirs):
            return f": ours {ours!r}, theirs {theirs!r}"
        if not isinstance(ours, list):
            return None if ours == theirs else f": ours {ours!r}, theirs {theirs!r}"
        for at, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            found = self._difference(one, other, is_time)
            if found is None or (
                isinstance(one, int) and self._may_differ(at, ours, theirs, is_time)
            ):
                continue
            return f" {theirs[at - 1]!r}{found}" if at % 2 else f"[{at}]{found}"
        return None if len(ours) == len(theirs) else f": ours {ours!r}, theirs {theirs!r}"

    def _may_differ(self, at: int, ours: list[Any], theirs: list[Any], is_time: IsTime) -> bool:
        before = theirs[at - 1] if at else None
        if before in (b"radix-tree-keys", b"radix-tree-nodes"):
            return self.world.nodes_differ
        if before == b"pids-tracked":  # a refused XADD leaves its producer in Redis
            return bool(ours[at] < theirs[at])
        return is_time(at, theirs) and abs(ours[at] - theirs[at]) <= 2 * self.gap_ms

    def story(self, found: str) -> str:
        last = "\n".join(f"  {words}" for words in self.sent[-SHOWN_COMMANDS:])
        limits = f"{self.world.bytes_max} bytes, {self.world.entries_max} entries a node"
        return (
            f"seed {self.name} ({limits}), command {len(self.sent)}:\n  {self.sent[-1]}\n"
            f"differs at {found}\nafter\n{last}"
        )


def removes_orphans(words: Words, ours: Any) -> bool:
    """Whether a command may have removed records of entries that are gone.

    Redis 8.6 does that too, but does not count it as a change and does not log it (its pull request 15569).
    """
    upper = [word.upper() for word in words]
    return upper[0] == b"XDELEX" and b"DELREF" in upper and isinstance(ours, list)


def by_id(reply: Any) -> Any:
    """The reply to a read with CLAIM, its entries sorted by id: their order depends on milliseconds."""
    if not isinstance(reply, list):
        return reply
    if reply[:1] == ["%"]:  # a map, made flat
        return [sorted(item) if isinstance(item, list) else item for item in reply]
    return [[key, sorted(entries)] for key, entries in reply]


def _unless_equal(what: str, ours: object, theirs: object) -> str | None:
    return None if ours == theirs else f" {what}: ours {ours!r}, theirs {theirs!r}"


def _is_time_of_pending(at: int, _row: list[Any]) -> bool:
    return at == 2  # id, consumer, idle, count


def _is_time_of_info(at: int, row: list[Any]) -> bool:
    """The idle or seen time of a consumer, or the time of a pending entry: (id, [consumer,] time, count)."""
    if at and row[at - 1] in (b"idle", b"inactive", b"seen-time", b"active-time"):
        return True
    return len(row) in (3, 4) and at == len(row) - 2


def _is_no_time(_at: int, _row: list[Any]) -> bool:
    return False


def questions(key: bytes) -> list[Words]:
    """Commands whose replies show all data of a stream."""
    return [
        [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"],
        [b"XINFO", b"STREAM", key],
        [b"XINFO", b"GROUPS", key],
        [b"XREVRANGE", key, b"+", b"-"],
        [b"XPENDING", key, b"g", b"-", b"+", b"1000"],
        [b"XPENDING", key, b"g"],
        [b"XINFO", b"CONSUMERS", key, b"g"],
    ]
