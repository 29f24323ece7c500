"""Clients that put load on a server until it dies or they are stopped, and record its replies in a ledger."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from typing import Any

from tests.support.disk.ledger import GROUP, STREAMS, Ledger, Place, Unit, fields_of, id_number
from tests.support.servers.raw_redis import RawRedis, Refusal

WRITERS = 3
READERS = 3
CLERKS = (b"clerk", b"deputy")
_PIPELINE_MAX = 30


def prepare(port: int) -> None:
    """Create the streams and their groups."""
    with RawRedis(port) as client:
        made = client.ask([[b"XGROUP", b"CREATE", s, GROUP, b"0", b"MKSTREAM"] for s in STREAMS])
        assert made == ["OK"] * len(STREAMS)


class Workload:
    """Threads: writers, readers, a clerk. End them with stop() or join(). `errors`: what they found wrong."""

    numbers = itertools.count(1)  # for unique tokens

    def __init__(self, port: int, ledger: Ledger, dice: random.Random) -> None:
        self.ledger = ledger
        self.errors: list[BaseException] = []
        self._port = port
        self._stop = threading.Event()
        jobs: list[Callable[[RawRedis, random.Random], None]] = [self._sweep]
        jobs += [_Writer(f"w{n}", self).work for n in range(WRITERS)]
        jobs += [_Reader(b"r%d" % n, self).work for n in range(READERS)]
        self._threads = [
            threading.Thread(target=self._run, args=(job, random.Random(dice.random())))
            for job in jobs
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the clients stop after their current reply, and wait for them."""
        self._stop.set()
        self.join()

    def join(self) -> None:
        """Wait until all clients have ended. Raises the first error of any of them."""
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _run(self, job: Callable[[RawRedis, random.Random], None], dice: random.Random) -> None:
        try:
            with RawRedis(self._port) as client:
                while not self._stop.is_set():
                    job(client, dice)
        except (OSError, EOFError):
            pass  # the server is gone
        except BaseException as error:  # noqa: BLE001 - join() raises it
            self.errors.append(error)

    def _sweep(self, client: RawRedis, dice: random.Random) -> None:
        """Claim unacknowledged entries of others, by id or with XAUTOCLAIM."""
        ledger = self.ledger
        stream, clerk = dice.choice(STREAMS), dice.choice(CLERKS)
        if dice.random() < 0.3:
            ledger.asked_sweeps.add((stream, clerk))
            words = [b"XAUTOCLAIM", stream, GROUP, clerk, b"0", b"0", b"COUNT", b"5"]
            [reply] = client.ask([words])
            entries = reply[1]
            grows = True
        else:
            known = list(ledger.delivered)[-200:]
            places = [p for p in known if p[0] == stream and p not in ledger.acked]
            ids = [place[1] for place in dice.sample(places, min(5, len(places)))]
            if not ids:
                return
            for entry_id in ids:
                ledger.asked_claims[stream, entry_id].append(clerk)
            grows = dice.random() < 0.5
            words = [b"XCLAIM", stream, GROUP, clerk, b"0", *ids, *([] if grows else [b"JUSTID"])]
            [entries] = client.ask([words])
        check_answered(entries)
        for entry in entries:
            place = (stream, entry[0] if grows else entry)
            before = ledger.claimed[place][1] if place in ledger.claimed else 1
            ledger.claimed[place] = (clerk, before + grows)
        ledger.asked_sweeps.clear()
        ledger.asked_claims.clear()


def check_answered(reply: Any) -> None:
    """Check that a healthy server refused nothing."""
    assert not isinstance(reply, Refusal), reply


class _Writer:
    """Adds entries one by one, in pipelines, and in transactions of two."""

    def __init__(self, name: str, load: Workload) -> None:
        self._name = name
        self._ledger = load.ledger
        self._last: dict[bytes, tuple[int, int]] = {}

    def work(self, client: RawRedis, dice: random.Random) -> None:
        way = dice.random()
        if way < 0.15:
            self._add_both(client)
            return
        count = 1 if way < 0.7 else dice.randrange(2, _PIPELINE_MAX)
        units = [Unit([(dice.choice(STREAMS), self._token())]) for _ in range(count)]
        asked = self._ledger.asked_adds[self._name]
        asked += units
        size = dice.choice([0, 20, 200, 2000])
        client.send([_xadd(*unit.tokens[0], size) for unit in units])
        for unit in units:
            self._note(*unit.tokens[0], client.read())
            asked.remove(unit)

    def _add_both(self, client: RawRedis) -> None:
        unit = Unit([(stream, self._token()) for stream in STREAMS])
        asked = self._ledger.asked_adds[self._name]
        asked.append(unit)
        adds = [_xadd(stream, token, 10) for stream, token in unit.tokens]
        *_, replies = client.ask([[b"MULTI"], *adds, [b"EXEC"]])
        for (stream, token), reply in zip(unit.tokens, replies, strict=True):
            self._note(stream, token, reply)
        asked.remove(unit)

    def _token(self) -> bytes:
        return b"%s:%d" % (self._name.encode(), next(Workload.numbers))

    def _note(self, stream: bytes, token: bytes, reply: Any) -> None:
        check_answered(reply)
        number = id_number(reply)
        before = self._last.get(stream, self._ledger.floor.get(stream, (0, 0)))
        assert number > before, f"{reply!r} is not above {before}"
        self._last[stream] = number
        self._ledger.added[stream, reply] = token


def _xadd(stream: bytes, token: bytes, size: int) -> list[bytes]:
    return [b"XADD", stream, b"*", *fields_of(token, size)]


class _Reader:
    """Reads for a group, acknowledges most entries, and deletes some of those."""

    def __init__(self, name: bytes, load: Workload) -> None:
        self._name = name
        self._ledger = load.ledger

    def work(self, client: RawRedis, dice: random.Random) -> None:
        places = self._read(client, dice.choice(STREAMS), dice.randrange(1, 40))
        done = [place for place in places if dice.random() < 0.9]
        if done:
            self._remove(client, b"XACK", done, self._ledger.asked_acks, self._ledger.acked)
        gone = [place for place in done if dice.random() < 0.2]
        if gone:
            self._remove(client, b"XDEL", gone, self._ledger.asked_deletes, self._ledger.deleted)

    def _read(self, client: RawRedis, stream: bytes, count: int) -> list[Place]:
        ledger = self._ledger
        asked = (stream, self._name)
        ledger.asked_reads.add(asked)
        words = [b"XREADGROUP", b"GROUP", GROUP, self._name, b"COUNT", b"%d" % count]
        [reply] = client.ask([[*words, b"BLOCK", b"50", b"STREAMS", stream, b">"]])
        check_answered(reply)
        places = []
        if isinstance(reply, list):
            for entry_id, _ in reply[0][1]:
                place = (stream, entry_id)
                assert place not in ledger.delivered, f"{place} is delivered twice"
                ledger.delivered[place] = self._name
                places.append(place)
        ledger.asked_reads.discard(asked)
        return places

    def _remove(
        self,
        client: RawRedis,
        name: bytes,
        places: list[Place],
        asked: set[Place],
        told: set[Place],
    ) -> None:
        stream = places[0][0]
        asked.update(places)
        group = [GROUP] if name == b"XACK" else []
        [count] = client.ask([[name, stream, *group, *(entry_id for _, entry_id in places)]])
        assert count == len(places)
        told.update(places)
        asked.difference_update(places)
