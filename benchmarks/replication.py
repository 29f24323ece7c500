"""Measures what replicas, TLS and ACL users cost, beside Redis.

    python benchmarks/replication.py [--rounds 5] [--requests 200000] [--entries 1000000] [--write]

The sides take turns in each round; the tables show medians over the rounds. Nothing is written to disk, so
that the figures show the network and the CPU. penstock waits for a replica with `min-replicas-ack 1`, Redis
with WAIT 1, after each command or after each pipeline of 64. CPU is that of the primary. What an ACL user
costs is counted in instructions, if valgrind is there. `--write` writes the tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
from _cpu import cpu_seconds
from _pings import pinging
from _tables import machine_line, write_section
from rich.console import Console
from rich.table import Table

from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from _access import acl_table, has_callgrind, tls_table  # noqa: E402 - needs ROOT

from tests.support.replication.links import QUICK, client_of, follow, online  # noqa: E402 - found through ROOT
from tests.support.servers.penstock_server import running_penstock  # noqa: E402
from tests.support.servers.redis_server import redis_program_or_none, running_redis  # noqa: E402

DEPTH = 64
WAITING_SECONDS = 2.0
OLD_SHARE = 10  # a replica has had a tenth of the entries before its sync
XADD = b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$4\r\ntemp\r\n$2\r\n21\r\n"
WAIT = b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n"


@dataclass(frozen=True, slots=True)
class Side:
    """A primary and its replicas."""

    name: str
    port: int
    pid: int


@contextmanager
def side(name: str, replicas: int) -> Iterator[Side]:
    """Start a primary with replicas of the same kind."""
    with ExitStack() as stack:
        ports = []
        for _ in range(1 + replicas):
            if name == "penstock":
                server = stack.enter_context(running_penstock(*QUICK, "--compat-version", "7.0"))
                ports.append(server.port)
            else:
                ports.append(stack.enter_context(running_redis(*QUICK[:2])).port)
        for port in ports[1:]:
            follow(client_of(port), ports[0])
        client = client_of(ports[0])
        online(client, replicas)
        yield Side(name, ports[0], client.info("server")["process_id"])


def pipelined(one: Side, requests: int) -> tuple[float, float]:
    """XADDs per second, and microseconds of CPU of the primary for each."""
    words = ["redis-benchmark", "-p", str(one.port), "-q", "-n", str(requests), "-c", "50"]
    words += ["-P", str(DEPTH), "XADD", "s", "*", "temp", "21"]
    before, start = cpu_seconds(one.pid), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    return requests / seconds, 1e6 * (cpu_seconds(one.pid) - before) / requests


def waited(one: Side, depth: int) -> float:
    """XADDs per second of one client that waits until one replica has each pipeline."""
    adds = XADD * depth
    replies = depth
    if one.name == "Redis":
        adds += WAIT
        replies += 1
    done = 0
    with socket.create_connection(("127.0.0.1", one.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        source = connection.makefile("rb")
        start = time.perf_counter()
        while time.perf_counter() - start < WAITING_SECONDS:
            connection.sendall(adds)
            left = replies
            while left:
                line = source.readline()
                if line.startswith(b"$"):
                    source.readline()
                left -= 1
            done += depth
        return done / (time.perf_counter() - start)


NAMES = ("penstock", "Redis")


def replica_table(rounds: int, requests: int) -> tuple[list[str], list[list[str]]]:
    rows = []
    for count in (0, 1, 2):
        taken: dict[str, list[tuple[float, float]]] = {}
        with ExitStack() as stack:
            sides = [stack.enter_context(side(name, count)) for name in NAMES]
            for _ in range(rounds):
                for one in sides:
                    taken.setdefault(one.name, []).append(pipelined(one, requests))
        rows.append([f"{count} replicas, XADD P64", *cells(taken)])
    rows.append(acked_row(rounds, requests))
    return ["", "penstock", "Redis", "penstock, CPU", "Redis, CPU"], rows


def acked_row(rounds: int, requests: int) -> list[str]:
    """50 clients whose replies wait for the replica. Redis has no such setting."""
    with side("penstock", 1) as one:
        client_of(one.port).config_set("min-replicas-ack", 1)
        taken = [pipelined(one, requests) for _ in range(rounds)]
    rate, us = (statistics.median(column) for column in zip(*taken, strict=True))
    name = "1 replica, min-replicas-ack 1, XADD P64"
    return [name, f"{rate:,.0f}/s", "none", f"{us:.2f} us", "none"]


def cells(taken: dict[str, list[tuple[float, float]]]) -> list[str]:
    rates = [statistics.median(rate for rate, _ in taken[name]) for name in NAMES]
    costs = [statistics.median(us for _, us in taken[name]) for name in NAMES]
    return [*(f"{rate:,.0f}/s" for rate in rates), *(f"{us:.2f} us" for us in costs)]


def waiting_table(rounds: int) -> tuple[list[str], list[list[str]]]:
    rows = []
    with ExitStack() as stack:
        sides = [stack.enter_context(side(name, 1)) for name in NAMES]
        client_of(sides[0].port).config_set("min-replicas-ack", 1)
        for what, depth in (("each XADD", 1), ("pipelines of 64", DEPTH)):
            taken: dict[str, list[float]] = {}
            for _ in range(rounds):
                for one in sides:
                    taken.setdefault(one.name, []).append(waited(one, depth))
            rates = [statistics.median(taken[name]) for name in NAMES]
            rows.append([f"wait for one replica, {what}", *(f"{rate:,.0f}/s" for rate in rates)])
    return ["one client", "penstock, min-replicas-ack 1", "Redis, WAIT 1"], rows


def sync_table(entries: int) -> tuple[list[str], list[list[str]]]:
    """A full sync: how long it takes, and the longest stops of both servers meanwhile.

    The replica has old data, which it should serve until the new data is loaded.
    """
    rows = []
    for name in NAMES:
        with side(name, 0) as one, side(name, 0) as other:
            pipelined(one, entries)
            pipelined(other, entries // OLD_SHARE)
            with (
                pinging(one.port, one.pid) as of_primary,
                pinging(other.port, other.pid) as of_replica,
                redis.Redis(port=other.port) as replica,
            ):
                of_primary.forget()
                of_replica.forget()
                start = time.perf_counter()
                follow(replica, one.port)
                seconds = time.perf_counter() - start
                stops = of_primary.longest(), of_replica.longest()
            shown = [f"{ms:.1f} ms" for stop in stops for ms in (stop.wall_ms, stop.cpu_ms)]
            rows.append([name, f"{seconds:.2f} s", *shown])
    head = ["longest stop of the primary", "of it CPU", "longest stop of the replica", "of it CPU"]
    return [f"full sync of {entries:,} entries", "time", *head], rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit("benchmarks/replication.py: this build is interpreted: its figures would mislead")
    if redis_program_or_none() is None:
        sys.exit("benchmarks/replication.py: needs redis-server and redis-benchmark (make redis)")
    tables = [
        replica_table(arguments.rounds, arguments.requests),
        waiting_table(arguments.rounds),
        sync_table(arguments.entries),
        tls_table(arguments.rounds, arguments.requests),
    ]
    if has_callgrind():
        tables.append(acl_table())
    else:
        print("no valgrind: what ACL users cost is not measured", file=sys.stderr)
    for head, rows in tables:
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=130).print(table)
    if arguments.write:
        note = f"{arguments.rounds} rounds of {arguments.requests:,} requests;"
        write_section(
            ROOT / "docs/performance.md", "replication", f"{note} {machine_line()}", tables
        )


if __name__ == "__main__":
    main()
