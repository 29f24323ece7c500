"""The views of `penstock inspect`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from rich.text import Text

from penstock.cli.inspect.hexdump import node_lines
from penstock.cli.terminal.output import Stdout, TableColumn
from penstock.core.rax.tree import Rax
from penstock.human.show import harmless, json_text
from penstock.inspect.memory import StreamMemory, Trim, add_node, explain_tree, plan_trim
from penstock.inspect.node_map import MappedEntry, NodeMap, NodeSummary, node_map
from penstock.inspect.segments import NO_ELEMENT, NO_ENTRY, Segment
from penstock.inspect.stored import KEY_BYTES, RawStream
from penstock.inspect.tree import draw_tree, tree_of

NONE = "-"
NODES_A_REPORT = 64
SAFE_INTEGER = 2**53  # JSON readers may round larger integers
TREE, NODES, MEMORY, BYTES = "tree", "nodes", "memory", "bytes"

NODE_COLUMNS = (
    TableColumn("node", numeric=True),
    TableColumn("master id"),
    TableColumn("last id"),
    TableColumn("entries", numeric=True),
    TableColumn("deleted", numeric=True),
    TableColumn("bytes", numeric=True),
    TableColumn("fill", numeric=True),
    TableColumn("state"),
)
TRIM_COLUMNS = (
    TableColumn("trim"),
    TableColumn("entries left", numeric=True),
    TableColumn("nodes dropped", numeric=True),
    TableColumn("bytes freed", numeric=True),
    TableColumn("new tombstones", numeric=True),
    TableColumn("their bytes", numeric=True),
)


@dataclass(slots=True)
class Inspection:
    """A stream and summaries of its nodes. Decoded nodes are not kept, to save memory."""

    raw: RawStream
    nodes: list[NodeSummary] = field(default_factory=list)
    memory: StreamMemory = field(default_factory=StreamMemory)
    trims: list[Trim] = field(default_factory=list)

    @property
    def tree(self) -> Rax:
        return tree_of(node.master for node in self.raw.nodes)

    @property
    def is_damaged(self) -> bool:
        return bool(self.raw.notes) or any(node.damages for node in self.nodes)

    def number(self, place: int) -> int | None:
        """The number of a node, counted from 1, or None if it was found by id."""
        return place + self.raw.number_first if self.raw.number_first else None

    def map(self, place: int) -> NodeMap:
        """A decoded node."""
        node = self.raw.nodes[place]
        return node_map(node.data, node.master)


def inspected(
    raw: RawStream, trim_to: int | None, on_progress: Callable[[int, int], None]
) -> Inspection:
    """Decode all nodes and report progress in bytes and nodes. Plan trims if the stream is complete."""
    found = Inspection(raw)
    for place in range(len(raw.nodes)):
        taken = found.map(place)
        found.nodes.append(taken.summary())
        add_node(found.memory, taken)
        if len(found.nodes) % NODES_A_REPORT == 0:
            on_progress(found.memory.total_bytes, len(found.nodes))
    length = sum(node.live for node in found.nodes)
    if raw.is_whole and length > 0:
        length_max = length // 2 if trim_to is None else trim_to
        found.trims = [plan_trim(raw.nodes, length_max, rough) for rough in (True, False)]
    return found


# --- As text ---------------------------------------------------------------------------------------------


def show(found: Inspection, whats: Sequence[str], output: Stdout) -> None:
    """Print the wanted views."""
    output.line(_summary(found))
    for note in found.raw.notes:
        output.line(harmless(f"note: {note}"))
    views = {TREE: _show_tree, NODES: _show_nodes, MEMORY: _show_memory, BYTES: _show_bytes}
    for what in whats:
        output.line("")
        views[what](found, output)


def _summary(found: Inspection) -> str:
    raw = found.raw
    name = f"{harmless(raw.key)} in {raw.source}" if raw.key else raw.source
    parts = []
    if raw.length is not None:
        parts.append(f"{raw.length} entries")
    if raw.nodes_total is not None:
        tree = "" if raw.tree_nodes is None else f" under a rax of {raw.tree_nodes}"
        parts.append(f"{raw.nodes_total} nodes{tree}")
    if not raw.is_whole:
        first = found.number(0)
        last = found.number(len(raw.nodes) - 1)
        which = f"node {first}" if first == last else f"nodes {first} to {last}"
        parts.append(f"shown: {which if first else raw.nodes[0].master if raw.nodes else NONE}")
    return harmless(f"{name}: {', '.join(parts)}")


def _show_tree(found: Inspection, output: Stdout) -> None:
    tree = found.tree
    about = explain_tree(tree)
    output.line(f"tree: {about.keys} keys, {about.nodes} nodes")
    for line in draw_tree(tree).splitlines():
        output.line(line)


def _show_nodes(found: Inspection, output: Stdout) -> None:
    output.table(NODE_COLUMNS, [_node_cells(found, place) for place in range(len(found.nodes))])


def _node_cells(found: Inspection, place: int) -> list[str]:
    node = found.nodes[place]
    number = found.number(place)
    return [
        NONE if number is None else str(number),
        str(node.master),
        NONE if node.last_id is None else str(node.last_id),
        str(node.live),
        str(node.deleted),
        str(node.size),
        f"{100 * fill(found.raw, node):.0f}%",
        "sound" if not node.damages else f"damaged at byte {node.damages[0][0]}",
    ]


def fill(raw: RawStream, node: NodeSummary) -> float:
    """How full a node is, by the closer of its two limits. At 1.0 it takes no more entries."""
    by_bytes = node.size / raw.node_bytes_max if raw.node_bytes_max > 0 else 0.0
    entries = node.live + node.deleted
    by_entries = entries / raw.node_entries_max if raw.node_entries_max > 0 else 0.0
    return max(by_bytes, by_entries)


def _show_memory(found: Inspection, output: Stdout) -> None:
    memory = found.memory
    tree = explain_tree(found.tree)
    output.table(
        (
            TableColumn("part"),
            TableColumn("bytes", numeric=True),
            TableColumn("share", numeric=True),
            TableColumn(""),
        ),
        [*_part_cells(memory)],
    )
    output.line("")
    output.line(
        f"elements: {memory.encoding_bytes} bytes of encoding, {memory.content_bytes} of content,"
        f" {memory.backlen_bytes} of backlen"
    )
    output.line(
        f"names: {memory.parts['names']} bytes, stored once per node, save {memory.names_saved} in entries"
    )
    output.line(
        f"tombstones: {memory.tombstones} deleted entries keep {memory.parts['tombstones']} bytes until"
        " their nodes are freed"
    )
    output.line(
        f"tree: {tree.keys} keys of {KEY_BYTES} bytes in {tree.nodes} nodes with"
        f" {tree.characters} characters"
    )
    if found.trims:
        output.line("")
        output.table(TRIM_COLUMNS, [_trim_cells(trim) for trim in found.trims])
    elif not found.raw.is_whole:
        output.line("trim: read all nodes with --limit 0 to see what a trim would free")


_MEANINGS = {
    "listpack": "total, count and end byte of {nodes} nodes",
    "counters": "live, deleted, number of fields, end of the header",
    "names": "field names in the headers, once per node",
    "flags": "of {entries} entries",
    "ids": "distances in ms and seq",
    "own names": "of entries whose names differ from the header",
    "values": "the values of the fields",
    "pieces": "element counts for walking backwards (lp-count)",
    "tombstones": "{tombstones} deleted entries",
    "damage": "cannot be read",
}


def _part_cells(memory: StreamMemory) -> Iterator[list[str]]:
    for name, size in memory.parts.items():
        if size or name != "damage":
            meaning = _MEANINGS[name].format(
                nodes=memory.nodes, entries=memory.entries, tombstones=memory.tombstones
            )
            yield [name, str(size), _share(size, memory.total_bytes), meaning]
    each = f"{memory.total_bytes / memory.entries:.1f} per entry" if memory.entries else ""
    yield ["total", str(memory.total_bytes), _share(memory.total_bytes, memory.total_bytes), each]


def _share(size: int, total: int) -> str:
    return f"{100 * size / total:.1f}%" if total else NONE


def _trim_cells(trim: Trim) -> list[str]:
    return [
        f"MAXLEN {'~' if trim.approximate else '='} {trim.length_max}",
        str(trim.entries_left),
        str(trim.nodes_dropped),
        str(trim.bytes_freed),
        str(trim.tombstones_made),
        str(trim.tombstones_made_bytes),
    ]


def _show_bytes(found: Inspection, output: Stdout) -> None:
    output.note("encoding|content|backlen")
    for place in range(len(found.nodes)):
        node = found.map(place)
        if place:
            output.line("")
        number = found.number(place)
        name = "node" if number is None else f"node {number}"
        counts = f"{node.size} bytes, {node.live} live, {node.deleted} deleted"
        output.line(Text.assemble(f"{name}  ", (str(node.master), "bold"), f"  {counts}"))
        for line in node_lines(found.raw.nodes[place].data, node):
            output.line(line)


# --- As JSON ---------------------------------------------------------------------------------------------


def as_json(found: Inspection, whats: Sequence[str]) -> dict[str, object]:
    """The wanted views in one object. Integers above 2**53 are written as strings."""
    raw = found.raw
    about: dict[str, object] = {
        "source": raw.source,
        "key": json_text(raw.key),
        "entries": raw.length,
        "nodes_total": raw.nodes_total,
        "tree_nodes": raw.tree_nodes,
        "notes": raw.notes,
        "damaged": found.is_damaged,
        "nodes": [_node_json(found, place, BYTES in whats) for place in range(len(found.nodes))],
    }
    if TREE in whats:
        tree = found.tree
        about["tree"] = asdict(explain_tree(tree)) | {"drawing": draw_tree(tree).splitlines()}
    if MEMORY in whats:
        about["memory"] = asdict(found.memory) | {"tree": asdict(explain_tree(found.tree))}
        about["trims"] = [asdict(trim) for trim in found.trims]
    return about


def _node_json(found: Inspection, place: int, with_bytes: bool) -> dict[str, object]:
    node = found.nodes[place]
    about: dict[str, object] = {
        "number": found.number(place),
        "id": str(node.master),
        "bytes": node.size,
        "entries": node.live,
        "deleted": node.deleted,
        "fill": round(fill(found.raw, node), 4),
        "damage": [{"offset": offset, "reason": reason} for offset, reason in node.damages],
    }
    if with_bytes:
        taken = found.map(place)
        about["segments"] = segments_json(found.raw.nodes[place].data, taken.segments)
        about["items"] = [_entry_json(entry) for entry in taken.entries]
    return about


def segments_json(data: bytes, segments: Sequence[Segment]) -> list[dict[str, object]]:
    """Every segment with its exact bytes in hex."""
    return [
        {
            "offset": segment.offset,
            "length": segment.length,
            "kind": segment.kind.value,
            "label": segment.label,
            "role": segment.role.value or None,
            "element": None if segment.element == NO_ELEMENT else segment.element,
            "entry": None if segment.entry == NO_ENTRY else segment.entry,
            "value": _value_json(segment.value),
            "hex": data[segment.offset : segment.offset + segment.length].hex(),
        }
        for segment in segments
    ]


def _entry_json(entry: MappedEntry) -> dict[str, object]:
    return {
        "id": str(entry.id),
        "deleted": entry.deleted,
        "same_fields": entry.same_fields,
        "whole": entry.whole,
        "rises": entry.rises,
        "offset": entry.offset,
        "length": entry.length,
        "fields": [[json_text(name), json_text(value)] for name, value in entry.fields],
    }


def _value_json(value: int | bytes | None) -> str | int | None:
    if isinstance(value, bytes):
        return json_text(value)
    if isinstance(value, int) and abs(value) > SAFE_INTEGER:
        return str(value)
    return value
