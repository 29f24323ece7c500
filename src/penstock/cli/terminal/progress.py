"""A progress bar on stderr, if that is a terminal."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars


class ProgressBar:
    """A bar that appears with the second report, so short inputs show none. Use it in a `with` statement."""

    def __init__(
        self, bytes_total: int | None, ids_are_printed: bool, count_format: str = "{} added"
    ) -> None:
        self._bytes_total = bytes_total
        self._count_format = count_format
        # Ids that scroll by on the same terminal already show progress.
        self._wanted = sys.stderr.isatty() and not (ids_are_printed and sys.stdout.isatty())
        self._bars_or_none: Bars | None = None
        self._task = TaskID(0)
        self._reports = 0

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars_or_none is not None:
            self._bars_or_none.stop()

    def set_total(self, bytes_total: int) -> None:
        """Set the total when it becomes known after the start."""
        self._bytes_total = bytes_total

    def advance(self, bytes_read: int, added: int) -> None:
        self._reports += 1
        if self._reports == 2 and self._wanted:
            self._start()
        if self._bars_or_none is not None:
            counted = self._count_format.format(added)
            self._bars_or_none.update(self._task, completed=bytes_read, counted=counted)

    def _start(self) -> None:
        self._bars_or_none = Bars(
            BarColumn(),
            TextColumn("{task.fields[counted]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
        )
        self._task = self._bars_or_none.add_task("", total=self._bytes_total, counted="")
        self._bars_or_none.start()
