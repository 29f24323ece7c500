"""Measures durability against Redis: throughput, restart, size on disk, pauses, a slow disk.

    python benchmarks/persistence.py [--rounds 3] [--requests 200000] [--entries 1000000] [--write]

Both servers have the same settings. Throughput is measured as in benchmarks/server.py: redis-benchmark on one
server, then on the other, in each round. Restart: a million entries of 5 x 16 random bytes; the load times
come from the logs of the servers. Pauses: a client sends PING as fast as it can while another one adds
entries and a snapshot or rewrite runs; the longest reply time counts. The slow disk is our server with an
fsync that takes 5 ms longer (persist/watched_disk.slow_disk).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from _lines import (
    FIVE_FIELDS,
    ROOT,
    Line,
    Side,
    Taken,
    head_of,
    measure,
    present_peers,
    redis_benchmark,
    rows_of,
    running_sides,
)
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from penstock import build
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_7_0
from tests.support.servers.redis_server import free_port, redis_program_or_none, running_redis

POLICIES = ("always", "everysec", "no")
BATCH = 1000
SLOW_MS = 5
REDIS_LOADED = re.compile(r"DB loaded from .*: ([\d.]+) seconds")
PENSTOCK_LOADED = re.compile(r"loaded .* in ([\d.]+) s")


def lines(policy: str) -> list[Line]:
    one = ("XADD", "added", "*", "temp", "21")
    five = ("XADD", "added", "*", *FIVE_FIELDS)
    share = 1.0 if policy == "always" else 2.0
    return [
        Line(f"{policy}: XADD 1 field, pipelined 64", redis_benchmark(*one, pipeline=64), share),
        Line(f"{policy}: XADD 5 x 16 B, pipelined 64", redis_benchmark(*five, pipeline=64), share),
        Line(f"{policy}: XADD 1 field, unpipelined", redis_benchmark(*one), 0.25),
        Line(f"{policy}: the same, 4 clients", redis_benchmark(*one, clients=4), 0.02),
        Line(f"{policy}: the same, one client", redis_benchmark(*one, clients=1), 0.02),
    ]


def durable(policy: str) -> tuple[str, ...]:
    """Settings with a log. There is no rewrite during a measurement."""
    always = ("--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
    return (*always, "--appendfsync", policy)


def throughput(rounds: int, requests: int, progress: Progress) -> tuple[list[str], Rows]:
    peers = present_peers()
    taken: Taken = {}
    task = progress.add_task("throughput", total=len(POLICIES) * rounds)
    for policy in POLICIES:
        with running_sides(*durable(policy), peers=peers) as sides:
            for _ in range(rounds):
                measure(lines(policy), sides, requests, taken)
                progress.advance(task)
    return head_of([program.title for program in peers]), rows_of(taken)


def fill(port: int, entries: int) -> None:
    """Add a stream with entries of 5 x 16 random bytes."""
    with redis.Redis(port=port) as client:
        for first in range(0, entries, BATCH):
            adding = client.pipeline(transaction=False)
            for _ in range(min(BATCH, entries - first)):
                random = os.urandom(40).hex()
                words = [w for i in range(5) for w in (f"f{i}", random[16 * i : 16 * i + 16])]
                adding.execute_command("XADD", "big", "*", *words)
            adding.execute()


def last_number(pattern: re.Pattern[str], text: str) -> float:
    return float(pattern.findall(text)[-1])


def wait_for(port: int, field: str, value: object) -> None:
    with redis.Redis(port=port) as client:
        while client.info("persistence")[field] != value:
            time.sleep(0.05)


def start_redis(folder: Path, *settings: str) -> float:
    """Start Redis on a directory, and return the load time from its log."""
    port = free_port()
    log = folder / "redis.log"
    log.unlink(missing_ok=True)
    command = ["redis-server", "--port", str(port), "--dir", str(folder), "--save", ""]
    process = subprocess.Popen([*command, "--logfile", str(log), *settings], start_new_session=True)
    try:
        while not log.exists() or "Ready to accept" not in log.read_text():
            time.sleep(0.05)
        return last_number(REDIS_LOADED, log.read_text())
    finally:
        process.terminate()
        process.wait()


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def restart(rounds: int, entries: int, progress: Progress) -> Rows:
    """Both servers load the log that they wrote themselves, and a snapshot that Redis wrote."""
    task = progress.add_task("restart", total=2 * rounds + 2)
    log_on = ("--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0")
    log_off = ("--appendonly", "no", "--save", "")
    found: dict[str, list[tuple[float, float]]] = {"AOF": [], "RDB": []}
    sizes: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        ours, theirs = Path(name) / "ours", Path(name) / "theirs"
        theirs.mkdir()
        with running_penstock(*log_on, "--compat-version", "7.0", data=ours) as server:
            fill(server.port, entries)
        progress.advance(task)
        with running_redis("--dir", str(theirs), *log_on) as peer:
            fill(peer.port, entries)
            redis.Redis(port=peer.port).save()
        progress.advance(task)
        sizes["AOF"] = (size_of(ours), size_of(theirs / "appendonlydir"))
        for _ in range(rounds):
            with running_penstock(*log_on, data=ours) as server:
                mine = last_number(PENSTOCK_LOADED, server.log())
            found["AOF"].append((mine, start_redis(theirs, *log_on)))
            progress.advance(task)
        shutil.rmtree(ours)
        ours.mkdir()
        shutil.copy(theirs / "dump.rdb", ours)
        for _ in range(rounds):
            with running_penstock(*log_off, "--compat-version", "7.0", data=ours) as server:
                mine = last_number(PENSTOCK_LOADED, server.log())
                redis.Redis(port=server.port).save()
            found["RDB"].append((mine, start_redis(theirs, *log_off)))
            progress.advance(task)
        sizes["RDB"] = tuple((side / "dump.rdb").stat().st_size for side in (ours, theirs))  # type: ignore[assignment]
    rows: Rows = []
    for kind, pairs in found.items():
        mine, other = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
        each = [f"{size / entries:.0f} B/entry" for size in sizes[kind]]
        rows.append([kind, f"{mine:.2f} s", f"{other:.2f} s", f"{ratio:.2f}x", *each])
    return rows


def longest_answer(port: int, work: str | None, seconds: float = 2.0) -> float:
    """The longest time of a PING in ms, while entries are added and the given command runs."""
    stop = threading.Event()
    command = ["redis-benchmark", "-p", str(port), "-q", "-n", "100000000", "-c", "10", "-P", "16"]
    load = subprocess.Popen(
        [*command, "XADD", "load", "MAXLEN", "~", "10000", "*", "f", "v"], stdout=subprocess.DEVNULL
    )
    longest = 0.0

    def ask() -> None:
        nonlocal longest
        with redis.Redis(port=port) as client:
            client.ping()
            while not stop.is_set():
                start = time.perf_counter()
                client.ping()
                longest = max(longest, time.perf_counter() - start)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        time.sleep(0.5)
        longest = 0.0
        with redis.Redis(port=port) as client:
            if work == "BGSAVE":
                client.bgsave()
                wait_for(port, "rdb_bgsave_in_progress", 0)
            elif work == "BGREWRITEAOF":
                client.bgrewriteaof()
                wait_for(port, "aof_rewrite_in_progress", 0)
            else:
                time.sleep(seconds)
    finally:
        stop.set()
        asking.join()
        load.terminate()
        load.wait()
    return longest * 1000


def pauses(rounds: int, entries: int, progress: Progress) -> Rows:
    works = (None, "BGSAVE", "BGREWRITEAOF")
    task = progress.add_task("pauses", total=rounds * len(works))
    rows: Rows = []
    with running_sides(*durable("everysec"), peers=[REDIS_7_0]) as sides:
        for side in sides:
            fill(side.port, entries)
        for work in works:
            found: list[list[float]] = [[], []]
            for _ in range(rounds):
                for side, taken in zip(sides, found, strict=True):
                    taken.append(longest_answer(side.port, work))
                progress.advance(task)
            rows.append([work or "nothing", *(f"{statistics.median(f):.1f} ms" for f in found)])
    return rows


@contextmanager
def slow_penstock(delay_ms: int) -> Iterator[int]:
    """Run a server whose fsync takes `delay_ms` longer, and return its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(__file__).with_name("_slow_disk.py")
        process = subprocess.Popen(
            [sys.executable, str(script), str(delay_ms), str(port), folder],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with redis.Redis(port=port) as client:
                while True:
                    try:
                        client.ping()
                        break
                    except redis.ConnectionError:
                        time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait()


def slow_disk(rounds: int, requests: int, progress: Progress) -> Rows:
    """Throughput with a slow fsync, as a share of the throughput without it, measured in turn."""
    task = progress.add_task("a slow disk", total=rounds * 3)
    rows: Rows = []
    with slow_penstock(0) as plain, slow_penstock(SLOW_MS) as slow:
        for pipeline in (512, 64, 1):
            work = redis_benchmark("XADD", "added", "*", "temp", "21", pipeline=pipeline)
            count = (
                requests * 4 if pipeline == 512 else requests if pipeline > 1 else requests // 20
            )
            found: list[tuple[float, float]] = []
            for _ in range(rounds):
                pair = [work(Side("", port, 0), count) for port in (plain, slow)]
                found.append((pair[0], pair[1]))
                progress.advance(task)
            mine, other = (statistics.median(pair[side] for pair in found) for side in (0, 1))
            share = statistics.median(pair[1] / pair[0] for pair in found)
            rows.append([f"P{pipeline}", f"{mine:,.0f}", f"{other:,.0f}", f"{share:.0%}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="throughput, restart, pauses or slow")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit(
            "benchmarks/persistence.py: this build is interpreted, so its figures would be misleading"
        )
    if redis_program_or_none() is None or shutil.which("redis-benchmark") is None:
        sys.exit("benchmarks/persistence.py: needs redis-server and redis-benchmark (make redis)")
    tables: list[tuple[list[str], Rows]] = []
    with Progress(transient=True) as progress:
        if given.only in ("", "throughput"):
            tables.append(throughput(given.rounds, given.requests, progress))
        if given.only in ("", "restart"):
            head = [
                "loading a million entries",
                "penstock",
                "Redis",
                "ratio",
                "on disk",
                "Redis on disk",
            ]
            tables.append((head, restart(given.rounds, given.entries, progress)))
        if given.only in ("", "pauses"):
            head = ["longest PING during", "penstock", "Redis"]
            tables.append((head, pauses(given.rounds, given.entries, progress)))
        if given.only in ("", "slow"):
            head = ["always, 50 clients", "XADD/s", f"sync {SLOW_MS} ms slower", "share"]
            tables.append((head, slow_disk(given.rounds, given.requests, progress)))
    for head, rows in tables:
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=130).print(table)
    if given.write:
        note = f"{given.rounds} rounds; {machine_line()}"
        write_section(ROOT / "docs/performance.md", "persistence", note, tables)


if __name__ == "__main__":
    main()
