"""The buttons of a stream: export, and with --allow-writes add, delete, trim and redrive."""

from __future__ import annotations

from typing import Protocol

from nicegui import ui

from penstock.core.stream_id import SMALLEST, StreamID
from penstock.human.moment import Ago, Edge, parse_moment
from penstock.web.changes.entry_changes import (
    Change,
    behind_all,
    plan_add,
    plan_delete,
    plan_trim_before,
    plan_trim_to_length,
)
from penstock.web.changes.resend import Reject
from penstock.web.elements.dialogs import answer_buttons, propose, titled_dialog
from penstock.web.elements.frame import PageFrame
from penstock.web.elements.parts import tools
from penstock.web.http.names import link
from penstock.web.model.exports import IDS_MAX, LIMIT_DEFAULT, TYPES
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.model.stream_page import read_ids
from penstock.web.pages.export import KEEP
from penstock.web.pages.jobs.redrive import redrive
from penstock.web.refusal import Refused

READ_ONLY = "read-only: start the dashboard with --allow-writes to change data"
VIEWERS = "read-only: log in as an operator to change data"


class Shown(Protocol):
    """The view that the actions work on."""

    def chosen(self) -> list[StreamID]: ...
    def first_shown(self) -> StreamID | None: ...
    def where(self) -> str: ...
    async def changed(self) -> None: ...


class StreamActions:
    """A row of buttons below the entries."""

    def __init__(self, frame: PageFrame, name: bytes, shown: Shown) -> None:
        self._frame = frame
        self._name = name
        self._shown = shown
        with tools():
            ui.button("Export", icon="download", on_click=self._export).props("flat no-caps")
            if frame.may_change:
                ui.button("Add an entry", on_click=self._add).props("flat no-caps")
                ui.button("Delete selected", on_click=self._delete).props("flat no-caps")
                ui.button("Trim", on_click=self._trim).props("flat no-caps")
                self._redrive_button = ui.button("Redrive selected", on_click=self._redrive)
                self._redrive_button.props("flat no-caps").set_visibility(False)
            else:
                ui.label(READ_ONLY if not frame.board.settings.allow_writes else VIEWERS).classes(
                    "muted"
                )

    def offer_redrive(self, has_rejects: bool) -> None:
        """Show the button if the page has rejects, which can be sent back."""
        if self._frame.may_change:
            self._redrive_button.set_visibility(has_rejects)

    def _export(self) -> None:
        chosen = self._shown.chosen()
        with titled_dialog(self._frame, "Export") as dialog:
            start = ui.input("from (included)", value="start").props("dense outlined")
            end = ui.input("to (included)", value="end").props("dense outlined")
            limit = ui.number("maximum number of entries", value=LIMIT_DEFAULT, min=1, format="%d")
            limit.props("dense outlined")
            defuse = ui.checkbox("csv: defuse formulas of spreadsheets", value=True).props("dense")
            if chosen:
                ui.label(f"Exports only the {len(chosen)} selected entries")
                for box in (start, end, limit):
                    box.disable()
            with ui.row():
                for kind in TYPES:
                    ui.button(
                        kind,
                        on_click=lambda kind=kind: self._download(
                            kind, chosen, (start.value, end.value, limit.value), defuse.value
                        ),
                    ).props("outline no-caps")
        dialog.open()

    def _download(
        self,
        kind: str,
        chosen: list[StreamID],
        span: tuple[str, str, float | None],
        defuse: bool,
    ) -> None:
        ids = ",".join(str(id_) for id_ in chosen[:IDS_MAX])
        start, end, limit = span
        rest: dict[str, str | int] = {"ids": ids}
        if not ids:
            rest = {"start": start, "end": end, "limit": int(limit or LIMIT_DEFAULT)}
            rest["where"] = self._shown.where()
        if kind == "csv" and not defuse:
            rest["formulas"] = KEEP
        ui.download.from_url("./" + link("export", self._name, kind=kind, **rest))

    async def _add(self) -> None:
        with titled_dialog(self._frame, "Add an entry") as dialog:
            id_ = ui.input("id", value="*").props("dense outlined")
            text = ui.textarea("fields, one per line: name=value").props("outlined autofocus")
            text.classes("full-width")
            answer_buttons(dialog, "Preview", lambda: (id_.value, text.value))
        given = await dialog
        if given is None:
            return

        async def plan() -> Change:
            return plan_add(self._name, parse_fields(given[1]), given[0].strip())

        await propose(self._frame, plan, self._shown.changed)

    async def _redrive(self) -> None:
        async def find() -> list[Reject]:
            ids = self._shown.chosen()
            found = await read_ids(self._frame.board.server, self._name, ids)
            return [(self._name, entry) for entry in found]

        await redrive(self._frame, find, self._shown.changed)

    async def _delete(self) -> None:
        async def plan() -> Change:
            facts = await one_stream(self._frame.board.server, self._name)
            return plan_delete(self._name, self._shown.chosen(), facts.groups)

        await propose(self._frame, plan, self._shown.changed)

    async def _trim(self) -> None:
        first = self._shown.first_shown()
        with titled_dialog(self._frame, "Trim the stream") as dialog:
            ways = {"before": "delete entries before", "newest": "keep only the newest"}
            way = ui.radio(ways, value="before")
            what = ui.input("an id, a time, or a number", value=str(first) if first else "")
            what.props("dense outlined autofocus").classes("full-width")
            answer_buttons(dialog, "Preview", lambda: (way.value, what.value))
        given = await dialog
        if given is not None:
            await propose(self._frame, lambda: self._plan_trim(*given), self._shown.changed)

    async def _plan_trim(self, way: str, text: str) -> Change:
        server = self._frame.board.server
        facts = await one_stream(server, self._name)
        if way == "newest":
            if not text.strip().isdecimal():
                raise Refused("enter the number of entries to keep")
            return await plan_trim_to_length(server, facts, int(text))
        return await plan_trim_before(server, facts, await self._id_of(text.strip(), facts))

    async def _id_of(self, text: str, facts: StreamFacts) -> StreamID:
        moment = parse_moment(text)
        if isinstance(moment, Ago):
            return moment.at(await self._frame.board.server.now_ms())
        if isinstance(moment, Edge):
            return behind_all(facts) if moment is Edge.END else SMALLEST
        return moment


def parse_fields(text: str) -> list[tuple[bytes, bytes]]:
    """`name=value` lines. Raises: Refused for a line without an equals sign."""
    fields = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise Refused(f"{line!r} is not a field: write name=value")
        fields.append((name.strip().encode(), value.encode()))
    return fields
