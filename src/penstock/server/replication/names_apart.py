"""The names of producers (XADD IDMP) for replicas that may not know them: Redis before 8.6, and Valkey.

    XADD s IDMP producer name 5-1 k v      such a replica refuses this, and would lack the entry

    XADD s 5-1 k v                         an entry that every replica can add
    XIDMPRECORD s producer name 5-1        its name: Redis 8.6 and penstock remember it, others refuse it

Within a transaction an unknown command would make an old replica drop the whole transaction, so the names
follow behind EXEC. There they have the key where the stream is by then: a later command of the transaction
may rename, move, copy or delete it. A message that was known already adds no entry: it is left out.

A replica of Redis does not say whether it knows the names. So the stream has them apart as soon as a replica
has asked that is not penstock, or a penstock with such a replica of its own. The primary then sends

    PING names-apart                       which other servers ignore

Replicas that are penstock go on in the same way after their promotion, and the log and snapshots note it, so
that a replica of Redis can continue after a failover and after a restart. It ends when the backlog is freed.

If the link of a replica is cut off between an entry and its name, the replica has the entry without its name.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.wire.command import encode_command
from penstock.wire.parser import Parser, WireLimits

NAMES_APART = encode_command(b"PING", b"names-apart")
"""From here on the stream has the names apart."""

_NAMED = b"$4\r\nIDMP\r\n"
_ANY_BYTES = 2**62
_NAME_WORDS = 5  # XADD key IDMP producer name
_TRIM_WORDS = 3  # MAXLEN = n
# Commands after which a stream, or what it remembers of its producers, is gone; and where their keys are.
_ENDING = {
    b"DEL": slice(1, None),
    b"UNLINK": slice(1, None),
    b"MSET": slice(1, None, 2),
    b"SET": slice(1, 2),
    b"RESTORE": slice(1, 2),
    b"XCFGSET": slice(1, 2),
}

_Place = tuple[int, bytes]
_Name = tuple[bytes, bytes, bytes]


def may_have_names(data: bytes) -> bool:
    """Whether a part of the stream may have entries with names. A value can look like one."""
    return _NAMED in data


def names_apart(data: bytes, database: int) -> bytes:
    """The same effects with each name behind its entry. `data`: whole units; `database`: selected before."""
    if not may_have_names(data):
        return data
    limits = WireLimits()
    limits.bulk_bytes_max = _ANY_BYTES
    parser, frame, buffer = Parser(limits), Frame(), bytearray(data)
    splitting = _Splitting(database)
    while True:
        start = parser.start
        if not parser.next(frame, buffer, len(buffer)):
            return bytes(splitting.out)
        splitting.take(frame, buffer[start : parser.start])


class _Splitting:
    """Takes one command after the other. `out`: what replicas get."""

    def __init__(self, database: int) -> None:
        self.out = bytearray()
        self._database = database
        self._in_unit = False
        self._names: dict[_Place, list[_Name]] = {}  # that wait for the end of the unit

    def take(self, frame: Frame, raw: bytearray) -> None:
        """One command, and its bytes."""
        if frame.is_word(0, b"SELECT"):
            self._database = int(frame.piece(1))
        elif frame.is_word(0, b"MULTI"):
            self._in_unit = True
        elif frame.is_word(0, b"EXEC"):
            self._in_unit = False
        elif frame.is_word(0, b"XADD") and frame.is_word(2, b"IDMP"):
            raw = self._without_name(frame)
        elif self._names:
            self._follow([frame.piece(at) for at in range(frame.count)])
        self.out += raw
        if not self._in_unit:
            self._put_names()

    def _without_name(self, frame: Frame) -> bytearray:
        words = [frame.piece(at) for at in range(frame.count)]
        key, producer, name = words[1], words[3], words[4]
        at = _NAME_WORDS
        if words[at] in (b"MAXLEN", b"MINID"):
            at += _TRIM_WORDS
        if words[at] in (b"ACKED", b"DELREF"):
            at += 1
        if words[at] == b"*":
            return bytearray()
        self._names.setdefault((self._database, key), []).append((producer, name, words[at]))
        return bytearray(encode_command(b"XADD", key, *words[_NAME_WORDS:]))

    def _follow(self, words: list[bytes]) -> None:
        """Where the streams are whose names wait. Each command is an effect: it has changed something."""
        word = words[0].upper()
        if word in _ENDING:
            for key in words[_ENDING[word]]:
                self._names.pop((self._database, key), None)
        elif word in (b"RENAME", b"RENAMENX"):
            self._put(self._take(self._database, words[1]), self._database, words[2])
        elif word == b"MOVE":
            self._put(self._take(self._database, words[1]), int(words[2]), words[1])
        elif word == b"COPY":
            options = [option.upper() for option in words[3:]]
            database = (
                int(options[options.index(b"DB") + 1]) if b"DB" in options else self._database
            )
            copied = list(self._names.get((self._database, words[1]), ()))
            self._put(copied, database, words[2])
        elif word == b"SWAPDB":
            other = {int(words[1]): int(words[2]), int(words[2]): int(words[1])}
            self._names = {(other.get(n, n), key): names for (n, key), names in self._names.items()}
        elif word == b"FLUSHDB":
            self._names = {
                place: names for place, names in self._names.items() if place[0] != self._database
            }
        elif word == b"FLUSHALL":
            self._names.clear()

    def _take(self, database: int, key: bytes) -> list[_Name]:
        return self._names.pop((database, key), [])

    def _put(self, names: list[_Name], database: int, key: bytes) -> None:
        """A stream is at a place now; what was there is gone."""
        self._names.pop((database, key), None)
        if names:
            self._names[database, key] = names

    def _put_names(self) -> None:
        selected = self._database
        for (database, key), names in self._names.items():
            selected = self._select(selected, database)
            for producer, name, entry_id in names:
                self.out += encode_command(b"XIDMPRECORD", key, producer, name, entry_id)
        self._select(selected, self._database)
        self._names.clear()

    def _select(self, selected: int, database: int) -> int:
        if database != selected:
            self.out += encode_command(b"SELECT", b"%d" % database)
        return database
