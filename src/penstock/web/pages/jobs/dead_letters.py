"""The dead letters of a stream, with a button that gives them back."""

from __future__ import annotations

from nicegui import ui

from penstock.client.dead_letters import ATTEMPTS, GROUP, REASON, SOURCE_ID, SUFFIX, facts_of
from penstock.client.replies import Entry
from penstock.human.show import harmless, time_text
from penstock.web.changes.dead_letters import plan_redrive_dead
from penstock.web.changes.entry_changes import Change
from penstock.web.elements.dialogs import propose
from penstock.web.elements.frame import PageFrame
from penstock.web.elements.parts import part, tools
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.names import link
from penstock.web.jobs.dead_letters import SHOWN_MAX, dead_letters_of
from penstock.web.pages.entry import show_entry

COLUMNS = [
    DataColumn("id", "id"),
    DataColumn("time", "time", wide=True),
    DataColumn("group", "group"),
    DataColumn("attempts", "attempts", numeric=True),
    DataColumn("source", "source id", wide=True),
    DataColumn("reason", "reason", wraps=True),
]


class DeadLetters:
    """A table that is only there if the stream has dead letters."""

    def __init__(self, frame: PageFrame, stream: bytes) -> None:
        self._frame = frame
        self._stream = stream
        self._entries: list[Entry] = []
        writes = frame.may_change
        with part("Dead letters") as self._part:
            self._part.set_visibility(False)
            self._table = DataTable(COLUMNS, "dead letters", chooses=writes)
            self._table.on_open(self._open)
            with tools():
                if writes:
                    ui.button("Redrive selected", icon="replay", on_click=self._redrive).props(
                        "flat no-caps"
                    )
                ui.link("All dead letters", link("stream", stream + SUFFIX))
                ui.label(f"The newest {SHOWN_MAX} are shown.").classes("muted small")

    async def refresh(self) -> None:
        """Read the newest dead letters."""
        self._entries = await dead_letters_of(self._frame.board.server, self._stream)
        self._part.set_visibility(bool(self._entries))
        self._table.show([dead_cells(entry) for entry in self._entries])

    def _open(self, key: str) -> None:
        for entry in self._entries:
            if str(entry.id) == key:
                show_entry(self._frame, self._stream + SUFFIX, entry, self.refresh)

    async def _redrive(self) -> None:
        chosen = [entry for entry in self._entries if str(entry.id) in self._table.chosen]

        async def plan() -> Change:
            return await plan_redrive_dead(self._frame.board.server, self._stream, chosen)

        async def done() -> None:
            self._table.choose_none()
            await self.refresh()

        await propose(self._frame, plan, done)


def dead_cells(entry: Entry) -> TableRow:
    """A dead letter as the table shows it."""
    facts = facts_of(entry.fields)
    return {
        "key": str(entry.id),
        "id": {"text": str(entry.id), "open": "dialog"},
        "time": time_text(entry.id.ms),
        "group": harmless(facts.get(GROUP, b"")),
        "attempts": harmless(facts.get(ATTEMPTS, b"")),
        "source": harmless(facts.get(SOURCE_ID, b"")),
        "reason": harmless(facts.get(REASON, b"").split(b"\n")[0]),
    }
