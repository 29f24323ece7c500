"""The last value found in a tree by a word of a command.

Commands use the same group and the same consumer again and again. Comparing a few bytes takes a tenth of the
time of making a key and walking to it.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.rax.tree import Rax


class LastFound:
    """Finds values and remembers the last one, as long as the tree does not change.

    `forget` frees the value: call it when the key is removed, or the value lives until the next search.
    """

    __slots__ = ("_key", "_tree", "_value", "_version")

    def __init__(self) -> None:
        self._tree: Rax | None = None
        self._version = 0
        self._key = b""
        self._value: Any = None

    def find_at(self, tree: Rax, frame: Frame, index: int) -> Any:
        """The value of a key that is given as a word of a frame, or None."""
        if (
            self._tree is tree
            and self._version == tree.version
            and frame.is_piece(index, self._key)
        ):
            return self._value
        key = frame.piece(index)
        found = tree.find(key)
        if found is not None:
            self._tree = tree
            self._version = tree.version
            self._key = key
            self._value = found
        return found

    def forget(self) -> None:
        """Let go of tree and value."""
        self._tree = None
        self._value = None
