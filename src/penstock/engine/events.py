"""Keyspace events: their kinds, the setting that enables them, and how they are published.

notify-keyspace-events KEA        K and E choose the channels, the other letters the kinds of events

SUBSCRIBE __keyspace@0__:orders   ->  xadd
SUBSCRIBE __keyevent@0__:xadd     ->  orders
"""

from __future__ import annotations

from penstock.engine.channels import Channels

KEYSPACE = 1
KEYEVENT = 2
GENERIC = 4
STRING = 8
LIST = 16
SET = 32
HASH = 64
SORTED_SET = 128
EXPIRED = 256
EVICTED = 512
STREAM = 1024
KEY_MISS = 2048
MODULE = 8192
NEW_KEY = 16384

_ALL = GENERIC | STRING | LIST | SET | HASH | SORTED_SET | EXPIRED | EVICTED | STREAM | MODULE

# The order in which CONFIG GET shows them.
_LETTERS = {
    "g": GENERIC,
    "$": STRING,
    "l": LIST,
    "s": SET,
    "h": HASH,
    "z": SORTED_SET,
    "x": EXPIRED,
    "e": EVICTED,
    "t": STREAM,
    "d": MODULE,
    "n": NEW_KEY,
    "K": KEYSPACE,
    "E": KEYEVENT,
    "m": KEY_MISS,
}


def parse_kinds_or_none(text: str) -> int | None:
    """The kinds that a setting's letters name; None if a letter is unknown."""
    kinds = 0
    for letter in text:
        if letter == "A":
            kinds |= _ALL
        elif letter in _LETTERS:
            kinds |= _LETTERS[letter]
        else:
            return None
    return kinds


def kinds_text(kinds: int) -> str:
    """The letters of a setting, in Redis's order."""
    letters = ""
    rest = kinds
    if kinds & _ALL == _ALL:
        letters, rest = "A", kinds & ~_ALL
    return letters + "".join(letter for letter, kind in _LETTERS.items() if rest & kind)


def publish(channels: Channels, kinds: int, database: int, event: bytes, key: bytes) -> None:
    """Publish an event where the kinds say."""
    if kinds & KEYSPACE:
        channels.publish(b"__keyspace@%d__:%b" % (database, key), event)
    if kinds & KEYEVENT:
        channels.publish(b"__keyevent@%d__:%b" % (database, event), key)
