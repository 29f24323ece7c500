"""/group: one group, its position, consumers and pending entries."""

from __future__ import annotations

from nicegui import ui

from penstock.client.dead_letters import WAITING, due_in_ms, has_due_time
from penstock.client.replies import Entry
from penstock.client.xinfo import ConsumerInfo
from penstock.core.stream_id import SMALLEST, StreamID, parse
from penstock.human.moment import parse_duration
from penstock.human.show import counted, duration_text, harmless, time_text
from penstock.web import charts
from penstock.web.board import Board
from penstock.web.changes.entry_changes import Change
from penstock.web.changes.group_changes import (
    plan_ack,
    plan_claim,
    plan_delete_consumers,
    plan_destroy,
    plan_reset,
)
from penstock.web.elements.dialogs import ask_for, propose
from penstock.web.elements.frame import PageFrame, heading, show_url
from penstock.web.elements.parts import chart, draw, halves, part, tools
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link, parse_name
from penstock.web.model.facts import one_stream
from penstock.web.model.groups import (
    DEAD_IDLE_MS,
    PENDING_PAGE,
    PendingEntry,
    consumer_state,
    consumers_of,
    foremost,
    group_or_refuse,
    pending_of,
    position_of,
)
from penstock.web.model.pending_ages import AGES, pending_ages
from penstock.web.model.stream_page import OLDEST, behind
from penstock.web.model.unknown_lag import lag_text, why_unknown
from penstock.web.model.values import preview
from penstock.web.pages.entry import show_entry
from penstock.web.pages.groups import POSITION_LABEL
from penstock.web.watch.thresholds import CONSUMER_LEVELS, DELIVERIES, PENDING_AGE_MS, marked

REFRESH_SECONDS = 2.0

CONSUMER_COLUMNS = [
    DataColumn("name", "consumer"),
    DataColumn("state", "state"),
    DataColumn("pending", "pending", numeric=True),
    DataColumn("idle", "idle", numeric=True),
    DataColumn("inactive", "inactive", numeric=True),
]
PENDING_COLUMNS = [
    DataColumn("id", "id"),
    DataColumn("age", "age", numeric=True),
    DataColumn("consumer", "owner"),
    DataColumn("deliveries", "deliveries", numeric=True),
    DataColumn("fields", "payload", wraps=True),
]
AGE_COLUMNS = [
    DataColumn("consumer", "consumer"),
    *(DataColumn(f"age{place}", text, numeric=True) for place, (_, text) in enumerate(AGES)),
]
NOTHING_PENDING = "Nothing is pending: every delivered entry was acknowledged."
NO_AGES = "Nothing is pending, or only entries of workers, which have no age."
LEGEND = (
    "Idle: time since the consumer last sent a command. Inactive: time since it last received an entry (Redis"
    f" 7.2 and newer). Dead: idle for {duration_text(DEAD_IDLE_MS)} or longer, with pending entries. Gone:"
    " the same, without pending entries."
)


