"""Measures the dashboard: load times of its views, memory and CPU, with a busy stream and with many streams.

    python benchmarks/dashboard.py [--entries 1000000] [--rounds 5] [--seconds 60] [--rate 50000]
                                   [--streams 10000] [--groups 1000] [--write]

A view counts as loaded when its main content is on the page, in a Chromium with a warm cache. The time of the
tail is measured from the XADD of another client until the entry is on the page. For the last table, `--rate`
entries per second are added to a stream whose tail is open; memory and CPU are those of the dashboard
process. Then another dashboard shows a server with `--streams` short streams, `--groups` of which have a
group with pending entries, and one stream with as many groups. `--write` writes the tables into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from _cpu import cpu_seconds
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.dashboard import (  # noqa: E402 - found through ROOT
    CHROMIUM_OPTIONS,
    NO_CHROMIUM,
    Dashboard,
    chromium_or_none,
    running_dashboard,
)
from tests.support.servers.penstock_server import PenstockServer, running_penstock  # noqa: E402
from tests.support.servers.redis_server import free_port  # noqa: E402

FIRST_MS = 1_700_000_000_000
PIPELINED = 5000
SAMPLES = 7
HOT_BATCH = 500
HOT_LENGTH_MAX = 500_000
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
VIEWS = {
    "streams": ("/streams", "orders"),
    "a stream": ("/stream?name=orders", "sku="),
    "groups": ("/groups?name=orders", "packers still needs"),
    "a group": ("/group?name=orders&group=packers", "sku="),
    "structure": ("/structure?name=orders", "lp-count"),
    "pipeline": ("/pipeline", "silver"),
}
MANY_VIEWS = {
    "overview": ("/overview", "in {streams:,} streams"),
    "streams": ("/streams", "{streams:,} streams"),
    "streams, searched and sorted": ("/streams?search=s:00&sort=-lag", "s:00"),
    "workers": ("/workers", "No entry waits"),
    "groups of one stream": ("/groups?name=crowd", "50 of {groups:,} groups"),
    "one of these groups": ("/group?name=crowd&group=g00007", "Pending entries by age"),
}


def fill(client: Any, entries: int) -> None:
    """Add the data that the views show."""
    pipeline = client.pipeline(transaction=False)
    for number in range(entries):
        pipeline.execute_command(
            *(
                "XADD",
                "orders",
                f"{FIRST_MS + number * 10}-0",
                "sku",
                f"A{number % 50}",
                "n",
                number,
            )
        )
        if number % PIPELINED == PIPELINED - 1:
            pipeline.execute()
    pipeline.execute()
    client.xgroup_create("orders", "packers", id="0")
    client.xreadgroup("packers", "ann", {"orders": ">"}, count=100)
    client.xadd("penstock:metrics", {"pipeline": "shop", "output": "silver", "batch": 1, "rows": 9})
    client.xadd("live", {"n": 0})


def fill_many(client: Any, streams: int, groups: int) -> None:
    """Add many short streams, and one with many groups. Each group has a pending entry and a lag.

    Each of the first `groups` short streams has a group.
    """
    pipeline = client.pipeline(transaction=False)
    for number in range(streams):
        for entry in range(3):
            pipeline.execute_command("XADD", f"s:{number:05}", "*", "n", entry)
        if number < groups:
            pipeline.execute_command("XGROUP", "CREATE", f"s:{number:05}", "g", "0")
            pipeline.xreadgroup("g", "c", {f"s:{number:05}": ">"}, count=1)
        if number % PIPELINED == PIPELINED - 1:
            pipeline.execute()
    for number in range(groups):
        pipeline.execute_command("XGROUP", "CREATE", "crowd", f"g{number:05}", "0", "MKSTREAM")
    for entry in range(3):
        pipeline.execute_command("XADD", "crowd", "*", "n", entry)
    for number in range(groups):
        pipeline.xreadgroup(f"g{number:05}", "c", {"crowd": ">"}, count=1)
    pipeline.execute()


def view_seconds(
    page: Any, address: str, rounds: int, views: dict[str, tuple[str, str]]
) -> dict[str, list[float]]:
    """The time from the request for each view until its main content is visible."""
    taken: dict[str, list[float]] = {name: [] for name in views}
    for _ in range(rounds + 1):
        for name, (path, text) in views.items():
            started = time.perf_counter()
            page.goto(address + path)
            page.locator(".view").get_by_text(text).first.wait_for()
            taken[name].append(time.perf_counter() - started)
    return {name: values[1:] for name, values in taken.items()}  # the first one filled the cache


def tail_seconds(page: Any, address: str, client: Any, rounds: int) -> list[float]:
    """The time from an XADD until the entry is on the page."""
    page.goto(f"{address}/stream?name=live&tail=1")
    page.get_by_role("button", name="Pause").wait_for()
    taken = []
    for number in range(3 * rounds):
        page.wait_for_timeout(
            137 * (number % 5)
        )  # at different points between two updates of the tail
        started = time.perf_counter()
        client.xadd("live", {"mark": f"m{number}."})
        page.locator("tbody").get_by_text(f"mark=m{number}.").wait_for()
        taken.append(time.perf_counter() - started)
    return taken


HOT = """
import socket, sys, time
port, rate, seconds, batch, length = map(int, sys.argv[1:])
words = [b"XADD", b"hot", b"MAXLEN", b"~", b"%d" % length, b"*", b"sku", b"A1", b"note", b"0123456789abcdef"]
one = b"*%d\\r\\n" % len(words) + b"".join(b"$%d\\r\\n%s\\r\\n" % (len(word), word) for word in words)
link = socket.create_connection(("127.0.0.1", port))
started, sent = time.monotonic(), 0
while time.monotonic() - started < seconds:
    link.sendall(one * batch)
    sent += batch
    left = 2 * batch
    while left > 0:
        left -= link.recv(1 << 20).count(b"\\n")
    time.sleep(max(0, started + sent / rate - time.monotonic()))
