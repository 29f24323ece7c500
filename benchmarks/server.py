"""Measures the server against redis-server and other servers: throughput and CPU time per command.

    python benchmarks/server.py [--rounds 5] [--requests 200000] [--write]

Lines and table are described in benchmarks/_lines.py. redis-benchmark itself is often the bottleneck, so the
table also has the CPU time of the server per command. A second table divides that of the pipelined lines into
the server's own code and the kernel. `--write` writes the tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import sys
import time
from collections.abc import Callable

import redis
from _lines import (
    CLIENTS,
    FIVE_FIELDS,
    ROOT,
    Line,
    Side,
    Taken,
    Work,
    head_of,
    measure,
    present_peers,
    redis_benchmark,
    rows_of,
    running_sides,
    split_table,
)
from _tables import machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from penstock import build

PAIRS_PER_BATCH = 64
ENTRIES = 20_000


def encoded(*words: str) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words]
    return b"".join(parts)


def fill_for_pairs(count: int) -> Callable[[Side, int], None]:
    """Add a stream with `count` entries for each pair, and a group that has read none of them."""

    def fill(side: Side, pairs: int) -> None:
        with redis.Redis(port=side.port) as client:
            client.delete("pairs")
            adding = client.pipeline(transaction=False)
            for number in range(1, count * pairs + 1):
                adding.xadd("pairs", {"f": "v"}, id=f"{number}-0")
                if number % 10_000 == 0:
                    adding.execute()
            adding.execute()
            client.xgroup_create("pairs", "g", "0")

    return fill


def read_and_acknowledge(count: int) -> Work:
    """Send pairs of XREADGROUP and XACK of `count` entries over one socket, in batches of 64 pairs."""
    read = encoded("XREADGROUP", "GROUP", "g", "c", "COUNT", str(count), "STREAMS", "pairs", ">")
    done = b":%d\r\n" % count  # only replies to XACK are lines that start with a colon

    def pair(number: int) -> bytes:
        ids = [f"{number * count + i}-0" for i in range(1, count + 1)]
        return read + encoded("XACK", "pairs", "g", *ids)

    def run(side: Side, pairs: int) -> float:
        batches = [
            [pair(number) for number in range(first, min(first + PAIRS_PER_BATCH, pairs))]
            for first in range(0, pairs, PAIRS_PER_BATCH)
        ]
        sent = [(b"".join(batch), len(batch)) for batch in batches]
        start = time.perf_counter()
        with socket.create_connection(("127.0.0.1", side.port)) as connection:
            for data, expected in sent:
                connection.sendall(data)
                rest = b""
                missing = expected
                while missing:
                    found = rest + connection.recv(1 << 16)
                    missing -= found.count(done)
                    rest = found[-(len(done) - 1) :]  # it may end inside of a reply
        return pairs / (time.perf_counter() - start)

    return run


def fill_list(side: Side, requests: int) -> None:
    """Add a list to pop from."""
    with redis.Redis(port=side.port) as client:
        client.delete("list")
        adding = client.pipeline(transaction=False)
        for first in range(0, requests, 1000):
            adding.lpush("list", *["value"] * min(1000, requests - first))
        adding.execute()


def fill_key(side: Side, requests: int) -> None:
    """Set a key to read."""
    with redis.Redis(port=side.port) as client:
        client.set("key", "value")


def fill_page(side: Side, requests: int) -> None:
    """Add a stream to read from."""
    with redis.Redis(port=side.port) as client:
        client.delete("page")
        adding = client.pipeline(transaction=False)
        for _ in range(ENTRIES):
            adding.execute_command("XADD", "page", "*", *FIVE_FIELDS)
        adding.execute()


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
        Line("XREADGROUP COUNT 1 + XACK, pairs", read_and_acknowledge(1), 0.25, fill_for_pairs(1)),
        Line(
            "XREADGROUP COUNT 10 + XACK of ten, pairs",
            read_and_acknowledge(10),
            0.1,
            fill_for_pairs(10),
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
        Line("GET, pipelined 64", redis_benchmark("GET", "key", pipeline=64), 2, fill_key),
        Line("LPUSH, pipelined 64", redis_benchmark("LPUSH", "list", "value", pipeline=64), 2),
        Line("RPOP, pipelined 64", redis_benchmark("RPOP", "list", pipeline=64), 2, fill_list),
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
    peers = present_peers()
    if not peers or shutil.which("redis-benchmark") is None:
        sys.exit("benchmarks/server.py: needs redis-server and redis-benchmark (make redis)")
    chosen = [line for line in lines() if arguments.only.lower() in line.name.lower()]
    taken: Taken = {}
    with running_sides("--appendonly", "no", peers=peers) as sides, Progress() as progress:
        for _ in progress.track(range(arguments.rounds), description="rounds"):
            measure(chosen, sides, arguments.requests, taken)
    tables = [(head_of([program.title for program in peers]), rows_of(taken))]
    if pipelined := [name for name in taken if name.endswith("pipelined 64")]:
        tables.append(split_table(taken, peers[0].title, pipelined))
    for head, rows in tables:
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=150).print(table)
    if arguments.write:
        note = f"{arguments.rounds} rounds, {CLIENTS} clients, no persistence; {machine_line()}"
        write_section(ROOT / "docs/performance.md", "server", note, tables)


if __name__ == "__main__":
    main()
