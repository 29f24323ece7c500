"""`penstock demo`: everything in one go, and whether it adds up."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.cli.spark_session import need_spark
from penstock.cli.terminal.outcome import Failure, example
from penstock.errors import PenstockError

EPILOG = example(
    "penstock demo                                two minutes on two cores",
    "penstock demo --orders 50000 --dir small  smaller, and elsewhere",
)
ORDERS = 500_000
ORDERS_MIN = 1_000
PRODUCERS_MAX = 64


def demo(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="A directory that does not exist yet, for data and lake."),
    ] = None,
    orders: Annotated[
        int, typer.Option(min=ORDERS_MIN, help="How many orders are produced.")
    ] = ORDERS,
    producers: Annotated[
        int, typer.Option(min=1, max=PRODUCERS_MAX, help="How many processes produce them.")
    ] = 4,
    seed: Annotated[int, typer.Option(help="The same seed makes the same orders.")] = 1,
) -> None:
    """Show a durable queue and a Spark pipeline that is killed and loses nothing.

    Starts a server, produces orders (some malformed, some late), runs a declarative pipeline on local Spark,
    kills it in the middle, starts it again, and counts: produced = archived = valid + rejected. The exit code
    is 1 if that does not hold.
    """
    need_spark()
    from penstock.demo import run, show

    place = _make(directory)
    plan = run.Plan(place, orders, producers, seed)
    console = Console(soft_wrap=True)
    try:
        with show.watching(console, plan) as watcher:
            outcome = run.run_demo(plan, watcher)
    except PenstockError as error:
        raise Failure(f"{error}; the logs are in {place}") from error
    show.show_chart(console, outcome.accounts.revenue)
    show.show_accounts(console, outcome.accounts)
    console.print(
        f"{orders:,} orders in {outcome.seconds:.0f} s; the pipeline was killed with"
        f" {outcome.killed_at:,} of them archived, and started again.",
        highlight=False,
    )
    console.print(
        f"The lake:     {plan.lake}  (Parquet: DuckDB, pandas and Spark read it)", highlight=False
    )
    console.print(f"The pipeline: {place / run.FILE}", highlight=False)
    program = sys.argv[0]
    console.print(
        f"Go on:        {program} serve --port 7000 --dir {place / 'data'}", highlight=False
    )
    console.print(f"and look:     {program} ui --url redis://127.0.0.1:7000", highlight=False)
    if not outcome.accounts.hold:
        raise Failure("the accounts do not add up")


def _make(directory: Path | None) -> Path:
    place = directory or Path("penstock-demo", time.strftime("%Y-%m-%dT%H-%M-%S"))
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        raise typer.BadParameter(f"--dir: {place} is there already; name a new directory") from None
    except OSError as error:
        raise typer.BadParameter(f"--dir: {place}: {error.strerror}") from error
    return place.resolve()
