"""Measures the server against redis-server: throughput and CPU time per command.

    python benchmarks/server.py [--rounds 5] [--requests 200000] [--write]

Each line of the table is measured with redis-benchmark or with a raw client that sends prepared bytes, on one
server and then on the other, in each round. The table shows medians of the figures, and of the ratios within
a round. redis-benchmark itself is often the bottleneck, so the table also has the CPU time of the server per
command (user and system, from /proc). `--write` writes the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
from _tables import machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.redis_server import redis_program_or_none, running_redis  # noqa: E402

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CLIENTS = 50
PAIRS_PER_BATCH = 64
ENTRIES = 20_000
FIVE_FIELDS = [word for i in range(5) for word in (f"field{i}", "0123456789abcdef")]
RATE = re.compile(r"([\d.]+) requests per second")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two servers."""

    name: str
    port: int
    pid: int

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run of one line."""

    per_second: float
    cpu_us: float


Work = Callable[[Side, int], float]
"""Sends a number of commands to a server, and returns commands per second."""


def redis_benchmark(*words: str, pipeline: int = 1, clients: int = CLIENTS) -> Work:
    def run(side: Side, requests: int) -> float:
        command = ["redis-benchmark", "-p", str(side.port), "-q", "-n", str(requests)]
        command += ["-c", str(clients), "-P", str(pipeline), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(RATE.findall(done.stdout)[-1])

    return run


def encoded(*words: str) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words]
    return b"".join(parts)


def fill_for_pairs(side: Side, entries: int) -> None:
    """Add a stream of entries, and a group that has read none of them."""
    with redis.Redis(port=side.port) as client:
        client.delete("pairs")
        adding = client.pipeline(transaction=False)
        for number in range(1, entries + 1):
            adding.xadd("pairs", {"f": "v"}, id=f"{number}-0")
            if number % 10_000 == 0:
                adding.execute()
        adding.execute()
        client.xgroup_create("pairs", "g", "0")


def read_and_acknowledge(count: int) -> Work:
    """Send pairs of XREADGROUP COUNT `count` and XACK over one socket, in batches of 64 pairs."""
    read = encoded("XREADGROUP", "GROUP", "g", "c", "COUNT", str(count), "STREAMS", "pairs", ">")

    def work(side: Side, entries: int) -> float:
        pairs = [
            read + encoded("XACK", "pairs", "g", *(f"{first + i}-0" for i in range(count)))
            for first in range(1, entries + 1, count)
        ]
        batches = [pairs[at : at + PAIRS_PER_BATCH] for at in range(0, len(pairs), PAIRS_PER_BATCH)]
        start = time.perf_counter()
        with socket.create_connection(("127.0.0.1", side.port)) as connection:
            for batch in batches:
                connection.sendall(b"".join(batch))
                acknowledged = 0
                while acknowledged < len(batch):
                    # Only replies to XACK contain a colon.
                    acknowledged += connection.recv(1 << 16).count(b":")
        return entries / (time.perf_counter() - start)

    return work


def fill_page(side: Side, requests: int) -> None:
    """Add a stream to read from."""
    with redis.Redis(port=side.port) as client:
        client.delete("page")
        adding = client.pipeline(transaction=False)
        for _ in range(ENTRIES):
            adding.execute_command("XADD", "page", "*", *FIVE_FIELDS)
        adding.execute()


def nothing(side: Side, requests: int) -> None:
    """No preparation is needed."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: its work, and the factor for the number of requests."""

    name: str
    work: Work
    share: float = 1.0
    prepare: Callable[[Side, int], None] = nothing


