"""/slowlog: the slow commands of the server."""

from __future__ import annotations

from nicegui import ui

from penstock.human.show import time_text
from penstock.web.admin.slow_log import COUNT_MAX, SlowCommand, slow_commands
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.watch.thresholds import COMMAND_MICROSECONDS, marked

REFRESH_SECONDS = 3.0
COLUMNS = [
    DataColumn("time", "time"),
    DataColumn("took", "duration", numeric=True),
    DataColumn("client", "client", wide=True),
    DataColumn("command", "command", wraps=True),
]


class SlowLogView:
    """A table."""

    def __init__(self, frame: PageFrame) -> None:
        self._server = frame.board.server
        with frame.content:
            ui.label(
                f"The newest {COUNT_MAX} commands that took longer than slowlog-log-slower-than."
            ).classes("muted wrap")
            self._table = DataTable(COLUMNS, "slow commands", empty="No slow commands.")

    async def refresh(self) -> None:
        """Ask the server again."""
        found = await slow_commands(self._server)
        self._table.show([slow_cells(command) for command in found])


def slow_cells(command: SlowCommand) -> TableRow:
    """A command as the table shows it."""
    took = f"{command.microseconds / 1000:,.1f} ms"
    return {
        "key": str(command.number),
        "time": time_text(command.at_ms),
        "took": marked(took, COMMAND_MICROSECONDS.level(command.microseconds)),
        "client": f"{command.client} {command.name}".strip(),
        "command": command.command,
    }


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/slowlog")
    async def slowlog() -> None:
        frame = PageFrame(board, "Slow log", "slowlog")
        view = SlowLogView(frame)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
