"""Measures what the indexes of groups cost, which exist only where a command has asked for them.

    python benchmarks/indexes.py [--rounds 9] [--entries 100000] [--write]

Every side has one stream with two groups, compiled and embedded. They differ in the commands that one of the
groups was sent before: none, a deletion with ACKED (the stream then counts the groups that have an entry
pending), a read with CLAIM (the group then orders its pending entries by time), or both. In each round all
sides are measured in turn, in an order that rotates. The figures are CPU time: medians over the rounds, and
medians of the ratios to the first side within a round. `--write` writes the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from _tables import machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import penstock
from penstock import Database, build

ROOT = Path(__file__).resolve().parent.parent
BATCH = 100
FIELDS = {"temp": "21"}
SIDES = {
    "neither": (False, False),
    "ACKED": (True, False),
    "CLAIM": (False, True),
    "ACKED and CLAIM": (True, True),
}
HEAD = ["CPU, one stream with two groups", *SIDES]


def cpu_seconds(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def prepared(entries: int, acked: bool, claim: bool) -> Database[bytes]:
    """A stream whose indexes exist if these options have been used."""
    db = penstock.open()
    db.xgroup_create("s", "readers", "0", mkstream=True)
    db.xgroup_create("s", "others", "0")
    if acked:
        db.xdelex("s", "1-0", ref_policy="ACKED")
    if claim:
        db.xreadgroup("readers", "a", {"s": ">"}, claim_min_idle_time=1)
    for _ in range(entries):
        db.xadd("s", FIELDS)
    return db


def figures_of(entries: int, acked: bool, claim: bool) -> dict[str, float]:
    """Nanoseconds per call or id. Every entry is read and acknowledged in one of three ways."""
    db = prepared(entries, acked, claim)
    third = entries // 3

    def read_and_acknowledge() -> None:
        for _ in range(third):
            found = db.xreadgroup("readers", "a", {"s": ">"}, count=1)
            db.xack("s", "readers", found[0][1][0][0])

    pairs = cpu_seconds(read_and_acknowledge) / third
    ids = [entry_id for entry_id, _ in db.xreadgroup("readers", "a", {"s": ">"})[0][1]]
    single, batches = ids[:third], ids[third : 2 * third]

    def acknowledge_one_by_one() -> None:
        for entry_id in single:
            db.xack("s", "readers", entry_id)

    def acknowledge_in_batches() -> None:
        for at in range(0, third, BATCH):
            db.xack("s", "readers", *batches[at : at + BATCH])

    figures = {
        "xack": cpu_seconds(acknowledge_one_by_one) / third,
        f"xack of {BATCH} ids, per id": cpu_seconds(acknowledge_in_batches) / third,
        "xreadgroup COUNT 1 and xack": pairs,
    }
    return {name: value * 1e9 for name, value in figures.items()}


def one_round(entries: int, number: int) -> dict[str, dict[str, float]]:
    """Measure every side once, beginning with another one each time."""
    names = list(SIDES)
    at = number % len(names)
    return {name: figures_of(entries, *SIDES[name]) for name in names[at:] + names[:at]}


def rows_of(rounds: list[dict[str, dict[str, float]]]) -> list[list[str]]:
    first = next(iter(SIDES))
    rows = []
    for name in rounds[0][first]:
        row = [name]
        for side in SIDES:
            cpu = statistics.median(one[side][name] for one in rounds)
            ratio = statistics.median(one[side][name] / one[first][name] for one in rounds)
            row.append(f"{cpu:,.0f} ns" if side == first else f"{cpu:,.0f} ns ({ratio:.2f}x)")
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument(
        "--write", action="store_true", help="write the table into docs/performance.md"
    )
    options = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit("benchmarks/indexes.py: this penstock is interpreted, so nothing is measured")
    rounds = []
    with Progress() as progress:
        for number in progress.track(range(options.rounds), description="rounds"):
            rounds.append(one_round(options.entries, number))
    table = Table(*HEAD, title="Indexes of groups, medians")
    for row in rows_of(rounds):
        table.add_row(*row)
    Console().print(table)
    if options.write:
        measured = f"{options.rounds} rounds, {options.entries:,} entries; {machine_line()}"
        write_section(ROOT / "docs/performance.md", "indexes", measured, [(HEAD, rows_of(rounds))])


if __name__ == "__main__":
    main()
