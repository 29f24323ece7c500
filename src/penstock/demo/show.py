"""Shows the demonstration on a terminal: steps, progress bars, the accounts and a chart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.demo.accounting import Accounts
from penstock.demo.orders import OPENING
from penstock.demo.run import Plan, Watcher

OUTPUTS = {"produced": "produced", "bronze": "archived", "silver": "valid", "reject": "rejected"}
CHART_WIDTH = 50
CHART_STEP = timedelta(minutes=10)


@contextmanager
def watching(console: Console, plan: Plan) -> Iterator[Watcher]:
    """Progress bars for the producers and each output."""
    columns = (
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {
            output: progress.add_task(word, total=plan.orders) for output, word in OUTPUTS.items()
        }

        def step(text: str) -> None:
            progress.console.print(f"[bold]>[/bold] {text}", highlight=False)

        def count(output: str, rows: int) -> None:
            if output in tasks:
                progress.advance(tasks[output], rows)

        yield Watcher(step, count)


def show_accounts(console: Console, accounts: Accounts) -> None:
    """Print the accounts as a table."""
    table = Table(title="Accounts", title_justify="left")
    table.add_column("what")
    table.add_column("expected", justify="right")
    table.add_column("found", justify="right")
    table.add_column("")
    for line in accounts.lines:
        mark = "[green]ok[/green]" if line.holds else "[bold red]WRONG[/bold red]"
        table.add_row(line.what, line.expected, line.found, mark)
    console.print(table)


def show_chart(console: Console, revenue: list[tuple[datetime, float]]) -> None:
    """Print the revenue since the shop opened, one line per ten minutes."""
    sums: dict[datetime, float] = {}
    for at, amount in revenue:
        if at >= OPENING:
            begin = OPENING + (at - OPENING) // CHART_STEP * CHART_STEP
            sums[begin] = sums.get(begin, 0) + amount
    largest = max(sums.values(), default=0) or 1
    console.print("Revenue per ten minutes, from the gold table", highlight=False)
    for begin, amount in sums.items():
        bar = "█" * round(CHART_WIDTH * amount / largest)
        console.print(f"  {begin:%H:%M} [cyan]{bar}[/cyan] {amount:,.0f}", highlight=False)
