"""The names of producers (XADD IDMP) for replicas that may not know them: Redis before 8.6, and Valkey.

    XADD s IDMP producer name 5-1 k v      such a replica refuses this, and would lack the entry

    XADD s 5-1 k v                         an entry that every replica can add
    XIDMPRECORD s producer name 5-1        its name: Redis 8.6 and penstock remember it, others refuse it

Within a transaction an unknown command would make an old replica drop the whole transaction, so the names
follow behind EXEC. A message that was known already adds no entry: it is left out.

A replica of Redis does not say whether it knows the names. So the stream has them apart as soon as a replica
has asked that is no penstock. If such a link is cut off between an entry and its name, the replica has the
entry without its name.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.wire.command import encode_command
from penstock.wire.parser import Parser, WireLimits

_NAMED = b"$4\r\nIDMP\r\n"
_ANY_BYTES = 2**62
_NAME_WORDS = 5  # XADD key IDMP producer name
_TRIM_WORDS = 3  # MAXLEN = n


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
        self._names: list[tuple[int, bytes]] = []  # with their databases

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
        record = encode_command(b"XIDMPRECORD", key, producer, name, words[at])
        self._names.append((self._database, record))
        return bytearray(encode_command(b"XADD", key, *words[_NAME_WORDS:]))

    def _put_names(self) -> None:
        selected = self._database
        for database, record in self._names:
            selected = self._select(selected, database)
            self.out += record
        self._select(selected, self._database)
        self._names.clear()

    def _select(self, selected: int, database: int) -> int:
        if database != selected:
            self.out += encode_command(b"SELECT", b"%d" % database)
        return database
