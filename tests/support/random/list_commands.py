"""Random list commands as raw words: mostly valid, often not, always determined by the seed.

There are few keys and few different elements, so that lists fill up and run empty all the time and LREM finds
something. A blocking command that finds nothing times out after a millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.engine.engines import STRING_KEY
from tests.support.random.stream_commands import ODD_NUMBERS, Words

LIST_KEYS = [b"l", b"m", b"n\xff", b""]
ELEMENTS = [b"a", b"a", b"b", b"7", b"-12", b"007", b"", b"\x00\xff\r\n", b"x" * 63, b"y" * 300]
BIG_ELEMENTS = [b"z" * 4090, b"z" * 9000, str(2**63 - 1).encode(), str(2**63).encode()]
# Larger than the nodes of most settings: such an insert divides nodes in another way than 7.0.
TOO_BIG_TO_INSERT = b"z" * 9000
RANK_MIN = str(-(2**63)).encode()  # 7.0 takes it for RANK -1 and then overflows
LISTPACK_SIZES = [-2, -2, -1, -5, 0, 1, 2, 3, 7, 128]
# Without those that would block for longer than a test may take.
ODD_TIMEOUTS = [
    *(b"x", b"", b"-1", b"-0.1", b"1e400", b"inf", b"-inf", b"nan", b"1e5000", b"1e-5000", b" 1"),
    *(b"1 ", b"+0.001", b"0x1p-9", b"9.3e15", b"9223372036854775807", b"1_0", b"1e", b"1e-4950"),
]


class ListWorld:
    """The random choices of one round."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.odd = dice.choice([0.0, 0.02, 0.1])  # how often an argument is unusual or invalid
        self.listpack_size = dice.choice(LISTPACK_SIZES)
        self.wide_places = True  # places of LSET above 32 bits, which 7.2 and later cut off
        self._makers: list[Callable[[], Words]] = [
            *[self.push] * 8,
            *[self.pop, self.pop_many, self.move] * 3,
            *[self.push_old, self.remove, self.trim] * 2,
            *[self.insert, self.replace] * 2,
            *[self.length, self.index, self.range, self.find],
            *[self.pop_first, self.waiting_pop, self.waiting_pop_first, self.waiting_move],
        ]

    def command(self) -> Words:
        words = self.dice.choice(self._makers)()
        if self.roll(self.odd / 2) and not words[0].startswith(b"B"):
            self._spoil(words)
        if words[0] == b"LSET" and not self.wide_places:
            words = [b"1000" if _is_wide(word) else word for word in words]
        if words[0] == b"LPOS":
            words = [b"0" if word == RANK_MIN else word for word in words]
        return [
            word.title() if word.isupper() and self.roll(0.1) and n != 1 else word
            for n, word in enumerate(words)
        ]

    def _spoil(self, words: Words) -> None:
        """Remove, repeat or replace a word after the name."""
        at = self.dice.randrange(1, len(words))
        action = self.dice.randrange(4)
        if action == 0:
            del words[at]
        elif action == 1:
            words.insert(at, words[at])
        elif action == 2:
            del words[at:]
        else:
            words[at] = self.dice.choice([*ODD_NUMBERS, b"LEFT", b"COUNT"])

    # --- Arguments -------------------------------------------------------------------------------

    def roll(self, chance: float) -> bool:
        return self.dice.random() < chance

    def key(self) -> bytes:
        return STRING_KEY if self.roll(0.02) else self.dice.choices(LIST_KEYS, [6, 4, 2, 1])[0]

    def element(self) -> bytes:
        return self.dice.choice(BIG_ELEMENTS if self.roll(0.02) else ELEMENTS)

    def edit_element(self) -> bytes:
        found = self.element()
        return b"w" * 300 if found == TOO_BIG_TO_INSERT else found

    def number(self, *usual: int) -> bytes:
        if self.roll(self.odd):
            return self.dice.choice(ODD_NUMBERS)
        return b"%d" % self.dice.choice(usual)

    def end(self) -> bytes:
        return b"LIFT" if self.roll(self.odd) else self.dice.choice([b"LEFT", b"RIGHT"])

    def timeout(self) -> bytes:
        return self.dice.choice(ODD_TIMEOUTS) if self.roll(self.odd) else b"0.001"

    # --- Commands --------------------------------------------------------------------------------

    def push(self) -> Words:
        many = [self.element() for _ in range(self.dice.choice([1, 1, 2, 3, 8, 40]))]
        return [self.dice.choice([b"LPUSH", b"RPUSH"]), self.key(), *many]

    def push_old(self) -> Words:
        many = [self.element() for _ in range(self.dice.choice([1, 1, 2]))]
        return [self.dice.choice([b"LPUSHX", b"RPUSHX"]), self.key(), *many]

    def pop(self) -> Words:
        return [self.dice.choice([b"LPOP", b"RPOP"]), self.key()]

    def pop_many(self) -> Words:
        return [*self.pop(), self.number(0, 1, 2, 5, 20, 1000, -1)]

    def pop_first(self) -> Words:
        return [b"LMPOP", *self._keys_and_count()]

    def waiting_pop_first(self) -> Words:
        return [b"BLMPOP", self.timeout(), *self._keys_and_count()]

    def _keys_and_count(self) -> Words:
        keys = [self.key() for _ in range(self.dice.choice([1, 2, 3]))]
        count = [] if self.roll(0.5) else [b"COUNT", self.number(1, 2, 5, 20, 1000)]
        return [self.number(len(keys)), *keys, self.end(), *count]

    def move(self) -> Words:
        if self.roll(0.3):
            return [b"RPOPLPUSH", self.key(), self.key()]
        return [b"LMOVE", self.key(), self.key(), self.end(), self.end()]

    def waiting_pop(self) -> Words:
        keys = [self.key() for _ in range(self.dice.choice([1, 2, 3]))]
        return [self.dice.choice([b"BLPOP", b"BRPOP"]), *keys, self.timeout()]

    def waiting_move(self) -> Words:
        if self.roll(0.3):
            return [b"BRPOPLPUSH", self.key(), self.key(), self.timeout()]
        return [b"BLMOVE", self.key(), self.key(), self.end(), self.end(), self.timeout()]

    def remove(self) -> Words:
        count = self.number(0, 1, -1, 2, -2, 100, -100)
        return [b"LREM", self.key(), count, self.element()]

    def insert(self) -> Words:
        side = b"BESIDE" if self.roll(self.odd) else self.dice.choice([b"BEFORE", b"AFTER"])
        return [b"LINSERT", self.key(), side, self.element(), self.edit_element()]

    def replace(self) -> Words:
        index = self.number(0, -1, 1, -2, 5, -7, 40, -40, 1000)
        return [b"LSET", self.key(), index, self.edit_element()]

    def trim(self) -> Words:
        start, end = self.number(0, 0, 1, 2, 10, -5, -50), self.number(-1, -1, -2, 10, 50, 0, -60)
        return [b"LTRIM", self.key(), start, end]

    def range(self) -> Words:
        start, end = self.number(0, 1, 10, -5, -500), self.number(-1, -2, 0, 10, 500, -500)
        return [b"LRANGE", self.key(), start, end]

    def index(self) -> Words:
        return [b"LINDEX", self.key(), self.number(0, -1, 1, 5, -7, 40, 1000, -1000)]

    def find(self) -> Words:
        words = [b"LPOS", self.key(), self.element()]
        options = {
            b"RANK": self.number(1, 2, 5, -1, -2, -5, 0),
            b"COUNT": self.number(0, 1, 2, 10),
            b"MAXLEN": self.number(0, 1, 5, 50),
        }
        for word in self.dice.choices(list(options), k=self.dice.choice([0, 0, 1, 2, 3])):
            words += [word, options[word]]
        return words

    def length(self) -> Words:
        return [b"LLEN", self.key()]


def _is_wide(word: bytes) -> bool:
    """Tell whether a word is a number that needs more than 32 bits."""
    return word.lstrip(b"-").isdigit() and abs(int(word)) >= 2**31
