"""The real tree and the real bytes of a live stream, for a page: inspect/ has the model, here is the window.

A stream of a million entries has ten thousand nodes, and no page shows them all. So a window of some
nodes is read, from any id on; the tree that is drawn is the rax of those keys, and the page says of how
many. From penstock the window comes by PENSTOCK NODES, which costs what it shows. From Redis it comes by
DUMP, which sends all of the stream, so that is done for small streams only.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.client.replies import blob, identifier
from penstock.core.rax.tree import Rax
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import CorruptData
from penstock.human.show import harmless, size_text
from penstock.inspect.memory import StreamMemory, Trim, add_node, plan_trim
from penstock.inspect.node_map import MappedEntry, NodeMap, flags_text, node_map
from penstock.inspect.segments import NO_ELEMENT, Role, Segment, SegmentKind
from penstock.inspect.stored import (
    RawNode,
    dump_nodes,
    nodes_question,
    parse_nodes_reply,
    place_of,
)
from penstock.inspect.tree import tree_of
from penstock.web.colours import CHART_LINK, CHART_TEXT
from penstock.web.model.facts import StreamFacts
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient

WINDOW_NODES = 24
DUMP_BYTES_MAX = 8 * 1024 * 1024
VALUE_CHARACTERS_MAX = 60
PIECE_BYTES_MAX = 4096
LABEL_BYTES = 4

MEANINGS = {
    "listpack": "total, count and end byte of every node",
    "counters": "live, deleted, number of fields, end of the header",
    "names": "field names in the headers, once a node",
    "flags": "one element an entry",
    "ids": "distances in ms and seq from the node's key",
    "own names": "of entries whose names are not the header's",
    "values": "what was stored",
    "pieces": "elements to step back over (lp-count)",
    "tombstones": "deleted entries, whose bytes stay until their node goes",
    "damage": "cannot be read",
}


@dataclass(slots=True)
class Window:
    """Some nodes of a stream, taken apart; `onwards` is where the next window begins."""

    nodes: list[RawNode]
    nodes_total: int
    onwards: StreamID | None
    notes: list[str]
    memory: StreamMemory = field(default_factory=StreamMemory)

    @property
    def is_whole(self) -> bool:
        return len(self.nodes) == self.nodes_total


async def read_window(
    server: ServerClient, facts: StreamFacts, start: StreamID = SMALLEST
) -> Window:
    """The nodes from the one on that holds `start`. Raises: Refused if a stream is too large for DUMP."""
    try:
        reply = await server.ask(*nodes_question(facts.name, start.text, WINDOW_NODES))
        goes_on, nodes = parse_nodes_reply(reply)
        window = Window(nodes, facts.tree_keys, _behind(goes_on), [])
    except Refused as error:
        if "unknown command" not in str(error).lower():
            raise
        window = await _dumped(server, facts, start)
    except CorruptData as error:
        raise Refused(str(error)) from None
    for node in window.nodes:
        add_node(window.memory, node_map(node.data, node.master))
    return window


async def _dumped(server: ServerClient, facts: StreamFacts, start: StreamID) -> Window:
    if (facts.size_bytes or 0) > DUMP_BYTES_MAX:
        raise Refused(
            f"this server can only DUMP all of the stream, {size_text(facts.size_bytes or 0)}, which would"
            f" hold it up; up to {size_text(DUMP_BYTES_MAX)} are shown. penstock inspect reads its RDB file"
        )
    payload = await server.ask("DUMP", facts.name)
    if payload is None:
        raise Refused("there is no such key")
    try:
        nodes, notes = dump_nodes(blob(payload))
    except CorruptData as error:
        raise Refused(str(error)) from None
    first = place_of(nodes, start) or 0
    shown = nodes[first : first + WINDOW_NODES]
    rest = nodes[first + WINDOW_NODES : first + WINDOW_NODES + 1]
    return Window(shown, len(nodes), rest[0].master if rest else None, notes)


def _behind(goes_on: bytes | None) -> StreamID | None:
    """`(5-1`: what PENSTOCK NODES wants to be asked next."""
    if goes_on is None:
        return None
    last = identifier(goes_on.removeprefix(b"("))
    return None if last == LARGEST else last.next()


def trims(window: Window, length: int) -> list[Trim]:
    """What trims to half of the entries would free; only known when all nodes are."""
    if not window.is_whole or length < 2:
        return []
    return [plan_trim(window.nodes, length // 2, approximate) for approximate in (True, False)]


# --- The tree ----------------------------------------------------------------------------------------------


def tree_data(window: Window) -> dict[str, Any]:
    """The rax of the window's keys as nested dicts, as an ECharts tree takes them."""
    root: dict[str, Any] = {"name": "", "children": []}
    path: list[dict[str, Any]] = [root]
    tree: Rax = tree_of(node.master for node in window.nodes)
    live = {node.master: node for node in window.nodes}
    for node in tree.nodes():
        made: dict[str, Any] = {
            "name": _node_label(node.characters, node.is_compressed, node.is_key)
        }
        if node.edge is not None:
            made["edge"] = f"{node.edge:02x}"
            made["name"] = f"{node.edge:02x} {made['name']}".strip()
        if node.is_key and isinstance(node.value, StreamID):
            made["name"] = f"{node.value}"
            made["value"] = len(live[node.value].data)
            made["id"] = str(node.value)
        del path[node.depth + 1 :]
        path[-1].setdefault("children", []).append(made)
        path.append(made)
    children = root["children"]
    return children[0] if children else {"name": "empty"}


