"""/groups: the groups of a stream, their positions and history, and what blocks trimming."""

from __future__ import annotations

from dataclasses import replace

from nicegui import ui

from penstock.client.xinfo import GroupInfo
from penstock.core.stream_id import SMALLEST
from penstock.human.show import harmless, quoted, time_text
from penstock.web import charts
from penstock.web.board import Board
from penstock.web.changes.entry_changes import Change
from penstock.web.changes.group_changes import plan_create
from penstock.web.elements.dialogs import ask_for, propose
from penstock.web.elements.frame import PageFrame, heading, show_url
from penstock.web.elements.parts import chart, draw, halves, part, tools
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.model.groups import (
    GROUPS_SHOWN_MAX,
    OldestPending,
    busiest,
    free_text,
    holders,
    matching,
    oldest_pending,
    position_of,
)
from penstock.web.model.unknown_lag import lag_text, why_unknown
from penstock.web.pages.jobs.dead_letters import DeadLetters
from penstock.web.watch.recorder import DRAWN_MAX
from penstock.web.watch.thresholds import LAG, marked

REFRESH_SECONDS = 2.0
POSITION_LABEL = "reads after: start, end, an id or a time"

COLUMNS = [
    DataColumn("group", "group"),
    DataColumn("lag", "lag", numeric=True),
    DataColumn("pending", "pending", numeric=True),
    DataColumn("consumers", "consumers", numeric=True),
    DataColumn("last", "last delivered", wide=True),
    DataColumn("time", "time", wide=True),
    DataColumn("read", "entries read", numeric=True),
]
HOLDER_COLUMNS = [
    DataColumn("id", "from id"),
    DataColumn("group", "group"),
    DataColumn("reason", "why", wraps=True),
]


