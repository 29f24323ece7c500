"""Progress of a running pipeline: a live table on stderr, or one line of JSON per batch."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.cli.terminal.output import Stdout
from penstock.human.show import harmless, json_line

if TYPE_CHECKING:
    from penstock.spark.pipeline.progress import BatchRecord

HEADINGS = ("output", "batch", "rows", "rows/s", "batch time", "lag", "pending")


class Display(Protocol):
    """Shows records of batches. Use it in a `with` statement."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def note(self, text: str) -> None:
        """Called with a line of text before each step of work that precedes the batches."""

    def show(self, record: BatchRecord) -> None:
        """Called after each batch."""


class NoDisplay:
    """Shows nothing: in a pipe, the summary is enough."""

    def __enter__(self) -> NoDisplay:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def note(self, text: str) -> None:
        """Show nothing."""

    def show(self, record: BatchRecord) -> None:
        """Show nothing."""


class BatchLines(NoDisplay):
    """One JSON object per batch, flushed at once."""

    def __init__(self, output: Stdout) -> None:
        self._output = output

    def note(self, text: str) -> None:
        """Print the text."""
        self._output.line(json_line({"note": text}))
        self._output.flush()

    def show(self, record: BatchRecord) -> None:
        """Print the record."""
        self._output.line(json_line(record.to_json()))
        self._output.flush()


class LiveTable:
    """The last batch of each output, and its total number of rows."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._records: dict[str, BatchRecord] = {}
        self._rows: dict[str, int] = {}
        self._note = ""
        console = Console(stderr=True)
        self._live = Live(self._drawn(), console=console, transient=True, redirect_stdout=False)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def note(self, text: str) -> None:
        """Show the text in the title until the first batch."""
        self._note = text
        self._live.update(self._drawn())

    def show(self, record: BatchRecord) -> None:
        """Redraw the table."""
        self._records[record.output] = record
        self._rows[record.output] = self._rows.get(record.output, 0) + record.rows
        self._live.update(self._drawn())

    def _drawn(self) -> Table:
        return progress_table(self._pipeline, self._records, self._rows, self._note)


def progress_table(
    pipeline: str, records: Mapping[str, BatchRecord], rows: Mapping[str, int], note: str = ""
) -> Table:
    """The last record of each output, and its total number of rows. Before that, what is being done."""
    waiting = "" if records else f": {harmless(note)}" if note else " is starting"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    table.title = Text(f"{harmless(pipeline)}{waiting}", style="bold")
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if number else "left")
    for name, record in records.items():
        table.add_row(
            Text(harmless(name)),
            f"{record.batch}",
            f"{rows[name]:,}",
            f"{record.rows_per_second:,.0f}",
            f"{record.seconds:.1f} s",
            _number(record.lag),
            _number(record.pending),
        )
    return table


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
