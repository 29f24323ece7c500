"""/structure: the radix tree, nodes, bytes and memory of a stream."""

from __future__ import annotations

from nicegui import ui
from nicegui.events import EChartPointClickEventArguments

from penstock.core.stream_id import SMALLEST, StreamID
from penstock.human.show import counted, harmless, size_text
from penstock.inspect.memory import counters
from penstock.inspect.stored import RawNode
from penstock.web.board import Board
from penstock.web.design.colours import pieces_css
from penstock.web.elements.frame import PageFrame, heading, show_url
from penstock.web.elements.parts import draw, halves, part, tools
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link
from penstock.web.model.facts import StreamFacts, one_stream
from penstock.web.model.structure import (
    MEANINGS,
    WINDOW_NODES,
    Window,
    bytes_html,
    leaf_width,
    read_window,
    tree_data,
    tree_depth,
    tree_options,
    trims,
)

LEVEL_REM = 17  # room for the labels of a level of the tree

NODE_COLUMNS = [
    DataColumn("id", "node"),
    DataColumn("live", "live", numeric=True),
    DataColumn("deleted", "deleted", numeric=True),
    DataColumn("bytes", "bytes", numeric=True),
]
PART_COLUMNS = [
    DataColumn("part", "part"),
    DataColumn("bytes", "bytes", numeric=True),
    DataColumn("share", "share", numeric=True),
    DataColumn("meaning", "content", wraps=True),
]

CSS = """
.bytes { list-style: none; padding: 0; margin: 0; font-size: var(--t1); }
.bytes li { padding: var(--s1) 0; border-bottom: 1px solid var(--hairline); overflow-wrap: anywhere; }
.bytes li > div { color: var(--muted); }
.bytes li.deleted { background: repeating-linear-gradient(45deg,
  rgba(200,0,0,.10) 0 6px, transparent 6px 12px); }
.bytes li.deleted > div { color: var(--gone); }
.p { display: inline-block; padding: 0 var(--s1); margin: 1px 0; border-radius: 3px; max-width: 100%; }
.piece-title:not(:empty) { position: sticky; bottom: 0; padding: var(--s1) var(--s2); background: var(--card);
  border-top: 1px solid var(--edge); }
.p i { font-style: normal; font-weight: 700; margin-left: .5em; }
""" + pieces_css()
# The title of a piece describes its bytes, but only a mouse shows titles. So a click or tap shows it too, and
# the arrow keys move between pieces when the list has the focus.
TELL_JS = """(event) => {
  const piece = event.target.closest('.p[title]');
  if (piece) document.querySelector('.piece-title').textContent = piece.title;
}"""
STEP_JS = """(event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const pieces = [...event.currentTarget.querySelectorAll('.p[title]')];
  const at = pieces.indexOf(document.activeElement);
  const piece = pieces[Math.min(pieces.length - 1, Math.max(0, at + step))];
  if (!piece) return;
  event.preventDefault();
  piece.focus();
  document.querySelector('.piece-title').textContent = piece.title;
}"""
LEGEND = (
    ("total", "listpack header and end"),
    ("live", "master entry: counters"),
    ("header-name", "field names"),
    ("flags", "flags"),
    ("ms-distance", "id deltas"),
    ("value", "values"),
    ("pieces", "lp-count"),
    ("value k-backlen", "backlen (paler)"),
)


