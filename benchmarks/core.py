"""Measures the embedded database: compiled, interpreted, and redis-py with Redis.

    python benchmarks/core.py [--rounds 5] [--entries 1000000] [--write]

In each round all sides are measured in turn. The tables show medians over the rounds, and medians of the
ratios within a round. Memory is the growth of the resident set with `--entries` entries of 5 x 16 random
bytes, then with the same number of pending entries. `--write` writes the tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from _tables import machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import penstock
from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.redis_server import (  # noqa: E402 - found through ROOT
    redis_program_or_none,
    running_redis,
)

ONE_FIELD = {"temp": "21"}
FIVE_FIELDS = {f"field{i}": "0123456789abcdef" for i in range(5)}
WARM_UP_ENTRIES = 200_000  # they use up what the process had free before
BATCH = 1000


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def speed_of(db: Any, calls: int) -> dict[str, float]:
    """Nanoseconds per call or entry, with the methods that Database and redis.Redis share."""

    def add(name: str, fields: dict[Any, Any]) -> None:
        xadd = db.xadd
        for _ in range(calls):
            xadd(name, fields)

    def read_and_acknowledge() -> None:
        for _ in range(calls // 4):
            found = db.xreadgroup("readers", "a", {"one": ">"}, count=1)
            db.xack("one", "readers", found[0][1][0][0])

    figures = {
        "xadd, 1 field": seconds(lambda: add("one", ONE_FIELD)) / calls,
        "xadd, 5 x 16 B": seconds(lambda: add("five", FIVE_FIELDS)) / calls,
        "xrange, per entry": seconds(lambda: db.xrange("five", count=calls)) / calls,
    }
    db.xgroup_create("one", "readers", "0")
    figures["read and acknowledge"] = seconds(read_and_acknowledge) / (calls // 4)
    return {name: value * 1e9 for name, value in figures.items()}


def resident_bytes(pid: int) -> int:
    """The resident memory without files: the kernel drops pages of libraries when it likes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"RssAnon:\s+(\d+) kB", status)[0]) * 1024


def random_values(entries: int) -> list[bytes]:
    """The values of one batch. All batches use the same ones, so that they do not count as growth."""
    generator = random.Random(1)
    return [generator.randbytes(16) for _ in range(5 * min(entries, BATCH))]


def memory_of_penstock(entries: int) -> dict[str, float]:
    db = penstock.open()
    values = random_values(entries)

    def fill(count: int) -> None:
        for i in range(count):
            at = 5 * (i % BATCH)
            db.xadd("s", dict(zip(FIVE_FIELDS, values[at : at + 5], strict=True)))

    fill(WARM_UP_ENTRIES)
    empty, first = resident_bytes(os.getpid()), db.xinfo_stream("s")["last-generated-id"]
    fill(entries)
    full = resident_bytes(os.getpid())
    db.xgroup_create("s", "readers", first)
    while db.xreadgroup("readers", "a", {"s": ">"}, count=BATCH):
        pass
    pending = resident_bytes(os.getpid())
    return {"entry": (full - empty) / entries, "pending": (pending - full) / entries}


def memory_of_redis(port: int, entries: int) -> dict[str, float]:
    client = redis.Redis(port=port)
    pid = client.info("server")["process_id"]
    values = random_values(entries)
    fill_redis(port, WARM_UP_ENTRIES, values)
    empty, first = resident_bytes(pid), client.xinfo_stream("s")["last-generated-id"]
    fill_redis(port, entries, values)
    full = resident_bytes(pid)
    client.xgroup_create("s", "readers", first)
    while client.xreadgroup("readers", "a", {"s": ">"}, count=BATCH):
        pass
    pending = resident_bytes(pid)
    return {"entry": (full - empty) / entries, "pending": (pending - full) / entries}


