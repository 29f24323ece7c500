"""Trees for the tests of the rax, and what their iterators return."""

from __future__ import annotations

from penstock.core.rax.tree import Rax, RaxIterator


def tree_of(*keys: bytes) -> Rax:
    """A tree in which every key is its own value."""
    tree = Rax()
    for key in keys:
        assert tree.insert(key, key)
        tree.check()
    return tree


def id_key(ms: int, seq: int = 0) -> bytes:
    return ms.to_bytes(8, "big") + seq.to_bytes(8, "big")


def forwards(iterator: RaxIterator) -> list[bytes]:
    keys = []
    while iterator.next():
        assert iterator.value == iterator.key
        keys.append(iterator.key)
    return keys


def backwards(iterator: RaxIterator) -> list[bytes]:
    keys = []
    while iterator.previous():
        keys.append(iterator.key)
    return keys


def all_keys(tree: Rax) -> list[bytes]:
    iterator = tree.iterator()
    iterator.seek("^")
    return forwards(iterator)