def lines() -> list[Line]:
    one = ("XADD", "added", "*", "temp", "21")
    five = ("XADD", "added", "*", *FIVE_FIELDS)
    return [
        Line("XADD 1 field, pipelined 64", redis_benchmark(*one, pipeline=64), 4),
        Line("XADD 5 x 16 B, pipelined 64", redis_benchmark(*five, pipeline=64), 2),
        Line(
            "XADD 1 field MAXLEN ~ 100000, pipelined 64",
            redis_benchmark("XADD", "kept", "MAXLEN", "~", "100000", "*", "f", "v", pipeline=64),
            2,
        ),
        Line("XADD 1 field, unpipelined", redis_benchmark(*one), 0.5),
        Line("XREADGROUP COUNT 1 + XACK, pairs", read_and_acknowledge(1), 0.25, fill_for_pairs),
        Line(
            "XREADGROUP COUNT 10 + XACK of ten, entries",
            read_and_acknowledge(10),
            1,
            fill_for_pairs,
        ),
        Line(
            "XRANGE COUNT 100",
            redis_benchmark("XRANGE", "page", "-", "+", "COUNT", "100"),
            0.1,
            fill_page,
        ),
        Line(
            "XREAD COUNT 100",
            redis_benchmark("XREAD", "COUNT", "100", "STREAMS", "page", "0"),
            0.1,
            fill_page,
        ),
        Line("PING, pipelined 64", redis_benchmark("PING", pipeline=64), 2),
        Line("SET, pipelined 64", redis_benchmark("SET", "key", "value", pipeline=64), 2),
        Line("LPUSH, pipelined 64", redis_benchmark("LPUSH", "list", "value", pipeline=64), 2),
    ]


def measured(line: Line, side: Side, requests: int) -> Figures:
    count = max(1, int(requests * line.share))
    line.prepare(side, count)
    before = side.cpu_seconds()
    per_second = line.work(side, count)
    cpu_us = (side.cpu_seconds() - before) / count * 1e6
    with redis.Redis(port=side.port) as client:
        client.delete("added", "kept", "pairs", "key", "list")
    return Figures(per_second, cpu_us)


@contextmanager
def both_sides() -> Iterator[tuple[Side, Side]]:
    with ExitStack() as stack:
        ours = stack.enter_context(
            running_penstock("--appendonly", "no", "--compat-version", "7.0")
        )
        theirs = stack.enter_context(running_redis())
        pids = [redis.Redis(port=s.port).info("server")["process_id"] for s in (ours, theirs)]
        yield Side("penstock", ours.port, pids[0]), Side("Redis", theirs.port, pids[1])


Rounds = list[tuple[Figures, Figures]]


def row_of(name: str, rounds: Rounds) -> list[str]:
    """The medians of the figures, and of the ratios within a round."""

    def median(pick: Callable[[tuple[Figures, Figures]], float]) -> float:
        return statistics.median(pick(pair) for pair in rounds)

    return [
        name,
        f"{median(lambda pair: pair[0].per_second):,.0f}",
        f"{median(lambda pair: pair[1].per_second):,.0f}",
        f"{median(lambda pair: pair[0].per_second / pair[1].per_second):.2f}x",
        f"{median(lambda pair: pair[0].cpu_us):.2f} µs",
        f"{median(lambda pair: pair[1].cpu_us):.2f} µs",
        f"{median(lambda pair: pair[1].cpu_us / max(pair[0].cpu_us, 0.001)):.2f}x",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit(
            "benchmarks/server.py: this build is interpreted, so its figures would be misleading"
        )
    if redis_program_or_none() is None or shutil.which("redis-benchmark") is None:
        sys.exit("benchmarks/server.py: needs redis-server and redis-benchmark (make redis)")
    chosen = [line for line in lines() if arguments.only.lower() in line.name.lower()]
    taken: dict[str, Rounds] = {line.name: [] for line in chosen}
    with both_sides() as (ours, theirs), Progress(transient=True) as progress:
        task = progress.add_task("rounds", total=arguments.rounds * len(chosen))
        for number in range(arguments.rounds):
            for line in chosen:
                order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
                found = {side: measured(line, side, arguments.requests) for side in order}
                taken[line.name].append((found[ours], found[theirs]))
                progress.advance(task)
    head = ["work", "penstock/s", "Redis/s", "ratio", "CPU", "Redis's CPU", "CPU ratio"]
    rows = [row_of(name, rounds) for name, rounds in taken.items()]
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    Console(width=130).print(table)
    if arguments.write:
        note = f"{arguments.rounds} rounds, {CLIENTS} clients, no persistence; {machine_line()}"
        write_section(ROOT / "docs/performance.md", "server", note, [(head, rows)])


if __name__ == "__main__":
    main()
