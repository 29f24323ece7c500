"""/stream: the entries of a stream, page by page or as they arrive."""

from __future__ import annotations

from nicegui import ui

from penstock.client.replies import Entry
from penstock.core.stream_id import StreamID, parse
from penstock.human.moment import parse_moment
from penstock.human.show import age_text, harmless, size_text, time_text
from penstock.human.where import Condition, parse_conditions
from penstock.web.board import Board
from penstock.web.elements.dialogs import tell
from penstock.web.elements.frame import PageFrame, keep_cookie, show_url
from penstock.web.elements.parts import tools
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.elements.time_slider import TimeSlider
from penstock.web.http.address import QueryReader
from penstock.web.http.columns import COLUMNS_COOKIE, encode_choices, parse_choices
from penstock.web.http.names import link
from penstock.web.jobs.pipelines import is_reject
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.model.stream_page import (
    NEWEST,
    OLDEST,
    EntryPage,
    Reading,
    page_before,
    read_ids,
    read_page,
    reading_from,
)
from penstock.web.model.tailing import Tail
from penstock.web.model.time_line import STEPS, id_at
from penstock.web.model.values import field_preview, preview
from penstock.web.pages.columns import choose_columns
from penstock.web.pages.entry import show_entry
from penstock.web.pages.stream_actions import StreamActions

TAIL_SECONDS = 0.4
REFRESH_SECONDS = 3.0

FIXED_COLUMNS = [
    DataColumn("id", "id"),
    DataColumn("time", "time", wide=True),
]
SEEK_HINT = "start, end, an id, @ms, 2024-05-01T12:00, 10m"
WHERE_HINT = "field=value, field!=value, field~regex, body$.a.b=value; combine with &&"


