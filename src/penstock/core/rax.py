r"""Rax: a sorted map from byte strings to objects, in which common beginnings are stored once.

A trie spends a node on every character. A rax writes a run of characters without a fork into one
*compressed* node; `foo`, `foobar` and `footer` are (a star marks a key, `draw()` prints just this):

    "foo" -> [bt]*                          compressed: quoted, any number of characters, one child
             |-(b) "ar" -> []*              branching: in brackets, a character and a child each
             `-(t) "er" -> []*              leaf: always a key

A node stands for the characters that lead *to* it: the star at [bt] is `foo`, and the node's own
characters belong to its children. Adding a key splits a compressed node, one way or the other (the new
key is in the comment), or hangs a chain under the node where the walk ended:

    "annibale" -> []*       "anni" -> [bs]                             annis: they differ at a character
                                      |-(b) "ale" -> []*
                                      `-(s) []*
                            "anni" -> "bale"* -> []*                   anni: it ends between two

Removing one cuts the branch which nobody needs any more, and joins what can be one node again.

How nodes lie in memory is rax_heap.py's matter. All that matters here: a link is a number; from LEAF on it
is a leaf, which takes no node of its own, and BARE is the head of an empty tree.

Invariants
  R1  count is the number of keys. node_count is the number of nodes as Redis counts them: a leaf is one
      although it takes no block, and an empty tree has one, its head.
  R2  the characters of a branching node strictly increase.
  R3  a compressed node has at least two characters, and no node more than characters_max.
  R4  there are no dead branches: what has no child is a key, but for the head of an empty tree.
  R5  no chain is left uncompressed: an only child is a key, a fork or a leaf. (Not so once the tree has
      held a key of more than characters_max, which takes several nodes in a row, as in Redis.)
  R6, R7  see rax_heap.py.

By R5 the keys alone determine the shape. In Redis the history does too: a compressed node that stops being
a key, or a key that is left with one child, is not joined with its neighbour (redis issue 7429). Where no
key is the beginning of another, as with ids, it cannot happen, and the shapes and counts are the same.

Cost: find, insert and remove are O(length of the key), of which a fork is a binary search; a step of an
iterator is O(1) on average. Nothing is recursive.

Rejected: Redis's linear scan of a fork, and its stack of parents. Ids arrive in order, so the last child
is looked at first; in a full fork of 256 the other eight steps beat a scan of 128. And all that a removal
asks of the way down is one fork and where its chain begins: two links, not a stack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from penstock.core import memory, rax_heap
from penstock.core.rax_heap import BARE, CHARACTERS_MAX, COMPRESSED, KEY, LEAF, NO_VALUE, NodeHeap

if TYPE_CHECKING:
    from penstock.core.rax_view import Node, Walk

_KEY = KEY  # C twins, see rax.pxd
_COMPRESSED = COMPRESSED
_LEAF = LEAF
_NO_VALUE = NO_VALUE
_BARE = BARE


class Generator(Protocol):
    """What a random walk needs of random.Random."""

    def randrange(self, stop: int, /) -> int: ...


class Trail:
    """The nodes passed on the way down, and which child was taken in each."""

    __slots__ = ("depth", "frames")

    def __init__(self) -> None:
        self.depth = 0
        self.frames = bytearray(8 * 16)

    def push(self, node: int, index: int) -> None:
        if 8 * self.depth == len(self.frames):
            self.frames += bytes(len(self.frames))
        memory.store32(self.frames, 8 * self.depth, node)
        memory.store32(self.frames, 8 * self.depth + 4, index)
        self.depth += 1


class Rax(NodeHeap):
    """A sorted map from bytes to objects.

    Keys: find, insert, try_insert, remove, pop, clear. In order: iterator. To look inside: walk, nodes,
    draw, check, memory_bytes.
    """

    __slots__ = (
        "_branch_at",
        "_branch_index",
        "_branch_run",
        "_link_at",
        "_run",
        "_split",
        "_stop",
        "chained",
        "characters_max",
        "version",
    )

    def __init__(self, characters_max: int = CHARACTERS_MAX) -> None:
        super().__init__()
        self.characters_max = characters_max
        self.chained = False
        self.version = 0

    def __len__(self) -> int:
        return self.count

    def __contains__(self, key: bytes) -> bool:
        return self._locate(key)

    def find(self, key: bytes, default: object = None) -> object:
        """Return the key's value, or `default`."""
        return self._value(self._slot(self._stop)) if self._locate(key) else default

    def insert(self, key: bytes, value: object) -> bool:
        """Set the key's value; tell whether the key is new."""
        return self._add(key, value, True)

    def try_insert(self, key: bytes, value: object) -> bool:
        """Insert the key unless it is there; tell whether it is new."""
        return self._add(key, value, False)

    def remove(self, key: bytes) -> bool:
        """Remove the key; tell whether it was there."""
        if not self._locate(key):
            return False
        self._detach()
        return True

    def pop(self, key: bytes, default: object = None) -> object:
        """Remove the key and return its value; `default` if it is not there."""
        return self._detach() if self._locate(key) else default

    def clear(self) -> None:
        """Remove all keys and give the memory back."""
        doomed = self.values  # their destructors may look at the tree: after it has become empty
        self.version += 1
        self._drop()
        del doomed

    def iterator(self) -> RaxIterator:
        """Make an iterator, which is nowhere until it seeks."""
        return RaxIterator(self)

    def memory_bytes(self) -> int:
        """Count the bytes of the heap and of the list of values, not those of the values themselves."""
        if self.top == 0:
            return 0
        return sys.getsizeof(self.heap) + sys.getsizeof(self.free) + sys.getsizeof(self.values)

    # The tree is complete without its views, and they know all of it: so they are imported late.

    def walk(self, key: bytes) -> Walk:
        """Follow the key and tell where that ends."""
        from penstock.core import rax_view

        trail = Trail()
        matched = self._walk(key, trail) if self.top else 0
        return rax_view.walk(self, trail, matched)

    def nodes(self) -> Iterator[Node]:
        """Go through all nodes, parents before children."""
        from penstock.core import rax_view

        return rax_view.nodes(self)

    def draw(self) -> str:
        """Draw the tree as in the essay above."""
        from penstock.core import rax_view

        return rax_view.draw(self)

    def check(self) -> None:
        """Raise InvariantBroken, with the invariant's number, if the tree is not as the essay says."""
        from penstock.core import rax_view

        rax_view.check(self)

    # The way down.

    def _locate(self, key: bytes) -> bool:
        if type(key) is not bytes:
            raise TypeError(f"a key is bytes, not {type(key).__name__}")
        if self.count == 0:
            return False
        return (
            self._walk(key, None) == len(key)
            and self._split == 0
            and self._slot(self._stop) >= 0
        )

    def _walk(self, key: bytes, trail: Trail | None) -> int:
        """Follow the key down; return how many of its bytes matched. The rest is left in attributes:

        _stop, _link_at             the link at which the walk ended, and where in the heap that is stored
        _split                      in a compressed node how many characters matched; in a branching node
                                    which place a child for the next byte would take; else 0
        _run                        the link to the node at which a chain through the stop node begins
        _branch_at, _branch_index   the link to the lowest node above that is a key or a fork (-1: there is
        _branch_run                 none), the child taken there, and where its chain begins
        """
        heap = self.heap
        matched = split = link_at = run = branch_index = branch_run = 0
        branch_at = -1
        link = memory.load32(heap, 0)
        while link < _LEAF and matched < len(key):
            at = 4 * link
            header = memory.load32(heap, at)
            size = header >> 3
            index = 0
            if header & _COMPRESSED:
                split = memory.common_prefix(heap, at + 4, size, key, matched)
                matched += split
                if split < size:
                    break
                split = 0
            else:
                index = _find_child(heap, at + 4, size, key[matched])
                if index < 0:
                    split = -1 - index
                    break
                matched += 1
            if trail is not None:
                trail.push(link, index)
            fork = size > 1 and not header & _COMPRESSED
            if fork or header & _KEY:
                branch_at = link_at
                branch_index = index
                branch_run = run = link_at if header & _KEY else run
            link_at = at + 4 + (size + 3 & -4) + 4 * index
            if fork:
                run = link_at
            link = memory.load32(heap, link_at)
        self._stop = link
        self._link_at = link_at
        self._split = split
        self._run = run
        self._branch_at = branch_at
        self._branch_index = branch_index
        self._branch_run = branch_run
        return matched

    # Adding a key.

    def _add(self, key: bytes, value: object, overwrite: bool) -> bool:
        if type(key) is not bytes:
            raise TypeError(f"a key is bytes, not {type(key).__name__}")
        if self.top == 0:
            self._start()
        matched = self._walk(key, None)
        ends_at_node = matched == len(key) and self._split == 0
        slot = self._slot(self._stop) if ends_at_node else -1
        if slot >= 0 and not overwrite:
            return False
        if slot >= 0 and slot != _NO_VALUE and value is not None:
            self.values[slot] = value
            return False
        # From here on nothing may fail half-way: all memory is there before the first byte changes.
        rest = len(key) - matched
        units = (rest >> 2) + 4
        if len(key) > self.characters_max:
            self.chained = True
            units += 3 * (rest // self.characters_max)
        if self._stop < _LEAF:
            units += rax_heap.units_of(memory.load32(self.heap, 4 * self._stop)) + 12
        self._reserve(units)
        self.version += 1
        if slot >= 0:
            replaced = self._release(slot)
            self._set_slot(self._link_at, self._keep(value))
            del replaced  # not before: its destructor may look at the tree
            return False
        slot = self._keep(value)
        if ends_at_node:
            self._set_slot(self._link_at, slot)
        elif self._stop >= _LEAF:
            top_slot = self._slot(self._stop)
            link = self._chain(key, matched, top_slot, _LEAF + slot)
            memory.store32(self.heap, self._link_at, link)
        elif not memory.load32(self.heap, 4 * self._stop) & _COMPRESSED:
            link = self._chain(key, matched + 1, -1, _LEAF + slot)
            self._add_child(self._link_at, self._split, key[matched], link)
        elif rest:
            self._split_where_they_differ(key, matched, slot)
        else:
            self._split_where_it_ends(slot)
        self.count += 1
        self._tidy()
        return True

    def _chain(self, key: bytes, start: int, slot: int, tip: int) -> int:
        """Build the nodes for the key from `start` on, down to the link `tip`; return the link to them.

        `slot` is what the first of them holds as a key (-1: it is none).
        """
        size = len(key) - start
        if size == 0:
            return tip
        full = (size - 1) // self.characters_max if size > self.characters_max else 0
        while full >= 0:
            first = start + full * self.characters_max
            size = min(len(key) - first, self.characters_max)
            at = self._single(size, slot if full == 0 else -1, tip)
            memory.put_part(self.heap, at + 4, key, first, size)
            tip = at >> 2
            full -= 1
            self.node_count += 1
        return tip

    def _split_where_they_differ(self, key: bytes, matched: int, slot: int) -> None:
        """Put a fork into the stop node, where its character is another than the key's."""
        heap = self.heap
        at = 4 * self._stop
        header = memory.load32(heap, at)
        before = self._split
        after = (header >> 3) - before - 1
        old_slot = self._slot(self._stop)
        old_link = memory.load32(heap, rax_heap.links_of(at, header >> 3))
        if after:
            tail = self._single(after, -1, old_link)
            memory.move(heap, tail + 4, at + 4 + before + 1, after)
            old_link = tail >> 2
            self.node_count += 1
        new_link = self._chain(key, matched + 1, -1, _LEAF + slot)
        fork = self._node(2 << 3, -1 if before else old_slot)
        old_first = heap[at + 4 + before] < key[matched]
        heap[fork + 4] = heap[at + 4 + before] if old_first else key[matched]
        heap[fork + 5] = key[matched] if old_first else heap[at + 4 + before]
        memory.store32(heap, fork + 8, old_link if old_first else new_link)
        memory.store32(heap, fork + 12, new_link if old_first else old_link)
        link = fork >> 2
        if before:
            front = self._single(before, old_slot, link)
            memory.move(heap, front + 4, at + 4, before)
            link = front >> 2
            self.node_count += 1
        self._give(at, rax_heap.units_of(header))
        memory.store32(heap, self._link_at, link)
        self.node_count += 1

    def _split_where_it_ends(self, slot: int) -> None:
        """Cut the stop node in two, the second of which is the new key."""
        heap = self.heap
        at = 4 * self._stop
        header = memory.load32(heap, at)
        before = self._split
        after = (header >> 3) - before
        tail = self._single(after, slot, memory.load32(heap, rax_heap.links_of(at, header >> 3)))
        memory.move(heap, tail + 4, at + 4 + before, after)
        front = self._single(before, self._slot(self._stop), tail >> 2)
        memory.move(heap, front + 4, at + 4, before)
        self._give(at, rax_heap.units_of(header))
        memory.store32(heap, self._link_at, front >> 2)
        self.node_count += 1

    # Removing a key.

    def _detach(self) -> object:
        """Remove the key that was just located; return its value."""
        slot = self._slot(self._stop)
        if self._stop >= _LEAF and self._branch_at < 0:
            value = self._value(slot)
            self.clear()
            return value
        if self._stop >= _LEAF:
            self._prune()
        else:
            header = memory.load32(self.heap, 4 * self._stop)
            self._reserve(rax_heap.units_of(header))
            self._set_slot(self._link_at, -1)
            if header & _COMPRESSED or header >> 3 == 1:
                self._compress(self._run)
        value = self._release(slot)
        self.count -= 1
        self.version += 1
        self._tidy()
        return value

    def _prune(self) -> None:
        """Cut off the branch whose only key is the stop link's leaf."""
        heap = self.heap
        at = 4 * memory.load32(heap, self._branch_at)
        header = memory.load32(heap, at)
        self._reserve(rax_heap.units_of(header))
        link = memory.load32(heap, rax_heap.links_of(at, header >> 3) + 4 * self._branch_index)
        while link < _LEAF:
            doomed = memory.load32(heap, 4 * link)
            below = memory.load32(heap, rax_heap.links_of(4 * link, doomed >> 3))
            self._give(4 * link, rax_heap.units_of(doomed))
            self.node_count -= 1
            link = below
        self.node_count -= 1
        if header & _COMPRESSED or header >> 3 == 1:
            memory.store32(heap, self._branch_at, _LEAF + self._slot(at >> 2))
            self._give(at, rax_heap.units_of(header))
        else:
            self._remove_child(self._branch_at, self._branch_index)
            if header >> 3 == 2:
                self._compress(self._branch_run)

    def _compress(self, link_at: int) -> None:
        """Make one node of a node with one child and those below it that are neither key nor fork."""
        heap = self.heap
        link = memory.load32(heap, link_at)
        size = nodes = 0
        while link < _LEAF:
            header = memory.load32(heap, 4 * link)
            if nodes and (header & _KEY or (header >> 3 > 1 and not header & _COMPRESSED)):
                break
            if size + (header >> 3) > self.characters_max:
                break
            size += header >> 3
            nodes += 1
            link = memory.load32(heap, rax_heap.links_of(4 * link, header >> 3))
        if nodes > 1:
            self._merge(link_at, nodes, size, link)

    def _merge(self, link_at: int, nodes: int, size: int, tip: int) -> None:
        """Make one node of so many in a row, which have `size` characters together and end at `tip`."""
        heap = self.heap
        first = memory.load32(heap, link_at)
        self._reserve((size >> 2) + 4)
        merged = self._single(size, self._slot(first), tip)
        memory.store32(heap, link_at, merged >> 2)
        self.node_count -= nodes - 1
        size = 0
        while nodes:
            header = memory.load32(heap, 4 * first)
            memory.move(heap, merged + 4 + size, 4 * first + 4, header >> 3)
            size += header >> 3
            link = memory.load32(heap, rax_heap.links_of(4 * first, header >> 3))
            self._give(4 * first, rax_heap.units_of(header))
            first = link
            nodes -= 1

class RaxIterator:
    """A place in a tree, from which one can go to the next key and to the previous one.

    `key` and `value` are those of the element where it stands, as they were when it got there. The tree may
    be changed meanwhile: then the next step starts with a new search for the remembered key, and goes to the
    first key after it (or before it) that is there now. An iterator that ran off an end is nowhere, and stays
    there until it seeks. `on_node` is called with every node entered while moving, and must not change the
    tree.
    """

    __slots__ = (
        "_fresh",
        "_here",
        "_path",
        "_size",
        "_somewhere",
        "_trail",
        "_version",
        "key",
        "on_node",
        "rax",
        "value",
    )

    def __init__(self, rax: Rax) -> None:
        self.rax = rax
        self.key = b""
        self.value: object = None
        self.on_node: Callable[[Node], object] | None = None
        self._trail = Trail()
        self._path = bytearray(32)  # the characters that lead to `_here`
        self._size = 0  # and how many they are
        self._here = _BARE  # a link
        self._somewhere = False
        self._fresh = False  # just sought: the next step is to stay
        self._version = 0

    def seek(self, op: str, key: bytes = b"") -> bool:
        """Find the element that `op` asks for, so that the next step either way returns it.

        `^` the first, `$` the last; `=`, `>`, `>=`, `<`, `<=` compared with `key`. False if there is none.
        """
        if op not in ("^", "$", "=", ">", ">=", "<", "<="):
            raise ValueError(f"seek knows ^ $ = > >= < <=, not {op!r}")
        if type(key) is not bytes:
            raise TypeError(f"a key is bytes, not {type(key).__name__}")
        self._somewhere = False
        if self.rax.count == 0:
            return False
        if op == "^" or op == "$":
            key = b""
        matched = self._go_to(key)
        if op == "$":
            self._go_last()
            found = True
        elif matched == len(key) and self.rax._split == 0 and self._is_key() and op not in "<>":
            found = True
        elif op == "=":
            found = False
        elif op[0] == "<":
            found = self._go_below(key, matched)
        else:
            found = self._go_above(key, matched)
        self._fresh = found
        return self._arrive(found)

    def next(self) -> bool:
        """Go to the next key; False at the end."""
        if not self._somewhere:
            return False
        if self._version != self.rax.version:
            return self._resume(">=" if self._fresh else ">")
        if self._fresh:
            self._fresh = False
            return True
        return self._arrive(self._go_on(True))

    def previous(self) -> bool:
        """Go to the previous key; False at the start."""
        if not self._somewhere:
            return False
        if self._version != self.rax.version:
            return self._resume("<=" if self._fresh else "<")
        if self._fresh:
            self._fresh = False
            return True
        return self._arrive(self._go_back())

    def random_walk(self, steps: int, generator: Generator) -> bool:
        """Go up and down at random, past `steps` keys, and stay on the last of them.

        0 steps: about twice the logarithm of the count. False in an empty tree.
        """
        if self.rax.count == 0:
            return self._arrive(False)
        if not self._somewhere or self._version != self.rax.version:
            self._go_to(b"")
        if steps <= 0:
            steps = 1 + generator.randrange(2 * int(self.rax.count).bit_length())
        while steps > 0 or not self._is_key():
            children = self._children()
            choices = children + (self._trail.depth > 0)
            if choices == 0:
                break  # the empty key is all there is
            choice = generator.randrange(choices)
            if choice == children:
                self._leave()
            else:
                self._enter(choice)
            if self._is_key():
                steps -= 1
        self._fresh = False
        return self._arrive(True)

    def _resume(self, op: str) -> bool:
        found = self.seek(op, self.key)
        self._fresh = False
        return found

    def _arrive(self, found: bool) -> bool:
        self._somewhere = found
        if found:
            slot = self._here - _LEAF if self._here >= _LEAF else self.rax._slot(self._here)
            self.key = memory.cut(self._path, 0, self._size)
            self.value = None if slot == _NO_VALUE else self.rax.values[slot]
        return found

    def _is_key(self) -> bool:
        return self._here >= _LEAF or self.rax._slot(self._here) >= 0

    def _children(self) -> int:
        if self._here >= _LEAF:
            return 0
        header = memory.load32(self.rax.heap, 4 * self._here)
        return 1 if header & _COMPRESSED else header >> 3

    def _go_to(self, key: bytes) -> int:
        """Go to where the key's walk ends; return how many bytes matched."""
        self._version = self.rax.version
        self._trail.depth = 0
        matched = self.rax._walk(key, self._trail)
        self._here = self.rax._stop
        self._size = matched
        if self._here < _LEAF and memory.load32(self.rax.heap, 4 * self._here) & _COMPRESSED:
            self._size -= self.rax._split
        if len(self._path) < len(key):
            self._path = bytearray(len(key))
        memory.put(self._path, 0, key)
        return matched

    def _go_above(self, key: bytes, matched: int) -> bool:
        """From where the key's walk ended, go to the first key above it."""
        split = self.rax._split
        if matched == len(key):
            return self._go_on(True)
        if self._here >= _LEAF:
            return self._go_on(False)
        at = 4 * self._here
        header = memory.load32(self.rax.heap, at)
        if header & _COMPRESSED:
            return self._go_on(self.rax.heap[at + 4 + split] > key[matched])
        if split == header >> 3:
            return self._go_on(False)
        self._enter(split)
        return self._is_key() or self._go_on(True)

    def _go_below(self, key: bytes, matched: int) -> bool:
        """From where the key's walk ended, go to the last key below it."""
        split = self.rax._split
        if matched == len(key) and split == 0:
            return self._go_back()
        if self._here >= _LEAF:
            return True
        at = 4 * self._here
        if not memory.load32(self.rax.heap, at) & _COMPRESSED:
            if split > 0:
                self._enter(split - 1)
                self._go_last()
                return True
        elif matched < len(key) and self.rax.heap[at + 4 + split] < key[matched]:
            self._go_last()
            return True
        return self._is_key() or self._go_back()

    def _go_on(self, into: bool) -> bool:
        """Go to the next key: under this node if `into`, else behind all that is under it."""
        while True:
            if into and self._here < _LEAF:
                self._enter(0)
            elif not self._go_aside():
                return False
            into = True
            if self._is_key():
                return True

    def _go_aside(self) -> bool:
        """Go to the next child of the lowest node above that has one; False if none has."""
        trail = self._trail
        heap = self.rax.heap
        while trail.depth > 0:
            frame = 8 * trail.depth - 8
            at = 4 * memory.load32(trail.frames, frame)
            header = memory.load32(heap, at)
            size = header >> 3
            if header & _COMPRESSED:
                self._size -= size
            else:
                index = memory.load32(trail.frames, frame + 4) + 1
                if index < size:
                    memory.store32(trail.frames, frame + 4, index)
                    self._path[self._size - 1] = heap[at + 4 + index]
                    self._here = memory.load32(heap, at + 4 + (size + 3 & -4) + 4 * index)
                    if self.on_node is not None:
                        self._tell()
                    return True
                self._size -= 1
            trail.depth -= 1
        return False

    def _go_back(self) -> bool:
        """Go to the previous key: the last one under the sibling before, or the parent."""
        while self._trail.depth > 0:
            index = self._leave()
            if index > 0:
                self._enter(index - 1)
                self._go_last()
                return True
            if self._is_key():
                return True
        return False

    def _go_last(self) -> None:
        while self._here < _LEAF:
            self._enter(self._children() - 1)

    def _enter(self, index: int) -> None:
        """Go down to a child."""
        heap = self.rax.heap
        at = 4 * self._here
        header = memory.load32(heap, at)
        size = header >> 3
        first = at + 4
        links = rax_heap.links_of(at, size)
        if not header & _COMPRESSED:
            first += index
            size = 1
        if len(self._path) < self._size + size:
            self._path += bytes(self._size + size)
        memory.copy(self._path, self._size, heap, first, size)
        self._size += size
        self._trail.push(self._here, index)
        self._here = memory.load32(heap, links + 4 * index)
        if self.on_node is not None:
            self._tell()

    def _leave(self) -> int:
        """Go up to the parent; return which of its children this was."""
        trail = self._trail
        trail.depth -= 1
        self._here = memory.load32(trail.frames, 8 * trail.depth)
        header = memory.load32(self.rax.heap, 4 * self._here)
        self._size -= header >> 3 if header & _COMPRESSED else 1
        return memory.load32(trail.frames, 8 * trail.depth + 4)

    def _tell(self) -> None:
        from penstock.core import rax_view

        edge = self._path[self._size - 1]
        self.on_node(rax_view.node(self.rax, self._here, self._trail.depth, edge))  # type: ignore[misc]
        if self.rax.version != self._version:
            raise RuntimeError("on_node has changed the tree")


def _find_child(heap: bytearray, at: int, size: int, char: int) -> int:
    """Find a character among `size` sorted ones; -1 - its place if it is missing."""
    # Of 256 characters all but `size` are missing: so it stands at most that far before its own number,
    # and never behind it. Ids are dense, filled from the front and emptied from the front too: it is at
    # one end of that range nearly always.
    high = min(char, size - 1)
    found = heap[at + high]
    if found <= char:
        return high if found == char else -1 - size
    low = max(char + size - 256, 0)
    while low < high:
        if heap[at + low] == char:
            return low
        middle = (low + high) >> 1
        if heap[at + middle] < char:
            low = middle + 1
        else:
            high = middle
    return low if heap[at + low] == char else -1 - low
