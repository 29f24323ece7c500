"""Measures fairness and connections: the PING of one client while twenty others pipeline, and memory.

    python benchmarks/fairness.py [--rounds 5] [--seconds 2] [--old PATH] [--write]

redis-benchmark sends a thousand commands at once on each of twenty connections, repeatedly. One more
connection sends PING, waits for the reply and repeats. The sides take turns in each round; the table shows
medians over the rounds. `--old` is a folder with another build of the package, which is measured as a third
side: the effect of a change is visible only within one run. `--write` writes the table into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import redis
from _tables import machine_line, write_section
from rich.console import Console
from rich.table import Table

from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.redis_server import redis_program_or_none, running_redis  # noqa: E402

CLIENTS = 20
DEPTH = 1000
ENTRIES = 1000
STRANGERS = 1500
SETTLE_SECONDS = 0.5
PIPELINES = {
    "XADD": ["XADD", "added", "MAXLEN", "~", "100000", "*", "temp", "21"],
    "XRANGE COUNT 10": ["XRANGE", "page", "-", "+", "COUNT", "10"],
}
SECRET = "sesame"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the servers."""

    name: str
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one side in one round: PINGs in ms, and commands per second of the other clients."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    per_second: float


@contextmanager
def sides(old: str | None) -> Iterator[list[Side]]:
    with ExitStack() as stack:
        ours = stack.enter_context(running_penstock("--compat-version", "7.0"))
        theirs = stack.enter_context(running_redis())
        found = [("penstock", ours.port), ("Redis", theirs.port)]
        if old is not None:
            with mock.patch.dict(os.environ, {"PYTHONPATH": old}):
                before = stack.enter_context(running_penstock("--compat-version", "7.0"))
            found.append(("before", before.port))
        yield [
            Side(name, port, redis.Redis(port=port).info("server")["process_id"])
            for name, port in found
        ]


@contextmanager
def pipelining(port: int, command: list[str]) -> Iterator[None]:
    """Run twenty clients that are always busy."""
    words = ["redis-benchmark", "-p", str(port), "-q", "-l", "-n", "100000000"]
    words += ["-c", str(CLIENTS), "-P", str(DEPTH), *command]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def commands_done(port: int) -> int:
    with redis.Redis(port=port) as client:
        return int(client.info("stats")["total_commands_processed"])


def pings(port: int, seconds: float) -> list[float]:
    """The time of each PING in milliseconds."""
    taken = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until = time.perf_counter() + seconds
        while (start := time.perf_counter()) < until:
            connection.sendall(b"PING\r\n")
            assert connection.recv(64) == b"+PONG\r\n"
            taken.append((time.perf_counter() - start) * 1000)
            time.sleep(0.001)
    return taken


def measured(side: Side, command: list[str], seconds: float) -> Figures:
    idle = commands_done(side.port)
    with pipelining(side.port, command):
        while commands_done(side.port) < idle + CLIENTS * DEPTH:  # all of them have sent commands
            time.sleep(0.01)
        before, start = commands_done(side.port), time.perf_counter()
        taken = sorted(pings(side.port, seconds))
        per_second = (commands_done(side.port) - before) / (time.perf_counter() - start)
    return Figures(taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1], per_second)


def fill(side: Side) -> None:
    """Add a stream to read from."""
    with redis.Redis(port=side.port) as client:
        adding = client.pipeline(transaction=False)
        for number in range(1, ENTRIES + 1):
            adding.xadd("page", {"temp": "21", "humid": "63"}, id=f"{number}-0")
        adding.execute()


def ping_table(rounds: int, seconds: float, old: str | None) -> tuple[list[str], list[list[str]]]:
    taken: dict[tuple[str, str], list[Figures]] = {}
    with sides(old) as servers:
        for side in servers:
            fill(side)
        for number in range(rounds):
            for name, command in PIPELINES.items():
                for side in servers if number % 2 == 0 else servers[::-1]:
                    found = measured(side, command, seconds)
                    taken.setdefault((name, side.name), []).append(found)
    rows = []
    for (name, side_name), figures in sorted(taken.items()):
        cells = [
            f"{statistics.median(getattr(one, field) for one in figures):.1f} ms"
            for field in ("p50_ms", "p99_ms", "max_ms")
        ]
        rate = statistics.median(one.per_second for one in figures)
        rows.append([f"20 x 1,000 {name}", side_name, *cells, f"{rate:,.0f}"])
    return ["the others", "server", "PING p50", "p99", "max", "their commands/s"], rows


def resident(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


HALF_COMMANDS = {
    "nothing": b"",
    "half a command": b"*2\r\n$4\r\nAUTH\r\n$100\r\nhal",
    "16 KB of a command": b"*10\r\n" + (b"$16000\r\n" + b"x" * 16000 + b"\r\n") + b"$9\r\nx",
    "the maximum before AUTH": b"*10\r\n" + (b"$16384\r\n" + b"x" * 16384 + b"\r\n") * 9,
}


def connection_bytes(side: Side, data: bytes) -> int:
    """The memory of a connection that has sent these bytes and nothing else."""
    before = resident(side.pid)
    with ExitStack() as stack:
        for _ in range(STRANGERS):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", side.port)))
            with suppress(ConnectionError):  # a server may refuse this many bytes
                client.sendall(data)
        time.sleep(SETTLE_SECONDS)  # no reply shows that the last bytes have arrived
        return (resident(side.pid) - before) // STRANGERS


def memory_table(old: str | None) -> tuple[list[str], list[list[str]]]:
    rows = []
    names: list[str] = []
    for what, data in HALF_COMMANDS.items():
        # New servers for each line: otherwise it would reuse the memory that the last one freed.
        with sides(old) as servers:
            names = [side.name for side in servers]
            for side in servers:
                redis.Redis(port=side.port).config_set("requirepass", SECRET)
            found = [connection_bytes(side, data) for side in servers]
        rows.append([what, *(f"{size / 1024:.1f} KB" for size in found)])
    return ["an unauthenticated connection that has sent", *names], rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--old", default=None, help="a folder with another build of penstock")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit(
            "benchmarks/fairness.py: this build is interpreted, so its figures would be misleading"
        )
    if redis_program_or_none() is None or shutil.which("redis-benchmark") is None:
        sys.exit("benchmarks/fairness.py: needs redis-server and redis-benchmark (make redis)")
    tables = [memory_table(arguments.old)]
    tables.insert(0, ping_table(arguments.rounds, arguments.seconds, arguments.old))
    for head, rows in tables:
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=130).print(table)
    if arguments.write:
        note = f"{arguments.rounds} rounds of {arguments.seconds:g} s, {STRANGERS:,} connections;"
        write_section(ROOT / "docs/performance.md", "fairness", f"{note} {machine_line()}", tables)


if __name__ == "__main__":
    main()
