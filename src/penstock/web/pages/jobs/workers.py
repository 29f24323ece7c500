"""/workers: the handlers of workers, the entries that fail, and the newest dead letters."""

from __future__ import annotations

from nicegui import ui

from penstock.client.dead_letters import ATTEMPTS, CONSUMER, GROUP, REASON, SUFFIX, facts_of
from penstock.client.replies import Entry
from penstock.human.show import age_text, duration_text, harmless
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame
from penstock.web.elements.parts import part
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.names import link
from penstock.web.jobs.workers import (
    FailingEntry,
    Handler,
    failing_entries,
    handlers_of,
    newest_dead,
)
from penstock.web.pages.entry import show_entry
from penstock.web.pages.groups import group_link
from penstock.web.watch.thresholds import BAD, DELIVERIES, GOOD, LAG, WARN, marked

REFRESH_SECONDS = 3.0
NO_HANDLERS = "No worker has read a stream yet. `penstock worker MODULE:APP` runs one."
HANDLER_COLUMNS = [
    DataColumn("stream", "stream"),
    DataColumn("group", "group"),
    DataColumn("workers", "workers"),
    DataColumn("lag", "lag", numeric=True),
    DataColumn("running", "running", numeric=True),
    DataColumn("waiting", "wait for a retry", numeric=True),
    DataColumn("delayed", "delayed", numeric=True),
    DataColumn("dead", "dead letters", numeric=True),
    DataColumn("reason", "newest failure", wraps=True),
]
FAILING_COLUMNS = [
    DataColumn("id", "id"),
    DataColumn("stream", "stream"),
    DataColumn("group", "group"),
    DataColumn("attempts", "attempts", numeric=True),
    DataColumn("state", "state", wide=True),
    DataColumn("due", "due in", numeric=True),
]
DEAD_COLUMNS = [
    DataColumn("id", "id"),
    DataColumn("age", "age", numeric=True),
    DataColumn("stream", "stream"),
    DataColumn("group", "group"),
    DataColumn("attempts", "attempts", numeric=True),
    DataColumn("worker", "worker", wide=True),
    DataColumn("reason", "reason", wraps=True),
]


class WorkersView:
    """Three tables."""

    def __init__(self, frame: PageFrame) -> None:
        self._frame = frame
        self._dead: list[tuple[bytes, Entry]] = []
        with frame.content:
            with part("Handlers"):
                self._handlers = DataTable(HANDLER_COLUMNS, "handlers", empty=NO_HANDLERS)
            with part("Entries that fail"):
                self._failing = DataTable(
                    FAILING_COLUMNS,
                    "entries that fail",
                    empty="No entry waits for another attempt.",
                )
            with part("Newest dead letters"):
                self._table = DataTable(
                    DEAD_COLUMNS, "newest dead letters", empty="No dead letters."
                )
                self._table.on_open(self._open)
                ui.label(
                    "The page of a stream's groups gives dead letters back to their handler."
                ).classes("muted small")

    async def refresh(self) -> None:
        """Ask the server again. Streams and groups are those of the catalogue."""
        board = self._frame.board
        if not board.catalogue.swept:
            await board.catalogue.glance()
        found = await handlers_of(board.server, board.catalogue)
        now_ms = await board.server.now_ms()
        self._handlers.show([handler_cells(handler, now_ms) for handler in found])
        failing = await failing_entries(board.server, found)
        self._failing.show([failing_cells(entry) for entry in failing])
        self._dead = await newest_dead(board.server, found)
        self._table.show([dead_cells(stream, entry, now_ms) for stream, entry in self._dead])

    def _open(self, key: str) -> None:
        for stream, entry in self._dead:
            if _key(stream, entry) == key:
                show_entry(self._frame, stream + SUFFIX, entry, self.refresh)


def handler_cells(handler: Handler, now_ms: int) -> TableRow:
    """A handler as the table shows it."""
    lag = handler.group.lag
    return {
        "key": f"{handler.stream.hex()}/{handler.group.name.hex()}",
        "stream": _stream_link(handler.stream),
        "group": group_link(handler.stream, handler.group.name),
        "workers": _workers(handler),
        "lag": "unknown" if lag is None else marked(f"{lag:,}", LAG.level(lag)),
        "running": f"{handler.running:,}",
        "waiting": marked(f"{handler.waiting:,}", WARN if handler.waiting else ""),
        "delayed": f"{handler.delayed:,}",
        "dead": marked(f"{handler.dead_letters:,}", WARN if handler.dead_letters else ""),
        "reason": "-"
        if handler.newest_dead is None
        else f"{_reason(handler.newest_dead)} ({age_text(handler.newest_dead.id.ms, now_ms)} ago)",
    }


def _workers(handler: Handler) -> object:
    """How many are alive. Nobody there is bad if there is work."""
    work = (handler.group.lag or 0) + handler.running + handler.waiting
    if handler.lost:
        return marked(f"{handler.workers} ({handler.lost} lost)", BAD)
    if not handler.workers:
        return marked("none", BAD if work else "")
    return marked(str(handler.workers), GOOD)


def failing_cells(entry: FailingEntry) -> TableRow:
    """An entry that fails as the table shows it."""
    return {
        "key": f"{entry.stream.hex()}/{entry.group.hex()}/{entry.id}",
        "id": {
            "text": str(entry.id),
            "href": link("group", entry.stream, group=entry.group, at=str(entry.id)),
        },
        "stream": _stream_link(entry.stream),
        "group": group_link(entry.stream, entry.group),
        "attempts": marked(f"{entry.attempts:,}", DELIVERIES.level(entry.attempts)),
        "state": entry.state,
        "due": duration_text(entry.due_ms) if entry.due_ms else "now",
    }


def dead_cells(stream: bytes, entry: Entry, now_ms: int) -> TableRow:
    """A dead letter as the table shows it."""
    facts = facts_of(entry.fields)
    return {
        "key": _key(stream, entry),
        "id": {"text": str(entry.id), "open": "dialog"},
        "age": age_text(entry.id.ms, now_ms),
        "stream": _stream_link(stream),
        "group": harmless(facts.get(GROUP, b"")),
        "attempts": harmless(facts.get(ATTEMPTS, b"")),
        "worker": harmless(facts.get(CONSUMER, b"")),
        "reason": _reason(entry),
    }


def _reason(entry: Entry) -> str:
    return harmless(facts_of(entry.fields).get(REASON, b"").split(b"\n")[0])


def _stream_link(stream: bytes) -> dict[str, str]:
    return {"text": harmless(stream), "href": link("groups", stream)}


def _key(stream: bytes, entry: Entry) -> str:
    return f"{stream.hex()}/{entry.id}"


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/workers")
    async def workers() -> None:
        frame = PageFrame(board, "Workers", "workers")
        view = WorkersView(frame)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