class StructureView:
    """A window of nodes, and the bytes of one of them."""

    def __init__(self, frame: PageFrame, name: bytes, start: StreamID, chosen: str) -> None:
        self._frame = frame
        self._name = name
        self._start = start
        self._chosen = chosen
        self._window: Window | None = None
        ui.add_css(CSS)
        with frame.content:
            self._about = ui.label().classes("muted wrap").props('role="status"')
            with tools():
                ui.button("First nodes", on_click=lambda: self._go(SMALLEST)).props("flat no-caps")
                self._next = ui.button("Next nodes", on_click=self._turn_on).props("flat no-caps")
                ui.button("Newest", on_click=self._go_last).props("flat no-caps")
                ui.button("Refresh", on_click=lambda: self._go(self._start)).props("flat no-caps")
            with ui.element("div").classes("card").style("overflow-x: auto") as scrolled:
                # Scrollable elements need keyboard focus. The table of nodes opens the same nodes as the
                # tree.
                scrolled.props('tabindex="0" role="group" aria-label="radix tree"')
                self._tree = ui.echart({}, on_point_click=self._clicked).classes("full-width")
            ui.label("Scroll the tree sideways to see all of it.").classes("muted small lt-md")
            with halves():
                with part("Nodes"):
                    self._nodes = DataTable(NODE_COLUMNS, "nodes")
                    self._nodes.on_open(self._open)
                    self._saved = ui.label().classes("wrap muted").style("white-space: pre-line")
                with part("Memory by use"):
                    self._parts = DataTable(PART_COLUMNS, "memory by use")
            self._legend()
            self._title = heading("", "subtitle mono wrap")
            self._title.props('tabindex="-1"').set_visibility(False)
            # bytes_html escapes all stored data; sanitizing it again in the browser would double the time.
            self._bytes = ui.html("", sanitize=False).classes("full-width")
            self._bytes.on("keydown", js_handler=STEP_JS).on("click", js_handler=TELL_JS)
            ui.label().classes("piece-title wrap mono").props('role="status"')

    def _legend(self) -> None:
        with ui.row().classes("gap-1"):
            for kind, text in LEGEND:
                ui.label(text).classes(f"p {kind}")

    async def refresh(self) -> None:
        """Read the window again and redraw the page."""
        facts = await one_stream(self._frame.board.server, self._name)
        self._window = window = await read_window(self._frame.board.server, facts, self._start)
        self._about.set_text(about_text(facts, window))
        tree = tree_data(window)
        width = LEVEL_REM * tree_depth(tree) + leaf_width(window) / 16
        self._tree.style(f"height: {max(8.0, 1.4 * len(window.nodes))}rem; min-width: {width}rem")
        draw(self._tree, tree_options(window, tree))
        self._nodes.show([node_cells(node) for node in window.nodes])
        self._parts.show(part_rows(window))
        self._saved.set_text(saved_text(window, facts.length))
        self._next.set_enabled(window.following is not None)
        self._show_bytes()

    def _show_bytes(self) -> None:
        nodes = self._window.nodes if self._window is not None else []
        found = [node for node in nodes if str(node.master) == self._chosen] or nodes[:1]
        if not found:
            return
        self._title.set_text(f"node {found[0].master}, {len(found[0].data):,} bytes")
        self._title.set_visibility(True)
        content = bytes_html(found[0])
        if self._bytes.content != content:
            self._bytes.set_content(content)

    async def _go(self, start: StreamID) -> None:
        self._start = start
        await self._frame.attempt(self.refresh)
        self._show_url()

    async def _turn_on(self) -> None:
        if self._window is not None and self._window.following is not None:
            await self._go(self._window.following)

    async def _go_last(self) -> None:
        async def find() -> None:
            facts = await one_stream(self._frame.board.server, self._name)
            self._start = facts.last.id if facts.last is not None else SMALLEST

        if await self._frame.attempt(find):
            self._chosen = ""
            await self._go(self._start)

    def _open(self, key: str) -> None:
        self._chosen = key
        self._show_bytes()
        self._show_url()
        self._title.run_method("scrollIntoView")
        self._title.run_method("focus", {"preventScroll": True})  # screen readers continue there

    def _clicked(self, event: EChartPointClickEventArguments) -> None:
        data: object = event.data
        if isinstance(data, dict) and data.get("id"):
            self._open(str(data["id"]))

    def _show_url(self) -> None:
        at = None if self._start == SMALLEST else str(self._start)
        show_url(link("structure", self._name, at=at, node=self._chosen))


def about_text(facts: StreamFacts, window: Window) -> str:
    """How much of the stream is shown."""
    text = f"{facts.tree_keys:,} nodes in a radix tree of {facts.tree_nodes:,} nodes; "
    if window.is_whole:
        text += "all are shown"
    else:
        text += f"{len(window.nodes)} are shown (at most {WINDOW_NODES} at a time)"
    return "; ".join([text, *window.notes])


def node_cells(node: RawNode) -> TableRow:
    """A node as the table shows it."""
    live, deleted = counters(node.data)
    return {
        "key": str(node.master),
        "id": {"text": str(node.master), "open": "below"},
        "live": live,
        "deleted": deleted,
        "bytes": f"{len(node.data):,}",
    }


def part_rows(window: Window) -> list[TableRow]:
    """The bytes of the nodes, by use."""
    total = window.memory.total_bytes
    return [
        {
            "key": part,
            "part": part,
            "bytes": f"{size:,}",
            "share": f"{100 * size / total:.1f}%" if total else "-",
            "meaning": MEANINGS[part],
        }
        for part, size in window.memory.parts.items()
        if size or part != "damage"
    ]


def saved_text(window: Window, length: int) -> str:
    """The bytes per entry, what names in headers save, and what a trim would free."""
    memory = window.memory
    lines = []
    if memory.entries:
        lines.append(f"{memory.total_bytes / memory.entries:.1f} bytes per entry in these nodes.")
    lines.append(
        f"Names are stored once per node, which saves {size_text(max(memory.names_saved_net, 0))}."
        f" Tombstones: {memory.tombstones:,}, {size_text(memory.parts['tombstones'])}."
    )
    for trim in trims(window, length):
        way = "~" if trim.approximate else "="
        dropped = counted(trim.nodes_dropped, "node")
        made = counted(trim.tombstones_made, "tombstone")
        lines.append(
            f"XTRIM MAXLEN {way} {trim.length_max:,} would free {size_text(max(trim.bytes_freed, 0))}: it"
            f" drops {dropped} and creates {made}."
        )
    return "\n".join(lines)


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/structure")
    async def structure(name: str | None = None, at: str = "", node: str = "") -> None:
        query = QueryReader()
        key, start = query.name(name), query.identifier("at", at)
        frame = PageFrame(board, f"Structure of {harmless(key)}", "structure", key)
        frame.warn_about(query, link("structure", key))
        view = StructureView(frame, key, start, node)
        await frame.load(view.refresh)
