r"""Rax: a sorted map from byte strings to objects that stores common prefixes once.

A trie spends a node on every character. A rax puts a run of characters without a fork into one
*compressed* node. `draw()` shows `foo`, `foobar` and `footer` like this; a star marks a key:

    "foo" -> [bt]*                         quoted: a compressed node, several characters and one child
             |-(b) "ar" -> []*             in brackets: a branching node, one child per character
             `-(t) "er" -> []*             empty: a leaf

A node stands for the characters that lead *to* it. The star at [bt] is `foo`; b and t belong to its
children. A new key whose walk ends at a node or between nodes is added there. A key that ends inside a
compressed node splits it (see "Splitting" below).

Removing a key cuts its branch up to the next key or fork; a chain of only children becomes one node again.

heap.py describes how nodes are stored. Here a link is a number: below LEAF it is a node, from LEAF on a
leaf, which has no node of its own, and BARE is the head of an empty tree. `at` and `link_at` are byte
positions in the heap.

Invariants
  R1  count is the number of keys. node_count is the number of nodes as Redis counts them: a leaf is one
      although it takes no block, and an empty tree has one, its head.
  R2  the characters of a branching node strictly increase.
  R3  a compressed node has at least two characters, and no node more than characters_max.
  R4  there are no dead branches: a node without children is a key, except the head of an empty tree.
  R5  no chain is left uncompressed: an only child is a key, a fork or a leaf. (Not once the tree has held
      a key longer than characters_max, which takes several nodes in a row, as in Redis.)
  R6, R7  see heap.py.

By R5 the keys alone determine the shape. In Redis it depends on history: a compressed node that stops
being a key, and a key that is left with one child, are not joined with their neighbours (redis issue 7429,
antirez/rax pull request 21). That needs a key which is a prefix of another key. Stream ids never are: for
them shape and counts equal those of Redis.

Cost: find, insert and remove are O(length of the key). In a fork they look at one character if ids are
dense, and at up to nine if not. An iterator step is O(1) on average. Nothing is recursive, because a chain
of nodes can be as deep as a key is long.

Rejected: Redis's linear scan of a fork (see `_find_child`), and its stack of parent nodes. A removal only
needs the last key or fork on the way down and where the chains begin: the walk keeps those in five numbers.
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

_KEY = KEY  # copies for C, see tree.pxd
_COMPRESSED = COMPRESSED
_LEAF = LEAF
_NO_VALUE = NO_VALUE
_BARE = BARE


class Generator(Protocol):
    """The part of random.Random that a random walk uses."""

    def randrange(self, stop: int, /) -> int: ...


class Rax(NodeHeap):
    """A sorted map from bytes to objects.

    Keys: find, insert, try_insert, remove, pop, clear. In order: iterator. Inspection: walk, nodes, draw,
    check, memory_bytes.
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

    def find(self, key: bytes, default: Any = None) -> Any:
        """Return the key's value, or `default`. It is Any: a cdef class cannot be generic."""
        return self._value(self._slot(self._stop)) if self._locate(key) else default

    def insert(self, key: bytes, value: Any) -> bool:
        """Set the key's value; return whether the key is new."""
        if self._locate(key):
            self._replace(value)
            return False
        self._add(key, value)
        return True

    def try_insert(self, key: bytes, value: Any) -> bool:
        """Insert the key unless it exists; return whether it is new."""
        if self._locate(key):
            return False
        self._add(key, value)
        return True

    def remove(self, key: bytes) -> bool:
        """Remove the key; return whether it existed."""
        if not self._locate(key):
            return False
        self._detach()
        return True

    def pop(self, key: bytes, default: Any = None) -> Any:
        """Remove the key and return its value, or `default` if it does not exist."""
        return self._detach() if self._locate(key) else default

    def clear(self) -> None:
        """Remove all keys and free the memory."""
        self._empty()

    def iterator(self) -> RaxIterator:
        """Return an iterator without a position; call its seek() first."""
        return RaxIterator(self)

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Yield all keys with their values, in order. The tree must not change meanwhile."""
        found = self.iterator()
        found.seek("^")
        while found.next():
            yield found.key, found.value

    def memory_bytes(self) -> int:
        """Count the bytes of the heap and of the list of values, without the values themselves."""
        parts = (self.heap, self.free, self.values, self.free_slots, *self.doomed)
        return sum(sys.getsizeof(part) for part in parts if part)

    def walk(self, key: bytes) -> Walk:
        """Follow the key and return where it ends."""
        trail = Trail()
        self._walk(key, trail)
        return rax_view.walk(self, trail)

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes, parents before children."""
        return rax_view.nodes(self)

    def draw(self) -> str:
        """Draw the tree as in the essay above."""
        return rax_view.draw(self)

    def check(self) -> None:
        """Raise InvariantBroken, with the invariant's number, if an invariant does not hold."""
        rax_view.check(self)

    # Walking down.

    def _locate(self, key: bytes) -> bool:
        """Walk to the key; return whether it exists."""
        self._walk(key, None)
        return self._matched == len(key) and self._split == 0 and self._slot(self._stop) >= 0

    def _walk(self, key: bytes, trail: Trail | None) -> None:
        """Follow the key down and store the result in attributes:

        _matched                    the number of key bytes that matched
        _stop, _link_at             the link at which the walk ended, and where the heap stores it
        _split                      in a compressed node the number of characters that matched, in a branching
                                    node the index that a child for the next byte would get, else 0
        _run                        where the link is stored that starts the chain through the stop node
        _branch_at, _branch_index   where the link to the lowest key or fork above is stored (-1: none), and
        _branch_run                 the child taken there; where the chain of that node starts
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

    # Adding a key: the walk has shown that it is missing, and where it belongs.

    def _add(self, key: bytes, value: Any) -> None:
        """Add a key that _locate did not find."""
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
        """Set the value of the key that _locate found."""
        slot = self._slot(self._stop)
        self.version += 1  # an iterator may have read the old value
        if slot != _NO_VALUE and value is not None:
            self.values[slot] = value
        elif slot != _NO_VALUE or value is not None:
            self._reserve(self._cells(self._stop) + 1)
            self._reserve_release()
            replaced = self._release(slot)
            self._set_slot(self._link_at, self._keep(value))
            del replaced  # only now: its destructor may use the tree

    # Splitting. The walk ended inside the compressed node `at`, after `before` matching characters. Its
    # pieces become new nodes; the link to `at` then leads to the first of them, and its block is freed.
    #
    #      "annibale" -> child      before = 4:  |a n n i|b|a l e|   after = 3
    #
    # The key differs:   annis         "anni" -> [bs]            front, fork, tail; the fork's characters are
    #                                            |-(b) "ale"     sorted, and so are its links
    #                                            `-(s) []*
    #      before = 0:   b             [ab]                      no front: if the old node was a key, the fork
    #                                  |-(a) "nnibale"           takes over its slot
    #                                  `-(b) []*
    #      after = 0:    annibali      "annibal" -> [ei]         no tail: the fork links to the old child
    # The key ends:      anni          "anni" -> "bale"*         front and tail; the tail is the new key
    #
    # A compressed node has at least two characters (R3), so a fork always has a front or a tail beside it. A
    # piece of one character becomes a branching node, [a] and not "a"; `_single` does that.

    def _split_where_they_differ(self, key: bytes, slot: int) -> None:
        """Put a fork where the stop node's character differs from the key's."""
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
        """Cut the stop node in two; the second half is the new key."""
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
        """Remove the key that _locate found; return its value."""
        slot = self._slot(self._stop)
        value = self._value(slot)
        is_last = self._stop >= _LEAF and self._branch_at < 0
        if is_last and not self._is_small():
            self._empty()
            return value
        self._reserve_release()
        self.version += 1
        if is_last:
            self._reset()
            return self._release(slot)
        chain_at = self._run
        if self._stop >= _LEAF:
            self._prune()
            chain_at = self._branch_run
        else:
            self._reserve(self._cells(self._stop))
            self._set_slot(self._link_at, -1)
        self._release(slot)
        self.count -= 1
        self._compress(chain_at)
        self._tidy()
        return value

    def _empty(self) -> None:
        """Remove all keys and free the memory."""
        doomed = self.values  # destructors may use the tree: they run after it has become empty
        self.version += 1
        self._drop()
        del doomed

    def _prune(self) -> None:
        """Cut off the branch that leads only to the stop leaf."""
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
    """A position in a tree, with steps to the next and the previous key.

    `key` and `value` are those of the current element, as they were on arrival. The tree may change between
    steps: the next step then looks for the remembered key again and goes to the first key after (or before)
    it. An iterator that ran off an end has no position until the next seek. `on_node` is called with every
    node entered while moving, and must not change the tree.
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
        self._size = 0  # and their number
        self._here = _BARE  # a link
        self._somewhere = False
        self._fresh = False  # just found by seek: the next step stays
        self._version = 0

    def seek(self, op: str, key: bytes = b"") -> bool:
        """Find the element that `op` asks for; the next step in either direction returns it.

        `^` the first, `$` the last; `=`, `>`, `>=`, `<`, `<=` compared with `key`. False if there is none.
        """
        if op not in ("^", "$", "=", ">", ">=", "<", "<="):
            raise ValueError(f"seek takes ^ $ = > >= < <=, not {op!r}")
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
        """Move up and down at random, past `steps` keys, and stay on the last of them.

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
                break  # the empty key is the only one
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
        """Tell whether the last walk ended at a node for exactly this key."""
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
        """Go to the next key: below this node, else after it."""
        while True:
            if self._here < _LEAF:
                self._enter(0)
            elif not self._go_aside():
                return False
            if self._is_key():
                return True

    def _go_past(self) -> bool:
        """Go to the next key that is not below this node."""
        return self._go_aside() and (self._is_key() or self._go_on())

    def _go_aside(self) -> bool:
        """Go to the next child of the lowest ancestor that has one; False if none has."""
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
        """Go to the previous key: the last one below the previous sibling, or the parent."""
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
        """Go up to the parent; return the index of the child left."""
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
    """Find a character among `size` sorted ones; -1 - its index if it is missing."""
    # At most 256 - size characters are missing before it, so its index is between char - (256 - size) and
    # char. Ids are dense, and are added and removed in order: it is nearly always at one end of that range.
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
