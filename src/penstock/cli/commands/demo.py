"""`penstock demo`: a server, a pipeline that is killed, and a count of every order."""

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
    "penstock demo                              about two minutes on two cores",
    "penstock demo --orders 50000 --dir small   smaller, in a directory of your choice",
)
ORDERS = 500_000
ORDERS_MIN = 1_000
PRODUCERS_MAX = 64


def demo(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Directory for data and lake. It must not exist yet."),
    ] = None,
    orders: Annotated[
        int, typer.Option(min=ORDERS_MIN, help="Number of orders to produce.")
    ] = ORDERS,
    producers: Annotated[
        int, typer.Option(min=1, max=PRODUCERS_MAX, help="Number of producer processes.")
    ] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the orders: same seed, same orders.")] = 1,
) -> None:
    """Run the demonstration: a killed pipeline loses nothing.

    Starts a server, produces orders (some malformed, some late), runs a declarative pipeline on local Spark,
    kills it halfway, restarts it, and counts: produced = archived = valid + rejected. The exit code is 1 if
    the numbers differ.
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
        raise Failure(f"{error}; see the logs in {place}") from error
    show.show_chart(console, outcome.accounts.revenue)
    show.show_accounts(console, outcome.accounts)
    console.print(
        f"{orders:,} orders in {outcome.seconds:.0f} s; the pipeline was killed with"
        f" {outcome.killed_at:,} of them archived, and restarted.",
        highlight=False,
    )
    console.print(
        f"The lake:     {plan.lake}  (Parquet: DuckDB, pandas and Spark read it)", highlight=False
    )
    console.print(f"The pipeline: {place / run.FILE}", highlight=False)
    program = sys.argv[0]
    console.print(
        f"Explore it:   {program} serve --port 7000 --dir {place / 'data'}", highlight=False
    )
    console.print(f"              {program} ui --url redis://127.0.0.1:7000", highlight=False)
    if not outcome.accounts.hold:
        raise Failure("the numbers do not add up")


def _make(directory: Path | None) -> Path:
    place = directory or Path("penstock-demo", time.strftime("%Y-%m-%dT%H-%M-%S"))
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        raise typer.BadParameter(f"--dir: {place} exists already; name a new directory") from None
    except OSError as error:
        raise typer.BadParameter(f"--dir: {place}: {error.strerror}") from error
    return place.resolve()
