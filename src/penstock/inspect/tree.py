"""Rebuilds the rax of a stream from the keys of its nodes.

The shape of a rax does not depend on the order of insertion, so the drawing shows the server's tree:
`radix-tree-keys` and `radix-tree-nodes` of XINFO STREAM are its counts.

    "\\x00\\x00\\x01\\x8b\\xcf\\xe5" -> [hi]              in quotes: characters with a single child
                                  |-(h) ...         in brackets: one child per character
                                  `-(i) ... []*     a star: a key ends here; the node's id follows
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.rax import view as rax_view
from penstock.core.rax.tree import Rax
from penstock.core.stream_id import StreamID


def tree_of(masters: Iterable[StreamID]) -> Rax:
    """A rax with the keys of all nodes."""
    tree = Rax()
    for master in masters:
        tree.insert(master.key, master)
    return tree


def draw_tree(tree: Rax) -> str:
    """The tree as text, with escaped keys."""
    return rax_view.draw(tree, str)
