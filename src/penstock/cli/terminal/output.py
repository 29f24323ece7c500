"""Writes lines and tables to stdout.

On a terminal, output has colours and tables wrap cells that do not fit. In a pipe, a table is padded text
with two blanks between columns: no colours, no lines, nothing cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = "  "


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table. Numeric columns are aligned to the right."""

    heading: str
    numeric: bool = False


class Stdout:
    """Stdout. Callers must make text harmless first."""

    def __init__(self) -> None:
        self._terminal_or_none: Console | None = None
        if sys.stdout.isatty():
            self._terminal_or_none = Console(highlight=False, markup=False, emoji=False)

    @property
    def is_terminal(self) -> bool:
        return self._terminal_or_none is not None

    def line(self, text: str | Text) -> None:
        """Write one line, neither wrapped nor cut. It may stay in the buffer until `flush`."""
        if self._terminal_or_none is not None and isinstance(text, Text):
            self._terminal_or_none.print(text, soft_wrap=True)
        else:
            sys.stdout.write(f"{text}\n")

    def flush(self) -> None:
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Write a hint, on a terminal only."""
        if self.is_terminal:
            self.line(Text(text, style="dim"))

    def table(self, columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> None:
        if self._terminal_or_none is not None:
            self._terminal_or_none.print(_drawn(columns, rows))
            return
        for line in _padded(columns, rows):
            self.line(line)


def _drawn(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), header_style="bold cyan")
    for column in columns:
        justify = "right" if column.numeric else "left"
        table.add_column(Text(column.heading), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _padded(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    lines = [[column.heading for column in columns], *map(list, rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    for cells in lines:
        padded = []
        for column, cell, width in zip(columns, cells, widths, strict=True):
            blanks = " " * (width - cell_len(cell))
            padded.append(blanks + cell if column.numeric else cell + blanks)
        yield GAP.join(padded).rstrip()
