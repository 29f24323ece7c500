"""Measures the longest stop of the server for operations on large data, beside redis-server.

    python benchmarks/stops.py [--rounds 3] [--full] [--only WORD] [--old PATH] [--write]

A second client sends PING all the time (_pings.py). Its slowest answer while an operation runs, and while the
server cleans up after it, is the stop that other clients see. The tables show the median over the rounds of
the CPU time of the server between a PING and its answer, and beside it the time on the clock. `--full` takes
streams of 10M entries instead of 1M. `--old` is a folder with another build of the package, which is measured
as a third side. `--write` writes the tables into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import selectors
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
from unittest import mock

import redis
from _pings import Stop, pinging
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.redis_server import redis_program_or_none, running_redis  # noqa: E402

SETTLE_SECONDS = 0.3  # no reply shows that a server has finished cleaning up
PENDING = 1_000_000
KEYS = 1_000_000
STREAMS = 10_000
READERS = 10_000
CONNECTS = 3_000
BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many entries a large stream has."""

    entries: int


Step = Callable[[redis.Redis, Sizes], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """A line of the table: what is prepared, and what is measured."""

    name: str
    prepare: Step
    run: Step


def port_of(client: redis.Redis) -> int:
    return int(client.connection_pool.connection_kwargs["port"])


def encoded(*words: str | bytes) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word.encode() if isinstance(word, str) else word
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def fill(client: redis.Redis, *words: str, count: int, depth: int = 1000) -> None:
    """Send one command many times."""
    command = ["redis-benchmark", "-p", str(port_of(client)), "-q", "-n", str(count)]
    command += ["-c", "1", "-P", str(depth), *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def send(client: redis.Redis, commands: Iterator[bytes], lines: int) -> None:
    """Send commands in batches; each is answered by this many lines."""
    with socket.create_connection(("127.0.0.1", port_of(client))) as connection:
        while batch := [command for command, _ in zip(commands, range(BATCH), strict=False)]:
            connection.sendall(b"".join(batch))
            left = lines * len(batch)
            while left > 0:
                left -= connection.recv(1 << 18).count(b"\n")


# --- Preparation ---------------------------------------------------------------------------------


def large_stream(client: redis.Redis, sizes: Sizes) -> None:
    fill(client, "XADD", "s", "*", "temp", "21", count=sizes.entries)


def numbered_stream(client: redis.Redis) -> None:
    """A million entries with known ids."""
    words = (encoded("XADD", "s", f"1-{n}", "temp", "21") for n in range(1, PENDING + 1))
    send(client, words, 2)


def pending_list(client: redis.Redis, sizes: Sizes) -> None:
    """A million entries, all pending for one consumer, and one entry of another."""
    numbered_stream(client)
    client.xgroup_create("s", "g", "0")
    for _ in range(PENDING // BATCH):
        client.execute_command("XREADGROUP", "GROUP", "g", "c", "COUNT", BATCH, "STREAMS", "s", ">")  # type: ignore[no-untyped-call]
    client.xadd("s", {"temp": "21"})
    client.xreadgroup("g", "d", {"s": ">"})


def orphans(client: redis.Redis, sizes: Sizes) -> None:
    """A million pending entries whose entries are gone."""
    pending_list(client, sizes)
    client.execute_command("XTRIM", "s", "MAXLEN", 0)  # type: ignore[no-untyped-call]
    time.sleep(SETTLE_SECONDS)


def unread_stream(client: redis.Redis, sizes: Sizes) -> None:
    numbered_stream(client)
    client.xgroup_create("s", "g", "0")


def many_streams(client: redis.Redis, sizes: Sizes) -> None:
    words = (encoded("XADD", f"s:{n % STREAMS}", "*", "temp", "21") for n in range(100 * STREAMS))
    send(client, words, 2)


def many_keys(client: redis.Redis, sizes: Sizes) -> None:
    send(client, (encoded("SET", f"key:{n}", "value") for n in range(KEYS)), 1)


def nothing(client: redis.Redis, sizes: Sizes) -> None:
    """No preparation is needed."""


# --- Operations ----------------------------------------------------------------------------------


def command(*words: str | int) -> Step:
    def run(client: redis.Redis, sizes: Sizes) -> None:
        client.execute_command(*words)  # type: ignore[no-untyped-call]

    return run


def expire(client: redis.Redis, sizes: Sizes) -> None:
    client.pexpire("s", 1)
    while client.execute_command("DBSIZE"):  # type: ignore[no-untyped-call]
        time.sleep(0.01)


def rename_over(client: redis.Redis, sizes: Sizes) -> None:
    client.set("t", "x")
    client.rename("t", "s")


def acknowledge_all(client: redis.Redis, sizes: Sizes) -> None:
    """XACK everything, 64 ids in each command, oldest first."""
    firsts = range(1, PENDING + 1, 64)
    ids = ([f"1-{n}" for n in range(first, first + 64)] for first in firsts)
    send(client, (encoded("XACK", "s", "g", *some) for some in ids), 1)


def read_all(client: redis.Redis, sizes: Sizes) -> None:
    """Read a million entries, a hundred at a time: they become pending."""
    words = ("XREADGROUP", "GROUP", "g", "c", "COUNT", "100", "STREAMS", "s", ">")
    fill(client, *words, count=PENDING // 100, depth=1)


def autoclaim_all(count: int) -> Step:
    def run(client: redis.Redis, sizes: Sizes) -> None:
        start: bytes = b"0-0"
        while True:
            words = ("XAUTOCLAIM", "s", "g", "d", 0, start, "COUNT", count, "JUSTID")
            reply = client.execute_command(*words)  # type: ignore[no-untyped-call]
            start = reply[0]
            if start == b"0-0":
                return

    return run


def scan_some(client: redis.Redis, sizes: Sizes) -> None:
    cursor = 0
    for _ in range(100):
        cursor, _ = client.scan(cursor)


def add_large_stream(client: redis.Redis, sizes: Sizes) -> None:
    large_stream(client, sizes)


@contextmanager
def blocked(client: redis.Redis, *words: str) -> Iterator[list[socket.socket]]:
    """Ten thousand connections with the same blocking read."""
    with ExitStack() as stack:
        found = []
        data = encoded(*words)
        for _ in range(READERS):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(client))))
            one.sendall(data)
            found.append(one)
        while client.info("clients")["blocked_clients"] < READERS:
            time.sleep(0.01)
        yield found


def all_answered(sockets: list[socket.socket]) -> None:
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ)
        left = len(sockets)
        while left:
            for key, _ in selector.select():
                selector.unregister(key.fileobj)
                left -= 1


