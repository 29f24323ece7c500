"""Random commands for strings, keys and expiry in several databases, and some for streams.

Relative times are whole hours and all different, so that no result depends on the milliseconds between two
servers. Absolute times are in the far past or the far future. A world has either `overdue` keys (SET with a
time in the past: the key exists until a command looks at it) or RANDOMKEY, which would remove them at random.
RANDOMKEY is also left out where arguments are odd: one of them may be such a time.
It has either OBJECT ENCODING or commands after which Redis remembers an encoding that does not follow from
the bytes (see the docstring of object_encoding).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.engine.engines import STRING_KEY
from tests.support.random.stream_commands import ODD_NUMBERS, STREAM_KEYS, Words, World

DATABASES = 3
STRING_KEYS = [b"a", b"b", b"key:1", b"key:2", b"", b"\x00\xff"]
ALL_KEYS = [*STRING_KEYS, *STREAM_KEYS, STRING_KEY]
KEY_WEIGHTS = [6, 6, 3, 1, 1, 1, 3, 2, 1, 1]
TEXTS = [
    *(b"", b"x", b"hello", b"x" * 44, b"x" * 45, b"0", b"1", b"10", b"-7", b"9999", b"10000"),
    *(b"3.0", b"1e3", b"-0.5", b"0x1p-3", b"inf", b"12345678901234567890", b"1" * 21, b"007"),
    *(b"9223372036854775807", b"-9223372036854775808", b"9223372036854775806", b"0.1"),
]
PATTERNS = [b"*", b"?", b"key:*", b"[ab]", b"[^a]*", b"*\xff", b"", b"s*", b"nothing", b"\\a"]
TYPES = [b"string", b"stream", b"list", b"STREAM", b"hash", b"x"]
ODD_TIMES = [
    number for number in ODD_NUMBERS if not number.isdigit() or not 0 < int(number) < 2**63 - 1
]
YEAR_2100_MS = 4_102_444_800_000
HOUR_S = 3600


class KeyWorld(World):
    """Commands for all types of keys."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self.overdue = dice.random() < 0.5
        encodings = dice.random() < 0.3
        self.longest_embedded = True  # since 8.2 the limit of embstr depends on the key
        self._database = 0
        self._hours = list(range(1, 2000))
        dice.shuffle(self._hours)
        changers = [self.append, self.setrange, self.incrbyfloat, self.incrbyfloat, self.copy]
        self._makers: list[Callable[[], Words]] = [
            *[self.set, self.expire] * 8,
            *[self.select, self.rename] * 4,
            *[self.remove] * 2,
            *([self.object] * 8 if encodings else changers * 2),
            *[self.incr, self.get_and_change, self.multiple, self.move, self.look, self.ttl] * 3,
            *[self.getrange, self.setex, self.persist, self.scan] * 2,
            self.whole,
            self.look if self.overdue or self.odd else self.randomkey,
            *[self.xadd] * 6,
            *[self.xgroup_create, self.xreadgroup, self.xack, self.xlen],
        ]

    def _spoil(self, words: Words) -> None:
        # A SELECT must stay valid, and our cursors differ from those of Redis.
        if words[0] not in (b"SELECT", b"SCAN"):
            super()._spoil(words)

    # --- Arguments -------------------------------------------------------------------------------

    def key(self) -> bytes:
        return self.dice.choices(ALL_KEYS, KEY_WEIGHTS)[0]

    def text(self) -> bytes:
        text = self.dice.choice(TEXTS)
        return text if self.longest_embedded or len(text) != 44 else b"x"

    def database(self) -> bytes:
        return self.number(0, 0, 1, 1, 2, 2, 15, 16, -1)

    def from_now(self, unit: int) -> bytes:
        """A relative time of at least one hour."""
        if self.roll(self.odd):
            return self.dice.choice(ODD_TIMES)
        return b"%d" % (self._hours.pop() * HOUR_S * unit)

    def at(self, unit: int, past: bool = True) -> bytes:
        """An absolute time in the far future or the far past."""
        future = YEAR_2100_MS + self.dice.randrange(3) * 250
        over = past and self.roll(0.2)
        moment = self.dice.choice([1, 1_000_000, 1_500_000_000_000]) if over else future
        return self.number(max(1, moment * unit // 1000))

    def moment(self, past: bool) -> Words:
        kind = self.dice.randrange(4)
        if kind == 0:
            return [b"EX", self.from_now(1)]
        if kind == 1:
            return [b"PX", self.from_now(1000)]
        return [b"EXAT", self.at(1, past)] if kind == 2 else [b"PXAT", self.at(1000, past)]

    # --- Strings ---------------------------------------------------------------------------------

    def set(self) -> Words:
        options: list[Words] = []
        if self.roll(0.3):
            options.append([self.dice.choice([b"NX", b"XX"])])
        if self.roll(0.3):
            options.append([b"GET"])
        if self.roll(0.4):
            options.append([b"KEEPTTL"] if self.roll(0.2) else self.moment(self.overdue))
        if self.roll(self.odd):
            options.append(self.dice.choice([[b"NX"], [b"PERSIST"], [b"KEEPTTL"], [b"EX"]]))
        self.dice.shuffle(options)
        words = [b"SET", self.key(), self.text()]
        return words + [word for option in options for word in option]

    def setex(self) -> Words:
        if self.roll(0.3):
            return [b"SETNX", self.key(), self.text()]
        if self.roll(0.5):
            return [b"SETEX", self.key(), self.from_now(1), self.text()]
        return [b"PSETEX", self.key(), self.from_now(1000), self.text()]

    def get_and_change(self) -> Words:
        kind = self.dice.randrange(4)
        if kind == 0:
            return [b"GETSET", self.key(), self.text()]
        if kind == 1:
            return [b"GETDEL", self.key()]
        words = [b"GETEX", self.key()]
        if self.roll(0.8):
            words += [b"PERSIST"] if self.roll(0.3) else self.moment(True)
        return words

    def multiple(self) -> Words:
        name = self.dice.choice([b"MGET", b"MSET", b"MSETNX"])
        words = [name]
        for _ in range(self.dice.choice([1, 2, 3])):
            words += [self.key()] if name == b"MGET" else [self.key(), self.text()]
        return words

    def incr(self) -> Words:
        name = self.dice.choice([b"INCR", b"DECR", b"INCRBY", b"DECRBY"])
        amount = [self.number(1, -1, 7, 10**6, 2**63 - 1, -(2**63))] if b"BY" in name else []
        return [name, self.key(), *amount]

    def incrbyfloat(self) -> Words:
        return [b"INCRBYFLOAT", self.key(), self.text()]

    def append(self) -> Words:
        return [b"APPEND", self.key(), self.text()]

    def setrange(self) -> Words:
        return [b"SETRANGE", self.key(), self.number(0, 1, 3, 50, -1, 2**29), self.text()]

    def getrange(self) -> Words:
        if self.roll(0.2):
            return [b"STRLEN", self.key()]
        places = [self.number(0, 0, 1, 2, 4, 100, -1, -1, -2, -5, -100) for _ in range(2)]
        return [self.dice.choice([b"GETRANGE", b"SUBSTR"]), self.key(), *places]

    # --- Keys ------------------------------------------------------------------------------------

    def remove(self) -> Words:
        return [self.dice.choice([b"DEL", b"UNLINK"]), *self._some_keys()]

    def _some_keys(self) -> Words:
        return [self.key() for _ in range(self.dice.choice([1, 1, 2, 3]))]

    def look(self) -> Words:
        kind = self.dice.randrange(4)
        if kind == 0:
            return [self.dice.choice([b"EXISTS", b"TOUCH"]), *self._some_keys()]
        if kind == 1:
            return [b"GET", self.key()]
        return [b"TYPE", self.key()] if kind == 2 else [b"DBSIZE"]

    def rename(self) -> Words:
        return [self.dice.choice([b"RENAME", b"RENAMENX"]), self.key(), self.key()]

    def copy(self) -> Words:
        options: list[Words] = []
        if self.roll(0.5):
            options.append([b"DB", self.database()])
        if self.roll(0.5):
            options.append([b"REPLACE"])
        self.dice.shuffle(options)
        words = [b"COPY", self.key(), self.key()]
        return words + [word for option in options for word in option]

    def move(self) -> Words:
        return [b"MOVE", self.key(), self.database()]

    def object(self) -> Words:
        question = self.dice.choice([b"ENCODING", b"ENCODING", b"REFCOUNT", b"FREQ"])
        return [b"OBJECT", question, self.key()]

    def scan(self) -> Words:
        if self.roll(0.4):
            return [b"KEYS", self.dice.choice(PATTERNS)]
        words = [b"SCAN", self.dice.choice([b"0", b"0", b"0", b"", b"-0", b"x", b"1 "])]
        words += [b"COUNT", b"1000"]
        if self.roll(0.4):
            words += [b"MATCH", self.dice.choice(PATTERNS)]
        if self.roll(0.4):
            words += [b"TYPE", self.dice.choice(TYPES)]
        return words

    def randomkey(self) -> Words:
        return [b"RANDOMKEY"]

    # --- Databases -------------------------------------------------------------------------------

    def select(self) -> Words:
        return [b"SELECT", b"%d" % self.dice.randrange(DATABASES)]

    def whole(self) -> Words:
        kind = self.dice.randrange(8)
        if kind == 0:
            mode = self.dice.choice([[], [b"ASYNC"], [b"SYNC"], [b"NOW"]])
            return [self.dice.choice([b"FLUSHDB", b"FLUSHDB", b"FLUSHALL"]), *mode]
        return [b"SWAPDB", self.database(), self.database()]

    # --- Expiry ----------------------------------------------------------------------------------

    def expire(self) -> Words:
        name = self.dice.choice([b"EXPIRE", b"PEXPIRE", b"EXPIREAT", b"PEXPIREAT"])
        unit = 1000 if name[:1] == b"P" else 1
        if name.endswith(b"AT"):
            number = self.at(unit)
        else:
            # Never a time in the near future: one server could reach it before the other.
            over = self.dice.choice([b"0", b"-1", b"%d" % -HOUR_S])
            number = over if self.roll(0.2) else self.from_now(unit)
        words = [name, self.key(), number]
        for _ in range(self.dice.choice([0, 0, 0, 1, 1, 2])):
            words.append(self.dice.choice([b"NX", b"XX", b"GT", b"LT"]))
        return words

    def persist(self) -> Words:
        return [b"PERSIST", self.key()]

    def ttl(self) -> Words:
        return [self.dice.choice([b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME"]), self.key()]
