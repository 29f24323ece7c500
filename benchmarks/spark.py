"""Measures Spark with streams: rows per second against the usual ways, latency, partitions, executors.

    python benchmarks/spark.py [--rows 1000000] [--rounds 5] [--only read] [--write]

Read: five typed columns into Spark's no-op sink, on local[2], in turn: the source with penstock and with
Redis, redis-py in mapPartitions, and a Parquet scan of the same rows. Latency: from XADD to the driver, one
entry at a time. Sink: appended rows, against pipelined XADDs. Scaling: the read again, by partitions and by
masters, for docs/scaling.md. The tables show medians. Everything runs on one machine, including the servers.
"""

from __future__ import annotations

import argparse
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from _sink import sink_rates
from _spark_work import (
    SCHEMA,
    STREAM,
    by_client,
    by_parquet,
    by_source,
    fill,
    rates_of,
)
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from penstock import build
from penstock.spark.runtime.session import build_session

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT
from tests.support.servers.redis_server import redis_program_or_none, running_redis  # noqa: E402

Ports = tuple[int, int]
PARTS = 2
LATENCY_ENTRIES = 20
WAIT_SECONDS_MAX = 120.0
MASTERS = ("local[1]", "local[2]", "local-cluster[1,1,1024]", "local-cluster[2,1,1024]")
SCALED_PARTS = ("1", "2", "4", "8", "16")


@contextmanager
def both_servers() -> Iterator[Ports]:
    with running_penstock() as ours, running_redis() as theirs:
        yield ours.port, theirs.port


def reads(spark: Any, ports: Ports, rows: int, rounds: int) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        lake = f"{folder}/lake"
        copy = spark.read.format("penstock").option("url", f"redis://127.0.0.1:{ports[0]}")
        copy = copy.option("stream", STREAM).schema(SCHEMA)
        copy.load().write.parquet(lake)
        ways = {
            "source, from penstock": by_source(spark, ports[0]),
            "source, from Redis": by_source(spark, ports[1]),
            "redis-py in mapPartitions, from Redis": by_client(spark, ports[1], rows, PARTS),
            "Parquet scan": by_parquet(spark, lake),
        }
        found = rates_of(ways, rows, rounds)
    usual = found["redis-py in mapPartitions, from Redis"]
    return [
        [
            name,
            f"{statistics.median(rates):,.0f}",
            f"{max(rates):,.0f}",
            f"{statistics.median(a / b for a, b in zip(rates, usual, strict=True)):.1f}x",
        ]
        for name, rates in found.items()
    ]


def latency(spark: Any, ports: Ports) -> Rows:
    """The time from XADD until the driver has the row, in ms, one entry at a time."""
    rows: Rows = []
    for name, port in zip(("penstock", "Redis"), ports, strict=True):
        arrived: queue.Queue[list[Any]] = queue.Queue()
        frame = spark.readStream.format("penstock").option("url", f"redis://127.0.0.1:{port}")
        frame = frame.options(stream="bench:one", startingOffsets="earliest").schema("v int").load()
        with redis.Redis(port=port) as client, tempfile.TemporaryDirectory() as folder:
            query = (
                frame.writeStream.foreachBatch(lambda batch, _, to=arrived: to.put(batch.collect()))
                .option("checkpointLocation", folder)
                .start()
            )
            taken = []
            for number in range(LATENCY_ENTRIES + 3):
                began = time.perf_counter()
                client.xadd("bench:one", {"v": number})
                while not arrived.get(timeout=WAIT_SECONDS_MAX):
                    pass
                taken.append((time.perf_counter() - began) * 1000)
            query.stop()
        counted = sorted(taken[3:])  # the first ones include code generation
        rows.append([name, f"{statistics.median(counted):.0f} ms", f"{counted[-1]:.0f} ms"])
    return rows


def sinks(spark: Any, ports: Ports, rows: int, rounds: int) -> Rows:
    table: Rows = []
    for name, port in zip(("penstock", "Redis"), ports, strict=True):
        found = sink_rates(spark, f"redis://127.0.0.1:{port}", rows, rounds)
        sink, plain = (statistics.median(rates) for rates in found.values())
        table.append([name, f"{sink:,.0f}", f"{plain:,.0f}", f"{sink / plain:.1f}x"])
    return table


def scaling(ports: Ports, rows: int, rounds: int, progress: Progress) -> Rows:
    """Measure each master in a process of its own."""
    task = progress.add_task("masters", total=len(MASTERS))
    table: Rows = []
    script = Path(__file__).with_name("_spark_work.py")
    for master in MASTERS:
        words = [master, str(rounds), str(rows), str(ports[0]), ",".join(SCALED_PARTS)]
        done = subprocess.run(
            [sys.executable, str(script), *words], capture_output=True, text=True, check=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
        table.append(
            [master, *(f"{statistics.median(found[parts]):,.0f}" for parts in SCALED_PARTS)]
        )
        progress.advance(task)
    return table


def measured(given: argparse.Namespace, progress: Progress) -> dict[str, tuple[list[str], Rows]]:
    """The requested tables, by name."""
    tables: dict[str, tuple[list[str], Rows]] = {}
    rows, rounds = given.rows, given.rounds
    with both_servers() as ports:
        if given.only in ("", "read", "scaling"):
            for port in progress.track(ports, description="filling"):
                fill(port, rows)
        if given.only in ("", "scaling"):
            head = ["master", *(f"{parts} partitions" for parts in SCALED_PARTS)]
            tables["scaling"] = (head, scaling(ports, rows, rounds, progress))
        if given.only == "scaling":
            return tables
        spark = build_session("bench", "local[2]", "OFF", {"spark.driver.memory": "2g"})
        if given.only in ("", "read"):
            head = ["five typed columns, local[2]", "rows/s", "best", "of redis-py's"]
            tables["read"] = (head, reads(spark, ports, rows, rounds))
        if given.only in ("", "latency"):
            head = ["XADD to the driver", "median", "longest"]
            tables["latency"] = (head, latency(spark, ports))
        if given.only in ("", "sink"):
            head = ["appended to", "sink, rows/s", "plain XADDs", "ratio"]
            tables["sink"] = (head, sinks(spark, ports, rows, rounds))
        spark.stop()
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="read, latency, sink or scaling")
    parser.add_argument("--write", action="store_true", help="write all tables into docs")
    given = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit(
            "benchmarks/spark.py: this build is interpreted, so its figures would be misleading"
        )
    if redis_program_or_none() is None:
        sys.exit("benchmarks/spark.py: needs redis-server (make redis)")
    if given.write and given.only:
        sys.exit("benchmarks/spark.py: --write is for all tables, --only for one")
    with Progress(transient=True) as progress:
        tables = measured(given, progress)
    for head, rows in tables.values():
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=130).print(table)
    if given.write:
        note = f"{given.rows:,} rows, {given.rounds} rounds; {machine_line()}"
        write_section(ROOT / "docs/scaling.md", "scaling", note, [tables.pop("scaling")])
        write_section(ROOT / "docs/performance.md", "spark", note, list(tables.values()))


if __name__ == "__main__":
    main()
