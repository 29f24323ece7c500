"""Random sequences of work commands, and what two backends must agree on.

Idle times depend on the clock, so leases and delays are 0 (due now) or an hour (not due in this test), and
replies are compared without generated ids: each entry has a number in its fields.
"""

from __future__ import annotations

import random
from typing import Any

from penstock.engine.commands.work.rows import LOOK_MS
from penstock.errors import CommandError
from penstock.work.backend import Backend, Word

HOUR_MS = 3_600_000
STREAM, DEAD, DELAYED, OWNER, OUT = "s", "s:dead", "s:delayed", "s:owner", "out"
CONSUMERS = ("a", "b")
Step = tuple[str, tuple[Any, ...]]


def steps(dice: random.Random, count: int) -> list[Step]:
    """A random sequence. Rows are named by their place among those that a consumer was given."""
    made: list[Step] = []
    for number in range(count):
        consumer = dice.choice(CONSUMERS)
        place = dice.randrange(6)
        name = dice.choice(
            [
                "send",
                "send",
                "send",
                "take",
                "take",
                "take",
                "renew",
                "settle",
                "settle",
                "own",
                "adopt",
                "expire",
                "reap",
                "delete",
                "destroy" if dice.random() < 0.1 else "take",
            ]
        )
        made.append((name, (consumer, place, number, dice.random(), dice.random())))
    return made


class Player:
    """Plays steps on one backend, and notes what they return."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._names: dict[str, str] = {}  # number of an entry by its id
        self._given: dict[str, list[tuple[str, int]]] = {name: [] for name in CONSUMERS}
        backend.ask("XGROUP", "CREATE", STREAM, "g", "0", "MKSTREAM")

    def play(self, step: Step) -> Any:
        """Run a step; return its reply in words that do not depend on ids."""
        name, arguments = step
        try:
            return getattr(self, f"_{name}")(*arguments)
        except CommandError as error:
            return error.code

    def _work(self, name: str, keys: list[str], *words: Word) -> Any:
        return self._backend.work(name, keys, words)

    def _row(self, consumer: str, place: int) -> tuple[str, int]:
        given = self._given[consumer] or [("1-1", 1)]
        return given[-1 - place % len(given)]

    def _send(self, _: str, place: int, number: int, late: float, once: float) -> Any:
        delay = HOUR_MS if late < 0.1 else 0
        mark = 3 if once < 0.3 else 0
        keys = [STREAM, DELAYED, f"mark:{place % 2}"]
        words = (1, 2 if delay else 0, mark, delay, HOUR_MS, 2, "n", number)
        return self._work("SEND", keys, *words) is None

    def _take(self, consumer: str, place: int, _: int, mode: float, short: float) -> Any:
        word = "ANY" if mode < 0.6 else "ALONE" if mode < 0.9 else "NEW"
        keys = [STREAM, DEAD, DELAYED, *([OWNER] if word == "NEW" else [])]
        words = ("g", consumer, HOUR_MS, 3, 1 + place, word)
        rows, left, wait_ms, buried, _ = self._work("TAKE", keys, *words)
        soon = wait_ms if wait_ms <= LOOK_MS else HOUR_MS
        return [self._noted(consumer, rows), left, soon, self._named(buried)]

    def _named(self, ids: list[bytes]) -> list[str | None]:
        return [self._names.get(entry_id.decode()) for entry_id in ids]

    def _noted(self, consumer: str, rows: list[Any]) -> list[Any]:
        shown = []
        for entry_id, fields, attempt, suspect, *_ in rows:
            self._names[entry_id.decode()] = fields[1].decode()
            self._given[consumer].append((entry_id.decode(), attempt))
            shown.append((fields, attempt, suspect))
        return shown

    def _renew(self, consumer: str, place: int, _: int, other: float, more: float) -> Any:
        entry_id, attempt = self._row(CONSUMERS[other < 0.2], place)
        keys = [STREAM, OWNER] if more < 0.3 else [STREAM]
        words = ("g", consumer, HOUR_MS, entry_id, attempt, attempt + (more < 0.1))
        return [self._names.get(lost.decode()) for lost in self._work("RENEW", keys, *words)]

    def _settle(self, consumer: str, place: int, number: int, kind: float, late: float) -> Any:
        words: list[Word] = []
        for index in range(1 + place % 3):
            entry_id, attempt = self._row(consumer, place + index)
            if kind < 0.3:
                words += ["ACK", entry_id, attempt]
            elif kind < 0.8:
                words += ["RETRY", entry_id, attempt, 0 if late < 0.6 else HOUR_MS, attempt]
            else:
                words += ["DEAD", entry_id, attempt, "bad", "trace"]
            words += ["SEND", 3, 0, 0, 0, 1, 2, "n", number]
        return self._work("SETTLE", [STREAM, DEAD, OUT], "g", consumer, *words)

    def _expire(self, consumer: str, place: int, *_: Any) -> Any:
        """The lease of a row ends."""
        entry_id, _attempt = self._row(consumer, place)
        if not self._entries(STREAM, entry_id, entry_id):
            return None  # Redis 6.2 claims the rows of deleted entries, 7.0 removes them
        words = ("XCLAIM", STREAM, "g", consumer, 0, entry_id, "IDLE", 24 * HOUR_MS, "JUSTID")
        return len(self._backend.ask(*words))

    def _own(self, consumer: str, _: int, __: int, give_up: float, keep: float) -> Any:
        if keep > 0.8:
            return self._work("OWN", [OWNER], consumer, HOUR_MS, "TO", CONSUMERS[give_up < 0.5])
        option = ["KEEP"] if keep < 0.3 else []
        return self._work("OWN", [OWNER], consumer, 0 if give_up < 0.3 else HOUR_MS, *option)

    def _adopt(self, consumer: str, place: int, *_: Any) -> Any:
        keys = [STREAM, DEAD, OWNER]
        rows, more, buried = self._work("ADOPT", keys, "g", consumer, HOUR_MS, 3, "0-0", 1 + place)
        due = [row[4] > 0 for row in rows]
        return [self._noted(consumer, rows), due, more is None, self._named(buried)]

    def _reap(self, consumer: str, place: int, *_: Any) -> Any:
        named = [consumer] if place % 2 else []
        return self._work("REAP", [STREAM], "g", 0 if named else HOUR_MS, *named)

    def _delete(self, consumer: str, place: int, *_: Any) -> Any:
        return self._backend.ask("XDEL", STREAM, self._row(consumer, place)[0])

    def _destroy(self, *_: Any) -> Any:
        self._backend.ask("XGROUP", "DESTROY", STREAM, "g")
        self._backend.ask("XGROUP", "CREATE", STREAM, "g", "0")
        return None

    def state(self, backend: Backend | None = None) -> dict[str, Any]:
        """The data that both must have in the end; of another backend, if given."""
        self._backend = backend or self._backend
        rows = self._backend.ask("XPENDING", STREAM, "g", "-", "+", 1000)
        return {
            "pending": [(self._names.get(row[0].decode()), row[1], row[3]) for row in rows],
            "dead": self._values(DEAD),
            "out": self._values(OUT),
            "stream": self._values(STREAM),
            "delayed": self._values(DELAYED),
        }

    def _values(self, key: str) -> list[Any]:
        return [
            [piece for at, piece in enumerate(fields) if fields[at - at % 2] != b"_source_id"]
            for _, fields in self._entries(key, "-", "+")
        ]

    def _entries(self, key: str, first: str, last: str) -> list[Any]:
        found = self._backend.ask("XRANGE", key, first, last)
        return found if isinstance(found, list) else list(found.entries())
