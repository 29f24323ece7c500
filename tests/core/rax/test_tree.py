"""The rax: all cases of splitting and joining, walks, depth and size, freeing memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from penstock.core.rax import heap as rax_heap
from penstock.core.rax import tree as rax_module
from penstock.core.rax.tree import Rax
from penstock.core.rax.view import Node
from penstock.errors import InvariantBroken
from tests.support.structures.raxes import all_keys, id_key, tree_of

COMPILED = not rax_module.__file__.endswith(".py")
MANY = 1_000_000 if COMPILED else 30_000
DEEP = 5000 if COMPILED else 1000  # a chain costs the square of this


def drawing(*lines: str) -> str:
    return "\n".join(lines)


class TestMapping:
    def test_an_empty_tree_has_a_head_and_nothing_else(self) -> None:
        tree = Rax()
        assert (len(tree), tree.count, tree.node_count, tree.memory_bytes()) == (0, 0, 1, 0)
        assert tree.find(b"") is None
        assert b"" not in tree
        assert not tree.remove(b"a")
        tree.check()

    def test_insert_tells_whether_the_key_is_new_and_overwrites(self) -> None:
        tree = Rax()
        assert tree.insert(b"a", 1) is True
        assert tree.insert(b"a", 2) is False
        assert tree.find(b"a") == 2
        assert len(tree) == 1

    def test_try_insert_leaves_an_existing_key_alone(self) -> None:
        tree = Rax()
        assert tree.try_insert(b"a", 1) is True
        assert tree.try_insert(b"a", 2) is False
        assert tree.find(b"a") == 1

    def test_pop_returns_the_value_and_removes_the_key(self) -> None:
        tree = tree_of(b"foo", b"foobar")
        assert tree.pop(b"foo") == b"foo"
        assert tree.pop(b"foo", "gone") == "gone"
        assert all_keys(tree) == [b"foobar"]

    def test_none_is_a_value_like_any_other(self) -> None:
        tree = tree_of(b"foobar")
        for key in (b"foo", b"", b"foobarbaz"):
            assert tree.insert(key, None) is True
            tree.check()
            assert key in tree
            assert tree.find(key, "missing") is None
        assert tree.find(b"fo", "missing") == "missing"

    @pytest.mark.parametrize("key", [b"", b"foo", b"foobar"])
    def test_a_value_may_become_none_and_back_wherever_the_key_is(self, key: bytes) -> None:
        tree = tree_of(b"", b"foo", b"foobar")
        for value in (None, 1, 2, None, None, "x"):
            assert tree.insert(key, value) is False
            tree.check()
            assert tree.find(key, "missing") == value
        assert len(tree) == 3

    def test_the_empty_key_lives_on_the_head(self) -> None:
        tree = tree_of(b"")
        assert tree.draw() == "[]*"
        tree.insert(b"foo", b"foo")
        assert tree.draw() == '"foo"* -> []*'
        assert tree.remove(b"")
        assert tree.draw() == '"foo" -> []*'
        tree.check()

    def test_clear_forgets_everything_and_gives_the_memory_back(self) -> None:
        tree = tree_of(b"foo", b"bar")
        tree.clear()
        tree.check()
        assert (len(tree), tree.node_count, tree.memory_bytes()) == (0, 1, 0)
        assert tree.insert(b"foo", 1)

    @pytest.mark.parametrize("key", ["a", None, 1, bytearray(b"a")])
    def test_keys_are_bytes(self, key: object) -> None:
        tree = tree_of(b"a")
        for refused in (tree.find, tree.remove, tree.pop, tree.walk):
            with pytest.raises(TypeError):
                refused(key)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            assert key not in tree  # type: ignore[operator]
        for refused_with_value in (tree.insert, tree.try_insert):
            with pytest.raises(TypeError):
                refused_with_value(key, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            tree.iterator().seek("=", key)  # type: ignore[arg-type]
        tree.check()

    def test_a_destructor_may_use_the_tree_that_drops_its_value(self) -> None:
        tree = Rax()

        class Curious:
            def __del__(self) -> None:
                tree.check()
                tree.insert(b"last words", 1)

        for end in (tree.clear, lambda: tree.remove(b"k"), lambda: tree.insert(b"k", None)):
            tree.insert(b"key", 1)
            tree.insert(b"k", Curious())
            end()
            assert tree.pop(b"last words") == 1
            tree.check()


class TestShape:
    """The drawings of the essay, and the other cases of the two kinds of split."""

    @pytest.mark.parametrize(
        ("keys", "shape"),
        [
            ([b"annibale"], '"annibale" -> []*'),
            ([b"a"], "[a] -> []*"),
            ([b"annibale", b"anni"], '"anni" -> "bale"* -> []*'),
            ([b"annibale", b"a"], '[a] -> "nnibale"* -> []*'),
            ([b"annibale", b"annibal"], '"annibal" -> [e]* -> []*'),
            ([b"annibale", b"annibaleo"], '"annibale" -> [o]* -> []*'),
            ([b"annibale", b"annibale rex"], '"annibale" -> " rex"* -> []*'),
            ([b"ab", b"b"], drawing("[ab]", "|-(a) [b] -> []*", "`-(b) []*")),
        ],
    )
    def test_a_few_keys_make_this_shape(self, keys: list[bytes], shape: str) -> None:
        tree = tree_of(*keys)
        assert tree.draw() == shape
        assert all_keys(tree) == sorted(keys)

    def test_foo_foobar_footer(self) -> None:
        tree = tree_of(b"foo", b"foobar", b"footer")
        assert tree.draw() == drawing(
            '"foo" -> [bt]*',
            '         |-(b) "ar" -> []*',
            '         `-(t) "er" -> []*',
        )
        assert tree.node_count == 6

    def test_a_key_that_differs_in_the_middle_makes_a_fork_between_two_nodes(self) -> None:
        assert tree_of(b"annibale", b"annientare").draw() == drawing(
            '"anni" -> [be]',
            '          |-(b) "ale" -> []*',
            '          `-(e) "ntare" -> []*',
        )

    def test_a_key_that_differs_at_the_second_character_leaves_one_before_the_fork(self) -> None:
        assert tree_of(b"annibale", b"ago").draw() == drawing(
            "[a] -> [gn]",
            "       |-(g) [o] -> []*",
            '       `-(n) "nibale" -> []*',
        )

    def test_a_key_that_differs_at_the_first_character_makes_the_head_a_fork(self) -> None:
        assert tree_of(b"annibale", b"ciao").draw() == drawing(
            "[ac]",
            '|-(a) "nnibale" -> []*',
            '`-(c) "iao" -> []*',
        )

    def test_a_key_that_differs_at_the_last_character_leaves_nothing_behind_the_fork(self) -> None:
        assert tree_of(b"annibale", b"annibali").draw() == drawing(
            '"annibal" -> [ei]',
            "             |-(e) []*",
            "             `-(i) []*",
        )

    def test_a_fork_at_the_front_of_a_key_keeps_the_key(self) -> None:
        tree = tree_of(b"foo", b"foobar", b"footer")
        assert tree.find(b"foo") == b"foo"

    def test_nodes_lie_in_the_heap_as_the_essay_says(self) -> None:
        tree = tree_of(b"foo", b"foobar", b"footer")
        head, fork = (4 * tree.walk(key).stop for key in (b"", b"foo"))
        assert tree.heap[head : head + 7] == b"\x1c\0\0\0foo"
        assert tree.heap[head + 8 : head + 12] == (fork // 4).to_bytes(4, "little")
        assert tree.heap[fork : fork + 6] == b"\x11\0\0\0bt"
        assert tree.heap[fork + 16 : fork + 20] == bytes(4)
        assert tree.values[0] == b"foo"

    def test_nested_forks_are_drawn_under_each_other(self) -> None:
        assert tree_of(
            b"romane", b"romanus", b"rubens", b"ruber", b'\x00"\\\xff'
        ).draw() == drawing(
            r"[\x00r]",
            r'|-(\x00) "\x22\x5c\xff" -> []*',
            "`-(r) [ou]",
            '      |-(o) "man" -> [eu]',
            "      |              |-(e) []*",
            "      |              `-(u) [s] -> []*",
            '      `-(u) "be" -> [nr]',
            "                    |-(n) [s] -> []*",
            "                    `-(r) []*",
        )

    def test_removing_a_key_joins_what_it_had_split(self) -> None:
        tree = tree_of(b"annibale", b"anni", b"annis")
        assert tree.remove(b"anni")
        assert tree.remove(b"annis")
        assert tree.draw() == '"annibale" -> []*'
        tree.check()

    @pytest.mark.parametrize(
        ("keys", "removed", "shape"),
        [
            # The two cases in which Redis leaves a chain: here the shape does not depend on history.
            ([b"foo", b"foobar"], b"foo", '"foobar" -> []*'),
            ([b"foo", b"foobar", b"football"], b"football", '"foo" -> "bar"* -> []*'),
            ([b"foo", b"foobar"], b"foobar", '"foo" -> []*'),
            ([b"", b"foo"], b"foo", "[]*"),
            ([b"foobar", b"footer"], b"footer", '"foobar" -> []*'),
            ([b"a", b"ab", b"abc"], b"ab", '[a] -> "bc"* -> []*'),
        ],
    )
    def test_the_keys_alone_determine_the_shape(
        self, keys: list[bytes], removed: bytes, shape: str
    ) -> None:
        tree = tree_of(*keys)
        assert tree.remove(removed)
        tree.check()
        assert tree.draw() == shape
        assert list(tree.nodes()) == list(tree_of(*sorted(set(keys) - {removed})).nodes())

    def test_nodes_come_parents_first_with_their_edges(self) -> None:
        assert list(tree_of(b"foo", b"foobar", b"footer").nodes()) == [
            Node(0, None, b"foo", False, True, None),
            Node(1, ord("o"), b"bt", True, False, b"foo"),
            Node(2, ord("b"), b"ar", False, True, None),
            Node(3, ord("r"), b"", True, False, b"foobar"),
            Node(2, ord("t"), b"er", False, True, None),
            Node(3, ord("r"), b"", True, False, b"footer"),
        ]
        assert list(Rax().nodes()) == [Node(0, None, b"", False, False, None)]

    def test_a_fork_takes_all_256_characters_in_any_order(self) -> None:
        for order in (range(256), reversed(range(256)), random.Random(1).sample(range(256), 256)):
            tree = Rax()
            for char in order:
                tree.insert(b"x" + bytes([char]), char)
            tree.check()
            assert tree.node_count == 258
            assert [tree.find(b"x" + bytes([char])) for char in range(256)] == list(range(256))
            for char in random.Random(2).sample(range(256), 256):
                assert tree.pop(b"x" + bytes([char])) == char
                tree.check()

    def test_keys_beyond_the_size_of_a_node_take_a_chain(self) -> None:
        tree = Rax(characters_max=4)
        tree.insert(b"abcdefghi", 1)
        assert tree.draw() == '"abcd" -> "efgh" -> [i] -> []*'
        tree.insert(b"abcdefxyz", 2)
        tree.check()
        assert tree.remove(b"abcdefghi")
        tree.check()
        assert tree.find(b"abcdefxyz") == 2
        assert all(len(node.characters) <= 4 for node in tree.nodes())


class TestWalk:
    def test_it_ends_at_the_key(self) -> None:
        tree = tree_of(b"foo", b"foobar", b"footer")
        walk = tree.walk(b"foo")
        assert (walk.matched, walk.split, len(walk.path)) == (3, 0, 1)
        assert (tree.walk(b"foobar").matched, len(tree.walk(b"foobar").path)) == (6, 3)

    def test_it_ends_inside_a_compressed_node(self) -> None:
        walk = tree_of(b"annibale").walk(b"anni")
        assert (walk.matched, walk.split, walk.path) == (4, 4, ())
        walk = tree_of(b"annibale").walk(b"annoy")
        assert (walk.matched, walk.split, walk.path) == (3, 3, ())

    def test_it_ends_at_a_fork_and_tells_where_a_child_would_go(self) -> None:
        tree = tree_of(b"b", b"d", b"f")
        assert [tree.walk(key).split for key in (b"a", b"c", b"e", b"g")] == [0, 1, 2, 3]
        assert tree.walk(b"c").matched == 0

    def test_the_path_leads_from_the_head_to_the_stop(self) -> None:
        tree = tree_of(b"foo", b"foobar", b"footer")
        head, fork, *_ = tree.walk(b"foobar").path
        assert tree.walk(b"").stop == head
        assert tree.walk(b"foo").stop == fork
        assert tree.walk(b"foo").path == (head,)

    def test_it_goes_nowhere_in_an_empty_tree(self) -> None:
        walk = Rax().walk(b"a")
        assert (walk.matched, walk.split, walk.path, walk.stop) == (0, 0, (), rax_heap.BARE)


class TestDepthAndSize:
    def test_a_chain_of_thousands_of_keys(self) -> None:
        depth = DEEP
        tree = Rax()
        for length in range(1, depth + 1):
            tree.insert(b"a" * length, length)
        tree.check()
        assert tree.node_count == depth + 1
        iterator = tree.iterator()
        assert iterator.seek("$")
        assert iterator.key == b"a" * depth
        assert sum(1 for _ in iter(iterator.previous, False)) == depth
        for length in random.Random(5).sample(range(1, depth + 1), depth):
            assert tree.pop(b"a" * length) == length
        tree.check()
        assert tree.memory_bytes() == 0

    def test_a_key_of_a_mebibyte_is_split_and_joined(self) -> None:
        key = random.Random(6).randbytes(2**20 if COMPILED else 2**17)
        half, quarter = key[: len(key) // 2], key[: len(key) // 4]
        tree = tree_of(key)
        tree.insert(half + b"-", 1)
        tree.insert(quarter, 2)
        tree.check()
        assert tree.find(key) == key
        assert tree.remove(half + b"-")
        assert tree.remove(quarter)
        tree.check()
        assert list(tree.nodes()) == list(tree_of(key).nodes())

    def test_memory_goes_back_as_keys_go(self) -> None:
        tree = Rax()
        keys = [id_key(1_700_000_000_000 + i // 3, i % 3) for i in range(MANY)]
        for key in keys:
            tree.insert(key, True)
        full = tree.memory_bytes()
        assert full < 32 * MANY
        for key in keys[: -MANY // 100]:
            tree.remove(key)
        assert tree.memory_bytes() < full // 20 + 128 * 1024
        assert tree.count == MANY // 100
        for key in keys[-MANY // 100 :]:
            assert tree.remove(key)
        assert tree.memory_bytes() == 0

    def test_a_large_tree_is_not_copied_until_few_keys_are_left(self) -> None:
        """A copy of many keys would stop a server; the memory goes back in steps after it."""
        tree = Rax()
        keys = [id_key(10**12 + i) for i in range(4 * rax_heap.COPY_KEYS_MAX)]
        for key in keys:
            tree.insert(key, True)
        heap, copies, sheds = tree.heap, [], []
        for number, key in enumerate(keys):
            before = list(map(len, tree.doomed))
            tree.remove(key)
            sheds += [a - b for a, b in zip(before, map(len, tree.doomed), strict=False)]
            if tree.heap is not heap:
                heap = tree.heap
                copies.append(len(keys) - number - 1)
        assert copies[0] == rax_heap.COPY_KEYS_MAX
        assert 0 < max(sheds) <= rax_heap.SHED_MAX
        assert tree.memory_bytes() == 0

    def test_what_a_copy_left_behind_is_freed_by_the_next_changes(self) -> None:
        tree = Rax()
        keys = [id_key(10**12 + i) for i in range(4 * rax_heap.COPY_KEYS_MAX)]
        for key in keys:
            tree.insert(key, True)
        while not tree.doomed:
            tree.remove(keys.pop())
        large = tree.memory_bytes()
        changes = 0
        while tree.doomed:
            tree.insert(keys[changes] + b"x", True)
            changes += 1
        assert changes < rax_heap.COPY_KEYS_MAX // 256
        assert tree.memory_bytes() < large // 2
        tree.check()
        assert all(tree.find(key) for key in keys)

    def test_a_copy_keeps_every_key_and_value(self) -> None:
        tree = Rax()
        keys = [id_key(i * 977) for i in range(12_000)] + [b"k%d" % i for i in range(3000)]
        for i, key in enumerate(keys):
            tree.insert(key, i if i % 4 else None)
        heap = len(tree.heap)
        for key in keys[1000:]:
            tree.remove(key)
        assert len(tree.heap) < heap // 2
        tree.check()
        assert [tree.find(key, "missing") for key in keys[:1000]] == [
            i if i % 4 else None for i in range(1000)
        ]

    def test_a_queue_does_not_grow(self) -> None:
        tree = Rax()
        sizes = []
        for i in range(MANY // 3):
            tree.insert(id_key(10**12 + i), i)
            if i >= 500:
                assert tree.pop(id_key(10**12 + i - 500)) == i - 500
            if i % 1000 == 999:
                sizes.append(tree.memory_bytes())
        assert max(sizes) < 256 * 1024
        tree.check()

    @pytest.mark.skipif(COMPILED, reason="the limit is a C constant in the compiled build")
    def test_a_heap_that_would_be_too_large_is_refused_and_nothing_has_changed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree = tree_of(b"foo", b"foobar")
        monkeypatch.setattr(rax_heap, "_HEAP_CELLS_MAX", 100)
        with pytest.raises(MemoryError, match="8 GiB"):
            tree.insert(b"f" * 1000, 1)
        tree.check()
        assert all_keys(tree) == [b"foo", b"foobar"]


def small_alphabet(generator: random.Random) -> bytes:
    return bytes(generator.choices(b"ab", k=generator.randrange(10)))


def edge_bytes(generator: random.Random) -> bytes:
    return bytes(generator.choices(b"\x00\x7f\x80\xff", k=generator.randrange(6)))


def ids(generator: random.Random) -> bytes:
    return id_key(generator.randrange(3), generator.getrandbits(generator.choice((2, 9, 64))))


@pytest.mark.parametrize("characters_max", [rax_heap.CHARACTERS_MAX, 1, 3])
@pytest.mark.parametrize("draw_key", [small_alphabet, edge_bytes, ids])
@pytest.mark.parametrize("seed", range(3))
def test_random_keys_agree_with_a_dict(
    draw_key: Callable[[random.Random], bytes], characters_max: int, seed: int
) -> None:
    generator = random.Random(seed)
    tree = Rax(characters_max)
    model: dict[bytes, int | None] = {}
    for step in range(400):
        key = draw_key(generator)
        if generator.random() < (0.7 if step < 250 else 0.2):
            value = generator.choice((None, step))
            assert tree.insert(key, value) is (key not in model)
            model[key] = value
        else:
            key = generator.choice([key, *model])
            assert tree.pop(key, "missing") == model.pop(key, "missing")
        if step % 8 == 0:
            tree.check()
    tree.check()
    iterator = tree.iterator()
    iterator.seek("^")
    assert [(iterator.key, iterator.value) for _ in iter(iterator.next, False)] == sorted(
        model.items()
    )


class TestCheck:
    """Each invariant, broken by hand: the check must name it."""

    def broken(self, tree: Rax, number: str) -> None:
        with pytest.raises(InvariantBroken, match=f"^{number}: "):
            tree.check()

    def head_at(self, tree: Rax) -> int:
        return 4 * tree.walk(b"").stop

    def test_r1_a_key_that_is_cut_off_and_still_counted(self) -> None:
        tree = tree_of(b"foo", b"foobar")
        tree.heap[0:4] = tree.walk(b"foobar").stop.to_bytes(4, "little")
        self.broken(tree, "R1")

    def test_r2_characters_out_of_order(self) -> None:
        tree = tree_of(b"a", b"b")
        at = self.head_at(tree) + 4
        tree.heap[at : at + 2] = b"ba"
        self.broken(tree, "R2")

    def test_r3_a_compressed_node_of_one_character(self) -> None:
        tree = tree_of(b"a")
        tree.heap[self.head_at(tree)] |= rax_heap.COMPRESSED
        self.broken(tree, "R3")

    def test_r4_a_branch_that_leads_nowhere(self) -> None:
        tree = tree_of(b"a", b"b")
        at = tree.walk(b"a").link_at
        tree.heap[at : at + 4] = rax_heap.BARE.to_bytes(4, "little")
        self.broken(tree, "R4")

    def test_r5_a_chain_left_uncompressed(self) -> None:
        tree = tree_of(b"foo", b"foobar")
        tree.heap[4 * tree.walk(b"foo").stop] &= ~(rax_heap.KEY | rax_heap.NULL)
        self.broken(tree, "R5")

    def test_r6_a_free_block_that_is_forgotten(self) -> None:
        tree = tree_of(b"foo", b"foobar", b"footer")
        assert any(tree.free)
        tree.free[:] = bytes(len(tree.free))
        self.broken(tree, "R6")

    def test_r7_a_slot_that_two_keys_share(self) -> None:
        tree = tree_of(b"a", b"b")
        first, second = tree.walk(b"a").link_at, tree.walk(b"b").link_at
        tree.heap[first : first + 4] = tree.heap[second : second + 4]
        self.broken(tree, "R7")


def test_blocks_hold_what_they_are_for_and_waste_little() -> None:
    sizes: Iterable[int] = [*range(1, 2000), 2**20 - 1, 2**20, 2**20 + 1, 2**30]
    for cells in sizes:
        block = rax_heap.block_cells(cells)
        assert cells <= block <= cells + cells // 32
        assert rax_heap.block_cells(block) == block


def test_a_tree_that_becomes_empty_again_and_again_needs_no_more_memory() -> None:
    tree = Rax()
    sizes = set()
    for turn in range(20):
        keys = [b"%08d-%07d" % (turn, number) for number in range(12)]
        for key in keys:
            tree.insert(key, key)
        tree.check()
        for key in keys if turn % 2 else reversed(keys):
            assert tree.pop(key) == key
        tree.check()
        assert list(tree.pairs()) == []
        sizes.add(tree.memory_bytes())
    assert len(sizes) <= 2, "the first turns may differ: blocks are freed in another order"


def test_a_tree_that_was_large_keeps_nothing_when_it_becomes_empty() -> None:
    tree = Rax()
    empty_bytes = tree.memory_bytes()
    keys = [b"%08d" % number for number in range(300)]
    for key in keys:
        tree.insert(key, key)
    for key in keys:
        tree.remove(key)
    tree.check()
    assert tree.memory_bytes() == empty_bytes
