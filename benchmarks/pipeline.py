"""Measures a pipeline against a plain Spark batch that makes the same outputs from Parquet.

    python benchmarks/pipeline.py [--rows 2000000] [--rounds 3] [--master local[2]] [--write]

The pipeline reads orders from penstock and writes bronze, silver, rejects and an aggregate by minute to a new
lake. Its checks and the start of its queries count. The batch reads the same fields as text from Parquet,
casts them and writes the same four tables, with and without caching its input. The ways take turns in one
session, after one round to warm up. Everything runs on one machine, including the server.

Where the time goes: the batches of `main`, the batches of the aggregate, and the rest. The queries run at the
same time, so these may add up to more than the whole.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from _spark_work import STREAM, fill
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.table import Table

from penstock.spark.pipeline.definition.file import load_pipeline
from penstock.spark.pipeline.progress import BatchRecord
from penstock.spark.pipeline.run import run_pipeline
from penstock.spark.runtime.session import build_session

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT

TEXT = f"""[source]
url = "redis://127.0.0.1:PORT"
stream = "{STREAM}"
[schema]
sku = "string"
qty = "int"
price = "decimal(10,2)"
ok = "boolean"
at = "timestamp"
[valid]
positive = "qty > 0"
[archive]
path = "lake"
[reject]
stream = "bench:rejected"
[[aggregate]]
name = "minute"
window = "1 minute"
watermark = "1 minute"
group_by = ["ok"]
measures = {{ orders = "count(*)", revenue = "sum(qty * price)" }}
"""
RAW = "_id string, _timestamp timestamp, sku string, qty string, price string, ok string, at string"
TYPED = (
    "_id",
    "_timestamp",
    "sku",
    "cast(qty as int) qty",
    "cast(price as decimal(10,2)) price",
    "cast(ok as boolean) ok",
    "cast(at as timestamp) at",
)
WINDOWS = """select window(_timestamp, '1 minute').start as start, ok, count(*) orders,
sum(qty * price) revenue, to_date(max(_timestamp)) day from bench_typed
group by window(_timestamp, '1 minute'), ok"""
HEAD = ["way", "seconds", "rows/s", "of the faster batch", "main, s", "aggregate, s"]
Way = Callable[[Path], dict[str, float]]


def by_pipeline(spark: Any, port: int) -> Way:
    """Run the pipeline into a new lake."""

    def run(folder: Path) -> dict[str, float]:
        file = folder / "bench.toml"
        file.write_text(TEXT.replace("PORT", str(port)))
        with redis.Redis(port=port) as client:
            client.delete("bench:rejected")
        records: list[BatchRecord] = []
        began = time.perf_counter()
        run_pipeline(load_pipeline(file), spark, once=True, watch=records.append)
        whole = time.perf_counter() - began
        spent = {"whole": whole}
        for query, output in (("main", "bronze"), ("aggregate", "minute")):
            spent[query] = sum(one.seconds for one in records if one.output == output)
        return spent

    return run


def by_batch(spark: Any, source: Path, is_cached: bool) -> Way:
    """Make the same tables from Parquet with ordinary Spark code."""

    def run(folder: Path) -> dict[str, float]:
        began = time.perf_counter()
        raw = spark.read.schema(RAW).parquet(str(source))
        if is_cached:
            raw = raw.persist()
        day = "to_date(_timestamp) day"
        tables = {"bronze": raw.selectExpr("*", day)}
        typed = raw.selectExpr(*TYPED)
        tables["silver"] = typed.where("qty > 0").selectExpr("*", day)
        tables["rejected"] = typed.where("not coalesce(qty > 0, false)").selectExpr("*", day)
        typed.where("qty > 0").createOrReplaceTempView("bench_typed")
        tables["minute"] = spark.sql(WINDOWS)
        for name, table in tables.items():
            table.write.partitionBy("day").parquet(str(folder / name))
        if is_cached:
            raw.unpersist()
        return {"whole": time.perf_counter() - began}

    return run


def save_raw(spark: Any, port: int, target: Path) -> None:
    """Copy the stream to Parquet, with all fields as text."""
    reader = spark.read.format("penstock").options(url=f"redis://127.0.0.1:{port}", stream=STREAM)
    reader.schema(RAW).load().write.parquet(str(target))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures a pipeline against a Spark batch.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    given = parser.parse_args()
    settings = {"spark.sql.session.timeZone": "UTC", "spark.executor.memory": "512m"}
    spent: dict[str, list[dict[str, float]]] = {}
    with running_penstock() as server, tempfile.TemporaryDirectory() as place:
        fill(server.port, given.rows)
        spark = build_session("bench", given.master, "OFF", settings)
        raw = Path(place, "raw")
        save_raw(spark, server.port, raw)
        ways = {
            "pipeline": by_pipeline(spark, server.port),
            "batch": by_batch(spark, raw, is_cached=False),
            "batch, cached": by_batch(spark, raw, is_cached=True),
        }
        for number in range(given.rounds + 1):
            for name, way in ways.items():
                folder = Path(place, "made")
                folder.mkdir()
                found = way(folder)
                shutil.rmtree(folder)
                if number:
                    spent.setdefault(name, []).append(found)
        spark.stop()
    made = table_of(spent, given.rows)
    table = Table(*HEAD)
    for row in made:
        table.add_row(*row)
    Console().print(table)
    if given.write:
        measured = (
            f"{given.rows:,} entries, {given.rounds} rounds, {given.master}; {machine_line()}"
        )
        write_section(ROOT / "docs/performance.md", "pipeline", measured, [(HEAD, made)])


def table_of(spent: dict[str, list[dict[str, float]]], rows: int) -> Rows:
    """The medians."""
    medians = {
        name: {part: statistics.median(one[part] for one in rounds) for part in rounds[0]}
        for name, rounds in spent.items()
    }
    best = min(medians[name]["whole"] for name in medians if name != "pipeline")
    found = []
    for name, one in medians.items():
        parts = [f"{one[part]:.1f}" if part in one else "" for part in ("main", "aggregate")]
        rate = f"{rows / one['whole']:,.0f}"
        found.append([name, f"{one['whole']:.1f}", rate, f"{one['whole'] / best:.2f}", *parts])
    return found


if __name__ == "__main__":
    main()