class GroupView:
    """One group of a stream."""

    def __init__(self, frame: PageFrame, name: bytes, group: bytes, start: StreamID) -> None:
        self._frame = frame
        self._server = frame.board.server
        self._name = name
        self._group = group
        self._start = start
        self._rows: list[PendingEntry] = []
        with frame.content:
            with part():
                heading(f"group {harmless(group)}", "title mono wrap")
                self._about = ui.label().classes("muted wrap")
                self._why = ui.label().classes("wrap warning").props('role="note"')
            # A selection is only useful with buttons that act on it.
            chooses = frame.may_change
            with part("Consumers"):
                self._consumers = DataTable(
                    CONSUMER_COLUMNS,
                    "consumers",
                    chooses=chooses,
                    empty="No consumer has read yet.",
                )
                self._few = ui.label().classes("wrap warning")
                self._few.set_visibility(False)
                ui.label(LEGEND).classes("muted small")
            with part("Pending entries by age"):
                self._ages = DataTable(AGE_COLUMNS, "pending entries by age", empty=NO_AGES)
                self._counted = ui.label().classes("muted small")
            with part("Pending entries"):
                self._pending = DataTable(
                    PENDING_COLUMNS,
                    "pending entries",
                    chooses=chooses,
                    empty=NOTHING_PENDING,
                )
                self._pending.on_open(self._open)
                with tools():
                    ui.button("First", on_click=lambda: self._go(SMALLEST)).props("flat no-caps")
                    self._next = ui.button("Next", on_click=self._turn_on).props("flat no-caps")
                    self._note = ui.label().classes("muted").props('role="status"')
            if frame.may_change:
                self._build_actions()
            with halves():
                self._charts = [chart("Lag (entries)"), chart("Pending (entries)")]

    def _build_actions(self) -> None:
        with tools():
            ui.button("Acknowledge selected", on_click=self._ack).props("flat no-caps")
            ui.button("Claim selected", on_click=self._claim).props("flat no-caps")
            ui.button("Reset position", on_click=self._reset).props("flat no-caps")
            ui.button("Delete selected consumers", on_click=self._delete_consumers).props(
                "flat no-caps"
            )
            ui.button("Delete this group", on_click=self._destroy).props("flat no-caps")

    async def refresh(self) -> None:
        """Read the group again and redraw the page."""
        facts = await one_stream(self._server, self._name)
        self._frame.board.catalogue.note_now(facts)
        group = group_or_refuse(facts, self._group)
        self._about.set_text(
            f"at {group.last_id} ({time_text(group.last_id.ms)}); lag {lag_text(group)};"
            f" {group.pending:,} pending; {counted(group.consumers, 'consumer')}"
        )
        why = why_unknown(facts, group)
        self._why.set_text(f"Why the lag is unknown: {why}")
        self._why.set_visibility(bool(why))
        recorder = self._frame.board.recorder
        samples = await recorder.samples(self._name, [group.name], self._frame.seconds)
        draw(self._charts[0], charts.history("lag", samples, pending=False))
        draw(self._charts[1], charts.history("pending", samples, pending=True))
        consumers = await consumers_of(self._server, self._name, self._group)
        shown = foremost(consumers)
        self._consumers.show([consumer_cells(consumer) for consumer in shown])
        self._few.set_text(
            f"Shows the {len(shown)} of {len(consumers):,} consumers with the most pending entries."
        )
        self._few.set_visibility(len(shown) < len(consumers))
        ages = await pending_ages(self._server, self._name, self._group)
        self._ages.show([age_cells(consumer, counts) for consumer, counts in ages.rows])
        self._counted.set_text(
            "Age is the time since the last delivery. "
            f"The first {ages.counted:,} of {group.pending:,} pending entries are counted."
        )
        self._rows = await pending_of(self._server, self._name, self._group, self._start)
        self._pending.show([pending_cells(row) for row in self._rows])
        self._next.set_enabled(len(self._rows) == PENDING_PAGE)
        self._note.set_text(
            f"{len(self._rows)} of {group.pending:,} pending entries, oldest id first"
        )

    async def _go(self, start: StreamID) -> None:
        self._start = start
        await self._frame.attempt(self.refresh)
        at = None if start == SMALLEST else str(start)
        show_url(link("group", self._name, group=self._group, at=at))

    async def _turn_on(self) -> None:
        if self._rows:
            following = behind(OLDEST, self._rows[-1].id)
            if following is not None:
                await self._go(following.start)

    def _open(self, key: str) -> None:
        for row in self._rows:
            if str(row.id) == key and row.fields is not None:
                show_entry(self._frame, self._name, Entry(row.id, row.fields), self.refresh)

    def _chosen(self) -> list[StreamID]:
        return [parse(key.encode()) for key in self._pending.chosen]

    async def _changed(self) -> None:
        self._consumers.choose_none()
        self._pending.choose_none()
        await self.refresh()

    async def _ack(self) -> None:
        async def plan() -> Change:
            return plan_ack(self._name, self._group, self._chosen())

        await propose(self._frame, plan, self._changed)

    async def _claim(self) -> None:
        boxes = (("new consumer", ""), ("minimum idle time", "0s"))
        given = await ask_for(self._frame, "Claim selected", *boxes)

        async def plan() -> Change:
            consumer, idle = given or ("", "0s")
            idle_ms = parse_duration(idle)
            return plan_claim(self._name, self._group, consumer.encode(), self._chosen(), idle_ms)

        if given is not None:
            await propose(self._frame, plan, self._changed)

    async def _reset(self) -> None:
        given = await ask_for(self._frame, "Reset position", (POSITION_LABEL, ""))

        async def plan() -> Change:
            facts = await one_stream(self._server, self._name)
            position = position_of((given or [""])[0], await self._server.now_ms())
            return plan_reset(facts, group_or_refuse(facts, self._group), position)

        if given is not None:
            await propose(self._frame, plan, self._changed)

    async def _delete_consumers(self) -> None:
        async def plan() -> Change:
            found = await consumers_of(self._server, self._name, self._group)
            chosen = [one for one in found if one.name.hex() in self._consumers.chosen]
            return plan_delete_consumers(self._name, self._group, chosen)

        await propose(self._frame, plan, self._changed)

    async def _destroy(self) -> None:
        async def plan() -> Change:
            facts = await one_stream(self._server, self._name)
            return plan_destroy(facts, group_or_refuse(facts, self._group))

        async def leave() -> None:
            facts = await one_stream(self._server, self._name)
            if all(group.name != self._group for group in facts.groups):
                ui.navigate.to(link("groups", self._name))

        await propose(self._frame, plan, leave)


