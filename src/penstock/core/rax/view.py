"""Inspects a rax: yields its nodes, follows a key, draws the tree, checks its invariants.

None of this is fast, and none is needed to use a tree. The invariants are those of tree.py and heap.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.core import memory
from penstock.core.rax.heap import (
    BARE,
    COMPRESSED,
    KEY,
    LEAF,
    NO_VALUE,
    NULL,
    Trail,
    block_cells,
    cells_of,
    links_of,
)
from penstock.errors import InvariantBroken

if TYPE_CHECKING:
    from penstock.core.rax.tree import Rax


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it is drawn. A leaf has no characters, the head no edge."""

    depth: int
    edge: int | None  # the last character on the way from the parent
    characters: bytes
    is_key: bool
    is_compressed: bool
    value: Any


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a key leads: `stop` and the `path` to it are links, `link_at` is where `stop` is stored."""

    matched: int
    stop: int
    link_at: int
    split: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Raw:
    """The node or leaf behind one link."""

    slot: int  # -1: not a key
    characters: bytes = b""
    links: tuple[int, ...] = ()
    is_compressed: bool = False
    cells: int = 0

    @property
    def is_key(self) -> bool:
        return self.slot >= 0


def _raw(tree: Rax, link: int) -> _Raw:
    if link >= LEAF:
        return _Raw(slot=-1 if link == BARE else link - LEAF)
    header = memory.load32(tree.heap, 4 * link)
    size = header >> 3
    first = links_of(4 * link, size)
    count = 1 if header & COMPRESSED else size
    links = tuple(memory.load32(tree.heap, first + 4 * i) for i in range(count))
    slot = -1
    if header & KEY:
        slot = NO_VALUE if header & NULL else memory.load32(tree.heap, first + 4 * count)
    characters = memory.cut(tree.heap, 4 * link + 4, size)
    return _Raw(slot, characters, links, bool(header & COMPRESSED), cells_of(header))


def _head(tree: Rax) -> int:
    return memory.load32(tree.heap, 0) if tree.top else BARE


def node(tree: Rax, link: int, depth: int, edge: int | None) -> Node:
    """Describe one node."""
    raw = _raw(tree, link)
    value = tree.values[raw.slot] if raw.is_key and raw.slot != NO_VALUE else None
    return Node(depth, edge, raw.characters, raw.is_key, raw.is_compressed, value)


def nodes(tree: Rax) -> Iterator[Node]:
    """Yield all nodes, parents before children."""
    pending: list[tuple[int, int, int | None]] = [(_head(tree), 0, None)]
    while pending:
        link, depth, edge = pending.pop()
        yield node(tree, link, depth, edge)
        raw = _raw(tree, link)
        edges = raw.characters[-1:] if raw.is_compressed else raw.characters
        for child, character in reversed(list(zip(raw.links, edges, strict=True))):
            pending.append((child, depth + 1, character))


def walk(tree: Rax, trail: Trail) -> Walk:
    """Return the results of the tree's last walk as one value."""
    path = tuple(memory.load32(trail.frames, 8 * i) for i in range(trail.depth))
    return Walk(tree._matched, tree._stop, tree._link_at, tree._split, path)


def draw(tree: Rax, label: Callable[[Any], str] | None = None) -> str:
    """Draw the tree: nodes with one child continue the line, each child of a fork gets a line of its own.

    `label` turns a key's value into the text after its node.
    """
    lines = []
    pending = [(_head(tree), "", "")]  # link, the start of its line, and of the lines below it
    while pending:
        link, line, below = pending.pop()
        raw = _raw(tree, link)
        while len(raw.links) == 1:
            line += _draw_node(raw) + _draw_value(tree, raw, label) + " -> "
            raw = _raw(tree, raw.links[0])
        lines.append(line + _draw_node(raw) + _draw_value(tree, raw, label))
        below += " " * (len(line) - len(below))
        for i in reversed(range(len(raw.links))):
            is_last = i == len(raw.links) - 1
            edge = f"{'`' if is_last else '|'}-({_printable(raw.characters[i : i + 1])}) "
            pending.append((raw.links[i], below + edge, below + (" " if is_last else "|")))
    return "\n".join(lines)


