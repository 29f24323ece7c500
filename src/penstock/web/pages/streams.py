"""/streams: all streams of the server."""

from __future__ import annotations

from nicegui import ui

from penstock.client.replies import Entry
from penstock.human.show import age_text, counted, harmless, size_text
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame, show_url
from penstock.web.elements.parts import tools
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link
from penstock.web.model.catalogue import SORTS, CataloguePage, StreamRow, names_of
from penstock.web.model.facts import StreamFacts
from penstock.web.model.rates import rate_text
from penstock.web.watch.thresholds import LAG, marked

ROWS = 50
NO_STREAMS = "No streams found. Add one: penstock add orders sku=A1 qty=2"
REFRESH_SECONDS = 2.0

COLUMNS = [
    DataColumn("name", "stream", sorts=True),
    DataColumn("length", "length", numeric=True, sorts=True),
    DataColumn("bytes", "bytes", numeric=True, sorts=True),
    DataColumn("in", "in", numeric=True, sorts=True),
    DataColumn("spark", "rate in"),
    DataColumn("out", "out", numeric=True, sorts=True),
    DataColumn("first", "first entry", numeric=True, sorts=True),
    DataColumn("last", "last entry", numeric=True, sorts=True),
    DataColumn("groups", "groups", numeric=True, sorts=True),
    DataColumn("lag", "worst lag", numeric=True, sorts=True),
]


class StreamsView:
    """The table and its controls. Their state is in the URL."""

    def __init__(self, frame: PageFrame, search: str, sort: str, page: int) -> None:
        self._frame = frame
        self._catalogue = frame.board.catalogue
        self._search = search
        self._descending = sort.startswith("-")
        self._sort = sort.removeprefix("-")
        self._page = page
        with frame.content:
            with tools():
                box = ui.input("Search names", value=search, on_change=self._searched)
                box.props("dense outlined clearable debounce=300 type=search autofocus")
                self._count = ui.label().classes("muted").props('role="status"')
            self._table = DataTable(COLUMNS, "streams", empty=NO_STREAMS)
            self._table.on_sort(self._sort_by)
            self._table.mark_sorted(self._sort, self._descending)
            self._pager = ui.pagination(1, 1, value=1, direction_links=True, on_change=self._turned)
            self._pager.props("max-pages=7 active-design=outline")
            ui.label(
                "Out counts entries delivered to all groups together. If a lag is unknown, the page of the"
                " stream's groups explains why."
            ).classes("muted small")

    async def refresh(self) -> None:
        """Refresh the rows on the screen. The others are as old as the last sweep."""
        page = self._current()
        await self._catalogue.look(names_of(page.rows))
        if not self._catalogue.swept and not page.rows:
            await self._catalogue.glance()
        now_ms = await self._frame.board.server.now_ms()
        self._show(self._current(), now_ms)

    def _current(self) -> CataloguePage:
        page = self._catalogue.page(self._search, self._sort, self._descending, self._page, ROWS)
        self._page = page.number
        return page

    def _show(self, page: CataloguePage, now_ms: int) -> None:
        so_far = "" if self._catalogue.swept else " so far"
        self._count.set_text(counted(page.total, "stream") + so_far)
        self._pager.set_visibility(page.pages > 1)
        if self._pager.max != page.pages:
            self._pager.max = page.pages
        self._table.show([row_cells(row, now_ms) for row in page.rows])

    async def _searched(self, event: object) -> None:
        self._search = getattr(event, "value", None) or ""
        self._page = 1
        await self._changed()

    async def _sort_by(self, name: str) -> None:
        # Numbers are sorted from the largest down at first.
        self._descending = not self._descending if name == self._sort else name != "name"
        self._sort = name
        self._page = 1
        self._table.mark_sorted(name, self._descending)
        await self._changed()

    async def _turned(self, event: object) -> None:
        wanted = int(getattr(event, "value", 1))
        if wanted != self._page:
            self._page = wanted
            await self._changed()

    async def _changed(self) -> None:
        await self._frame.attempt(self.refresh)
        if self._pager.value != self._page:
            self._pager.set_value(self._page)
        sort = ("-" if self._descending else "") + self._sort
        page = self._page if self._page > 1 else None
        show_url(link("streams", search=self._search, sort=sort, page=page))


def row_cells(row: StreamRow, now_ms: int) -> TableRow:
    """A stream as the table shows it."""
    facts, meter = row.facts, row.meter
    lag = facts.worst_lag
    return {
        "key": facts.name.hex(),
        "name": {"text": harmless(facts.name), "href": link("stream", facts.name)},
        "length": f"{facts.length:,}",
        "bytes": "-" if facts.size_bytes is None else size_text(facts.size_bytes),
        "in": rate_text(meter.rate_in),
        "spark": {"points": meter.points_in(), "text": f"rate in, now {rate_text(meter.rate_in)}"},
        "out": rate_text(meter.rate_out) if facts.groups else "-",
        "first": _age(facts.first, now_ms),
        "last": _age(facts.last, now_ms),
        "groups": len(facts.groups),
        "lag": "-"
        if not facts.groups
        else marked(f"{lag:,}", LAG.level(lag))
        if lag is not None
        else _unknown(facts),
    }


def _unknown(facts: StreamFacts) -> dict[str, str]:
    """A link to the page that explains why."""
    return {"text": "unknown", "href": link("groups", facts.name)}


def _age(entry: Entry | None, now_ms: int) -> str:
    return "-" if entry is None else age_text(entry.id.ms, now_ms)


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/streams")
    async def streams(search: str = "", sort: str = "", page: str = "") -> None:
        query = QueryReader()
        order = query.one_of("sort", sort, SORTS, "name")
        number = query.number("page", page, 1)
        frame = PageFrame(board, "Streams", "streams")
        frame.warn_about(query, link("streams", search=search))
        view = StreamsView(frame, search, order, number)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
