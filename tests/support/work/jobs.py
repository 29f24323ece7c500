"""The App of the campaign, a module that workers and their children import. It notes every attempt in a file.

    begin NUMBER ATTEMPT PID TIME
    end   NUMBER ATTEMPT PID TIME

A line is one write with O_APPEND, so lines of many processes do not mix, and a kill loses none.
`python -m tests.support.work.jobs DIRECTORY PORT` runs a worker on an embedded database that it also serves;
`penstock worker tests.support.work.jobs:app` runs one on a server.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any, TypedDict

import penstock
from penstock.work import App, Message
from penstock.work.backend import EmbeddedBackend
from tests.support.campaign import SOAK

FOLDER = Path(os.environ.get("CAMPAIGN_FOLDER", "."))
# More in a soak: with hundreds of kills, one of them may hit a healthy entry several times.
ATTEMPTS = 6 if SOAK else 4
LEASE = 1.0
BACKOFF = (0.1, 0.4)
DELAY = 0.5
KEYS = 50
GROUP = "campaign"
HANDLERS = ("plain", "keyed", "children", "children")

_local = threading.local()
_lock = threading.Lock()
_lines: list[int] = []


class Payload(TypedDict):
    """What is sent."""

    number: int
    key: int


class GivenOptions(TypedDict):
    attempts: int
    backoff: tuple[float, float]
    lease: float


OPTIONS: GivenOptions = {"attempts": ATTEMPTS, "backoff": BACKOFF, "lease": LEASE}
app = App(os.environ.get("CAMPAIGN_URL", "memory:"), group=GROUP)


def handler_of(number: int) -> str:
    """The handler of a number."""
    return HANDLERS[number % len(HANDLERS)]


def is_keyed(number: int) -> bool:
    return handler_of(number) == "keyed"


def is_poison(number: int) -> bool:
    """Ends its process in every attempt: 0.1% of the entries. Half of them end a child."""
    return number % 2000 == 138 or number % 5000 in (136, 1137)


def is_long(number: int) -> bool:
    """Runs for five leases: 0.01%, of all handlers."""
    return number % 9_999 == 555


def fails_first(number: int) -> bool:
    """Raises in its first attempt: 1% of the entries."""
    return number % 99 == 42 and not is_poison(number)


def is_delayed(number: int) -> bool:
    """Is sent for later: 1% of the entries, but none with a key, so that the order is that of the numbers."""
    return number % 101 == 7 and not is_keyed(number)


def payload_of(number: int) -> Payload:
    """What is sent under a number."""
    return {"number": number, "key": number // len(HANDLERS) % KEYS}


def _note(what: str, number: int, msg: Message) -> None:
    with _lock:
        if not _lines:
            flags = os.O_APPEND | os.O_CREAT | os.O_WRONLY
            _lines.append(os.open(FOLDER / "attempts", flags))
    words = (what, number, msg.attempt, os.getpid(), time.time())
    os.write(_lines[0], (" ".join(map(str, words)) + "\n").encode())


def _database() -> sqlite3.Connection:
    """The connection of this thread. Processes are killed, not the machine: nothing has to reach the disk."""
    found: sqlite3.Connection | None = getattr(_local, "database", None)
    if found is None:
        found = _local.database = sqlite3.connect(FOLDER / "effects.db", timeout=30)
        found.execute("PRAGMA synchronous = OFF")
    return found


def _handle(number: int, msg: Message) -> None:
    _note("begin", number, msg)
    if is_poison(number):
        os._exit(9)
    try:
        if is_long(number) and msg.attempt == 1:
            time.sleep(5 * LEASE)
        if fails_first(number) and msg.attempt == 1:
            raise ValueError("the first attempt")
        database = _database()
        with msg.once(database) as new:
            if new:
                database.execute("INSERT INTO effects VALUES (?)", (number,))
    finally:
        _note("end", number, msg)
    msg.send("receipts", number)


@app.on("plain", concurrency=4, **OPTIONS)
def plain(payload: Payload, msg: Message) -> None:
    _handle(payload["number"], msg)


@app.on("keyed", key="key", partitions=2, concurrency=4, **OPTIONS)
def keyed(payload: Payload, msg: Message) -> None:
    _handle(payload["number"], msg)


@app.on("children", processes=True, concurrency=2, **OPTIONS)
def children(payload: Payload, msg: Message) -> None:
    _handle(payload["number"], msg)


STREAMS = tuple(stream for handler in app.handlers.values() for stream in handler.streams())


def main(directory: str, port: int) -> None:
    # By its name, as the children import it.
    found: Any = importlib.import_module("tests.support.work.jobs").app
    with penstock.open(directory) as database, database.serve(port=port):
        found.use(EmbeddedBackend(database))
        found.run(drain=20)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