def fill_redis(port: int, entries: int, values: list[bytes]) -> None:
    """Add entries over a raw socket, in batches: redis-py would take a minute."""
    commands = []
    for i in range(min(entries, BATCH)):
        words = [b"XADD", b"s", b"*"]
        for field, value in zip(FIVE_FIELDS, values[5 * i : 5 * i + 5], strict=True):
            words += [field.encode(), value]
        lines = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        commands.append(b"*%d\r\n%s" % (len(words), lines))
    batch = b"".join(commands)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(entries // BATCH):
            connection.sendall(batch)
            replies = 0
            while replies < 2 * BATCH:  # each id is two lines
                replies += connection.recv(1 << 20).count(b"\n")


def in_a_process(job: str, size: int, pure: bool) -> dict[str, float]:
    """Run one job in a new interpreter, with the installed build or with the source."""
    environment = dict(os.environ)
    if pure:
        environment["PYTHONPATH"] = str(ROOT / "src")
    else:
        environment.pop("PYTHONPATH", None)
    command = [sys.executable, __file__, "--job", job, "--entries", str(size)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    kind = figures.pop("compiled")
    if bool(kind) == pure:
        raise RuntimeError(f"this was not the {'interpreted' if pure else 'compiled'} build")
    return figures


def run_job(job: str, entries: int) -> None:
    """The job of the new interpreter: print the figures and their build."""
    jobs = {"speed": lambda n: speed_of(penstock.open(), n), "memory": memory_of_penstock}
    figures = jobs[job](entries)
    print(json.dumps({**figures, "compiled": build.KIND == "compiled"}))


def one_round(entries: int) -> dict[str, dict[str, float]]:
    """Measure every figure once, the sides in turn."""
    with running_redis() as server:
        speed = {
            "compiled": in_a_process("speed", entries // 10, pure=False),
            "redis-py": speed_of(redis.Redis(port=server.port), entries // 500),
            "interpreted": in_a_process("speed", entries // 100, pure=True),
        }
        server.client.flushall()
    with running_redis() as server:
        memory = {
            "compiled memory": in_a_process("memory", entries, pure=False),
            "Redis memory": memory_of_redis(server.port, entries),
        }
    return speed | memory


def median(rounds: list[dict[str, dict[str, float]]], side: str, name: str) -> float:
    return statistics.median(one[side][name] for one in rounds)


def ratio(rounds: list[dict[str, dict[str, float]]], over: str, under: str, name: str) -> float:
    return statistics.median(one[over][name] / one[under][name] for one in rounds)


def speed_rows(rounds: list[dict[str, dict[str, float]]]) -> list[list[str]]:
    rows = []
    for name in rounds[0]["compiled"]:
        figures = {s: median(rounds, s, name) for s in ("compiled", "interpreted", "redis-py")}
        rows.append(
            [
                name,
                f"{figures['compiled']:,.0f} ns ({1e9 / figures['compiled']:,.0f}/s)",
                f"{figures['interpreted']:,.0f} ns",
                f"{figures['redis-py']:,.0f} ns",
                f"{ratio(rounds, 'redis-py', 'compiled', name):,.0f}x",
            ]
        )
    return rows


def memory_rows(rounds: list[dict[str, dict[str, float]]]) -> list[list[str]]:
    names = {"entry": "bytes per entry of 5 x 16 B", "pending": "bytes per pending entry"}
    return [
        [
            text,
            f"{median(rounds, 'compiled memory', name):.1f}",
            f"{median(rounds, 'Redis memory', name):.1f}",
            f"{ratio(rounds, 'compiled memory', 'Redis memory', name):.2f}x",
        ]
        for name, text in names.items()
    ]


SPEED_HEAD = ["embedded", "compiled", "interpreted", "redis-py to Redis", "redis-py / compiled"]
MEMORY_HEAD = ["memory", "penstock", "Redis", "penstock / Redis"]


def show(title: str, head: list[str], rows: list[list[str]]) -> None:
    table = Table(*head, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument(
        "--write", action="store_true", help="write the tables into docs/performance.md"
    )
    parser.add_argument("--job", choices=("speed", "memory"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        run_job(options.job, options.entries)
        return
    if build.KIND != "compiled":
        sys.exit(
            "benchmarks/core.py: the installed penstock is interpreted, so nothing is measured"
        )
    if redis_program_or_none() is None:
        sys.exit("benchmarks/core.py: needs redis-server (make redis)")
    rounds = []
    with Progress() as progress:
        for _ in progress.track(range(options.rounds), description="rounds"):
            rounds.append(one_round(options.entries))
    show("Speed, medians", SPEED_HEAD, speed_rows(rounds))
    show("Memory, medians", MEMORY_HEAD, memory_rows(rounds))
    if options.write:
        tables = [(SPEED_HEAD, speed_rows(rounds)), (MEMORY_HEAD, memory_rows(rounds))]
        measured = f"{options.rounds} rounds, {options.entries:,} entries; {machine_line()}"
        write_section(ROOT / "docs/performance.md", "core", measured, tables)


if __name__ == "__main__":
    main()
