"""Random stream commands as raw words: mostly valid, often not, always determined by the seed.

There are few keys, groups, consumers and ids, so that commands meet the data of earlier ones. Times are "now"
or whole hours ago, and idle limits are between them: a result must not depend on the milliseconds between two
servers.

MINID differs from Redis on purpose (see the docstring of core/stream.py): after entries were deleted by id,
Redis may keep a node of tombstones that penstock drops. A world is of the kind `lone_minid` (MINID, but no
XDEL), `delete` (XDEL, but no MINID) or `both`. With `both`, no command may ask how entries are distributed
over nodes.

The commands of Redis 8 come in with the level. Three more things must not be mixed:

- DELREF on a trim also removes the records of entries that are gone already. Redis leaves them (its issue
  15581). So in a world with DELREF, all trims have it, and nothing is deleted by id.
- A trim with ACKED leaves tombstones, which then make MINID differ as above.
- A read with CLAIM has no COUNT: which entry has waited longest depends on the milliseconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.support.engine.engines import STRING_KEY
from tests.support.engine.id_texts import ID_TEXTS, NO_ID_TEXTS, TOP

Words = list[bytes]

STREAM_KEYS = [b"s", b"t", b"u\xff"]
KEYS = [*STREAM_KEYS, STRING_KEY]
CONTAINERS = (b"XGROUP", b"XINFO", b"OBJECT")  # their second word is part of the name
GROUPS = [b"g", b"group", b""]
PRODUCERS = [b"p", b"q", b"STREAMS", b"*"]
CONSUMERS = [b"a", b"ab", b"b", b"", b"STREAMS"]
HOUR_MS = 3_600_000
FIELDS = [b"temp", b"humid", b"", b"7", b"-12", b"n" * 70, b"\x00\xff"]
VALUES = [b"", b"0", b"21", b"-1", b"4096", b"007", b"x" * 30, b"\r\n", str(2**63).encode()]
ODD_NUMBERS = [
    *(b"-1", b"-5", b"1e3", b"", b"+5", b"007", b"-0", b" 1", b"1 ", b"1.0", b"abc", b"0x10"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808"),
    *(b"-9223372036854775809", b"18446744073709551615", b"99999999999999999999", b"1\x002"),
    *(b"922337203685477580", b"576460752303423487", b"576460752303423488"),
]
LIMITS = [
    *(0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**62, 2**63 - 2, 2**63 - 1),
    *(-1, -(2**31), -(2**31) - 1, -(2**63), 2**63, 2**64 - 2, 2**64 - 1),
]
ID_LIMITS = [number for number in LIMITS if number >= 0]
IDLE_LIMITS = [
    2**31 + HOUR_MS // 2,
    2**32 + HOUR_MS // 2,
    2**63 - 1,
    -(2**63),
]  # between two LIMITS
COUNTER_MAX = 2**63 - 2**20  # one round cannot count from here to 2**63
ODD_IDS = [text for text, _, _ in ID_TEXTS] + NO_ID_TEXTS + [b"(" + t for t, _, _ in ID_TEXTS]


class World:
    """The random choices of one round."""

    def __init__(self, dice: random.Random, level: str = "7.0") -> None:
        self.dice = dice
        self._level = tuple(map(int, level.split(".")))
        self.odd = dice.choice([0.0, 0.02, 0.1])  # how often an argument is unusual or invalid
        self.limits = dice.choice(
            [0.0, 0.02, 0.2]
        )  # how often a number is at the limit of its type
        kind = dice.choice(["lone_minid", "delete", "both"])
        self.deletes = kind != "lone_minid"
        self.min_ids = kind != "delete"
        self.nodes_differ = kind == "both"
        self.far = dice.random() < 0.1  # ids near the largest possible one
        self.reads_last = self._level >= (7, 4)  # XREAD with `+`
        self.references: Words = [b"KEEPREF"] if self._level >= (8, 2) else []
        if self.references and self.deletes:
            self.references.append(b"ACKED")
            self.nodes_differ |= self.min_ids
        elif self.references and dice.random() < 0.5:
            self.references = [b"DELREF"]
        self.claims = self._level >= (8, 4)
        self.produces = self._level >= (8, 6) and dice.random() < 0.3  # ids are mostly generated
        self.bytes_max = dice.choice([4096, 4096, 64, 200, 0, 1])
        self.entries_max = dice.choice([100, 3, 3, 1, 0, 5])
        self._ms = 1
        self._makers: list[Callable[[], Words]] = [
            *[self.xadd] * 12,
            *[self.xreadgroup] * 10,
            *[self.xclaim, self.xack] * 4,
            *[self.xautoclaim, self.xread, self.xgroup_create, self.xgroup_setid] * 3,
            *[self.xdel if self.deletes else self.xadd] * 3,
            *[self.xrange, self.xtrim, self.xpending] * 2,
            *[self.xgroup_destroy, self.xgroup_consumer, self.xinfo, self.xlen, self.xsetid],
        ]
        if b"ACKED" in self.references and self._level < (8, 6):
            self._makers.remove(self.xgroup_destroy)  # Redis 8.2 then still counts its position
        if self._level >= (8, 2) and self.deletes:
            self._makers += [self.xdelex, self.xackdel] * 3
        if self.produces:
            self._makers += [*[self.xadd_once] * 8, self.xcfgset]

    def command(self) -> Words:
        words = self.dice.choice(self._makers)()
        if self.roll(self.odd / 2):
            self._spoil(words)
        return [
            self._recased(word) if word.isupper() and self.roll(0.1) else word for word in words
        ]

    def _spoil(self, words: Words) -> None:
        """Remove, repeat, swap or replace a word after the name."""
        first = 2 if words[0] in CONTAINERS else 1
        if len(words) <= first or b"MAXDELETEDID" in words:
            return
        at = self.dice.randrange(first, len(words))
        action = self.dice.randrange(5)
        if action == 0:
            del words[at]
        elif action == 1:
            words.insert(at, words[at])
        elif action == 2:
            del words[at:]
        elif action == 3:
            other = self.dice.randrange(first, len(words))
            words[at], words[other] = words[other], words[at]
        else:
            strange = [*ODD_NUMBERS, *ODD_IDS, b"COUNT", b"GROUP", b"STREAMS", b"FORCE", b"~"]
            words[at] = self.dice.choice(strange)
        if b"BLOCK" in [word.upper() for word in words]:
            words[:] = [
                word for word in words if word.upper() != b"BLOCK"
            ]  # it could block forever

    def _recased(self, word: bytes) -> bytes:
        return word.lower() if self.roll(0.5) else word.title()

    # --- Arguments -------------------------------------------------------------------------------

    def roll(self, chance: float) -> bool:
        return self.dice.random() < chance

    def key(self) -> bytes:
        return STRING_KEY if self.roll(0.02) else self.dice.choice(STREAM_KEYS)

    def group(self) -> bytes:
        return self.dice.choices(GROUPS, [6, 3, 1])[0]

    def consumer(self) -> bytes:
        return self.dice.choices(CONSUMERS, [6, 4, 3, 1, 1])[0]

    def number(self, *usual: int, limits: Sequence[int] = LIMITS) -> bytes:
        if self.roll(self.odd):
            return self.dice.choice(ODD_NUMBERS)
        return b"%d" % self.dice.choice(limits if limits and self.roll(self.limits) else usual)

    def counter(self, *usual: int) -> bytes:
        """A number that commands count on from. At 2^63 Redis wraps around, penstock stays there."""
        number = self.number(*usual)
        is_near = number.isdigit() and COUNTER_MAX < int(number) < 2**63
        return b"%d" % COUNTER_MAX if is_near else number

    def entry_id(self) -> bytes:
        """An id that probably exists, or an unusual one."""
        if self.roll(self.odd):
            return self.dice.choice(ODD_IDS)
        if self.roll(self.limits / 2):
            return b"%d-%d" % (self.dice.choice(ID_LIMITS), self.dice.choice(ID_LIMITS))
        if self.far and self.roll(0.3):
            ms, seq = self.dice.choice([TOP - 1, TOP]), self.dice.choice([0, 1, TOP - 1, TOP])
            return b"%d-%d" % (ms, seq)
        ms = max(0, self._ms - int(self.dice.expovariate(0.1)))
        return self.dice.choice([b"%d-%d" % (ms, self.dice.randrange(4)), b"%d-0" % ms, b"%d" % ms])

    def ids(self) -> Words:
        return [self.entry_id() for _ in range(self.dice.choice([1, 1, 2, 3, 10]))]

    def edge(self, usual: bytes) -> bytes:
        """An end of a range."""
        if self.roll(0.5):
            return usual
        return (b"(" if self.roll(0.3) else b"") + self.entry_id()

    # --- Adding and removing ---------------------------------------------------------------------

    def xadd(self) -> Words:
        words = [b"XADD", self.key()]
        if self.roll(0.05):
            words.append(b"NOMKSTREAM")
        if self.roll(0.15):
            words += self.trim()
        words.append(b"*" if self.produces and self.roll(0.6) else self.new_id())
        return words + self.fields()

    def xadd_once(self) -> Words:
        """An XADD of a producer."""
        words = [b"XADD", self.key()]
        if self.roll(0.05):
            words.append(b"NOMKSTREAM")
        producer = self.dice.choice(PRODUCERS)
        if self.roll(0.3):
            words += [b"IDMPAUTO", producer]
        else:
            words += [b"IDMP", producer, b"%d" % self.dice.randrange(8)]
        if self.roll(0.2):
            words += self.trim()
        words.append(self.new_id() if self.roll(self.odd) else b"*")
        return words + self.fields()

    def fields(self) -> Words:
        words: Words = []
        same = self.roll(0.6)
        for _ in range(1 if same else self.dice.choice([1, 2, 2, 3, 9])):
            words += [FIELDS[0] if same else self.dice.choice(FIELDS), self.dice.choice(VALUES)]
        if self.roll(self.odd / 2):
            words.append(b"odd")
        return words

    def new_id(self) -> bytes:
        if self.roll(0.1):
            return self.entry_id()
        if self.far and self._ms > 60:
            return self.dice.choice([b"%d-*" % TOP, b"%d-%d" % (TOP, TOP), b"*", b"%d-1" % TOP])
        self._ms += self.dice.choice([0, 0, 1, 1, 2])
        if self.roll(0.02):
            return b"*"
        return self.dice.choice(
            [b"%d-*" % self._ms, b"%d-%d" % (self._ms, self.dice.randrange(4)), b"%d" % self._ms]
        )

    def trim(self) -> Words:
        by_id = self.min_ids and self.roll(0.5)
        words = [b"MINID" if by_id else b"MAXLEN"]
        reference = self.reference()
        rough = not self.nodes_differ and self.roll(0.5)
        if self._level < (8, 6) and reference in ([b"DELREF"], [b"ACKED"]):
            rough = False  # with `~`, Redis 8.2 then removes nothing (its issue 14656)
        if rough:
            words.append(b"~")
        elif self.roll(0.2):
            words.append(b"=")
        words.append(self.entry_id() if by_id else self.number(0, 1, 3, 10, 20, 50, 1000))
        if (rough and self.roll(0.5)) or self.roll(self.odd):
            words += [b"LIMIT", self.number(0, 1, 2, 3, 5, 10, 1000)]
        if self.roll(self.odd / 4):
            words += self.trim()
        return words + reference

    def reference(self) -> Words:
        """What happens to the records of an entry that is removed."""
        if self.references == [b"DELREF"]:
            return [b"DELREF"]
        return [self.dice.choice(self.references)] if self.references and self.roll(0.5) else []

    def xtrim(self) -> Words:
        return [b"XTRIM", self.key(), *self.trim()]

    def xdel(self) -> Words:
        return [b"XDEL", self.key(), *self.ids()]

    def _ids_block(self) -> Words:
        """`IDS n id ...` with an option before or after it."""
        ids = self.ids()
        block = [b"IDS", self.number(len(ids), limits=()), *ids]
        if self.roll(self.odd):
            block[1] = b"%d" % self.dice.choice([0, -1, len(ids) + 1, len(ids) - 1])
        option = [self.dice.choice([b"KEEPREF", b"DELREF", b"ACKED"])] if self.roll(0.7) else []
        return option + block if self.roll(0.8) else block + option

    def xdelex(self) -> Words:
        return [b"XDELEX", self.key(), *self._ids_block()]

    def xackdel(self) -> Words:
        return [b"XACKDEL", self.key(), self.group(), *self._ids_block()]

    def xcfgset(self) -> Words:
        words = [b"XCFGSET", self.key()]
        if self.roll(0.7):
            words += [b"IDMP-DURATION", self.number(100, 60, 86_400, 0, limits=())]
        if self.roll(0.5):
            words += [b"IDMP-MAXSIZE", self.number(100, 1, 2, 10_000, 10_001, limits=())]
        return words

    def xlen(self) -> Words:
        return [b"XLEN", self.key()]

    def xsetid(self) -> Words:
        """If entries were deleted, mostly an id above all: only Redis 7.0 allows one below a tombstone."""
        if self.deletes and self.roll(0.9):
            self._ms += 1
            entry_id = b"%d" % self._ms
        else:
            entry_id = self.entry_id()
        words = [b"XSETID", self.key(), entry_id]
        if self.roll(0.4):
            words += [b"ENTRIESADDED", self.counter(0, 5, 100, 1000, -1)]
        if self.roll(0.3):
            # Never less than the present one: then a later XSETID could go below a tombstone.
            words += [b"MAXDELETEDID", self.dice.choice([b"0-0", entry_id, b"%d-1" % TOP])]
        return words

    # --- Reading ---------------------------------------------------------------------------------

    def xrange(self) -> Words:
        name, first, last = self.dice.choice([(b"XRANGE", b"-", b"+"), (b"XREVRANGE", b"+", b"-")])
        words = [name, self.key(), self.edge(first), self.edge(last)]
        if self.roll(0.4):
            words += [b"COUNT", self.number(0, 1, 2, 10, -1)]
        return words

    def _streams(self, special: bytes) -> Words:
        keys = [self.key() for _ in range(self.dice.choice([1, 1, 1, 2, 3]))]
        ids = [special if self.roll(0.6) else self.entry_id() for _ in keys]
        if self.roll(self.odd):
            ids[0] = self.dice.choice([b"$", b">", b"+", b"*"])
        return [b"STREAMS", *keys, *ids]

    def xread(self) -> Words:
        words = [b"XREAD"]
        if self.roll(0.4):
            words += [b"COUNT", self.number(0, 1, 2, 10, -1)]
        if self.roll(0.03):
            words += [b"BLOCK", self.dice.choice([b"1", b"1", b"-1", b"1e3", b"", b"1.5"])]
        if self.reads_last and self.roll(0.3):
            return words + self._streams(b"+")
        return words + self._streams(b"$" if self.roll(0.2) else b"0")

    def xreadgroup(self) -> Words:
        options = [[b"GROUP", self.group(), self.consumer()]]
        if self.claims and self.roll(0.2):
            options.append([b"CLAIM", self._idle_min()])
        elif self.roll(0.6):
            options.append([b"COUNT", self.number(0, 1, 2, 3, 10, -1)])
        if self.roll(0.1):
            options.append([b"NOACK"])
        if self.roll(0.02):
            options.append([b"BLOCK", b"1"])
        if self.roll(0.1):
            self.dice.shuffle(options)
        words = [b"XREADGROUP", *(word for option in options for word in option)]
        return words + self._streams(b">" if self.roll(0.8) else b"0")

    # --- Groups ----------------------------------------------------------------------------------

    def xgroup_create(self) -> Words:
        words = [b"XGROUP", b"CREATE", self.key(), self.group(), self._group_id()]
        if self.roll(0.5):
            words.append(b"MKSTREAM")
        return words + self._entries_read()

    def xgroup_setid(self) -> Words:
        words = [b"XGROUP", b"SETID", self.key(), self.group(), self._group_id()]
        return words + self._entries_read()

    def _group_id(self) -> bytes:
        return self.dice.choice([b"0", b"0", b"$", self.entry_id(), self.entry_id()])

    def _entries_read(self) -> Words:
        if self.roll(0.7):
            return []
        return [b"ENTRIESREAD", self.counter(-1, 0, 1, 5, 100, -2)]

    def xgroup_destroy(self) -> Words:
        return [b"XGROUP", b"DESTROY", self.key(), self.group()]

    def xgroup_consumer(self) -> Words:
        word = self.dice.choice([b"CREATECONSUMER", b"CREATECONSUMER", b"DELCONSUMER"])
        return [b"XGROUP", word, self.key(), self.group(), self.consumer()]

    def xack(self) -> Words:
        return [b"XACK", self.key(), self.group(), *self.ids()]

    # --- Pending entries -------------------------------------------------------------------------

    def _idle_min(self) -> bytes:
        usual = (0, 0, HOUR_MS // 2, HOUR_MS * 3 // 2, HOUR_MS * 5 // 2)
        return self.number(*usual, limits=IDLE_LIMITS)

    def xpending(self) -> Words:
        words = [b"XPENDING", self.key(), self.group()]
        if self.roll(0.2):
            return words
        if self.roll(0.4):
            words += [b"IDLE", self._idle_min()]
        words += [self.edge(b"-"), self.edge(b"+"), self.number(0, 1, 3, 10, -1)]
        if self.roll(0.4):
            words.append(self.consumer())
        return words

    def xclaim(self) -> Words:
        options: list[Words] = []
        if self.roll(0.5):
            options.append([b"IDLE", self.number(0, HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS, -HOUR_MS)])
        if self.roll(0.1):
            options.append([b"TIME", self.number(1_600_000_000_000, 0, 1, -1, 4 * 10**12)])
        if self.roll(0.2):
            options.append([b"RETRYCOUNT", self.counter(0, 1, 7, -1, 2**31)])
        if self.roll(0.1):
            options.append([b"LASTID", self.entry_id()])
        options += [[word] for word in (b"FORCE", b"JUSTID") if self.roll(0.3)]
        self.dice.shuffle(options)
        words = [b"XCLAIM", self.key(), self.group(), self.consumer(), self._idle_min()]
        return words + self.ids() + [word for option in options for word in option]

    def xautoclaim(self) -> Words:
        words = [b"XAUTOCLAIM", self.key(), self.group(), self.consumer(), self._idle_min()]
        words.append(self.edge(b"0-0"))
        if self.roll(0.6):
            # Redis allocates memory for all these ids at once: the limit depends on the machine.
            words += [b"COUNT", self.number(1, 1, 2, 3, 10, limits=())]
        if self.roll(0.3):
            words.append(b"JUSTID")
        return words

    # --- Looking ---------------------------------------------------------------------------------

    def xinfo(self) -> Words:
        kind = self.dice.randrange(5)
        if kind == 0:
            return [b"XINFO", b"GROUPS", self.key()]
        if kind == 1:
            return [b"XINFO", b"CONSUMERS", self.key(), self.group()]
        words = [b"XINFO", b"STREAM", self.key()]
        if kind >= 3:
            words.append(b"FULL")
        if kind == 4:
            words += [b"COUNT", self.number(0, 1, 2, -1)]
        return words
