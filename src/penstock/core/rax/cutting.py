r"""Removes many keys of a rax at once: all of them, or all below one.

A trim drops thousands of nodes from the front of a stream. Removing them one by one takes half a microsecond
each. But the keys below a given one are whole branches, to the left of its path:

    cut below "dc"          [abcd]          branches (a), (b) and (c) go as a whole;
                          a/ | | \d         below (d), so does (a), and (c) stays
                          ..  .. .. [ac]

Such a branch is freed without regard to the shape of the tree, and replaced by a leaf. That leaf is a key
like any other, and is removed like any other: tree.py restores the shape.

Cost: 20 to 30 ns for each key, and half a microsecond for each branch: at most 255 for each fork on the path.
"""

from __future__ import annotations

from typing import Any

from penstock.core import memory
from penstock.core.rax import heap as rax_heap
from penstock.core.rax.heap import COMPRESSED, LEAF, NO_VALUE
from penstock.core.rax.tree import Rax

_COMPRESSED = COMPRESSED
_LEAF = LEAF
_NO_VALUE = NO_VALUE


def take_values(rax: Rax) -> list[Any]:
    """Remove all keys; return the values in any order, with None in the places that were free."""
    values = rax.values
    rax._empty()
    return values


def cut_below(rax: Rax, key: bytes) -> list[Any]:
    """Remove all keys below this one; return their values in any order."""
    values: list[Any] = []
    found = rax.iterator()
    while found.seek("^") and found.next() and found.key < key:
        first = found.key
        common = _common(first, key)
        if common == len(first):  # it is a prefix of the key: keys behind it may stay
            values.append(rax.pop(first))
            continue
        rax._walk(first[: common + 1], None)
        # Inside a compressed node the whole node goes: everything in it starts with the same characters.
        size = common + 1
        if rax._stop < _LEAF and memory.load32(rax.heap, 4 * rax._stop) & _COMPRESSED:
            size -= rax._split
        if size == 0:
            return values + take_values(rax)
        _shrink(rax, rax._link_at, values)
        rax.remove(first[:size])
    return values


def _common(first: bytes, second: bytes) -> int:
    """The length of the common prefix."""
    size = min(len(first), len(second))
    common = 0
    while common < size and first[common] == second[common]:
        common += 1
    return common


def _shrink(rax: Rax, link_at: int, values: list[Any]) -> None:
    """Replace the branch at a link by a leaf without a value; add its values to the list."""
    heap = rax.heap
    branches = [memory.load32(heap, link_at)]
    memory.store32(heap, link_at, _LEAF + _NO_VALUE)
    rax.count += 1
    rax.node_count += 1
    rax.version += 1
    while branches:
        link: int = branches.pop()
        slot = rax._slot(link)
        if slot >= 0:
            rax._reserve_release()
            values.append(rax._release(slot))
            rax.count -= 1
        rax.node_count -= 1
        if link >= _LEAF:
            continue
        header = memory.load32(heap, 4 * link)
        child_at = rax_heap.links_of(4 * link, header >> 3)
        for _ in range(1 if header & _COMPRESSED else header >> 3):
            child = memory.load32(heap, child_at)
            child_at += 4
            if child < _LEAF:
                branches.append(child)
            else:
                rax._reserve_release()
                values.append(rax._release(child - _LEAF))
                rax.count -= 1
                rax.node_count -= 1
        rax._give(4 * link, rax_heap.cells_of(header))
