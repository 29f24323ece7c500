"""Clients that add entries, send messages under names, trim, and edit lists."""

from __future__ import annotations

import itertools
import random
from typing import Any

from tests.support.disk.ledger import Ledger, Trim, Unit
from tests.support.disk.names import Message
from tests.support.disk.server_state import (
    LISTS,
    STREAMS,
    TRIMMED,
    Number,
    fields_of,
    id_number,
)
from tests.support.servers.raw_redis import RawRedis, Refusal

_PIPELINE_MAX = 30
_LENGTH_MIN = 120  # more than all clients can add without a reply: a trim must not remove those
_PRODUCERS = (b"p", b"q")
_numbers = itertools.count(1)  # for unique tokens


def check_answered(reply: Any) -> None:
    """Check that a healthy server refused nothing."""
    assert not isinstance(reply, Refusal), reply


class Adder:
    """A client that adds entries with tokens."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self._name = name
        self._ledger = ledger
        self._last: dict[bytes, Number] = {}

    def _token(self) -> bytes:
        return b"%s:%d" % (self._name.encode(), next(_numbers))

    def _ask(self, *pairs: tuple[bytes, bytes]) -> Unit:
        """Note that entries are about to be added, all or none of them."""
        unit = Unit([*pairs])
        self._ledger.asked_adds[self._name].append(unit)
        return unit

    def _note(self, unit: Unit, *replies: Any) -> None:
        """Note that they were added."""
        for (stream, token), reply in zip(unit.tokens, replies, strict=True):
            check_answered(reply)
            number = id_number(reply)
            before = self._last.get(stream, self._ledger.floor.get(stream, (0, 0)))
            assert number > before, f"{reply!r} is not above {before}"
            self._last[stream] = number
            self._ledger.added[stream, reply] = token
        self._ledger.asked_adds[self._name].remove(unit)


class Writer(Adder):
    """Adds entries one by one, in pipelines, and in transactions of one for each stream."""

    def work(self, client: RawRedis, dice: random.Random) -> None:
        way = dice.random()
        if way < 0.15:
            unit = self._ask(*((stream, self._token()) for stream in STREAMS))
            adds = [_xadd(stream, token, 10) for stream, token in unit.tokens]
            *_, replies = client.ask([[b"MULTI"], *adds, [b"EXEC"]])
            self._note(unit, *replies)
            return
        count = 1 if way < 0.7 else dice.randrange(2, _PIPELINE_MAX)
        streams = [dice.choice([*STREAMS, TRIMMED]) for _ in range(count)]
        units = [self._ask((stream, self._token())) for stream in streams]
        size = dice.choice([0, 20, 200, 2000])
        client.send([_xadd(*unit.tokens[0], size) for unit in units])
        for unit in units:
            self._note(unit, client.read())


def _xadd(stream: bytes, token: bytes, size: int) -> list[bytes]:
    return [b"XADD", stream, b"*", *fields_of(token, size)]


class Producer(Adder):
    """Sends messages under names, repeats some of them, and changes how many names a stream remembers."""

    def work(self, client: RawRedis, dice: random.Random) -> None:
        stream = dice.choice(STREAMS)
        names = self._ledger.names[stream]
        known = names.all()
        way = dice.random()
        if way < 0.03:
            settings = (dice.choice([3600, 7200]), dice.choice([2, 20, 200]))
            self._ledger.asked_settings = (stream, settings)
            words = [b"IDMP-DURATION", b"%d" % settings[0], b"IDMP-MAXSIZE", b"%d" % settings[1]]
            assert client.ask([[b"XCFGSET", stream, *words]]) == ["OK"]
            names.use(settings)
            self._ledger.asked_settings = None
        elif way < 0.4 and known:
            message, entry_id = dice.choice(known)
            [reply] = client.ask([message.words])
            assert reply == entry_id, f"{message} was {entry_id!r} and is {reply!r}"
        else:
            message = self._message(stream, dice)
            unit = self._ask((stream, message.token))
            self._ledger.asked_message = message
            [reply] = client.ask([message.words])
            self._note(unit, reply)
            names.record(message, reply)
            self._ledger.asked_message = None

    def _message(self, stream: bytes, dice: random.Random) -> Message:
        producer, token = dice.choice(_PRODUCERS), self._token()
        name = [b"IDMP", producer, token] if dice.random() < 0.5 else [b"IDMPAUTO", producer]
        words = [b"XADD", stream, *name, b"*", *fields_of(token, 10)]
        return Message(stream, producer, token, words)


class Trimmer(Adder):
    """Trims a stream, with XTRIM or while it adds. The only client that does."""

    _length = 0
    _options: tuple[bytes, ...] = ()

    def work(self, client: RawRedis, dice: random.Random) -> None:
        ledger = self._ledger
        # A plain trim hides what trims with ACKED have left: some runs have only one kind.
        both = (b"KEEPREF", b"DELREF", b"ACKED")
        self._options = self._options or dice.choice([both, both[:2], both[2:], both[2:]])
        option = dice.choice(self._options)
        keep = self._length - dice.randrange(1, 10)
        keep = max(0 if option == b"ACKED" else _LENGTH_MIN, keep)
        how = [option, b"MAXLEN", b"=", b"%d" % keep]
        unit = None
        words = [b"XTRIM", TRIMMED, *how[1:], option]
        if dice.random() < 0.5:
            unit = self._ask((TRIMMED, self._token()))
            words = [b"XADD", TRIMMED, *how, b"*", *fields_of(unit.tokens[0][1], 10)]
        ledger.asked_trim = Trim(option, unit.tokens[0][1] if unit else None)
        length, first = [b"XLEN", TRIMMED], [b"XRANGE", TRIMMED, b"-", b"+", b"COUNT", b"1"]
        *_, replies = client.ask([[b"MULTI"], length, words, length, first, [b"EXEC"]])
        check_answered(replies)
        before, reply, self._length, entries = replies
        if unit is not None:
            self._note(unit, reply)
        removed = before - self._length + (unit is not None)
        assert unit is not None or reply == removed
        ledger.trimmed_count += removed
        if removed and option != b"ACKED":
            ledger.trimmed_up_to = id_number(entries[0][0])
        if removed and option == b"DELREF":
            ledger.forgotten_up_to = ledger.trimmed_up_to
        ledger.asked_trim = None


class ListEditor:
    """Edits two lists. The only client that does."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def work(self, client: RawRedis, dice: random.Random) -> None:
        lists = {key: [*items] for key, items in self._ledger.lists.items()}
        words, expected = self._edit(lists, dice)
        self._ledger.asked_lists = lists
        assert client.ask([words]) == [expected]
        self._ledger.lists = lists
        self._ledger.asked_lists = None

    @staticmethod
    def _edit(lists: dict[bytes, list[bytes]], dice: random.Random) -> tuple[list[bytes], Any]:
        """Change the lists; return the command that does the same, and its reply."""
        key = dice.choice(LISTS)
        items = lists[key]
        item = b"%d" % next(_numbers) * dice.choice([1, 10, 1000])
        command = dice.choice([b"RPUSH", b"LSET", b"LINSERT", b"LMPOP"])
        if not items or command == b"RPUSH":
            items.append(item)
            return [b"RPUSH", key, item], len(items)
        at = dice.randrange(len(items))
        if command == b"LSET":
            items[at] = item
            return [b"LSET", key, b"%d" % at, item], "OK"
        if command == b"LINSERT":
            pivot = items[at]
            items.insert(items.index(pivot) + 1, item)
            return [b"LINSERT", key, b"AFTER", pivot, item], len(items)
        count = dice.choice([1, 1, 1, len(items)])
        popped = items[::-1][:count]
        del items[-count:]
        return [b"LMPOP", b"2", key, b"none", b"RIGHT", b"COUNT", b"%d" % count], [key, popped]
