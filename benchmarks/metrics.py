"""Measures a scrape of /metrics with many streams and groups: its time, its size, and the longest stop.

    python benchmarks/metrics.py [--rounds 10] [--streams 10000] [--groups 1000] [--write]

Another client sends PING all the time (_pings.py). Its slowest answer during a scrape, on the clock, is the
stop that clients see. The CPU time of _pings.py is too coarse for that: Linux counts it at each tick. The
first line has no scrape: it shows what the machine itself adds. `--write` writes the table into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _pings import Pings, pinging
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.table import Table

from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.redis_server import free_port  # noqa: E402

PIPELINED = 5000
ROUND_SECONDS = 0.1
HEAD = ["server", "samples", "size", "a scrape", "longest stop, median", "slowest round"]


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the table: `streams` streams, `reported` of them, and how many groups each of some has."""

    name: str
    streams: int
    groups: int
    groups_per_stream: int
    reported: int


def cases(streams: int, groups: int) -> list[Case]:
    """The lines. The limit of reported streams is 1,000 unless it is configured."""
    return [
        Case(f"{streams:,} streams", streams, 0, 1, 1000),
        Case(f"{streams:,} streams, all reported", streams, 0, 1, streams),
        Case(f"{streams:,} streams, {groups:,} with a group, all", streams, groups, 1, streams),
        Case(f"a stream with {groups:,} groups", 1, groups, groups, 1000),
        Case(f"a stream with {10 * groups:,} groups", 1, 10 * groups, 10 * groups, 1000),
    ]


def fill(client: Any, case: Case) -> None:
    """Add the streams. Each group has a pending entry and a lag."""
    pipeline = client.pipeline(transaction=False)
    for words in commands(case):
        pipeline.execute_command(*words)
        if len(pipeline) >= PIPELINED:
            pipeline.execute()
    pipeline.execute()


def commands(case: Case) -> Iterator[tuple[str | int, ...]]:
    """The commands that make the streams and groups of a case."""
    for number in range(case.streams):
        key = f"s:{number:05}"
        for entry in range(3):
            yield ("XADD", key, "*", "n", entry)
        if number * case.groups_per_stream < case.groups:
            for group in range(case.groups_per_stream):
                name = f"g:{group:05}"
                yield ("XGROUP", "CREATE", key, name, "0")
                yield ("XREADGROUP", "GROUP", name, "c", "COUNT", 1, "STREAMS", key, ">")


def scraped(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return bytes(answer.read())


def measured(case: Case, rounds: int) -> Rows:
    """A line without scrapes, and that of the case."""
    port = free_port()
    options = ("--metrics-port", str(port), "--metrics-streams-max", str(case.reported))
    taken, stops, page = [], [], b""
    with running_penstock(*options) as server, server.client() as client:
        fill(client, case)
        scraped(port)
        with pinging(server.port, server.pid) as pings:
            rest = list(quiet_stops(pings, rounds))
            for _ in range(rounds):
                pings.forget()
                started = time.perf_counter()
                page = scraped(port)
                taken.append(time.perf_counter() - started)
                stops.append(pings.longest().wall_ms)
    samples = sum(not line.startswith(b"#") for line in page.splitlines())
    seconds = statistics.median(taken)
    cells = [case.name, f"{samples:,}", f"{len(page) / 1e6:.2f} MB", f"{1000 * seconds:.0f} ms"]
    return [["no scrape", "", "", "", *shown(rest)], [*cells, *shown(stops)]]


def quiet_stops(pings: Pings, rounds: int) -> Iterator[float]:
    """The longest stops of a server that answers PING only."""
    for _ in range(rounds):
        pings.forget()
        time.sleep(ROUND_SECONDS)
        yield pings.longest().wall_ms


def shown(stops: list[float]) -> list[str]:
    return [f"{statistics.median(stops):.1f} ms", f"{max(stops):.1f} ms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit("benchmarks/metrics.py: this build is interpreted: the figures would mislead")
    rows: Rows = []
    for case in cases(asked.streams, asked.groups):
        without, found = measured(case, asked.rounds)
        rows += [found] if rows else [without, found]
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)
    if asked.write:
        note = f"{asked.rounds} rounds; {machine_line()}"
        write_section(ROOT / "docs/performance.md", "metrics", note, [(HEAD, rows)])


if __name__ == "__main__":
    main()
