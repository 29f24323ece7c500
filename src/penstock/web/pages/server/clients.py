"""/clients: the connections of the server."""

from __future__ import annotations

from nicegui import ui

from penstock.human.show import duration_text, size_text
from penstock.web.admin.clients import SHOWN_MAX, SORTS, Client, clients_of, pick
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame, show_url
from penstock.web.elements.parts import tools
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link

REFRESH_SECONDS = 3.0
COLUMNS = [
    DataColumn("addr", "address", sorts=True),
    DataColumn("name", "name", sorts=True),
    DataColumn("user", "user", sorts=True),
    DataColumn("cmd", "last command", sorts=True),
    DataColumn("age", "connected", numeric=True, sorts=True),
    DataColumn("idle", "idle", numeric=True, sorts=True),
    DataColumn("db", "db", numeric=True, sorts=True),
    DataColumn("tot-mem", "memory", numeric=True, sorts=True),
    DataColumn("flags", "flags"),
    DataColumn("lib", "library"),
]


class ClientsView:
    """A table with a search. Its state is in the URL."""

    def __init__(self, frame: PageFrame, search: str, sort: str) -> None:
        self._frame = frame
        self._search = search
        self._descending = sort.startswith("-")
        self._sort = sort.removeprefix("-")
        with frame.content:
            with tools():
                box = ui.input("Search clients", value=search, on_change=self._searched)
                box.props("dense outlined clearable debounce=300 type=search")
                self._count = ui.label().classes("muted").props('role="status"')
            self._table = DataTable(COLUMNS, "clients", empty="No such client.")
            self._table.on_sort(self._sort_by)
            self._table.mark_sorted(self._sort, self._descending)

    async def refresh(self) -> None:
        """Ask the server again."""
        found = await clients_of(self._frame.board.server)
        picked = pick(found, self._search, self._sort, self._descending)
        more = f"; the first {SHOWN_MAX} are shown" if len(picked) > SHOWN_MAX else ""
        self._count.set_text(f"{len(picked):,} of {len(found):,} clients{more}")
        self._table.show([client_cells(client) for client in picked[:SHOWN_MAX]])

    async def _searched(self, event: object) -> None:
        self._search = getattr(event, "value", None) or ""
        await self._changed()

    async def _sort_by(self, name: str) -> None:
        self._descending = not self._descending if name == self._sort else False
        self._sort = name
        self._table.mark_sorted(name, self._descending)
        await self._changed()

    async def _changed(self) -> None:
        await self._frame.attempt(self.refresh)
        sort = ("-" if self._descending else "") + self._sort
        show_url(link("clients", search=self._search, sort=sort))


def client_cells(client: Client) -> TableRow:
    """A client as the table shows it."""
    library = f"{client.get('lib-name', '')} {client.get('lib-ver', '')}".strip()
    return {
        "key": client.get("id", "") or client.get("addr", ""),
        "addr": client.get("addr") or "-",
        "name": client.get("name") or "-",
        "user": client.get("user") or "-",
        "cmd": client.get("cmd") or "-",
        "age": _seconds(client.get("age", "")),
        "idle": _seconds(client.get("idle", "")),
        "db": client.get("db", "-"),
        "tot-mem": _size(client.get("tot-mem", "")),
        "flags": client.get("flags", "-"),
        "lib": library or "-",
    }


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16


def _seconds(text: str) -> str:
    return duration_text(int(text) * 1000) if _is_number(text) else "-"


def _size(text: str) -> str:
    return size_text(int(text)) if _is_number(text) else "-"


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/clients")
    async def clients(search: str = "", sort: str = "") -> None:
        query = QueryReader()
        order = query.one_of("sort", sort, SORTS, "addr")
        frame = PageFrame(board, "Clients", "clients")
        frame.warn_about(query, link("clients", search=search))
        view = ClientsView(frame, search, order)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
