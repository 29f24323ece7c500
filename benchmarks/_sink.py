"""Measures rows per second of the sink, against pipelined XADDs from each partition.

    python benchmarks/_sink.py URL [rows [rounds]]

benchmarks/spark.py calls `sink_rates`. The two ways take turns, so that a busy machine slows both. The rows
have five columns; generating them is part of both times.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import redis

from penstock.spark import build_session

STREAM = "bench:sink"
PARTITIONS = 2
PIPELINE_ENTRIES = 1_000
COLUMNS = (
    "concat('A', id % 1000) as sku",
    "int(id % 50) as qty",
    "id % 300 + (id % 100) / 100 as price",
    "1000000 + id as customer",
    "id % 2 = 0 as ok",
)


def orders(spark: Any, rows: int) -> Any:
    """Orders with five columns."""
    return spark.range(rows, numPartitions=PARTITIONS).selectExpr(*COLUMNS)


def write_by_sink(frame: Any, url: str) -> None:
    """Write with the data source."""
    writer = frame.write.format("penstock").mode("append")
    writer.options(url=url, stream=STREAM).save()


def write_plainly(frame: Any, url: str) -> None:
    """The obvious way: no staging, and duplicate rows when a task is retried."""

    def write(rows: Iterator[Any]) -> None:
        with redis.Redis.from_url(url) as client, client.pipeline(transaction=False) as pipeline:
            for number, row in enumerate(rows, 1):
                fields = {name: str(value) for name, value in row.asDict().items()}
                pipeline.xadd(STREAM, fields)
                if number % PIPELINE_ENTRIES == 0:
                    pipeline.execute()
            pipeline.execute()

    frame.foreachPartition(write)


def sink_rates(spark: Any, url: str, rows: int, rounds: int = 3) -> dict[str, list[float]]:
    """Rows per second of each round, for each way of writing, without the slower first round."""
    ways: dict[str, Callable[[Any, str], None]] = {
        "sink": write_by_sink,
        "plain XADD": write_plainly,
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    frame = orders(spark, rows)
    with redis.Redis.from_url(url) as client:
        for number in range(rounds + 1):
            for name, way in ways.items():
                client.delete(STREAM)
                began = time.perf_counter()
                way(frame, url)
                seconds = time.perf_counter() - began
                if client.xlen(STREAM) != rows:
                    raise RuntimeError(f"{name}: {client.xlen(STREAM)} of {rows} entries")
                if number:
                    rates[name].append(rows / seconds)
        client.delete(STREAM)
    return rates


def main() -> None:
    """Print the median of each way."""
    url = sys.argv[1]
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    rates = sink_rates(build_session("sink", "local[2]"), url, rows, rounds)
    for name, found in rates.items():
        shown = ", ".join(f"{rate:,.0f}" for rate in found)
        print(f"{name:<12}{statistics.median(found):>12,.0f} rows/s   ({shown})")


if __name__ == "__main__":
    main()