def _draw_node(raw: _Raw) -> str:
    text = _printable(raw.characters)
    return (f'"{text}"' if raw.is_compressed else f"[{text}]") + ("*" if raw.is_key else "")


def _draw_value(tree: Rax, raw: _Raw, label: Callable[[Any], str] | None) -> str:
    if label is None or not raw.is_key or raw.slot == NO_VALUE:
        return ""
    return f" {label(tree.values[raw.slot])}"


def _printable(characters: bytes) -> str:
    plain = [chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\x{c:02x}" for c in characters]
    return "".join(plain)


def check(tree: Rax) -> None:
    """Raise InvariantBroken if an invariant does not hold."""
    blocks: list[tuple[int, int]] = []  # first cell and size
    slots: list[int] = []
    keys = seen = 0
    pending = [(_head(tree), 0)]
    while pending:
        link, length = pending.pop()
        raw = _raw(tree, link)
        _check_node(tree, link, raw, length)
        seen += 1
        keys += raw.is_key
        if raw.cells:
            blocks.append((link, block_cells(raw.cells)))
        if raw.is_key and raw.slot != NO_VALUE:
            slots.append(raw.slot)
        length += len(raw.characters) if raw.is_compressed else len(raw.links) > 0
        pending.extend((child, length) for child in raw.links)
    _demand(keys == tree.count, "R1", f"{keys} keys are counted as {tree.count}")
    _demand(seen == tree.node_count, "R1", f"{seen} nodes are counted as {tree.node_count}")
    _check_blocks(tree, blocks)
    _check_slots(tree, slots)


def _check_node(tree: Rax, link: int, raw: _Raw, length: int) -> None:
    where = f"node {link} ({_draw_node(raw)}, {length} characters down)"
    size = len(raw.characters)
    if raw.is_compressed:
        _demand(size > 1, "R3", f"{where} is compressed")
        _demand(size <= tree.characters_max, "R3", f"{where} has {size} characters")
    else:
        _demand(list(raw.characters) == sorted(set(raw.characters)), "R2", f"{where} is not sorted")
    bare_head = tree.count == 0 and link == BARE and link == _head(tree)
    _demand(bool(raw.links) or raw.is_key or bare_head, "R4", f"{where} leads nowhere")
    if len(raw.links) == 1:
        child = _raw(tree, raw.links[0])
        chain = len(child.links) == 1 and not child.is_key
        _demand(tree.chained or not chain, "R5", f"{where} is not joined with its child")


def _check_blocks(tree: Rax, blocks: list[tuple[int, int]]) -> None:
    live = sum(cells for _, cells in blocks)
    _demand(live == tree.live, "R6", f"{live} live cells are counted as {tree.live}")
    for place in range(0, len(tree.free), 4):
        number = place // 4  # the number of the list, which determines the size of its blocks
        shift = max(number // 32 - 1, 0)
        cells = (number - 32 * shift + 1) << shift
        cell = memory.load32(tree.free, place)
        while cell:
            blocks.append((cell, cells))
            _demand(len(blocks) <= tree.top, "R6", f"the free list of {cells} cells has a circle")
            cell = memory.load32(tree.heap, 4 * cell)
    end = min(tree.top, 1)
    for cell, cells in sorted(blocks):
        _demand(cell == end, "R6", f"cells {end} to {cell} are lost, or used twice")
        end = cell + cells
    _demand(end == tree.top, "R6", f"cells {end} to {tree.top} are lost, or used twice")
    _demand(4 * tree.top <= len(tree.heap), "R6", f"the heap ends before cell {tree.top}")


def _check_slots(tree: Rax, slots: list[int]) -> None:
    for place in range(0, 4 * tree.slots_free, 4):
        free = memory.load32(tree.free_slots, place)
        slots.append(free)
        is_none = free < len(tree.values) and tree.values[free] is None
        _demand(is_none, "R7", f"slot {free} is free and holds a value")
    every = list(range(len(tree.values)))
    _demand(sorted(slots) == every, "R7", "a slot is lost, or used twice")


def _demand(holds: bool, number: str, what: str) -> None:
    if not holds:
        raise InvariantBroken(f"{number}: {what}")
