"""Random work for an engine whose effects are written down: all kinds of keys, time, waiters, units.

Unlike the worlds that are compared with a live Redis, this one has times of a few milliseconds and a clock
that goes on while nobody looks, so that keys are overdue everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from penstock.engine.waiters import Blocked
from penstock.errors import CommandError
from tests.support.effects import Recorder
from tests.support.engines import LOOKUP, Reader
from tests.support.random_commands import HOUR_MS, Words, World
from tests.support.random_key_commands import ALL_KEYS, DATABASES, KeyWorld
from tests.support.random_list_commands import LIST_KEYS, ListWorld
from tests.support.streams import frame_of

WAITERS_MAX = 6
UNIT_COMMANDS = [1, 2, 2, 3, 5]
STEPS_MS = [0, 0, 0, 0, 1, 1, 2, 5, 20, HOUR_MS // 2, HOUR_MS]
SHOWN_LINES = 40


class EffectWorld(KeyWorld):
    """Commands of every kind, on keys that hold now this and now that."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        lists = ListWorld(dice)
        self.listpack_size = lists.listpack_size
        own = list(self._makers)
        streams: list[Callable[[], Words]] = World(dice)._makers
        # The same commands, but with this world's keys and settings.
        mine = [getattr(self, maker.__name__) for maker in streams]
        self._makers = [*own, *mine, *[lists.command] * 25, *[self.waiting_read] * 5]

    def key(self) -> bytes:
        return self.dice.choice(LIST_KEYS) if self.roll(0.05) else self.any_key()

    def any_key(self) -> bytes:
        return self.dice.choices(ALL_KEYS, [4, 3, 1, 1, 1, 1, 8, 5, 3, 1])[0]

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
        keys = [self.key() for _ in range(self.dice.choice([1, 1, 2]))]
        return [*words, b"STREAMS", *keys, *[b">"] * len(keys)]


class Work:
    """Plays a world on a recorder."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder = recorder
        self.dice = random.Random(name)
        self.world = EffectWorld(self.dice)
        self.done: list[str] = []
        self._waiting: list[Reader] = []
        engine = recorder.engine
        engine.limits.bytes_max = self.world.bytes_max
        engine.limits.entries_max = self.world.entries_max
        engine.list_limits.set_listpack_size(self.world.listpack_size)

    def step(self) -> None:
        """Let some time go by, then run a command, or a unit, or sweep."""
        self.recorder.clock.at_ms += self.dice.choice(STEPS_MS)
        roll = self.dice.random()
        if roll < 0.02:
            self.done.append("sweep")
            self.recorder.engine.expire_due(self.dice.choice([1, 2, 100]))
        elif roll < 0.05:
            self._run_unit()
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
        if isinstance(reply, Blocked):
            self._park(Reader(command, reply, engine.context.keyspace))

    def _park(self, reader: Reader) -> None:
        self._waiting = [other for other in self._waiting if not other.done]
        if len(self._waiting) == WAITERS_MAX:
            self.recorder.engine.give_up(self._waiting.pop(0))
        self._waiting.append(reader)
        self.recorder.engine.park(reader)

    def _run_unit(self) -> None:
        """As EXEC does."""
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
        """What was done last, for whoever has to find out."""
        return "\n".join([*self.done[-SHOWN_LINES:], found])


def shown_words(words: Words) -> str:
    return " ".join(repr(word)[1:] for word in words)
