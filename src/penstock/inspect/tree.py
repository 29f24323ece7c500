"""The rax of a stream's nodes, built again from their keys.

A tree of the same keys has the same nodes in whichever order they came, so what is drawn is what the server
has: `radix-tree-keys` and `radix-tree-nodes` of XINFO STREAM are its counts.

    "\\x00\\x00\\x01\\x8b\\xcf\\xe5" -> [hi]              in quotes: characters on the way to one child
                                  |-(h) ...         in brackets: one child for each character
                                  `-(i) ... []*     a star: a key ends here; the node's id follows
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.rax import view as rax_view
from penstock.core.rax.tree import Rax
from penstock.core.stream_id import StreamID


def tree_of(masters: Iterable[StreamID]) -> Rax:
    """A rax that has the key of every node."""
    tree = Rax()
    for master in masters:
        tree.insert(master.key, master)
    return tree


def draw_tree(tree: Rax) -> str:
    """The tree as text; what it shows of keys is escaped."""
    return rax_view.draw(tree, str)