def _node_label(characters: bytes, is_compressed: bool, is_key: bool) -> str:
    shown = characters[:LABEL_BYTES].hex(" ")
    if len(characters) > LABEL_BYTES:
        shown += f" … {len(characters)} bytes" if is_compressed else f" … {len(characters)} ways"
    return f"“{shown}”" if is_compressed else f"[{shown}]" if shown else "key" if is_key else ""


def tree_options(window: Window) -> dict[str, Any]:
    """The chart: left to right, nodes that can be folded."""
    return {
        "animation": False,
        "aria": {
            "enabled": True,
            "label": {"description": f"Chart: the radix tree of {len(window.nodes)} nodes"},
        },
        "tooltip": {"trigger": "item", "formatter": "{b}: {c} bytes"},
        "series": [
            {
                "type": "tree",
                "data": [tree_data(window)],
                "left": 16,
                "right": 190,
                "top": 24,
                "bottom": 8,
                "symbol": "emptyCircle",
                "symbolSize": 8,
                "initialTreeDepth": -1,
                "roam": False,
                "label": {
                    "position": "top",
                    "align": "left",
                    "fontFamily": "monospace",
                    "fontSize": 10,
                    "color": CHART_TEXT,
                },
                "leaves": {"label": {"position": "right", "align": "left", "color": CHART_LINK}},
                "expandAndCollapse": False,
            }
        ],
    }


# --- The bytes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes with one meaning: a class for its colour, and what is said of it; how many follow the shown."""

    kind: str
    hex: str
    more: int
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Block:
    """The header of a node, one entry or tombstone, or its end."""

    title: str
    deleted: bool
    pieces: list[Piece]


def blocks(node: RawNode) -> list[Block]:
    """A node as its header and its entries, every byte in one piece; of long pieces the beginning."""
    taken = node_map(node.data, node.master)
    made: list[Block] = []
    entry = -2
    for together in _elements(taken.segments):
        first = together[0]
        where = first.entry if first.role is not Role.NONE else -1
        if where != entry or not made:
            entry = where
            made.append(_block(taken, where, is_first=not made))
        made[-1].pieces.extend(_piece(node.data, segment, together) for segment in together)
    return made


def _elements(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """The segments of each element together; those outside of elements alone."""
    together: list[Segment] = []
    for segment in segments:
        if together and (segment.element == NO_ELEMENT or segment.element != together[-1].element):
            yield together
            together = []
        together.append(segment)
    if together:
        yield together


def _block(node: NodeMap, entry: int, is_first: bool) -> Block:
    if entry < 0:
        title = (
            f"header of {node.master}: {node.live} live, {node.deleted} deleted"
            if is_first
            else "end"
        )
        return Block(title, deleted=False, pieces=[])
    found = node.entries[entry] if entry < len(node.entries) else None
    return Block(_entry_title(found), found is not None and found.deleted, [])


def _entry_title(entry: MappedEntry | None) -> str:
    if entry is None:
        return "entry"
    names = "the header's names" if entry.same_fields else "names of its own"
    return f"{'deleted ' if entry.deleted else ''}{entry.id}: {entry.length} bytes, {names}"


def _piece(data: bytes, segment: Segment, together: Sequence[Segment]) -> Piece:
    length = min(segment.length, PIECE_BYTES_MAX)
    shown = data[segment.offset : segment.offset + length].hex(" ")
    role = str(segment.role) or str(segment.kind)
    kind = "damage" if segment.kind is SegmentKind.DAMAGE else role.replace(" ", "-")
    # What an element holds is said once: where its content is, or at its encoding if that is all of it.
    has_content = any(other.kind is SegmentKind.CONTENT for other in together)
    says = segment.kind is SegmentKind.CONTENT or (not has_content and segment is together[0])
    text = _value_text(segment) if says else ""
    title = f"offset {segment.offset}: {role}, {segment.kind}: {segment.label}"
    return Piece(f"{kind} k-{segment.kind}", shown, segment.length - length, text, title)


def _value_text(segment: Segment) -> str:
    value = segment.value
    if value is None:
        return ""
    if isinstance(value, bytes):
        text = harmless(value[:VALUE_CHARACTERS_MAX])
        return f'"{text}"' + (" ..." if len(value) > VALUE_CHARACTERS_MAX else "")
    if segment.role is Role.FLAGS:
        return flags_text(value)
    return f"{value:+}" if segment.role in (Role.MS, Role.SEQ) else str(value)


def bytes_html(node: RawNode) -> str:
    """The blocks as a list in HTML. Everything that was stored is escaped."""
    parts = []
    for block in blocks(node):
        spans = "".join(
            f'<span tabindex="-1" class="p {html.escape(piece.kind)}" title="{html.escape(piece.title)}">'
            f"{html.escape(piece.hex)}{_more(piece.more)}{_noted(piece.text)}</span> "
            for piece in block.pieces
        )
        deleted = ' class="deleted"' if block.deleted else ""
        parts.append(f"<li{deleted}><div>{html.escape(block.title)}</div>{spans}</li>")
    about = 'tabindex="0" aria-label="bytes of the node; arrow keys go from piece to piece"'
    return f'<ol class="bytes" {about}>{"".join(parts)}</ol>'


def _more(count: int) -> str:
    return f" ... {count:,} bytes more" if count else ""


def _noted(text: str) -> str:
    return f"<i>{html.escape(text)}</i>" if text else ""
