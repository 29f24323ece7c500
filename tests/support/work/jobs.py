"""The App that the campaign runs: `python -m tests.support.work.jobs WHERE FOLDER PORT`.

WHERE is a URL, or the directory of an embedded database, which is then served on PORT so that the campaign
can look at it. What an entry does follows from its number. Every attempt appends lines to FOLDER/attempts
(`begin|end number key attempt pid time`) and writes to SQLite through `once`.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import penstock
from penstock.work import App, Message
from tests.support.campaign import SOAK

# More in a soak: with hundreds of kills, one of them may hit a healthy entry several times.
ATTEMPTS = 6 if SOAK else 3
LEASE = 1.0
KEYS = 50
GROUP = "campaign"
STREAMS = ("plain", "keyed")


def is_poison(number: int) -> bool:
    """Ends the process in every attempt: 0.1% of the entries."""
    return number % 2000 in (137, 1136)


def is_long(number: int) -> bool:
    """Runs for five leases."""
    return number % 10_000 == 555


def fails_first(number: int) -> bool:
    """Raises in its first attempt: 1% of the entries."""
    return number % 200 in (42, 143)


def payload_of(number: int) -> dict[str, int]:
    """What is sent under a number."""
    return {"number": number, "key": number // 2 % KEYS}


def make_app(where: Any, folder: Path) -> App:
    """The App; `folder` has its files."""
    app = App(where, group=GROUP)
    lines = os.open(folder / "attempts", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def note(what: str, payload: dict[str, int], msg: Message) -> None:
        words = (what, payload["number"], payload["key"], msg.attempt, os.getpid(), time.time())
        os.write(lines, (" ".join(map(str, words)) + "\n").encode())

    def handle(payload: dict[str, int], msg: Message) -> None:
        number = payload["number"]
        note("begin", payload, msg)
        if is_poison(number):
            os._exit(9)
        try:
            if is_long(number) and msg.attempt == 1:
                time.sleep(5 * LEASE)
            if fails_first(number) and msg.attempt == 1:
                raise ValueError("the first attempt")
            database = sqlite3.connect(folder / "effects.db", timeout=30)
            with msg.once(database) as new:
                if new:
                    database.execute("INSERT INTO effects VALUES (?)", (number,))
            database.close()
        finally:
            note("end", payload, msg)
        msg.send("receipts", number)

    options: dict[str, Any] = {"attempts": ATTEMPTS, "backoff": (0.05, 0.2), "lease": LEASE}

    @app.on("plain", concurrency=4, **options)
    def plain(payload: dict[str, int], msg: Message) -> None:
        handle(payload, msg)

    @app.on("keyed", key="key", concurrency=4, **options)
    def keyed(payload: dict[str, int], msg: Message) -> None:
        handle(payload, msg)

    return app


def main(where: str, folder: str, port: int) -> None:
    if "://" in where:
        make_app(where, Path(folder)).run(drain=20)
        return
    with penstock.open(where) as database, database.serve(port=port):
        make_app(database, Path(folder)).run(drain=20)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