class GroupsView:
    """Tables and charts of the groups of one stream."""

    def __init__(self, frame: PageFrame, name: bytes, search: str) -> None:
        self._frame = frame
        self._name = name
        self._search = search
        with frame.content:
            with part():
                with tools() as self._tools:
                    box = ui.input("Search groups", value=search, on_change=self._searched)
                    box.props("dense outlined clearable debounce=300 type=search")
                    self._count = ui.label().classes("muted").props('role="status"')
                self._tools.set_visibility(bool(search))
                self._table = DataTable(COLUMNS, "groups", empty="No group reads this stream.")
                self._why = ui.label().classes("wrap warning").style("white-space: pre-line")
                self._why.props('role="note"')
                if frame.may_change:
                    ui.button("Create a group", icon="add", on_click=self._create).props(
                        "flat no-caps"
                    ).classes("self-start")
            self._dead = DeadLetters(frame, name)
            with part("What blocks trimming"):
                self._free = ui.label().classes("wrap")
                self._holders = DataTable(HOLDER_COLUMNS, "what blocks trimming")
                self._more = ui.label().classes("muted small")
            with ui.element("div").classes("card part"):
                heading("Positions")
                self._timeline = ui.echart({}).classes("full-width")
                with ui.row().classes("justify-between full-width small muted gap-2"):
                    self._ends = [ui.label(), ui.label()]
            with halves():
                self._lag = chart("Lag (entries)")
                self._pending = chart("Pending (entries)")
            if not frame.board.recorder.is_on:
                ui.label("The history begins when the dashboard starts.").classes("muted small")

    async def refresh(self) -> None:
        """Read the groups again and redraw the page."""
        server = self._frame.board.server
        facts = await one_stream(server, self._name)
        self._frame.board.catalogue.note_now(facts)
        found = matching(facts.groups, self._search)
        shown = replace(facts, groups=tuple(busiest(found, GROUPS_SHOWN_MAX)))
        oldest = await oldest_pending(server, facts, {group.name for group in shown.groups})
        self._show_count(len(facts.groups), len(found))
        self._table.show([group_cells(facts, group) for group in shown.groups])
        why = why_lines(shown)
        self._why.set_text("\n".join(why))
        self._why.set_visibility(bool(why))
        self._timeline.style(f"height: {6 + 2 * max(len(shown.groups), 1)}rem")
        draw(self._timeline, charts.timeline(shown, oldest.entries))
        for label, what, end in zip(
            self._ends, ("tail", "head"), (facts.first, facts.last), strict=True
        ):
            label.set_text("" if end is None else f"{what} {time_text(end.id.ms)}")
        self._show_holders(facts, oldest)
        await self._dead.refresh()
        names = [group.name for group in busiest(shown.groups, DRAWN_MAX)]
        recorder = self._frame.board.recorder
        samples = await recorder.samples(self._name, names, self._frame.seconds)
        draw(self._lag, charts.history("lag", samples, pending=False))
        draw(self._pending, charts.history("pending", samples, pending=True))

    def _show_count(self, known: int, found: int) -> None:
        """Say what is left out. The search appears with the first group that is not shown."""
        if known > GROUPS_SHOWN_MAX:
            self._tools.set_visibility(True)
        which = " with the largest lags" if found > GROUPS_SHOWN_MAX else ""
        self._count.set_text(f"{min(found, GROUPS_SHOWN_MAX):,} of {known:,} groups{which}")

    async def _searched(self, event: object) -> None:
        self._search = getattr(event, "value", None) or ""
        await self._frame.attempt(self.refresh)
        show_url(link("groups", self._name, search=self._search))

    async def _create(self) -> None:
        boxes = (("name of the group", ""), (POSITION_LABEL, "end"))
        given = await ask_for(self._frame, "Create a group", *boxes)
        server = self._frame.board.server

        async def plan() -> Change:
            name, text = given or ("", "")
            position = position_of(text, await server.now_ms())
            return plan_create(await one_stream(server, self._name), name.encode(), position)

        if given is not None:
            await propose(self._frame, plan, self.refresh)

    def _show_holders(self, facts: StreamFacts, oldest: OldestPending) -> None:
        found = holders(facts, oldest.entries)
        self._free.set_text(free_text(facts, found, oldest.unknown))
        self._holders.element.set_visibility(bool(found))
        self._more.set_text(f"The first {GROUPS_SHOWN_MAX} of {len(found):,} are shown.")
        self._more.set_visibility(len(found) > GROUPS_SHOWN_MAX)
        self._holders.show(
            [
                {
                    "key": f"{holder.group.hex()}/{holder.reason}",
                    "id": str(holder.id),
                    "group": group_link(facts.name, holder.group),
                    "reason": holder.reason,
                }
                for holder in found[:GROUPS_SHOWN_MAX]
            ]
        )


def why_lines(facts: StreamFacts) -> list[str]:
    """A line for every group whose lag is unknown."""
    return [
        f"Why the lag of {quoted(group.name)} is unknown: {why_unknown(facts, group)}"
        for group in facts.groups
        if group.lag is None
    ]


def group_cells(facts: StreamFacts, group: GroupInfo) -> TableRow:
    """A group as the table shows it."""
    return {
        "key": group.name.hex(),
        "group": group_link(facts.name, group.name),
        "lag": marked(lag_text(group), LAG.level(group.lag)),
        "pending": f"{group.pending:,}",
        "consumers": group.consumers,
        "last": str(group.last_id),
        "time": "-" if group.last_id == SMALLEST else time_text(group.last_id.ms),
        "read": "unknown" if group.entries_read is None else f"{group.entries_read:,}",
    }


def group_link(stream: bytes, group: bytes) -> dict[str, str]:
    """A cell with a link to the group."""
    return {"text": harmless(group), "href": link("group", stream, group=group)}


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/groups")
    async def groups(name: str | None = None, search: str = "") -> None:
        query = QueryReader()
        key = query.name(name)
        frame = PageFrame(board, f"Groups of {harmless(key)}", "groups", key)
        frame.warn_about(query, link("groups", key, search=search))
        view = GroupsView(frame, key, search)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
