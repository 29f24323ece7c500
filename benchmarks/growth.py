"""Measures how the cost of an operation grows with entries, streams, groups, consumers, readers, sizes.

    python benchmarks/growth.py [--full] [--only WORD] [--write]

Each line is one operation; the columns are sizes along one axis. The figures are CPU time of one call:
embedded calls for all lines but those about blocked readers, which are commands on a server (without the CPU
time of the client). A line that grows says why. `--full` adds 10M entries. `--write` writes the tables into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import itertools
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from _cpu import cpu_seconds
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.table import Table

import penstock
from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT

SECONDS = 0.1  # CPU time for one figure
CALLS_MAX = 20_000
FIELDS = {"temp": "21"}

Call = Callable[[], object]
Prepare = Callable[[Any, int], Call]


@dataclass(frozen=True, slots=True)
class Line:
    """An operation along one axis. `prepare` fills a database for a size, and returns the call to measure."""

    axis: str
    name: str
    prepare: Prepare
    why: str = "-"


# --- Preparation ---------------------------------------------------------------------------------


def stream(db: Any, entries: int, name: str = "s") -> None:
    for number in range(1, entries + 1):
        db.xadd(name, FIELDS, id=f"{number}-0")


def pending(db: Any, entries: int) -> None:
    """A group with one consumer that has every entry pending."""
    stream(db, entries)
    db.xgroup_create("s", "g", id="0")
    while db.xreadgroup("g", "c", {"s": ">"}, count=10_000):
        pass


def add(db: Any, entries: int) -> Call:
    stream(db, entries)
    return lambda: db.xadd("s", FIELDS)


def add_and_trim(db: Any, entries: int) -> Call:
    stream(db, entries)
    return lambda: db.xadd("s", FIELDS, maxlen=entries, approximate=True)


def read_middle(db: Any, entries: int) -> Call:
    stream(db, entries)
    return lambda: db.xrange("s", min=f"{entries // 2}-0", count=10)


def read_end(db: Any, entries: int) -> Call:
    stream(db, entries)
    return lambda: db.xrevrange("s", count=10)


def delete_in_order(db: Any, entries: int) -> Call:
    stream(db, entries)
    numbers = itertools.cycle(range(entries // 4, entries))
    return lambda: db.xdel("s", f"{next(numbers)}-0")


def describe(db: Any, entries: int) -> Call:
    stream(db, entries)
    return lambda: db.xinfo_stream("s")


def read_and_acknowledge(db: Any, entries: int) -> Call:
    pending(db, entries)

    def call() -> object:
        db.xadd("s", FIELDS)
        [[_, [(entry_id, _)]]] = db.xreadgroup("g", "c", {"s": ">"}, count=1)
        return db.xack("s", "g", entry_id)

    return call


def acknowledge(db: Any, entries: int) -> Call:
    pending(db, entries)
    numbers = itertools.cycle(range(1, entries + 1))
    return lambda: db.xack("s", "g", f"{next(numbers)}-0")


def claim(db: Any, entries: int) -> Call:
    pending(db, entries)
    numbers = itertools.cycle(range(1, entries + 1))
    return lambda: db.xclaim("s", "g", "d", 0, [f"{next(numbers)}-0"], justid=True)


def summary(db: Any, entries: int) -> Call:
    pending(db, entries)
    return lambda: db.xpending("s", "g")


def add_to_all(db: Any, streams: int) -> Call:
    names = itertools.cycle([f"s:{number}" for number in range(streams)])
    for _ in range(streams):
        db.xadd(next(names), FIELDS)
    return lambda: db.xadd(next(names), FIELDS)


def scan(db: Any, streams: int) -> Call:
    add_to_all(db, streams)
    cursor = 0

    def call() -> None:
        nonlocal cursor
        cursor, _ = db.scan(cursor)

    return call


def with_groups(db: Any, groups: int) -> None:
    stream(db, 1000)
    for number in range(groups):
        db.xgroup_create("s", f"g{number}", id="0")


def add_beside_groups(db: Any, groups: int) -> Call:
    with_groups(db, groups)
    return lambda: db.xadd("s", FIELDS)


def read_in_group(db: Any, groups: int) -> Call:
    with_groups(db, groups)

    def call() -> object:
        db.xadd("s", FIELDS)
        return db.xreadgroup("g0", "c", {"s": ">"}, count=1, noack=True)

    return call


def describe_groups(db: Any, groups: int) -> Call:
    with_groups(db, groups)
    return lambda: db.xinfo_groups("s")


def with_consumers(db: Any, consumers: int) -> Iterator[str]:
    stream(db, consumers)
    db.xgroup_create("s", "g", id="0")
    for number in range(consumers):
        db.xreadgroup("g", f"c{number}", {"s": ">"}, count=1)
    return itertools.cycle([f"c{number}" for number in range(consumers)])


def read_as_all(db: Any, consumers: int) -> Call:
    names = with_consumers(db, consumers)

    def call() -> object:
        db.xadd("s", FIELDS)
        [[_, [(entry_id, _)]]] = db.xreadgroup("g", next(names), {"s": ">"}, count=1)
        return db.xack("s", "g", entry_id)

    return call


def summary_of_consumers(db: Any, consumers: int) -> Call:
    with_consumers(db, consumers)
    return lambda: db.xpending("s", "g")


def add_value(db: Any, size: int) -> Call:
    fields = {"f": b"x" * size}
    return lambda: db.xadd("s", fields, maxlen=10)


def read_value(db: Any, size: int) -> Call:
    db.xadd("s", {"f": b"x" * size}, id="1-0")
    return lambda: db.xrange("s", count=1)


LINES = (
    Line("entries", "XADD", add),
    Line("entries", "XADD MAXLEN ~", add_and_trim),
    Line("entries", "XRANGE COUNT 10, middle", read_middle),
    Line("entries", "XREVRANGE COUNT 10", read_end),
    Line("entries", "XDEL", delete_in_order),
    Line("entries", "XINFO STREAM", describe),
    Line("entries", "XADD, XREADGROUP, XACK; all pending", read_and_acknowledge),
    Line("entries", "XACK; all pending", acknowledge, "cache misses in two lists"),
    Line("entries", "XCLAIM JUSTID; all pending", claim, "cache misses: lists, entries"),
    Line("entries", "XPENDING; all pending", summary),
    Line("streams", "XADD to one after the other", add_to_all, "cache misses; no cached stream"),
    Line("streams", "SCAN", scan, "from 512 keys on, one segment is sorted"),
    Line("groups", "XADD", add_beside_groups),
    Line("groups", "XADD, XREADGROUP NOACK in one", read_in_group),
    Line("groups", "XINFO GROUPS", describe_groups, "the reply has a row for each group"),
    Line("consumers", "XADD, XREADGROUP, XACK by all", read_as_all, "cache misses"),
    Line("consumers", "XPENDING", summary_of_consumers, "the reply has a row for each consumer"),
    Line("value bytes", "XADD MAXLEN = 10", add_value, "the bytes are copied, twice"),
    Line("value bytes", "XRANGE COUNT 1", read_value, "the bytes are copied"),
)
AXES = {
    "entries": [1_000, 100_000],
    "streams": [1, 100, 10_000],
    "groups": [1, 100, 10_000],
    "consumers": [1, 100, 10_000],
    "value bytes": [10, 1_000, 100_000, 10_000_000],
}
READERS = [0, 1, 100, 10_000]


def cpu_us(call: Call) -> float:
    """The CPU time of one call."""
    call()
    calls = 0
    start = time.process_time()
    while calls < CALLS_MAX and time.process_time() - start < SECONDS:
        call()
        calls += 1
    return (time.process_time() - start) * 1e6 / calls


def figure(line: Line, size: int) -> float:
    with penstock.open() as db:
        return cpu_us(line.prepare(db, size))


# --- Blocked readers -----------------------------------------------------------------------------


@contextmanager
def blocked(port: int, client: redis.Redis, readers: int, words: bytes) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(readers):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(words)
        while client.info("clients")["blocked_clients"] < readers:
            time.sleep(0.01)
        yield


def server_cpu_us(pid: int, client: redis.Redis, key: str, commands: int = 2_000) -> float:
    """The CPU time of the server for one XADD, pipelined by 100."""
    before = cpu_seconds(pid)
    for _ in range(commands // 100):
        adding = client.pipeline(transaction=False)
        for _ in range(100):
            adding.execute_command("XADD", key, "*", "temp", "21")  # type: ignore[no-untyped-call]
        adding.execute()
    return (cpu_seconds(pid) - before) * 1e6 / commands


def reader_rows() -> Rows:
    read = b"XREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\n"
    other: list[str] = []
    own: list[str] = []
    for readers in READERS:
        with running_penstock("--maxclients", "12000") as server:
            client = server.client()
            client.xgroup_create("s", "g", "$", mkstream=True)
            with blocked(server.port, client, readers, read):
                other.append(shown(server_cpu_us(server.pid, client, "t", 100_000)))
                own.append(shown(server_cpu_us(server.pid, client, "s", min(2_000, 100_000))))
    return [
        ["XADD to another key", *other, "-"],
        ["XADD to their key, 2,000 times", *own, "each serves a reader and sends its reply"],
    ]


# --- Tables --------------------------------------------------------------------------------------


def shown(us: float) -> str:
    return f"{us:,.2f} µs" if us < 100 else f"{us:,.0f} µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="also 10M entries")
    parser.add_argument("--only", default="", help="only the axes with this word")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit(
            "benchmarks/growth.py: this build is interpreted, so its figures would be misleading"
        )
    tables: list[tuple[list[str], Rows]] = []
    for axis, sizes in AXES.items():
        if arguments.only not in axis:
            continue
        if axis == "entries":
            sizes.append(10_000_000 if arguments.full else 1_000_000)
        rows = [
            [line.name, *(shown(figure(line, size)) for size in sizes), line.why]
            for line in LINES
            if line.axis == axis
        ]
        tables.append(([axis, *(f"{size:,}" for size in sizes), "why it grows"], rows))
    if arguments.only in "readers":
        head = ["blocked readers", *(f"{readers:,}" for readers in READERS), "why it grows"]
        tables.append((head, reader_rows()))
    for head, rows in tables:
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=140).print(table)
    if arguments.write:
        note = "CPU time of one call;"
        page = ROOT / "docs/performance.md"
        write_section(page, "growth", f"{note} {machine_line()}", tables)


if __name__ == "__main__":
    main()
