"""Measures what a failover loses, beside Redis: servers under real Sentinels, eight faults, four settings.

    python benchmarks/failover.py [--jobs 4] [--only TEXT] [--results FILE] [--write]

Five clients add entries and ack them while the primary is cut off, stopped or killed. Then everything is
read, and compared with what the clients were told (tests/support/failover). Each column of the matrix takes
about three minutes; `--jobs` of them run at the same time. `--only` takes the columns with a text in their
name, for example "penstock, trio". `--results` keeps what was found in a file: a later run continues there.
`--write` writes the tables into docs/high-availability.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from _tables import Rows, machine_line, write_section
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.failover.campaign import run_faults, running_column  # noqa: E402 - found through ROOT
from tests.support.failover.columns import COLUMNS, SIZES, Column  # noqa: E402
from tests.support.failover.faults import faults_of  # noqa: E402
from tests.support.failover.judging import Outcome  # noqa: E402
from tests.support.servers.redis_server import redis_program_or_none  # noqa: E402

Found = dict[Column, dict[str, Outcome]]


def measure(column: Column) -> tuple[Column, dict[str, Outcome] | str]:
    """Run all faults of a column. Returns a text if the servers do not come back."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-failover-") as folder,
        running_column(column, Path(folder)) as group,
    ):
        try:
            return column, run_faults(column, group, faults_of(column.servers))
        except AssertionError as error:
            return column, str(error)


def measure_all(columns: list[Column], jobs: int, results: Path | None) -> Found:
    """Run columns side by side, but those whose results are kept."""
    found = read_results(results)
    left = [column for column in columns if column not in found]
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        for column, outcomes in pool.imap_unordered(measure, left):
            if isinstance(outcomes, str):
                print(outcomes, file=sys.stderr)
                continue
            found[column] = outcomes
            lost = sum(one.lost for one in outcomes.values())
            print(f"{column}: {lost} lost", file=sys.stderr)
            if results is not None:
                kept = {str(one): {k: asdict(v) for k, v in found[one].items()} for one in found}
                results.write_text(json.dumps(kept, indent=1))
    return {column: found[column] for column in columns if column in found}


def read_results(results: Path | None) -> Found:
    if results is None or not results.exists():
        return {}
    kept = json.loads(results.read_text())
    return {
        column: {name: Outcome(**outcome) for name, outcome in kept[str(column)].items()}
        for column in COLUMNS
        if str(column) in kept
    }


def fault_table(found: Found, size: str) -> tuple[list[str], Rows]:
    """Entries that were acknowledged and are lost, by fault."""
    columns = [column for column in found if column.size == size]
    head = [f"{size}: lost of acknowledged", *(f"{one.kind}, {one.setting}" for one in columns)]
    rows = []
    for fault in faults_of(SIZES[size]):
        outcomes = [found[column][fault.name] for column in columns]
        rows.append([fault.name, *(f"{one.lost:,} of {one.acknowledged:,}" for one in outcomes)])
    return head, rows


def total_table(found: Found) -> tuple[list[str], Rows]:
    """Everything that was counted, over all faults of a column."""
    head = ["all faults", "acknowledged", "lost", "acked, delivered again", "refused, but there"]
    head += ["out of order", "longest time without writes"]
    rows = []
    for column, by_fault in found.items():
        outcomes = by_fault.values()
        counts = [
            sum(one.acknowledged for one in outcomes),
            sum(one.lost for one in outcomes),
            sum(one.redelivered for one in outcomes),
            sum(one.refused_but_there for one in outcomes),
            sum(one.out_of_order for one in outcomes),
        ]
        longest = max(one.seconds_without for one in outcomes)
        rows.append([str(column), *(f"{count:,}" for count in counts), f"{longest:.1f} s"])
    return head, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if redis_program_or_none() is None:
        sys.exit("benchmarks/failover.py: needs redis-server (make redis)")
    columns = [column for column in COLUMNS if arguments.only in str(column)]
    found = measure_all(columns, arguments.jobs, arguments.results)
    sizes = [size for size in SIZES if any(column.size == size for column in found)]
    tables = [*(fault_table(found, size) for size in sizes), total_table(found)]
    for head, rows in tables:
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        Console(width=160).print(table)
    if len(found) < len(columns):
        sys.exit("benchmarks/failover.py: some columns have failed; nothing is written")
    if arguments.write:
        write_section(ROOT / "docs/high-availability.md", "failover", machine_line(), tables)


if __name__ == "__main__":
    main()
