"""The last value found is found again, and never one that the tree no longer has."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.core.rax.last_found import LastFound
from penstock.core.rax.tree import Rax


def frame_of(*pieces: bytes) -> Frame:
    frame = Frame()
    for piece in pieces:
        frame.add(piece)
    return frame


def tree_of(**values: object) -> Rax:
    tree = Rax()
    for key, value in values.items():
        tree.insert(key.encode(), value)
    return tree


def test_it_finds_what_the_tree_has() -> None:
    tree, found, frame = tree_of(a=1, b=2), LastFound(), frame_of(b"a", b"b", b"c")
    answers = [found.find_at(tree, frame, index) for index in (0, 0, 1, 2, 1, 0)]
    assert answers == [1, 1, 2, None, 2, 1]


def test_a_removed_key_is_not_found() -> None:
    tree, found, frame = tree_of(a=1, b=2), LastFound(), frame_of(b"a")
    assert found.find_at(tree, frame, 0) == 1
    tree.remove(b"a")
    assert found.find_at(tree, frame, 0) is None


def test_the_new_value_of_a_key_is_found() -> None:
    tree, found, frame = tree_of(a=1), LastFound(), frame_of(b"a")
    assert found.find_at(tree, frame, 0) == 1
    tree.insert(b"a", 2)
    assert found.find_at(tree, frame, 0) == 2


def test_another_tree_is_searched_anew() -> None:
    found, frame = LastFound(), frame_of(b"a")
    assert found.find_at(tree_of(a=1), frame, 0) == 1
    assert found.find_at(tree_of(a=2), frame, 0) == 2


def test_a_forgotten_value_is_searched_anew() -> None:
    tree, found, frame = tree_of(a=1), LastFound(), frame_of(b"a")
    found.find_at(tree, frame, 0)
    found.forget()
    assert found.find_at(tree, frame, 0) == 1