print(sent / (time.monotonic() - started))
"""


@contextmanager
def hot_stream(port: int, rate: int, seconds: int) -> Iterator[subprocess.Popen[str]]:
    """Run a process that adds entries at a constant rate."""
    words = [str(word) for word in (port, rate, seconds, HOT_BATCH, HOT_LENGTH_MAX)]
    with subprocess.Popen(
        [sys.executable, "-c", HOT, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


def hot_rows(page: Any, dashboard: Dashboard, server: PenstockServer, asked: Any) -> Rows:
    """Memory and CPU of the dashboard process, in equal intervals."""
    pid = dashboard.process.pid
    with server.client() as client:
        client.xadd("hot", {"n": 0})
    page.goto(f"{dashboard.address}/stream?name=hot&tail=1")
    page.get_by_role("button", name="Pause").wait_for()
    rows = [["before", f"{rss_mb(pid):.0f} MB", "", ""]]
    step = asked.seconds / SAMPLES
    with hot_stream(server.port, asked.rate, asked.seconds) as process:
        for number in range(1, SAMPLES + 1):
            cpu = cpu_seconds(pid)
            started = time.monotonic()
            page.wait_for_timeout(1000 * step)
            part = (cpu_seconds(pid) - cpu) / (time.monotonic() - started)
            newest = page.locator("tbody button.open").first.inner_text()
            age = time.time() - int(newest.partition("-")[0]) / 1000
            cells = [f"{number * step:.0f} s", f"{rss_mb(pid):.0f} MB", f"{100 * part:.0f}%"]
            rows.append([*cells, f"{age:.1f} s"])
        rate = float(process.communicate()[0])
    rows.append([f"at {rate:,.0f} entries/s", "", "", ""])
    return rows


def metric(port: int, name: str) -> float:
    """A metric of the dashboard."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(name)))


