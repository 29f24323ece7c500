"""Measures the embedded database on disk, beside SQLite: one process, one thread.

    python benchmarks/embedded.py [--rounds 5] [--calls 200000] [--write]

A queue in SQLite is a table with an index on the state of its rows; a read and acknowledge is one transaction
that takes the oldest new row, and one that deletes it. Journal and sync: `WAL` with `synchronous=FULL` beside
`appendfsync always` (on disk before the call returns), `NORMAL` beside `everysec` (synced now and then).
All sides run in turn in each round, each in a new directory.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _tables import machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import penstock
from penstock import build

ROOT = Path(__file__).resolve().parent.parent
HEAD = ["embedded, on disk", "penstock/s", "SQLite/s", "ratio"]
SYNCED_SHARE = 0.02  # of the calls, where each waits for the disk

Rates = dict[str, float]


def rate(calls: int, run: Callable[[int], None]) -> float:
    start = time.perf_counter()
    run(calls)
    return calls / (time.perf_counter() - start)


def penstock_rates(folder: str, policy: str, calls: int) -> Rates:
    with penstock.open(folder, appendfsync=policy) as db:

        def add(count: int) -> None:
            for _ in range(count):
                db.xadd("s", {"temp": "21"})

        def read_and_acknowledge(count: int) -> None:
            for _ in range(count):
                found = db.xreadgroup("g", "c", {"s": ">"}, count=1)
                db.xack("s", "g", found[0][1][0][0])

        rates = {"add": rate(calls, add)}
        db.xgroup_create("s", "g", "0")
        rates["read and acknowledge"] = rate(calls // 2, read_and_acknowledge)
    return rates


def sqlite_rates(folder: str, policy: str, calls: int) -> Rates:
    db = sqlite3.connect(f"{folder}/queue.db", isolation_level=None)
    db.execute("pragma journal_mode=wal")
    db.execute(f"pragma synchronous={'full' if policy == 'always' else 'normal'}")
    db.execute("create table s (id integer primary key, temp text, state integer default 0)")
    db.execute("create index by_state on s (state, id)")

    def add(count: int) -> None:
        for _ in range(count):
            db.execute("insert into s (temp) values (?)", ("21",))

    def read_and_acknowledge(count: int) -> None:
        for _ in range(count):
            taken = db.execute(
                "update s set state = 1 where id ="
                " (select id from s where state = 0 order by id limit 1) returning id, temp"
            ).fetchall()
            db.execute("delete from s where id = ?", (taken[0][0],))

    rates = {
        "add": rate(calls, add),
        "read and acknowledge": rate(calls // 2, read_and_acknowledge),
    }
    db.close()
    return rates


SIDES = (penstock_rates, sqlite_rates)


def one_round(number: int, calls: int) -> dict[str, tuple[float, float]]:
    """Both sides with both policies. Every other round begins with SQLite."""
    found = {}
    for policy in ("always", "everysec"):
        count = int(calls * SYNCED_SHARE) if policy == "always" else calls
        rates = {}
        for side in (SIDES, SIDES[::-1])[number % 2]:
            with tempfile.TemporaryDirectory() as folder:
                rates[side] = side(folder, policy, count)
        ours, theirs = (rates[side] for side in SIDES)
        for work in ours:
            found[f"{policy}: {work}"] = (ours[work], theirs[work])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit("benchmarks/embedded.py: this build is interpreted, so nothing is measured")
    rounds = []
    with Progress() as progress:
        for number in progress.track(range(given.rounds), description="rounds"):
            rounds.append(one_round(number, given.calls))
    rows = []
    for work in rounds[0]:
        ours, theirs = (statistics.median(one[work][side] for one in rounds) for side in (0, 1))
        ratio = statistics.median(one[work][0] / one[work][1] for one in rounds)
        rows.append([work, f"{ours:,.0f}", f"{theirs:,.0f}", f"{ratio:.2f}x"])
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    if given.write:
        version = f"SQLite {sqlite3.sqlite_version}"
        note = f"{given.rounds} rounds, {given.calls:,} calls; {machine_line()}, {version}"
        write_section(ROOT / "docs/performance.md", "embedded", note, [(HEAD, rows)])


if __name__ == "__main__":
    main()
