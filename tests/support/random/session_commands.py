"""Random commands for whole sessions: streams, strings, keys, lists, transactions, messages, invalid input.

A command is a list of words. `SessionWorld.data` encodes it, sometimes as an inline command instead of an
array. The caller says whether the client is in a transaction and whether it uses RESP3. Only RESP3 clients
subscribe: in RESP2 a subscribed client can send almost nothing else.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.support.random.key_commands import ALL_KEYS, KeyWorld
from tests.support.random.list_commands import LIST_KEYS, ListWorld
from tests.support.random.stream_commands import Words, World
from tests.support.servers.raw_redis import encode

NEWS = b"news"
CHANNELS = [NEWS, b"weather", b"", b"news\xff"]
# None of these matches keyspace events: with 7.0, the position of the events of the client's own command
# differs (docs/compatibility.md).
PATTERNS = [b"[nw]*", b"n*s", b"w[a-f]*", b"nothing"]
IN_A_LINE = re.compile(rb"[A-Za-z0-9:*$+.~=(>-]+")
NONSENSE: list[Words] = [
    *([b"XFOO", b"s"], [b"xadd"], [b"XLEN"], [b"XLEN", b"s", b"t"], [b"GET"], [b""]),
    *([b"XGROUP"], [b"XGROUP", b"FOO", b"s", b"g"], [b"XINFO", b"FOO"], [b"OBJECT", b"FOO", b"a"]),
    *([b"LPUSH", b"l"], [b"SELECT", b"x"], [b"SELECT", b"16"], [b"SELECT", b"-1"], [b"ECHO"]),
    *([b"HELLO", b"4"], [b"HELLO", b"x"], [b"CLIENT", b"FOO"], [b"\x00\xff\r\n", b"'a'"]),
    *([b"PING", b"a", b"b"], [b"foo" * 50, b"bar" * 50], [b"foo", *([b"a" * 30] * 12)]),
    *([b"EXEC", b"x"], [b"WATCH"]),
    *([b"PUBLISH", b"news"], [b"MULTI", b"x"], [b"CONFIG", b"FOO"], [b"EXPIRE", b"a"]),
]  # fmt: skip
SENSE: list[Words] = [[b"PING"], [b"PING", b"\xff"], [b"ECHO", b"a\r\nb"], [b"CLIENT", b"GETNAME"]]
# Each of these makes the server close the connection, with or without an error.
BROKEN = [
    *(b"*x\r\n", b"*1\r\nfoo\r\n", b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n", b'"abc\r\n', b"*2147483648\r\n"),
    *(b"*1\r\n\xff\r\n", b"*1\r\n$600000000\r\n", b"*\r\n", b"*1\r\n$\r\n", b"*2\r\n$4\r\nPING\r\n:1\r\n"),
    *(b"*2\r\n$4\r\nPING\r\n*1\r\n", b"*1\r\n%1\r\n", b"*1\r\n$-5\r\n", b"*1 \r\n$4\r\nPING\r\n", b"Quit\n"),
]  # fmt: skip


class SessionWorld:
    """The random choices of one round."""

    def __init__(self, dice: random.Random, level: str) -> None:
        self.dice = dice
        self.streams = World(dice, level)
        self.keys = KeyWorld(dice)
        self.keys.longest_embedded = level in ("7.0", "8.0")
        self.lists = ListWorld(dice)
        self.lists.wide_places = level == "7.0"
        # All three use the same streams, so commands that must not be mixed are switched off in all of them.
        self.keys.deletes = self.streams.deletes
        self.keys.min_ids = self.streams.min_ids
        self.keys.nodes_differ = self.streams.nodes_differ
        self.keys.references = self.streams.references
        self.deletes = self.streams.deletes
        self.nodes_differ = self.streams.nodes_differ
        self.bytes_max = self.streams.bytes_max
        self.entries_max = self.streams.entries_max
        self._worlds: list[Callable[[], Words]] = [
            *[self.streams.command] * 9,
            *[self.keys.command] * 6,
            *[self.lists.command] * 4,
            self._about_lists,
        ]

    def command(self, in_multi: bool, resp3: bool) -> Words:
        """The next command of a client."""
        kind = self.dice.random()
        if in_multi and kind < 0.15:
            return self._in_multi()
        if kind < 0.03:
            return [b"MULTI"]
        if kind < 0.05:
            return self._watch()
        if kind < 0.07:
            return [
                self.dice.choice([b"PUBLISH", b"PUBLISH", b"SPUBLISH"]),
                self.dice.choice(CHANNELS),
                self.dice.choice([b"", b"sun", b"\r\n"]),
            ]
        if kind < 0.09 and resp3 and not in_multi:
            return self._subscribe()
        if kind < 0.11:
            return self.dice.choice(NONSENSE if self.dice.random() < 0.7 else SENSE)
        if kind < 0.112 and not in_multi:
            return [b"RESET"]
        return self._about_data()

    def _about_data(self) -> Words:
        words = self.dice.choice(self._worlds)()
        self.streams._ms = self.keys._ms = max(self.streams._ms, self.keys._ms)
        return words

    def _about_lists(self) -> Words:
        """A command for keys of any type, with a list as its key."""
        words = self.dice.choice(
            [self.keys.rename, self.keys.expire, self.keys.copy, self.keys.ttl]
        )()
        words[1] = self.dice.choice(LIST_KEYS)
        return words

    def _in_multi(self) -> Words:
        kind = self.dice.random()
        if kind < 0.75:
            return [b"EXEC"]
        if kind < 0.9:
            return [b"DISCARD"]
        return self.dice.choice([[b"MULTI"], [b"RESET"], [b"WATCH", b"a"], [b"UNWATCH"]])

    def _watch(self) -> Words:
        if self.dice.random() < 0.1:
            return self.dice.choice([[b"UNWATCH"], [b"EXEC"], [b"DISCARD"]])
        # The removal of a key that had expired before it was watched breaks the watch here, not in Redis.
        keys = LIST_KEYS if self.keys.overdue else [*ALL_KEYS, *LIST_KEYS]
        return [b"WATCH", *(self.dice.choice(keys) for _ in range(3))]

    def _subscribe(self) -> Words:
        command = self.dice.choice([b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"])
        names = PATTERNS if command == b"PSUBSCRIBE" else CHANNELS
        if self.dice.random() < 0.5:
            command = command.replace(b"SUB", b"UNSUB")
            if self.dice.random() < 0.3:
                return [command]
        return [command, *(self.dice.choice(names) for _ in range(self.dice.choice([1, 1, 2])))]

    def data(self, words: Words) -> bytes:
        """The bytes of a command, as an array or inline, sometimes after an empty command."""
        blank = (
            self.dice.choice([b"\r\n", b"*0\r\n", b"*-1\r\n"]) if self.dice.random() < 0.01 else b""
        )
        if self.dice.random() < 0.05 and all(IN_A_LINE.fullmatch(word) for word in words):
            return blank + b" ".join(words) + self.dice.choice([b"\r\n", b"\n"])
        return blank + encode(words)
