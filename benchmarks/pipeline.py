"""Measures a pipeline: beside a plain Spark batch, its latency, and its memory with a backlog.

    python benchmarks/pipeline.py [--rows 2000000] [--rounds 3] [--master local[2]] [--only throughput]
        [--old PATH] [--days 1] [--write]

The pipeline reads orders from penstock and writes bronze, silver, rejects and an aggregate by minute to a new
lake. Each measurement has a process of its own (_pipeline_work.py). Everything runs on one machine, including
the server.

Throughput: the pipeline, with its checks and the start of its queries, and a Spark batch that reads the same
fields as text from Parquet, casts them and writes the same four tables, with and without caching its input.
The ways take turns in one session, after one round to warm up, on each `--master`. `--old` is a checkout with
another build in its .venv, whose pipeline is measured too, on the first master.

Where the time goes: the batches of `main`, the batches of the aggregate, and the rest. The queries run at the
same time, so these may add up to more than the whole.

Latency: from XADD to the manifest of silver with the row, at a constant rate for a minute.

Backlog: the largest memory of the processes while a pipeline reads a long stream, at two lengths. With
`--days` its entries are on several days, so a task writes several files at once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from _memory import DRIVER, EXECUTORS, WORKERS
from _spark_work import fill
from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.table import Table

from penstock import build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.servers.penstock_server import running_penstock  # noqa: E402 - found through ROOT

MASTERS = ["local[2]", "local-cluster[2,1,1024]"]
LATENCY_RATE = 5_000
LATENCY_SECONDS = 60
BACKLOGS = [2_000_000, 10_000_000]
Tables = list[tuple[list[str], Rows]]


def worked(measure: str, python: str = sys.executable, **arguments: object) -> Any:
    """The result of _pipeline_work.py."""
    script = str(Path(__file__).with_name("_pipeline_work.py"))
    words = [python, script, json.dumps({"measure": measure, **arguments})]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def throughput(given: argparse.Namespace) -> Tables:
    """One table for each master."""
    tables: Tables = []
    with running_penstock() as server:
        fill(server.port, given.rows)
        for master in given.master:
            same: dict[str, Any] = {"port": server.port, "master": master, "rounds": given.rounds}
            spent = worked("throughput", **same)
            if given.old and not tables:
                python = f"{given.old}/.venv/bin/python"
                former = worked("throughput", python, only="pipeline", **same)
                spent["pipeline, former build"] = former["pipeline"]
            head = [master, "seconds", "rows/s", "of the faster batch", "main, s", "aggregate, s"]
            tables.append((head, compared(spent, given.rows)))
    return tables


def compared(spent: dict[str, list[dict[str, float]]], rows: int) -> Rows:
    """The medians of each way."""
    medians = {
        name: {part: statistics.median(one[part] for one in rounds) for part in rounds[0]}
        for name, rounds in spent.items()
    }
    best = min(one["whole"] for name, one in medians.items() if name.startswith("batch"))
    found = []
    for name, one in medians.items():
        parts = [f"{one[part]:.1f}" if part in one else "" for part in ("main", "aggregate")]
        rate = f"{rows / one['whole']:,.0f}"
        found.append([name, f"{one['whole']:.1f}", rate, f"{one['whole'] / best:.2f}", *parts])
    return found


def latency(given: argparse.Namespace) -> Tables:
    with running_penstock() as server:
        same: dict[str, Any] = {
            "port": server.port,
            "rate": LATENCY_RATE,
            "seconds": LATENCY_SECONDS,
        }
        found = sorted(worked("latency", master=given.master[0], **same))
    head = [f"XADD to silver, {LATENCY_RATE:,} entries/s", "median", "95%", "99%", "longest"]
    places = [len(found) * share // 100 for share in (50, 95, 99)]
    shown = [f"{found[at] / 1000:.2f} s" for at in (*places, -1)]
    return [(head, [[f"{len(found):,} entries, {given.master[0]}", *shown]])]


def backlog(given: argparse.Namespace) -> Tables:
    master = given.master[-1]
    rows: Rows = []
    for entries in given.backlog:
        with running_penstock() as server:
            fill(server.port, entries, given.days)
            found = worked("backlog", port=server.port, master=master)
        sizes = [f"{found[name]:,.0f} MB" for name in (DRIVER, EXECUTORS, WORKERS)]
        seconds = found["seconds"]
        rows.append([f"{entries:,}", f"{seconds:.0f}", f"{entries / seconds:,.0f}", *sizes])
    days = f" of {given.days} days" if given.days > 1 else ""
    return [([f"backlog{days}, {master}", "seconds", "rows/s", DRIVER, EXECUTORS, WORKERS], rows)]


def main() -> None:
    measures = {"throughput": throughput, "latency": latency, "backlog": backlog}
    parser = argparse.ArgumentParser(description="Measures a pipeline.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", nargs="+", default=MASTERS)
    parser.add_argument("--backlog", type=int, nargs="+", default=BACKLOGS)
    parser.add_argument("--days", type=int, default=1, help="on how many days a backlog is")
    parser.add_argument("--only", choices=list(measures), help="one of the measurements")
    parser.add_argument("--old", default="", help="a checkout with another build")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    given = parser.parse_args()
    if build.KIND != "compiled":
        sys.exit("benchmarks/pipeline.py: this build is interpreted, so its figures would mislead")
    for name, measure in measures.items():
        if given.only not in (None, name):
            continue
        tables = measure(given)
        for head, rows in tables:
            table = Table(*head)
            for row in rows:
                table.add_row(*row)
            Console(width=130).print(table)
        if given.write:
            note = machine_line()
            if name == "throughput":
                note = f"{given.rows:,} entries, {given.rounds} rounds; {note}"
            write_section(ROOT / "docs/performance.md", f"pipeline-{name}", note, tables)


if __name__ == "__main__":
    main()
