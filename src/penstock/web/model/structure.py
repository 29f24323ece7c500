"""The tree and the bytes of a live stream, for the structure page. inspect/ decodes them.

A stream of a million entries has ten thousand nodes, too many for a page. So a window of nodes is read, from
any id on, and the page shows the rax of these nodes and says how many there are in total. A penstock server
sends only the window (PENSTOCK NODES). Redis has to DUMP the whole stream, so this is limited to small
streams.
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
from penstock.web.design.colours import CHART_EDGE, CHART_LINK, CHART_TEXT
from penstock.web.design.scale import MONO, TYPES
from penstock.web.model.facts import StreamFacts
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient

WINDOW_NODES = 24
DUMP_BYTES_MAX = 8 * 1024 * 1024
VALUE_CHARACTERS_MAX = 60
PIECE_BYTES_MAX = 4096
LABEL_BYTES = 10
CHARACTER = 0.62  # width of a character of a label, in sizes of its font

MEANINGS = {
    "listpack": "total, count and end byte of every node",
    "counters": "live, deleted, number of fields, end of the header",
    "names": "field names in the headers, once per node",
    "flags": "one element per entry",
    "ids": "distances in ms and seq from the node's key",
    "own names": "of entries whose names differ from the header",
    "values": "the values of the fields",
    "pieces": "element counts for walking backwards (lp-count)",
    "tombstones": "deleted entries, whose bytes are freed with their node",
    "damage": "cannot be read",
}


@dataclass(slots=True)
class Window:
    """Some nodes of a stream. `following` is the start of the next window."""

    nodes: list[RawNode]
    nodes_total: int
    following: StreamID | None
    notes: list[str]
    memory: StreamMemory = field(default_factory=StreamMemory)

    @property
    def is_whole(self) -> bool:
        return len(self.nodes) == self.nodes_total


async def read_window(
    server: ServerClient, facts: StreamFacts, start: StreamID = SMALLEST
) -> Window:
    """Nodes from the one with `start` on. Raises: Refused if the stream is too large for DUMP."""
    try:
        reply = await server.ask(*nodes_question(facts.name, start.text, WINDOW_NODES))
        cursor, nodes = parse_nodes_reply(reply)
        window = Window(nodes, facts.tree_keys, _id_after(cursor), [])
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
            f"this server can only DUMP the whole stream ({size_text(facts.size_bytes or 0)}), which would"
            f" block it; the limit is {size_text(DUMP_BYTES_MAX)}. Use penstock inspect on its RDB file"
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


def _id_after(cursor: bytes | None) -> StreamID | None:
    """The id after the cursor of PENSTOCK NODES, which looks like `(5-1`."""
    if cursor is None:
        return None
    last = identifier(cursor.removeprefix(b"("))
    return None if last == LARGEST else last.next()


def trims(window: Window, length: int) -> list[Trim]:
    """The effect of trims to half of the entries. Only known if all nodes are read."""
    if not window.is_whole or length < 2:
        return []
    return [plan_trim(window.nodes, length // 2, approximate) for approximate in (True, False)]


# --- The tree ----------------------------------------------------------------------------------------------


def tree_data(window: Window) -> dict[str, Any]:
    """The rax of the window's keys as nested dicts for an ECharts tree."""
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
    return (
        children[0] | {"label": {"position": "bottom", "align": "left"}}
        if children
        else {"name": "empty"}
    )


def tree_depth(tree: dict[str, Any]) -> int:
    """The number of levels below the root."""
    return 1 + max(map(tree_depth, tree["children"])) if tree.get("children") else 0


def _node_label(characters: bytes, is_compressed: bool, is_key: bool) -> str:
    shown = characters[:LABEL_BYTES].hex(" ")
    if len(characters) > LABEL_BYTES:
        shown += f" … {len(characters)} bytes" if is_compressed else f" … {len(characters)} ways"
    return f"“{shown}”" if is_compressed else f"[{shown}]" if shown else "key" if is_key else ""


def leaf_width(window: Window) -> int:
    """The pixels to the right of the leaves, for their labels."""
    longest = max((len(str(node.master)) for node in window.nodes), default=0)
    return round(longest * CHARACTER * TYPES[0]) + 24


def tree_options(window: Window, tree: dict[str, Any]) -> dict[str, Any]:
    """The chart of the tree, from left to right."""
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
                "data": [tree],
                "left": 16,
                "right": leaf_width(window),
                "top": 24,
                "bottom": 8,
                "symbol": "emptyCircle",
                "symbolSize": 8,
                "initialTreeDepth": -1,
                "roam": False,
                "itemStyle": {"color": CHART_LINK, "borderColor": CHART_LINK},
                "lineStyle": {"color": CHART_EDGE, "width": 1.5},
                # Straight lines that fork near the parent leave room for the label of each child.
                "edgeShape": "polyline",
                "edgeForkPosition": "12%",
                "label": {
                    "position": "top",
                    "align": "right",
                    "fontFamily": MONO,
                    "fontSize": TYPES[0],
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
    """Bytes with one meaning: CSS class, hex, number of bytes not shown, value and description."""

    kind: str
    hex: str
    more: int
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Block:
    """The header of a node, an entry or tombstone, or the end of the node."""

    title: str
    deleted: bool
    pieces: list[Piece]


def blocks(node: RawNode) -> list[Block]:
    """A node as blocks, with every byte in one piece. Long pieces are shortened."""
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
    """Groups the segments by element. Segments outside of elements are single."""
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
    names = "names in the header" if entry.same_fields else "own names"
    return f"{'deleted ' if entry.deleted else ''}{entry.id}: {entry.length} bytes, {names}"


def _piece(data: bytes, segment: Segment, together: Sequence[Segment]) -> Piece:
    length = min(segment.length, PIECE_BYTES_MAX)
    shown = data[segment.offset : segment.offset + length].hex(" ")
    role = str(segment.role) or str(segment.kind)
    kind = "damage" if segment.kind is SegmentKind.DAMAGE else role.replace(" ", "-")
    # Show the value of an element once: at its content, or at its encoding if it has no content.
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
    """The blocks as an HTML list. All stored data is escaped."""
    parts = []
    for block in blocks(node):
        spans = "".join(
            f'<span tabindex="-1" class="p {html.escape(piece.kind)}" title="{html.escape(piece.title)}">'
            f"{html.escape(piece.hex)}{_more(piece.more)}{_noted(piece.text)}</span> "
            for piece in block.pieces
        )
        deleted = ' class="deleted"' if block.deleted else ""
        parts.append(f"<li{deleted}><div>{html.escape(block.title)}</div>{spans}</li>")
    about = 'tabindex="0" aria-label="bytes of the node; use the arrow keys to move between pieces"'
    return f'<ol class="bytes mono" {about}>{"".join(parts)}</ol>'


def _more(count: int) -> str:
    return f" ... {count:,} more bytes" if count else ""


def _noted(text: str) -> str:
    return f"<i>{html.escape(text)}</i>" if text else ""
