r"""Rax: a sorted map from byte strings to objects, in which common beginnings are stored once.

A trie spends a node on every character. A rax writes a run of characters without a fork into one
*compressed* node. `draw()` shows `foo`, `foobar` and `footer` like this; a star marks a key:

    "foo" -> [bt]*                         quoted: a compressed node, several characters and one child
             |-(b) "ar" -> []*             in brackets: a branching node, a child for each character
             `-(t) "er" -> []*             empty: a leaf

A node stands for the characters that lead *to* it. The star at [bt] is `foo`; b and t belong to its
children. A key whose walk ends at a node or between nodes is hung there. One that ends inside a compressed
node splits it:

    "annibale" -> []*                      before

    "anni" -> [bs]                         with `annis`: they differ at a character, which becomes a fork
              |-(b) "ale" -> []*
              `-(s) []*
    "anni" -> "bale"* -> []*               with `anni`: it ends between two characters
    [ab]                                   with `b`: nothing before the fork, and no node for nothing
    |-(a) "nnibale" -> []*
    `-(b) []*

Removing a key cuts the branch that nobody else needs, up to the next key or fork; then what has become a
chain of only children is one compressed node again.

How nodes lie in memory is told in heap.py. Here a link is a number: below LEAF a node, from LEAF on a
leaf, which has no node of its own, and BARE for the head of an empty tree. `at` and `link_at` are places
in the heap, in bytes.

Invariants
  R1  count is the number of keys. node_count is the number of nodes as Redis counts them: a leaf is one
      although it takes no block, and an empty tree has one, its head.
  R2  the characters of a branching node strictly increase.
  R3  a compressed node has at least two characters, and no node more than characters_max.
  R4  there are no dead branches: what has no child is a key, but for the head of an empty tree.
  R5  no chain is left uncompressed: an only child is a key, a fork or a leaf. (Not so once the tree has
      held a key of more than characters_max, which takes several nodes in a row, as in Redis.)
  R6, R7  see heap.py.

By R5 the keys alone determine the shape. In Redis it depends on history: a compressed node that stops
being a key, and a key that is left with one child, are not joined with their neighbours (redis issue 7429,
antirez/rax pull request 21). That takes a key which is the beginning of another. Ids are none: for them
shape and counts are those of Redis.

Cost: find, insert and remove are O(length of the key); in a fork they look at one character when ids are
dense, at up to nine when not. A step of an iterator is O(1) on average. Nothing is recursive, for a chain
of nodes may be as deep as a key is long.

Rejected: Redis's linear scan of a fork (see `_find_child`), and its stack of the nodes above. All that a
removal wants to know of the way down is the last key or fork and where the chains begin: the walk keeps
those in five numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from penstock.core import memory
from penstock.core.rax import heap as rax_heap
from penstock.core.rax import view as rax_view
from penstock.core.rax.heap import (
    BARE,
    CHARACTERS_MAX,
    COMPRESSED,
    KEY,
    LEAF,
    NO_VALUE,
    NodeHeap,
    Trail,
)
from penstock.core.rax.view import Node, Walk

_KEY = KEY  # C twins, see tree.pxd
_COMPRESSED = COMPRESSED
_LEAF = LEAF
_NO_VALUE = NO_VALUE
_BARE = BARE


class Generator(Protocol):
    """What a random walk needs of random.Random."""

    def randrange(self, stop: int, /) -> int: ...


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
        "_matched",
        "_run",
        "_split",
        "_stop",
        "chained",
        "version",
    )

    def __init__(self, characters_max: int = CHARACTERS_MAX) -> None:
        super().__init__(characters_max)
        self.chained = False
        self.version = 0

    def __len__(self) -> int:
        return self.count

    def __contains__(self, key: bytes) -> bool:
        return self._locate(key)

    # Values are Any: a cdef class cannot be generic, and its users know what they put in.

    def find(self, key: bytes, default: Any = None) -> Any:
        """Return the key's value, or `default`."""
        return self._value(self._slot(self._stop)) if self._locate(key) else default

    def insert(self, key: bytes, value: Any) -> bool:
        """Set the key's value; tell whether the key is new."""
        if self._locate(key):
            self._replace(value)
            return False
        self._add(key, value)
        return True

    def try_insert(self, key: bytes, value: Any) -> bool:
        """Insert the key unless it is there; tell whether it is new."""
        if self._locate(key):
            return False
        self._add(key, value)
        return True

    def remove(self, key: bytes) -> bool:
        """Remove the key; tell whether it was there."""
        if not self._locate(key):
            return False
        self._detach()
        return True

    def pop(self, key: bytes, default: Any = None) -> Any:
        """Remove the key and return its value; `default` if it is not there."""
        return self._detach() if self._locate(key) else default

    def clear(self) -> None:
        """Remove all keys and give the memory back."""
        self._empty(True)

    def iterator(self) -> RaxIterator:
        """Make an iterator, which is nowhere until it seeks."""
        return RaxIterator(self)

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """All keys with their values, in order; the tree must not change meanwhile."""
        found = self.iterator()
        found.seek("^")
        while found.next():
            yield found.key, found.value

    def memory_bytes(self) -> int:
        """Count the bytes of the heap and of the list of values, not those of the values."""
        if self.top == 0:
            return sys.getsizeof(self.heap) if self.heap else 0
        return sys.getsizeof(self.heap) + sys.getsizeof(self.free) + sys.getsizeof(self.values)

    def walk(self, key: bytes) -> Walk:
        """Follow the key and tell where that ends."""
        trail = Trail()
        self._walk(key, trail)
        return rax_view.walk(self, trail)

    def nodes(self) -> Iterator[Node]:
        """Go through all nodes, parents before children."""
        return rax_view.nodes(self)

    def draw(self) -> str:
        """Draw the tree as in the essay above."""
        return rax_view.draw(self)

    def check(self) -> None:
        """Raise InvariantBroken, with the invariant's number, if the tree is not as the essays say."""
        rax_view.check(self)

    # The way down.

    def _locate(self, key: bytes) -> bool:
        """Walk to the key; tell whether it is there."""
        self._walk(key, None)
        return self._matched == len(key) and self._split == 0 and self._slot(self._stop) >= 0

    def _walk(self, key: bytes, trail: Trail | None) -> None:
        """Follow the key down, and leave in attributes what that shows:

        _matched                    how many bytes of the key led somewhere
        _stop, _link_at             the link at which the walk ended, and where in the heap it is stored
        _split                      in a compressed node how many characters matched, in a branching node
                                    which place a child for the next byte would take, else 0
        _run                        the place of the link to where a chain through the stop node begins
        _branch_at, _branch_index   the place of the link to the lowest node above that is a key or a fork
        _branch_run                 (-1: there is none), the child taken there, and where its chain begins
        """
        if type(key) is not bytes:
            raise TypeError(f"a key is bytes, not {type(key).__name__}")
        heap = self.heap
        matched = split = link_at = run = branch_index = branch_run = 0
        branch_at = -1
        link = memory.load32(heap, 0) if self.top else _BARE
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
        self._matched = matched
        self._stop = link
        self._link_at = link_at
        self._split = split
        self._run = run
        self._branch_at = branch_at
        self._branch_index = branch_index
        self._branch_run = branch_run

    # Adding a key: the walk has shown that it is missing, and where.

    def _add(self, key: bytes, value: Any) -> None:
        """Add the key that was not located."""
        if self.top == 0:
            self._start()
        rest = len(key) - self._matched
        cells = (rest >> 2) + 4
        if len(key) > self.characters_max:
            self.chained = True
            cells += 3 * (rest // self.characters_max)
        header = 0
        if self._stop < _LEAF:
            header = memory.load32(self.heap, 4 * self._stop)
            cells += rax_heap.cells_of(header) + 12
        self._reserve(cells)
        slot = self._keep(value)
        if rest == 0 and self._split == 0:
            self._set_slot(self._link_at, slot)
        elif self._stop >= _LEAF:
            link = self._chain(key, self._matched, self._slot(self._stop), _LEAF + slot)
            memory.store32(self.heap, self._link_at, link)
        elif not header & _COMPRESSED:
            link = self._chain(key, self._matched + 1, -1, _LEAF + slot)
            self._add_child(self._link_at, self._split, key[self._matched], link)
        elif rest:
            self._split_where_they_differ(key, slot)
        else:
            self._split_where_it_ends(slot)
        self.count += 1
        self.version += 1
        self._tidy()

    def _replace(self, value: Any) -> None:
        """Set the value of the key that was located."""
        slot = self._slot(self._stop)
        if slot != _NO_VALUE and value is not None:
            self.values[slot] = value
        elif slot != _NO_VALUE or value is not None:
            self._reserve(self._cells(self._stop) + 1)
            replaced = self._release(slot)
            self._set_slot(self._link_at, self._keep(value))
            self.version += 1
            del replaced  # not before: its destructor may look at the tree

    def _split_where_they_differ(self, key: bytes, slot: int) -> None:
        """Put a fork into the stop node, where its character is another than the key's."""
        heap = self.heap
        matched = self._matched
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
        self._give(at, rax_heap.cells_of(header))
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
        self._give(at, rax_heap.cells_of(header))
        memory.store32(heap, self._link_at, front >> 2)
        self.node_count += 1

    # Removing a key: the walk has shown where it is.

    def _detach(self) -> Any:
        """Remove the key that was just located; return its value."""
        slot = self._slot(self._stop)
        if self._stop >= _LEAF and self._branch_at < 0:
            value = self._value(slot)
            self._empty(False)
            return value
        chain_at = self._run
        if self._stop >= _LEAF:
            self._prune()
            chain_at = self._branch_run
        else:
            self._reserve(self._cells(self._stop))
            self._set_slot(self._link_at, -1)
        value = self._release(slot)
        self.count -= 1
        self.version += 1
        self._compress(chain_at)
        self._tidy()
        return value

    def _empty(self, give_back: bool) -> None:
        """Remove all keys; a small heap is kept for the next one unless it is to be given back."""
        doomed = self.values  # destructors may look at the tree: they run when it has become empty
        self.version += 1
        self._drop()
        if give_back:
            self.heap = bytearray()
        del doomed

    def _prune(self) -> None:
        """Cut off the branch whose only key is the stop link's leaf."""
        heap = self.heap
        at = 4 * memory.load32(heap, self._branch_at)
        header = memory.load32(heap, at)
        self._reserve(rax_heap.cells_of(header))
        link = memory.load32(heap, rax_heap.links_of(at, header >> 3) + 4 * self._branch_index)
        while link < _LEAF:
            doomed = memory.load32(heap, 4 * link)
            below = memory.load32(heap, rax_heap.links_of(4 * link, doomed >> 3))
            self._give(4 * link, rax_heap.cells_of(doomed))
            self.node_count -= 1
            link = below
        self.node_count -= 1
        if header & _COMPRESSED or header >> 3 == 1:
            memory.store32(heap, self._branch_at, _LEAF + self._slot(at >> 2))
            self._give(at, rax_heap.cells_of(header))
        else:
            self._remove_child(self._branch_at, self._branch_index)


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
        self.value: Any = None
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
        self._go_to(key)
        if op == "$":
            self._go_last()
            found = True
        elif op not in "<>" and self._is_at(key) and self._is_key():
            found = True
        elif op == "=":
            found = False
        elif op[0] == "<":
            found = self._go_below(key)
        else:
            found = self._go_above(key)
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
        return self._arrive(self._go_on())

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
            self._somewhere = False
            return False
        if not self._somewhere or self._version != self.rax.version:
            self._go_to(b"")
        if steps <= 0:
            steps = 1 + generator.randrange(2 * len(self.rax).bit_length())
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
        return self._arrive(self._is_key())

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

    def _is_at(self, key: bytes) -> bool:
        """Tell whether the walk that has just ended found a node for exactly this key."""
        return self.rax._matched == len(key) and self.rax._split == 0

    def _go_to(self, key: bytes) -> None:
        """Go to where the key's walk ends."""
        rax = self.rax
        self._version = rax.version
        self._trail.depth = 0
        rax._walk(key, self._trail)
        self._here = rax._stop
        self._size = rax._matched
        if self._here < _LEAF and memory.load32(rax.heap, 4 * self._here) & _COMPRESSED:
            self._size -= rax._split
        if len(self._path) < len(key):
            self._path = bytearray(len(key))
        memory.put(self._path, 0, key)

    def _go_above(self, key: bytes) -> bool:
        """From where the key's walk ended, go to the first key above it."""
        matched = self.rax._matched
        if matched == len(key):
            return self._go_on()
        if self._here >= _LEAF:
            return self._go_past()
        at = 4 * self._here
        split = self.rax._split
        header = memory.load32(self.rax.heap, at)
        if header & _COMPRESSED:
            is_above = self.rax.heap[at + 4 + split] > key[matched]
            return self._go_on() if is_above else self._go_past()
        if split == header >> 3:
            return self._go_past()
        self._enter(split)
        return self._is_key() or self._go_on()

    def _go_below(self, key: bytes) -> bool:
        """From where the key's walk ended, go to the last key below it."""
        if self._is_at(key):
            return self._go_back()
        if self._here >= _LEAF:
            return True
        at = 4 * self._here
        matched = self.rax._matched
        split = self.rax._split
        if not memory.load32(self.rax.heap, at) & _COMPRESSED:
            if split > 0:
                self._enter(split - 1)
                self._go_last()
                return True
        elif matched < len(key) and self.rax.heap[at + 4 + split] < key[matched]:
            self._go_last()
            return True
        return self._is_key() or self._go_back()

    def _go_on(self) -> bool:
        """Go to the next key: under this node, else behind it."""
        while True:
            if self._here < _LEAF:
                self._enter(0)
            elif not self._go_aside():
                return False
            if self._is_key():
                return True

    def _go_past(self) -> bool:
        """Go to the next key that is not under this node."""
        return self._go_aside() and (self._is_key() or self._go_on())

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
        links = first + (size + 3 & -4)
        if not header & _COMPRESSED:
            first += index
            size = 1
        if len(self._path) < self._size + size:
            self._path += bytes(self._size + size)
        memory.copy(self._path, self._size, heap, first, size)
        self._size += size
        self._trail.push(self._here, index)
        self._here = memory.load32(heap, links + 4 * index)
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
        if self.on_node is not None:
            edge = self._path[self._size - 1]
            self.on_node(rax_view.node(self.rax, self._here, self._trail.depth, edge))
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
