"""/configuration: the settings of the server."""

from __future__ import annotations

from nicegui import ui

from penstock.web.admin.configuration import pick, settings_of
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame, show_url
from penstock.web.elements.parts import tools
from penstock.web.elements.table import DataColumn, DataTable
from penstock.web.http.names import link

COLUMNS = [DataColumn("name", "setting"), DataColumn("value", "value", wraps=True)]


class ConfigurationView:
    """A table with a filter, which is in the URL."""

    def __init__(self, frame: PageFrame, search: str) -> None:
        self._frame = frame
        self._search = search
        self._settings: list[tuple[str, str]] = []
        with frame.content:
            with tools():
                box = ui.input("Filter settings", value=search, on_change=self._searched)
                box.props("dense outlined clearable debounce=200 type=search")
                self._count = ui.label().classes("muted").props('role="status"')
            self._table = DataTable(COLUMNS, "settings", empty="No such setting.")

    async def refresh(self) -> None:
        """Ask the server."""
        self._settings = await settings_of(self._frame.board.server)
        self._show()

    def _show(self) -> None:
        found = pick(self._settings, self._search)
        self._count.set_text(f"{len(found):,} of {len(self._settings):,} settings")
        self._table.show(
            [{"key": name, "name": name, "value": value or "-"} for name, value in found]
        )

    def _searched(self, event: object) -> None:
        self._search = getattr(event, "value", None) or ""
        self._show()
        show_url(link("configuration", search=self._search))


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/configuration")
    async def configuration(search: str = "") -> None:
        frame = PageFrame(board, "Configuration", "configuration")
        view = ConfigurationView(frame, search)
        await frame.load(view.refresh)