class StreamView:
    """Entries of one stream: a page of it, or its tail."""

    def __init__(self, frame: PageFrame, name: bytes, reading: Reading, where: str) -> None:
        self._frame = frame
        self._server = frame.board.server
        self._name = name
        self._reading = reading
        self._where = where
        self._conditions: list[Condition] = []
        self._page = EntryPage([], None, 0)
        self._entries: list[Entry] = []
        self._facts: StreamFacts | None = None
        self._tail: Tail | None = None
        cookie = ui.context.client.request.cookies.get(COLUMNS_COOKIE)
        self._choices = parse_choices(cookie)
        self._columns = self._choices.get(name, [])
        with frame.content:
            self._about = ui.label().classes("muted wrap")
            self._build_controls()
            self._slider = TimeSlider(self._slide)
            self._table = DataTable(
                columns_of(self._columns), "entries", chooses=True, empty="No entries here."
            )
            self._table.element.classes("mono")
            self._table.on_open(self._open)
            with tools():
                self._back = ui.button("Previous", on_click=self._turn_back).props("flat no-caps")
                self._next = ui.button("Next", on_click=self._turn_on).props("flat no-caps")
                self._note = ui.label().classes("muted wrap").props('role="status"')
            self._actions = StreamActions(frame, name, self)
        frame.keys.add("n", "next page", self._turn_on)
        frame.keys.add("p", "previous page", self._turn_back)
        frame.keys.add("t", "start, pause or resume the tail", self.turn_tail)
        frame.keys.add("/", "go to an id or a time", lambda: self._seek_box.run_method("focus"))

    def _build_controls(self) -> None:
        with tools():
            self._seek_box = ui.input("Go to", placeholder=SEEK_HINT).props("dense outlined")
            self._seek_box.on("keydown.enter", self._seek).style("min-width: 14rem")
            self._seek_box.tooltip(SEEK_HINT)
            ui.button("Oldest", on_click=lambda: self._go(OLDEST)).props("flat no-caps")
            ui.button("Newest", on_click=lambda: self._go(NEWEST)).props("flat no-caps")
            box = ui.input("Filter", placeholder=WHERE_HINT, value=self._where)
            box.props("dense outlined clearable").on("keydown.enter", self._filter)
            box.on("clear", self._filter).style("min-width: 14rem").tooltip(WHERE_HINT)
            self._where_box = box
            self._tail_button = ui.button("Tail", icon="play_arrow", on_click=self.turn_tail)
            self._tail_button.props("no-caps outline")
            ui.button("Columns", icon="view_column", on_click=self._choose_columns).props(
                "flat no-caps"
            )

    async def refresh(self) -> None:
        """Read the current page again."""
        self._facts = await one_stream(self._server, self._name)
        self._frame.board.catalogue.note_now(self._facts)
        self._show_about(self._facts, await self._server.now_ms())
        if self._tail is not None:
            return
        self._conditions = parse_conditions(self._where)
        self._page = await read_page(
            self._server, self._name, self._reading, self._facts.mean_bytes, self._conditions
        )
        self._show(self._page.entries)
        self._slider.show(self._facts, self.first_shown())
        self._next.set_enabled(self._page.following is not None)
        self._back.set_enabled(self._reading not in (NEWEST, OLDEST))
        self._note.set_text(self._note_text())

    async def tick(self) -> None:
        """Update the tail."""
        tail = self._tail
        if tail is None or tail.paused:
            return
        # Send nothing to the browser if nothing changed.
        if await tail.step():
            conditions = self._conditions
            shown = [
                entry for entry in tail.shown if all(test(entry.fields) for test in conditions)
            ]
            self._show(shown)
        skipped = f"; {tail.skipped:,} arrived too fast to be shown" if tail.skipped else ""
        self._note.set_text(f"tail: the newest {len(tail.shown)} entries{skipped}")

    async def turn_tail(self) -> None:
        """Start, pause or resume the tail."""
        if self._tail is None:
            self._tail = Tail(self._server, self._name)
            await self._frame.attempt(self.tick)
        else:
            self._tail.paused = not self._tail.paused
        going = not self._tail.paused
        self._tail_button.set_text("Pause" if going else "Resume")
        self._tail_button.set_icon("pause" if going else "play_arrow")
        self._back.set_enabled(False)
        self._next.set_enabled(False)
        show_url(link("stream", self._name, where=self._where, tail=1))

    def _stop_tail(self) -> None:
        self._tail = None
        self._tail_button.set_text("Tail")
        self._tail_button.set_icon("play_arrow")

    async def _go(self, reading: Reading) -> None:
        self._stop_tail()
        self._reading = reading
        await self._frame.attempt(self.refresh)
        show_url(link("stream", self._name, at=reading.url_word, where=self._where))

    async def _seek(self) -> None:
        async def find() -> None:
            moment = parse_moment((self._seek_box.value or "").strip())
            self._reading = reading_from(moment, await self._server.now_ms())

        if await self._frame.attempt(find):
            await self._go(self._reading)

    async def _slide(self, step: int) -> None:
        """Go to the moment that the slider shows."""
        facts = self._facts
        start = None if facts is None else id_at(facts, step)
        if step >= STEPS or start is None:
            await self._go(NEWEST)
        else:
            await self._go(Reading(start, rising=True) if step > 0 else OLDEST)

    async def _filter(self) -> None:
        async def check() -> None:
            parse_conditions(self._where_box.value or "")

        if await self._frame.attempt(check):
            self._where = self._where_box.value or ""
            await self._go(self._reading)

    async def _turn_on(self) -> None:
        if self._page.following is not None:
            await self._go(self._page.following)

    async def _turn_back(self) -> None:
        found: list[Reading] = []

        async def find() -> None:
            mean = self._facts.mean_bytes if self._facts is not None else 0
            before = await page_before(self._server, self._name, self._reading, mean)
            found.extend([before] if before is not None else [])

        if await self._frame.attempt(find):
            if found:
                await self._go(found[0])
            else:
                tell("this is the first page")

    async def _choose_columns(self) -> None:
        seen = [name for entry in self._entries for name, _ in entry.fields]
        chosen = await choose_columns(self._frame, seen, self._columns)
        if chosen is None:
            return
        cookie = encode_choices(self._choices, self._name, chosen)
        self._choices = parse_choices(cookie)
        self._columns = chosen
        keep_cookie(COLUMNS_COOKIE, cookie)
        self._table.show_columns(columns_of(chosen))
        self._show(self._entries)

    async def _open(self, key: str) -> None:
        """Show an entry, even if it has left the table in the meantime."""

        async def find() -> None:
            found = [entry for entry in self._entries if str(entry.id) == key]
            found = found or await read_ids(self._server, self._name, [parse(key.encode())])
            if found:
                show_entry(self._frame, self._name, found[0], self.refresh)

        await self._frame.attempt(find)

    def chosen(self) -> list[StreamID]:
        return [parse(key.encode()) for key in self._table.chosen]

    async def changed(self) -> None:
        """Refresh the page after a change and clear the selection."""
        self._table.choose_none()
        await self.refresh()

    def first_shown(self) -> StreamID | None:
        return self._entries[0].id if self._entries else None

    def where(self) -> str:
        return self._where

    def _show(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._table.show([entry_cells(entry, self._columns) for entry in entries])
        self._actions.offer_redrive(any(is_reject(entry) for entry in entries))

    def _show_about(self, facts: StreamFacts, now_ms: int) -> None:
        parts = [f"{facts.length:,} entries"]
        if facts.size_bytes is not None:
            parts.append(size_text(facts.size_bytes))
        if facts.first is not None and facts.last is not None:
            parts.append(f"first {facts.first.id} ({age_text(facts.first.id.ms, now_ms)})")
            parts.append(f"last {facts.last.id} ({age_text(facts.last.id.ms, now_ms)})")
        if facts.added is not None:
            parts.append(f"{facts.added:,} ever added")
        parts.append(f"{len(facts.groups)} groups")
        self._about.set_text(harmless("; ".join(parts)))

    def _note_text(self) -> str:
        way = "oldest first" if self._reading.rising else "newest first"
        text = f"{len(self._page.entries)} entries, {way}"
        if self._conditions:
            text += f" of {self._page.scanned:,} checked"
            if self._page.following is not None and len(self._page.entries) == 0:
                text += "; use Next to search further"
        return text


def columns_of(chosen: list[bytes]) -> list[DataColumn]:
    """The columns of the table: the chosen fields, or all fields in one column."""
    if not chosen:
        return [*FIXED_COLUMNS, DataColumn("fields", "fields", wraps=True)]
    fields = [
        DataColumn(f"field {name.hex()}", harmless(name), wraps=True, wide=True) for name in chosen
    ]
    return [*FIXED_COLUMNS, *fields]


def entry_cells(entry: Entry, chosen: list[bytes]) -> TableRow:
    """A row of the table. Ids are text, because JavaScript numbers are exact only up to 2^53."""
    id_ = str(entry.id)
    cells: TableRow = {
        "key": id_,
        "id": {"text": id_, "open": "dialog"},
        "time": time_text(entry.id.ms),
    }
    if not chosen:
        return cells | {"fields": preview(entry.fields)}
    return cells | {f"field {name.hex()}": field_preview(entry.fields, name) for name in chosen}


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/stream")
    async def stream(
        name: str | None = None, at: str = "", where: str = "", tail: str = ""
    ) -> None:
        query = QueryReader()
        key, reading = query.name(name), query.reading("at", at)
        tails = query.number("tail", tail, 0)
        frame = PageFrame(board, f"Entries of {harmless(key)}", "stream", key)
        frame.warn_about(query, link("stream", key, where=where))
        view = StreamView(frame, key, reading, where)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
        if tails:
            await view.turn_tail()
        ui.timer(TAIL_SECONDS, lambda: frame.renew(view.tick), immediate=False)
