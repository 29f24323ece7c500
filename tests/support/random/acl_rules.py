"""Random ACL rules, and random commands that they allow or forbid."""

from __future__ import annotations

import random

from penstock.engine.table import Command
from penstock.server.command_catalogue import CATEGORIES, Catalogue, shown_name

NAMES = [b"a", b"ab", b"abc", b"b", b"ba", b"x:1", b"x:2", b""]
PATTERNS = [b"a*", b"?b", b"[ab]*", b"x:*", b"*", b"abc", b"b", b""]
_MODIFIERS = ["allkeys", "resetkeys", "allchannels", "resetchannels", "allcommands", "nocommands"]
_STATES = ["on", "off", "nopass", "resetpass", "reset", "clearselectors", ">pw", "<pw", ">other"]
_BAD = [
    "bogus",
    "+nope",
    "-@nope",
    "%X~a",
    "+get|",
    "+xgroup|nope",
    "+xgroup|create|x",
    "#12",
    "(+get",
    "~a b",
]
# Well-formed, because the two servers look for keys in malformed commands in different ways.
_MOVABLE = {
    "XREAD": "COUNT 1 STREAMS {0} {1} 0 0",
    "XREADGROUP": "GROUP {2} {3} STREAMS {0} {1} > >",
    "LMPOP": "2 {0} {1} LEFT",
    "BLMPOP": "0.01 2 {0} {1} LEFT",
    "SET": "{0} {1} {4}",
}


class RandomRules:
    """Rules about the commands of these rows, and calls of these commands."""

    def __init__(self, rows: list[Command], dice: random.Random) -> None:
        self._rows = rows
        self._names = list(Catalogue(rows).all_names())
        self._dice = dice

    def rules(self) -> list[bytes]:
        """The rules of one ACL SETUSER."""
        found = [self._rule() for _ in range(self._dice.randint(1, 8))]
        if self._dice.random() < 0.2:
            inner = b" ".join(self._selector_rule() for _ in range(self._dice.randint(1, 4)))
            found.append(b"(" + inner + b")")
        if self._dice.random() < 0.1:
            found.insert(self._dice.randrange(len(found)), self._dice.choice(_BAD).encode())
        return found

    def _rule(self) -> bytes:
        if self._dice.random() < 0.15:
            return self._dice.choice(_STATES).encode()
        return self._selector_rule()

    def _selector_rule(self) -> bytes:
        pick = self._dice.random()
        sign = self._dice.choice("+-")
        pattern = self._dice.choice(PATTERNS)
        if pick < 0.3:
            return f"{sign}{self._dice.choice(self._names)}".encode()
        if pick < 0.5:
            return f"{sign}@{self._dice.choice([*CATEGORIES, 'all'])}".encode()
        if pick < 0.75:
            return self._dice.choice([b"~", b"%R~", b"%W~", b"%RW~", b"%wr~"]) + pattern
        if pick < 0.85:
            return b"&" + pattern
        if pick < 0.9:
            return b"+select|%d" % self._dice.randrange(3)
        return self._dice.choice(_MODIFIERS).encode()

    def call(self) -> list[bytes]:
        """A command, usually with a possible number of arguments."""
        row = self._dice.choice(self._rows)
        words = row.name.encode().split()
        if row.name in _MOVABLE:
            names = [name.decode() or "a" for name in self._dice.choices(NAMES, k=4)]
            option = self._dice.choice(["GET", "get", "NX", "XX", "KEEPTTL"])
            return [*words, *_MOVABLE[row.name].format(*names, option).encode().split()]
        count = abs(row.arity) + (self._dice.randrange(3) if row.arity < 0 else 0)
        if self._dice.random() < 0.05:
            count += 1
        return [*words, *self._dice.choices(NAMES, k=max(0, count - len(words)))]


def rows_known_to(names: set[str], rows: list[Command]) -> list[Command]:
    """The rows of commands that another server has too."""
    return [row for row in rows if shown_name(row) in names]
