"""The ways to read a stream in Spark that benchmarks/spark.py compares.

    python benchmarks/_spark_work.py MASTER ROUNDS ROWS PORT PARTS[,PARTS...]

reads a stream with a session of that master (a process can have only one), split into each number of
partitions in turn, and prints rows per second of each round as JSON.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import redis

from penstock.spark.runtime.session import build_session

STREAM = "bench:orders"
SCHEMA = "sku string, qty int, price double, ok boolean, at timestamp"
FIRST_MS = 1_700_000_000_000
DAY_MS = 86_400_000
ENTRIES_A_MS = 10
PIPELINE_ENTRIES = 2_000
RECEIVE_BYTES = 1 << 18
WARM_ROUNDS = 2
Way = Callable[[], None]


def fill(port: int, rows: int, days: int = 1) -> None:
    """Add orders with five fields and explicit ids, in equal parts on consecutive days."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for first in range(0, rows, PIPELINE_ENTRIES):
            some = range(first, min(first + PIPELINE_ENTRIES, rows))
            connection.sendall(
                b"".join(
                    encoded("XADD", STREAM, *order(number, number * days // rows))
                    for number in some
                )
            )
            left = 2 * len(some)  # lines of the replies
            while left > 0:
                replies = connection.recv(RECEIVE_BYTES)
                if not replies:
                    raise ConnectionError("the server has closed the connection")
                left -= replies.count(b"\n")


def order(number: int, day: int) -> list[str]:
    """The id, the names and the values of an order."""
    ms, seq = divmod(number, ENTRIES_A_MS)
    return [f"{FIRST_MS + day * DAY_MS + ms}-{seq}", *fields_of(number)]


def fields_of(number: int) -> list[str]:
    """The names and the values of an order."""
    minute, second = divmod(number % 3600, 60)
    return [
        *("sku", f"A{number % 1000}", "qty", str(number % 50)),
        *("price", f"{number % 300}.{number % 100:02}", "ok", "ft"[number % 2]),
        *("at", f"2026-11-16T02:{minute:02}:{second:02}.{number % 1000:03}Z"),
    ]


def encoded(*words: str) -> bytes:
    """A command on the wire. The words are ASCII."""
    parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    return f"*{len(words)}\r\n{parts}".encode()


def by_source(spark: Any, port: int, **options: Any) -> Way:
    """Read with format("penstock")."""

    def read() -> None:
        reader = spark.read.format("penstock").options(url=f"redis://127.0.0.1:{port}", **options)
        frame = reader.option("stream", STREAM).schema(SCHEMA).load()
        frame.write.format("noop").mode("overwrite").save()

    return read


def by_client(spark: Any, port: int, rows: int, parts: int) -> Way:
    """The obvious way: redis-py in mapPartitions, rows as tuples."""
    step = -(-rows // ENTRIES_A_MS // parts)
    bounds = [(FIRST_MS + n * step, FIRST_MS + (n + 1) * step - 1) for n in range(parts)]

    def entries(some: Iterator[tuple[int, int]]) -> Iterator[tuple[Any, ...]]:
        for first, last in some:
            start = str(first)
            with redis.Redis(port=port) as client:
                while page := client.xrange(STREAM, start, str(last), count=5_000):
                    for _, found in page:
                        yield (
                            found[b"sku"].decode(),
                            int(found[b"qty"]),
                            float(found[b"price"]),
                            found[b"ok"] == b"t",
                            datetime.fromisoformat(found[b"at"].decode()),
                        )
                    start = f"({page[-1][0].decode()}"

    def read() -> None:
        made = spark.sparkContext.parallelize(bounds, parts).mapPartitions(entries)
        frame = spark.createDataFrame(made, SCHEMA, verifySchema=False)
        frame.write.format("noop").mode("overwrite").save()

    return read


def by_parquet(spark: Any, path: str) -> Way:
    """Read the same rows from Parquet files."""

    def read() -> None:
        spark.read.schema(SCHEMA).parquet(path).write.format("noop").mode("overwrite").save()

    return read


def rates_of(ways: dict[str, Way], rows: int, rounds: int) -> dict[str, list[float]]:
    """Rows per second of each round. The ways take turns, after two rounds to warm up the JVM."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + WARM_ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            seconds = time.perf_counter() - began
            if number >= WARM_ROUNDS:
                found[name].append(rows / seconds)
    return found


def main() -> None:
    master, rounds, rows, port, parts = sys.argv[1:]
    spark = build_session("bench", master, "OFF", {"spark.executor.memory": "512m"})
    ways = {each: by_source(spark, int(port), minPartitions=each) for each in parts.split(",")}
    print(json.dumps(rates_of(ways, int(rows), int(rounds))))
    spark.stop()


if __name__ == "__main__":
    main()