def connect_all(client: redis.Redis, sizes: Sizes) -> None:
    """Connect three thousand times at once, then wait for all answers."""
    with ExitStack() as stack:
        found = []
        for _ in range(CONNECTS):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port_of(client)))
            found.append(one)
        with selectors.DefaultSelector() as selector:
            for one in found:
                selector.register(one, selectors.EVENT_WRITE)
            left = CONNECTS
            while left:
                for key, mask in selector.select():
                    connected = key.fileobj
                    assert isinstance(connected, socket.socket)
                    if mask & selectors.EVENT_WRITE:
                        connected.send(b"PING\r\n")
                        selector.modify(connected, selectors.EVENT_READ)
                    else:
                        selector.unregister(connected)
                        left -= 1


OPERATIONS = (
    Operation("DEL of a large stream", large_stream, command("DEL", "s")),
    Operation("UNLINK of a large stream", large_stream, command("UNLINK", "s")),
    Operation("expiry of a large stream", large_stream, expire),
    Operation("SET over a large stream", large_stream, command("SET", "s", "x")),
    Operation("RENAME over a large stream", large_stream, rename_over),
    Operation("XTRIM MAXLEN = 0", large_stream, command("XTRIM", "s", "MAXLEN", 0)),
    Operation("XTRIM MAXLEN = 1000", large_stream, command("XTRIM", "s", "MAXLEN", 1000)),
    Operation(
        "XADD MAXLEN = 1000",
        large_stream,
        command("XADD", "s", "MAXLEN", 1000, "*", "temp", "21"),
    ),
    Operation(
        "XTRIM MINID",
        large_stream,
        command("XTRIM", "s", "MINID", "99999999999999"),
    ),
    Operation("adding to a large stream", nothing, add_large_stream),
    Operation("DEL of 1M pending entries", pending_list, command("DEL", "s")),
    Operation("XGROUP DESTROY, 1M pending", pending_list, command("XGROUP", "DESTROY", "s", "g")),
    Operation(
        "XGROUP DELCONSUMER, 1M pending",
        pending_list,
        command("XGROUP", "DELCONSUMER", "s", "g", "c"),
    ),
    Operation("XREADGROUP of 1M, 100 at a time", unread_stream, read_all),
    Operation("XACK of 1M, 64 at a time", pending_list, acknowledge_all),
    Operation("XAUTOCLAIM of 1M orphans, COUNT 100", orphans, autoclaim_all(100)),
    Operation("XAUTOCLAIM of 1M orphans, COUNT 1M", orphans, autoclaim_all(1_000_000)),
    Operation("FLUSHALL of 10,000 streams", many_streams, command("FLUSHALL")),
    Operation("FLUSHALL of 1M keys", many_keys, command("FLUSHALL")),
    Operation("SET of 1M new keys", nothing, many_keys),
    Operation("SCAN of 1M keys, the first calls", many_keys, scan_some),
    Operation("RANDOMKEY of 1M keys, the first call", many_keys, command("RANDOMKEY")),
)


