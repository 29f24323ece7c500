"""Walks over all keys of a tree, for code that is not on a hot path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.core.rax.tree import Rax


def items_of(tree: Rax | None) -> Iterator[tuple[bytes, Any]]:
    """Keys and values in order; none if there is no tree. It must not change meanwhile."""
    if tree is None:
        return
    walk = tree.iterator()
    walk.seek("^")
    while walk.next():
        yield walk.key, walk.value
