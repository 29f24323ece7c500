"""/servers: all servers of the dashboard, those with problems first."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import app, ui

from penstock.human.show import harmless
from penstock.web.admin.replication import ROLES
from penstock.web.board import Board
from penstock.web.elements.frame import SERVERS, SERVERS_VIEW, PageFrame
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.names import link
from penstock.web.watch.problems import Problem
from penstock.web.watch.thresholds import BAD, GOOD, WARN, marked

REFRESH_SECONDS = 2.0
FIGURES = ("in", "out", "lag", "pending", "memory", "clients")
COLUMNS = [
    DataColumn("name", "server"),
    DataColumn("state", "state", wide=True),
    DataColumn("problems", "problems"),
    DataColumn("role", "role"),
    DataColumn("streams", "streams", numeric=True),
    DataColumn("in", "in", numeric=True),
    DataColumn("out", "out", numeric=True),
    DataColumn("lag", "lag", numeric=True),
    DataColumn("pending", "pending", numeric=True),
    DataColumn("memory", "memory", numeric=True),
    DataColumn("clients", "clients", numeric=True),
    DataColumn("address", "address", wide=True),
]
# The views that old URLs name without a server.
VIEWS = (
    *("overview", "streams", "stream", "groups", "group", "retention", "structure", "pipeline"),
    *("workers", "replication", "clients", "slowlog", "configuration", "export"),
)


class ServersView:
    """One row for each server."""

    def __init__(self, frame: PageFrame, boards: Sequence[Board]) -> None:
        self._boards = boards
        with frame.content:
            self._verdict = ui.label().classes("muted").props('role="status"')
            self._table = DataTable(COLUMNS, "servers")

    async def refresh(self) -> None:
        """Show what was collected in the background. Asks no server, so none can delay the page."""
        found = [(board, board.problems()) for board in self._boards]
        found.sort(key=lambda one: (not one[0].health.problem, -len(one[1])))
        self._table.show([server_cells(board, problems) for board, problems in found])
        down = sum(bool(board.health.problem) for board in self._boards)
        self._verdict.set_text(verdict(len(self._boards), down))


def verdict(servers: int, down: int) -> str:
    """One line about all servers."""
    if not down:
        return f"All {servers} servers answer."
    return f"{down} of {servers} servers {'does' if down == 1 else 'do'} not answer."


def server_cells(board: Board, problems: Sequence[Problem]) -> TableRow:
    """A server as the table shows it. Figures of a server that does not answer are unknown."""
    is_down = bool(board.health.problem)
    cells: TableRow = {
        "key": board.name,
        "name": {"text": board.name, "href": f"{board.path}/{link('overview')}"},
        "state": marked("does not answer" if is_down else "answers", BAD if is_down else GOOD),
        "problems": "-" if is_down else _problem_count(problems),
        "role": "-" if is_down else ROLES.get(board.figures.info.get("role", ""), "unknown"),
        "streams": "-" if is_down else f"{len(board.catalogue):,}",
        "address": harmless(board.server.name),
    }
    return cells | {name: "-" if is_down else board.figures.text(name) for name in FIGURES}


def _problem_count(problems: Sequence[Problem]) -> object:
    if not problems:
        return "none"
    return marked(f"{len(problems):,}", problems[0].level or WARN)


def register(boards: Sequence[Board]) -> None:
    """Serve this view as the first page, and send URLs without a server to the first one."""
    first = boards[0]

    @ui.page("/")
    @ui.page(SERVERS)
    async def servers() -> None:
        frame = PageFrame(first, "Servers", SERVERS_VIEW)
        view = ServersView(frame, boards)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)

    async def redirect(request: Request) -> RedirectResponse:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{first.path}{request.url.path}{query}")

    for name in VIEWS:
        app.get(f"/{name}")(redirect)