@contextmanager
def running(side: str, old: str | None) -> Iterator[redis.Redis]:
    """Start one of the servers."""
    with ExitStack() as stack:
        if side == "Redis":
            port = stack.enter_context(running_redis("--maxclients", "12000")).port
        else:
            with mock.patch.dict(os.environ, {"PYTHONPATH": old} if side == "before" else {}):
                options = ("--compat-version", "7.0", "--maxclients", "12000")
                port = stack.enter_context(running_penstock(*options)).port
        yield stack.enter_context(redis.Redis(port=port))


def measured(side: str, operation: Operation, sizes: Sizes, old: str | None) -> tuple[Stop, float]:
    """The longest stop, and the time until the operation was done."""
    with running(side, old) as client:
        operation.prepare(client, sizes)
        pid = int(client.info("server")["process_id"])
        time.sleep(SETTLE_SECONDS)
        with pinging(port_of(client), pid) as pings:
            start = time.perf_counter()
            operation.run(client, sizes)
            seconds = time.perf_counter() - start
            time.sleep(SETTLE_SECONDS)
            return pings.longest(), seconds


def with_readers(side: str, old: str | None) -> dict[str, tuple[Stop, float]]:
    """The lines about blocked readers: ten thousand connections are made once for all of them."""
    found = {}
    with running(side, old) as client:
        pid = int(client.info("server")["process_id"])
        client.xgroup_create("s", "g", "$", mkstream=True)
        group = ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
        with blocked(client, *group), pinging(port_of(client), pid) as pings:
            for name, key in (("another key", "t"), ("their key", "s")):
                client.xadd(key, {"temp": "21"})
                pings.forget()
                start = time.perf_counter()
                for _ in range(100):
                    client.xadd(key, {"temp": "21"})
                seconds = (time.perf_counter() - start) / 100
                found[f"XADD to {name}, 10,000 blocked XREADGROUPs"] = (pings.longest(), seconds)
    with running(side, old) as client:
        pid = int(client.info("server")["process_id"])
        read = ("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        with blocked(client, *read) as sockets, pinging(port_of(client), pid) as pings:
            start = time.perf_counter()
            client.xadd("s", {"temp": "21"})
            all_answered(sockets)
            seconds = time.perf_counter() - start
            time.sleep(SETTLE_SECONDS)
            found["XADD that frees 10,000 XREADs"] = (pings.longest(), seconds)
    connects = Operation("3,000 connects at once", nothing, connect_all)
    found[connects.name] = measured(side, connects, Sizes(0), old)
    return found


def row_of(name: str, figures: dict[str, list[tuple[Stop, float]]]) -> list[str]:
    row = [name]
    for taken in figures.values():
        cpu = statistics.median(stop.cpu_ms for stop, _ in taken)
        wall = statistics.median(stop.wall_ms for stop, _ in taken)
        seconds = statistics.median(seconds for _, seconds in taken)
        row += [f"{cpu:.1f} ms", f"{wall:.1f} ms", f"{seconds * 1000:,.1f} ms"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="streams of 10M entries")
    parser.add_argument("--only", default="", help="only the lines with this word")
    parser.add_argument("--without-redis", action="store_true")
    parser.add_argument("--old", default=None, help="a folder with another build of penstock")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit(
            "benchmarks/stops.py: this build is interpreted, so its figures would be misleading"
        )
    if redis_program_or_none() is None or shutil.which("redis-benchmark") is None:
        sys.exit("benchmarks/stops.py: needs redis-server and redis-benchmark (make redis)")
    sizes = Sizes(10_000_000 if arguments.full else 1_000_000)
    sides = ["penstock"]
    sides += [] if arguments.without_redis else ["Redis"]
    sides += ["before"] if arguments.old else []
    chosen = [one for one in OPERATIONS if arguments.only in one.name]
    taken: dict[str, dict[str, list[tuple[Stop, float]]]] = {}
    with Progress() as progress:
        task = progress.add_task("stops", total=arguments.rounds * (len(chosen) + 1) * len(sides))
        for _ in range(arguments.rounds):
            for operation in chosen:
                for side in sides:
                    line = taken.setdefault(operation.name, {name: [] for name in sides})
                    line[side].append(measured(side, operation, sizes, arguments.old))
                    progress.advance(task)
            for side in sides:
                if arguments.only in "readers" or not arguments.only:
                    for name, found in with_readers(side, arguments.old).items():
                        line = taken.setdefault(name, {name: [] for name in sides})
                        line[side].append(found)
                progress.advance(task)
    head = ["operation"]
    for side in sides:
        head += [f"{side}: stop, CPU", "stop, clock", "done after"]
    rows: Rows = [row_of(name, figures) for name, figures in taken.items()]
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    Console(width=200).print(table)
    if arguments.write:
        note = f"{arguments.rounds} rounds, a large stream has {sizes.entries:,} entries;"
        page = ROOT / "docs/performance.md"
        write_section(page, "stops", f"{note} {machine_line()}", [(head, rows)])


if __name__ == "__main__":
    main()
