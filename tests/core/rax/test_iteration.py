"""The iterator of the rax: seeking from everywhere, and steps in both directions under changes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from penstock.core.rax.tree import Rax, RaxIterator
from penstock.core.rax.view import Node
from tests.support.structures.raxes import backwards, forwards, id_key, tree_of

EDGES = [b"", b"a", b"ab", b"abc", b"abd", b"b", b"foo", b"foobar", b"footer", b"\xff", b"\xff\xff"]
PROBES = [
    *EDGES,
    b"\x00",
    b"aa",
    b"abcd",
    b"az",
    b"f",
    b"fop",
    b"foob",
    b"foobaz",
    b"g",
    b"\xff\xfe",
    b"\xff\xff\xff",
]


class TestIterator:
    @pytest.mark.parametrize("keys", [EDGES, EDGES[1:], EDGES[6:9], [b""], [b"foobar"]])
    def test_all_seven_ways_to_seek_agree_with_a_sorted_list(self, keys: list[bytes]) -> None:
        tree = tree_of(*keys)
        ordered = sorted(keys)
        for probe in PROBES:
            above = [key for key in ordered if key > probe]
            below = [key for key in ordered if key < probe]
            equal = [probe] if probe in keys else []
            expected: dict[str, list[bytes]] = {
                "^": ordered[:1],
                "$": ordered[-1:],
                "=": equal,
                ">": above[:1],
                ">=": (equal + above)[:1],
                "<": below[-1:],
                "<=": (below + equal)[-1:],
            }
            for op, found in expected.items():
                iterator = tree.iterator()
                assert iterator.seek(op, probe) is bool(found), (op, probe)
                if found:
                    place = ordered.index(found[0])
                    assert (iterator.key, iterator.value) == (found[0], found[0])
                    assert forwards(iterator) == ordered[place:]
                    assert iterator.seek(op, probe)
                    assert backwards(iterator) == ordered[place::-1]

    @pytest.mark.parametrize("step", [RaxIterator.next, RaxIterator.previous])
    @pytest.mark.parametrize("values", [(1, 2), (None, 2), (1, None)])
    def test_a_value_that_is_replaced_after_a_seek_is_read_again(
        self, step: Callable[[RaxIterator], bool], values: tuple[int | None, int | None]
    ) -> None:
        old, new = values
        rax = Rax()
        rax.insert(b"k", old)
        iterator = rax.iterator()
        assert iterator.seek("^")
        rax.insert(b"k", new)
        assert step(iterator)
        assert (iterator.key, iterator.value) == (b"k", new)
        assert not step(iterator)

    def test_it_is_nowhere_before_it_seeks_and_behind_the_ends(self) -> None:
        tree = tree_of(b"a")
        iterator = tree.iterator()
        assert not iterator.next()
        assert not iterator.previous()
        assert iterator.seek("^")
        assert iterator.next()
        assert not iterator.next()
        assert not iterator.previous()
        assert not Rax().iterator().seek("^")

    def test_it_turns_round_in_the_middle(self) -> None:
        iterator = tree_of(b"a", b"ab", b"abc", b"b").iterator()
        iterator.seek("=", b"ab")
        steps = [iterator.next, iterator.next, iterator.previous, iterator.previous, iterator.next]
        keys = []
        for step in steps:
            assert step()
            keys.append(iterator.key)
        assert keys == [b"ab", b"abc", b"ab", b"a", b"ab"]

    @pytest.mark.parametrize("op", ["", "==", "!=", "=>", "<>", "x"])
    def test_an_unknown_operator_is_refused(self, op: str) -> None:
        with pytest.raises(ValueError, match="seek takes"):
            tree_of(b"a").iterator().seek(op, b"a")

    def test_removing_every_key_it_stands_on_skips_none(self) -> None:
        keys = [id_key(1, seq) for seq in range(600)] + [id_key(2 + ms) for ms in range(300)]
        tree = Rax()
        for key in random.Random(3).sample(keys, len(keys)):
            tree.insert(key, key)
        iterator = tree.iterator()
        iterator.seek("^")
        seen = []
        while iterator.next():
            seen.append(iterator.key)
            assert tree.remove(iterator.key)
        assert seen == keys
        assert len(tree) == 0

    def test_it_meets_keys_inserted_ahead_and_not_those_inserted_behind(self) -> None:
        tree = tree_of(b"b", b"d")
        iterator = tree.iterator()
        assert iterator.seek("^")
        assert iterator.next()
        tree.insert(b"a", b"a")
        tree.insert(b"c", b"c")
        assert forwards(iterator) == [b"c", b"d"]
        iterator.seek("$")
        assert iterator.previous()
        tree.insert(b"cc", b"cc")
        assert backwards(iterator) == [b"cc", b"c", b"b", b"a"]

    def test_a_sought_key_that_vanishes_gives_way_to_its_neighbour(self) -> None:
        tree = tree_of(b"a", b"b", b"c")
        for step, neighbour in (("next", b"c"), ("previous", b"a")):
            iterator = tree.iterator()
            iterator.seek("=", b"b")
            tree.remove(b"b")
            assert getattr(iterator, step)()
            assert iterator.key == neighbour
            tree.insert(b"b", b"b")

    def test_the_callback_sees_every_node_that_is_entered(self) -> None:
        tree = tree_of(b"foo", b"foobar", b"footer")
        iterator = tree.iterator()
        seen: list[Node] = []
        iterator.on_node = seen.append
        iterator.seek("^")
        forwards(iterator)
        assert seen == list(tree.nodes())[1:]

    def test_a_callback_that_changes_the_tree_is_found_out(self) -> None:
        tree = tree_of(b"foo", b"foobar")
        iterator = tree.iterator()
        iterator.on_node = lambda node: tree.remove(b"foobar")
        with pytest.raises(RuntimeError):
            iterator.seek("$")

    def test_a_random_walk_lands_on_every_key_sooner_or_later(self) -> None:
        generator = random.Random(7)
        tree = tree_of(*EDGES)
        iterator = tree.iterator()
        landed = set()
        for steps in range(400):
            assert iterator.random_walk(steps % 6, generator)
            assert iterator.value == iterator.key
            landed.add(iterator.key)
        assert landed == set(EDGES)
        iterator.seek("=", b"b")
        assert iterator.random_walk(1, generator)
        here = sorted(EDGES).index(iterator.key)
        assert forwards(iterator) == sorted(EDGES)[here + 1 :]

    def test_a_random_walk_needs_a_key_and_is_content_with_the_empty_one(self) -> None:
        generator = random.Random(7)
        assert not Rax().iterator().random_walk(3, generator)
        iterator = tree_of(b"").iterator()
        assert iterator.random_walk(3, generator)
        assert iterator.key == b""