def many_rows(driver: Any, asked: Any) -> Rows:
    """Load times, memory and CPU with many streams and groups. The first sweep ends before the views."""
    metrics_port = free_port()
    with running_penstock() as server:
        with server.client() as client:
            fill_many(client, asked.streams, asked.groups)
        url = f"redis://127.0.0.1:{server.port}"
        with (
            running_dashboard(url, "--metrics", str(metrics_port)) as dashboard,
            opened_page(driver) as page,
        ):
            while not metric(metrics_port, "penstock_ui_sweep_seconds"):
                page.wait_for_timeout(200)
            pid = dashboard.process.pid
            sweep = metric(metrics_port, "penstock_ui_sweep_seconds")
            memory = {"after the first sweep": rss_mb(pid)}
            views = {
                name: (path, text.format(streams=asked.streams + 1, groups=asked.groups))
                for name, (path, text) in MANY_VIEWS.items()
            }
            rows = timed_rows(view_seconds(page, dashboard.address, asked.rounds, views))
            memory["after these views"] = rss_mb(pid)
            page.goto(f"{dashboard.address}/overview")
            cpu, started = cpu_seconds(pid), time.monotonic()
            page.wait_for_timeout(1000 * asked.seconds / 2)
            part = (cpu_seconds(pid) - cpu) / (time.monotonic() - started)
            memory[f"after {asked.seconds / 2:.0f} s of the overview"] = rss_mb(pid)
    rows.append(["a sweep over all streams", f"{sweep:.2f} s", ""])
    rows.append(["overview open: CPU of one core", f"{100 * part:.0f}%", ""])
    rows += [[f"memory {when}", f"{size:.0f} MB", ""] for when, size in memory.items()]
    return rows


def timed_rows(times: dict[str, list[float]]) -> Rows:
    return [
        [name, f"{statistics.median(values):.2f} s", f"{max(values):.2f} s"]
        for name, values in times.items()
    ]


@contextmanager
def opened_page(driver: Any) -> Iterator[Any]:
    """A page of 1280 pixels in a Chromium of its own."""
    chromium = driver.chromium.launch(executable_path=chromium_or_none(), args=CHROMIUM_OPTIONS)
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)
    yield page
    chromium.close()


def measured(asked: Any) -> list[tuple[list[str], Rows]]:
    """All tables."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - after the check for Chromium

    with sync_playwright() as driver:
        first = long_stream_tables(driver, asked)
        many = many_rows(driver, asked)
    head = f"{asked.streams:,} streams, {asked.groups:,} groups"
    return [*first, ([head, "median", "slowest"], many)]


def long_stream_tables(driver: Any, asked: Any) -> list[tuple[list[str], Rows]]:
    """The views of a long stream, and a busy one."""
    with running_penstock() as server, redis.Redis(port=server.port) as client:
        fill(client, asked.entries)
        url = f"redis://127.0.0.1:{server.port}"
        with running_dashboard(url) as dashboard, opened_page(driver) as page:
            times = view_seconds(page, dashboard.address, asked.rounds, VIEWS)
            times["tail: XADD to page"] = tail_seconds(
                page, dashboard.address, client, asked.rounds
            )
            hot = hot_rows(page, dashboard, server, asked)
    return [
        (["view", "median", "slowest"], timed_rows(times)),
        (["tail open, after", "memory", "CPU of one core", "age of the newest entry shown"], hot),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if chromium_or_none() is None:
        sys.exit(f"benchmarks/dashboard.py: {NO_CHROMIUM}")
    tables = measured(asked)
    for head, rows in tables:
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=110).print(table)
    if asked.write:
        note = f"{asked.entries:,} entries, {asked.rounds} rounds; {machine_line()}"
        write_section(ROOT / "docs/performance.md", "dashboard", note, tables)


if __name__ == "__main__":
    main()
