"""/groups: all groups of a stream, where they are, how they got there, and what blocks trimming."""

from __future__ import annotations

from nicegui import ui

from penstock.human.show import harmless, time_text
from penstock.web import charts
from penstock.web.board import Board
from penstock.web.facts import GroupFacts, StreamFacts, one_stream
from penstock.web.groups import Holder, free_text, holders, oldest_pending
from penstock.web.names import link, parse_name
from penstock.web.pages.frame import Frame
from penstock.web.pages.table import Column, DataTable, TableRow

REFRESH_SECONDS = 2.0
CHART_HEIGHT = "height: 15rem"

COLUMNS = [
    Column("group", "group"),
    Column("lag", "lag", numeric=True),
    Column("pending", "pending", numeric=True),
    Column("consumers", "consumers", numeric=True),
    Column("last", "last delivered"),
    Column("time", "of (UTC)"),
    Column("read", "entries read", numeric=True),
]
HOLDER_COLUMNS = [
    Column("id", "from id"),
    Column("group", "group"),
    Column("reason", "why", wraps=True),
]


class GroupsView:
    """Tables and charts of the groups of one stream."""

    def __init__(self, frame: Frame, name: bytes) -> None:
        self._frame = frame
        self._name = name
        with frame.content:
            self._table = DataTable(COLUMNS, "groups")
            self._lag_note = ui.label(
                "A lag is unknown where entries ahead of the group were deleted, or it was set to an id in"
                " the middle, and the server has not been able to count since."
            ).classes("muted text-caption")
            _heading("Where they are")
            self._timeline = ui.echart({}).classes("full-width")
            _heading("What blocks trimming")
            self._free = ui.label().classes("wrap")
            self._holders = DataTable(HOLDER_COLUMNS, "what blocks trimming")
            _heading("History, since this dashboard started")
            self._lag = ui.echart({}).classes("full-width").style(CHART_HEIGHT)
            self._pending = ui.echart({}).classes("full-width").style(CHART_HEIGHT)

    async def refresh(self) -> None:
        """Ask anew and draw."""
        server = self._frame.board.server
        facts = await one_stream(server, self._name)
        self._frame.board.catalogue.note_now(facts)
        oldest = await oldest_pending(server, facts)
        self._table.show([group_cells(facts, group) for group in facts.groups])
        self._lag_note.set_visibility(any(group.lag is None for group in facts.groups))
        self._timeline.style(f"height: {5 + 2 * max(len(facts.groups), 1)}rem")
        draw(self._timeline, charts.timeline(facts, oldest))
        self._show_holders(facts, holders(facts, oldest))
        history = self._frame.board.history
        samples = {group.name: history.samples(self._name, group.name) for group in facts.groups}
        draw(self._lag, charts.history("lag", samples, pending=False))
        draw(self._pending, charts.history("pending", samples, pending=True))

    def _show_holders(self, facts: StreamFacts, found: list[Holder]) -> None:
        self._free.set_text(free_text(facts, found))
        self._holders.element.set_visibility(bool(found))
        self._holders.show(
            [
                {
                    "key": f"{holder.group.hex()}/{holder.reason}",
                    "id": str(holder.id),
                    "group": _group_link(facts.name, holder.group),
                    "reason": holder.reason,
                }
                for holder in found
            ]
        )


def group_cells(facts: StreamFacts, group: GroupFacts) -> TableRow:
    """A group as the table shows it."""
    return {
        "key": group.name.hex(),
        "group": _group_link(facts.name, group.name),
        "lag": "unknown" if group.lag is None else f"{group.lag:,}",
        "pending": f"{group.pending:,}",
        "consumers": group.consumers,
        "last": str(group.last_id),
        "time": time_text(group.last_id.ms),
        "read": "unknown" if group.entries_read is None else f"{group.entries_read:,}",
    }


def draw(chart: ui.echart, options: charts.Options) -> None:
    """Replace what a chart shows; nothing is sent if it is the same."""
    if chart.options != options:
        chart.options.clear()
        chart.options.update(options)
        chart.update()


def _group_link(stream: bytes, group: bytes) -> dict[str, str]:
    return {"text": harmless(group), "href": link("group", stream, group=group)}


def _heading(text: str) -> None:
    ui.label(text).classes("text-subtitle1 text-weight-bold").props('role="heading" aria-level="2"')


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page("/groups")
    async def groups(name: str = "") -> None:
        key = parse_name(name)
        frame = Frame(board, f"Groups of {harmless(key)}", "groups", key)
        view = GroupsView(frame, key)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