def consumer_cells(consumer: ConsumerInfo) -> TableRow:
    """A consumer as the table shows it."""
    inactive = consumer.inactive_ms
    state = consumer_state(consumer)
    return {
        "key": consumer.name.hex(),
        "name": harmless(consumer.name),
        "state": marked(state, CONSUMER_LEVELS.get(state, "")),
        "pending": f"{consumer.pending:,}",
        "idle": duration_text(consumer.idle_ms),
        "inactive": "unknown"
        if inactive is None
        else "never"
        if inactive < 0
        else duration_text(inactive),
    }


def age_cells(consumer: bytes, counts: list[int]) -> TableRow:
    """A row of the heat map."""
    cells: TableRow = {"key": consumer.hex(), "consumer": harmless(consumer)}
    for place, count in enumerate(counts):
        cells[f"age{place}"] = {"text": f"{count:,}", "heat": place} if count else ""
    return cells


def pending_cells(row: PendingEntry) -> TableRow:
    """A pending entry as the table shows it."""
    waits = has_due_time(row.consumer)  # of workers: its age says when it is due
    return {
        "key": str(row.id),
        "id": {"text": str(row.id), "open": "dialog" if row.fields is not None else ""},
        "age": due_text(row)
        if waits
        else marked(duration_text(row.idle_ms), PENDING_AGE_MS.level(row.idle_ms)),
        "consumer": harmless(row.consumer),
        "deliveries": marked(f"{row.deliveries:,}", DELIVERIES.level(row.deliveries)),
        "fields": "(deleted)" if row.fields is None else preview(row.fields),
    }


def due_text(row: PendingEntry) -> str:
    """When a row of a worker is due: for its next attempt, or for other workers if its own one dies."""
    due_ms = due_in_ms(row.idle_ms)
    if row.consumer == WAITING:
        return f"due in {duration_text(due_ms)}" if due_ms else "due"
    return f"leased, {duration_text(due_ms)}" if due_ms else "lease ended"


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/group")
    async def group(name: str | None = None, group: str = "", at: str = "") -> None:
        query = QueryReader()
        key, start = query.name(name), query.identifier("at", at)
        group_name = parse_name(group)
        frame = PageFrame(board, f"Group {harmless(group_name)} of {harmless(key)}", "groups", key)
        frame.warn_about(query, link("group", key, group=group_name))
        view = GroupView(frame, key, group_name, start)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
