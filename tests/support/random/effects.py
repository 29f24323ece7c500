"""Random work on an engine whose effects are recorded: all types of keys, time, waiters, units.

Unlike the worlds that are compared with a live Redis, this one has expiry times of a few milliseconds and a
clock that advances between commands, so that expired keys are everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from penstock.engine.waiters import Blocked
from penstock.errors import CommandError
from tests.support.engine.effects import Recorder
from tests.support.engine.engines import LOOKUP, Reader
from tests.support.engine.streams import frame_of
from tests.support.random.key_commands import DATABASES, KeyWorld
from tests.support.random.list_commands import LIST_KEYS, ListWorld
from tests.support.random.stream_commands import (
    GROUPS,
    HOUR_MS,
    PRODUCERS,
    STREAM_KEYS,
    Words,
    World,
)
from tests.support.spark.row_blobs import blob_of

WAITERS_MAX = 6
WEIGHTS = [(95, 2, 3), (95, 2, 3), (60, 20, 20), (5, 85, 10), (20, 20, 60)]  # streams, lists, keys
IDS_KNOWN = 20
UNIT_COMMANDS = [1, 2, 2, 3, 5]
STEPS_MS = [0, 0, 0, 0, 1, 1, 2, 5, 20, HOUR_MS // 2, HOUR_MS, -3]
SHOWN_LINES = 40
STAGING = [b"staged:0", b"staged:1"]
COUNTERS = [0, 5, 100, 2**63 - 3, 2**63 - 2, 2**63 - 1]


class EffectWorld(KeyWorld):
    """Commands of every kind. Each round has mostly commands of one kind.

    The commands of Redis 8 come in with the level. They need not be kept apart as in World.
    """

    def __init__(self, dice: random.Random, level: str = "7.0") -> None:
        super().__init__(dice)
        self.deletes = self.min_ids = True
        self.nodes_differ = False
        self.known: list[bytes] = []  # ids of added entries
        lists = ListWorld(dice)
        self.listpack_size = lists.listpack_size
        # The commands of World, but with the keys and settings of this class.
        streams = [getattr(self, maker.__name__) for maker in World(dice)._makers]
        self._of_streams: list[Callable[[], Words]] = [
            *streams,
            self.xdel,
            *[self.waiting_read] * 5,
            *[self.stage, self.append_batch] * 2,
        ]
        since = tuple(map(int, level.split(".")))
        if since >= (8, 2):
            self.references = [b"KEEPREF", b"DELREF", b"ACKED"]
            self._of_streams += [self.xdelex, self.xackdel] * 3
        self.claims = since >= (8, 4)
        if since >= (8, 6):
            self._of_streams += [*[self.xadd_once] * 12, self.xcfgset, *[self.xidmprecord] * 3]
        if since >= (8, 8):
            self._of_streams += [self.xnack] * 6
        self._kinds = [self._of_streams, [lists.command], self._makers]
        self._weights = dice.choice(WEIGHTS)

    def command(self) -> Words:
        self._makers = self.dice.choices(self._kinds, self._weights)[0]
        return super().command()

    def key(self) -> bytes:
        if self._makers is self._of_streams and self.roll(0.97):
            return self.dice.choices(STREAM_KEYS, [6, 3, 1])[0]
        return self.dice.choice(LIST_KEYS) if self.roll(0.1) else super().key()

    def entry_id(self) -> bytes:
        if self.known and self.roll(0.6):
            return self.dice.choice(self.known[-IDS_KNOWN:])
        return super().entry_id()

    def counter(self, *usual: int) -> bytes:
        return self.number(*usual)

    def ids(self) -> Words:
        return [self.entry_id() for _ in range(self.dice.choice([1, 2, 5, 10, 20]))]

    def group(self) -> bytes:
        return self.dice.choices(GROUPS, [10, 2, 1])[0]

    def xsetid(self) -> Words:
        words = super().xsetid()
        if self.known and self.roll(0.7):
            words[2] = b"%d-7" % int(self.known[-1].split(b"-")[0])
        return words

    def new_id(self) -> bytes:
        return b"*" if self.roll(0.7) else super().new_id()

    def from_now(self, unit: int) -> bytes:
        if self.roll(0.6):
            return b"%d" % self.dice.choice([1, 1, 2, 3, 5, 20])
        return super().from_now(unit) if len(self._hours) > 1 else b"5"

    def waiting_read(self) -> Words:
        words = [b"XREADGROUP", b"GROUP", self.group(), self.consumer(), b"BLOCK", b"0"]
        if self.roll(0.2):
            words.append(b"NOACK")
        if self.roll(0.3):
            words += [b"COUNT", b"1"]
        if self.claims and self.roll(0.4):
            words += [b"CLAIM", self.dice.choice([b"1", b"5", b"1800000", b"%d" % (2**63 - 1)])]
        keys = [self.key() for _ in range(self.dice.choice([1, 1, 2]))]
        return [*words, b"STREAMS", *keys, *[b">"] * len(keys)]

    def xreadgroup(self) -> Words:
        words = super().xreadgroup()
        if self._level >= (8, 10) and self.roll(0.4):
            words[1:1] = self.dice.choice(
                [
                    [b"MAXCOUNT", self.number(10, 20, 100)],
                    [b"MAXSIZE", self.number(1, 10, 100, 1000)],
                ]
            )
        return words

    def stage(self) -> Words:
        rows = [
            [b"k", b"%d" % n] * self.dice.choice([1, 1, 2])
            for n in range(self.dice.choice([0, 1, 5]))
        ]
        return [b"RPUSH", self.dice.choice(STAGING), blob_of(*rows)]

    def reference(self) -> Words:
        """Any of them: these worlds are not compared with Redis."""
        return [self.dice.choice(self.references)] if self.references and self.roll(0.5) else []

    def xidmprecord(self) -> Words:
        name = b"%d" % self.dice.randrange(10**9)  # not used before: see test_a_name_recorded_again
        return [b"XIDMPRECORD", self.key(), self.dice.choice(PRODUCERS), name, self.entry_id()]

    def xnack(self) -> Words:
        ids = self.ids()
        mode = self.dice.choice([b"SILENT", b"FAIL", b"FATAL"])
        words = [b"XNACK", self.key(), self.group(), mode, b"IDS", b"%d" % len(ids), *ids]
        if self.roll(0.3):
            words += [b"RETRYCOUNT", self.counter(0, 1, 7, 2**63 - 1)]
        return [*words, b"FORCE"] if self.roll(0.3) else words

    def append_batch(self) -> Words:
        keys = [b"record", self.key(), *self.dice.sample(STAGING, self.dice.choice([1, 1, 2]))]
        words = [
            b"PENSTOCK",
            b"APPENDBATCH",
            b"%d" % self.dice.randrange(1000),
            b"%d" % len(keys),
            *keys,
        ]
        if self.roll(0.4):
            words += [
                b"MAXLEN",
                self.dice.choice([b"=", b"~"]),
                self.dice.choice([b"0", b"3", b"20"]),
            ]
        return words


class LimitWorld(EffectWorld):
    """Sets counters close to their maximum, and lets commands count on from there."""

    def __init__(self, dice: random.Random, level: str = "7.0") -> None:
        super().__init__(dice, level)
        self.limits = dice.choice([0.05, 0.2, 0.5])
        self._of_streams += [self.xsetid, self.xgroup_setid, self.xclaim] * 4
        self._weights = dice.choice([(97, 1, 2), (97, 1, 2), (40, 20, 40)])

    def xsetid(self) -> Words:
        words = super().xsetid()
        if b"ENTRIESADDED" not in words:
            words += [b"ENTRIESADDED", self.counter(*COUNTERS)]
        return words

    def _entries_read(self) -> Words:
        return [b"ENTRIESREAD", self.counter(*COUNTERS)] if self.roll(0.5) else []


class Work:
    """Runs the commands of a world on a recorder."""

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        world: type[EffectWorld] = EffectWorld,
        level: str = "7.0",
    ) -> None:
        self.recorder = recorder
        self.dice = random.Random(name)
        self.world = world(self.dice, level)
        self.done: list[str] = []
        self._waiting: list[Reader] = []
        engine = recorder.engine
        engine.limits.bytes_max = self.world.bytes_max
        engine.limits.entries_max = self.world.entries_max
        engine.list_limits.set_listpack_size(self.world.listpack_size)

    def step(self) -> None:
        """Advance the clock, then run a command or a unit, or remove expired keys."""
        self.recorder.clock.at_ms += self.dice.choice(STEPS_MS)
        roll = self.dice.random()
        if roll < 0.02:
            self.done.append("sweep")
            self.recorder.engine.expire_due(self.dice.choice([1, 2, 100]))
        elif roll < 0.05:
            self._run_unit()
        elif roll < 0.08:
            self._retry()
        else:
            self._run(self.world.command())

    def _run(self, words: Words, in_unit: bool = False) -> None:
        self.done.append(f"{self.recorder.clock.at_ms} {shown_words(words)}")
        engine = self.recorder.engine
        if words[0].upper() == b"SELECT":
            self.recorder.select(int(words[1]) % DATABASES)
            return
        try:
            frame = frame_of(*words)
            command = LOOKUP.find(frame)
            if in_unit:
                if command.takes(frame.count):
                    engine.run(command, frame)
                return
            reply = engine.execute(command, frame)
        except CommandError:
            return
        if words[0].upper() == b"XADD" and isinstance(reply, bytes):
            self.world.known.append(reply)
        if isinstance(reply, Blocked):
            self._park(Reader(command, reply, engine.context.keyspace))

    def _park(self, reader: Reader) -> None:
        self._waiting = [other for other in self._waiting if not other.done]
        if len(self._waiting) == WAITERS_MAX:
            self.recorder.engine.unpark(self._waiting.pop(0))
        self._waiting.append(reader)
        self.recorder.engine.park(reader)

    def _retry(self) -> None:
        """Let the readers look that wait until an entry is idle."""
        for reader in self._waiting:
            if reader.retry_ms is not None and not reader.done:
                self.done.append("retry")
                self.recorder.engine.retry(reader)

    def _run_unit(self) -> None:
        """Run several commands as one unit, as EXEC does."""
        engine = self.recorder.engine
        self.done.append("MULTI")
        engine.context.may_block = False
        self.recorder.journal.begin()
        for _ in range(self.dice.choice(UNIT_COMMANDS)):
            engine.context.instant.advance()
            self._run(self.world.command(), in_unit=True)
        self.recorder.journal.end()
        engine.context.may_block = True
        self.done.append("EXEC")
        engine.serve_waiters()

    def story(self, found: str) -> str:
        """The last commands, for the message of a failure."""
        return "\n".join([*self.done[-SHOWN_LINES:], found])


def shown_words(words: Words) -> str:
    return " ".join(repr(word)[1:] for word in words)
