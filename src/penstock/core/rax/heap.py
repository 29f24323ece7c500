r"""The memory of a rax: where nodes and values are stored, how blocks are allocated and freed.

Nodes are not Python objects. They are ranges of one growing bytearray, the heap, cut into cells of four
bytes. A link is a cell number, so 31 bits reach 8 GiB:

    cell 0   link to the head
    node     +------------------------+-------------+-------------+-------------------+
             | bits: key, null,       | characters, | links: one, | slot of the value |
             | compressed; size (29)  | padded to 4 | or one each | if key, not null  |
             +------------------------+-------------+-------------+-------------------+

    "foo" -> [bt]* from the docstring of tree.py, with the key's value in slot 0:

             1c 00 00 00 | 66 6f 6f 00 | link to [bt]                           compressed, size 3
             11 00 00 00 | 62 74 00 00 | link to "ar", link to "er" | 00 00 00 00        key, size 2

A compressed node has one child whatever its size; a branching node has one child per character, and is
called a fork if it has two or more. A leaf has neither characters nor links, so it needs no node: bit 31
of the link marks it, and the other bits are the slot of its value in the list `values`. So an id among its
neighbours costs 1 byte for its character, 4 for its link and 8 in the list. An object per node would cost
60 bytes and more, give the garbage collector a million objects to scan, and overflow the C stack when a
long chain is freed.

A node that grows or shrinks moves to a block of another size. Blocks have 1, 2, ... 64 cells, then 32 sizes
per doubling (a full fork of 256 wastes 28 bytes of 1312). Each size has a list of free blocks, linked through
their first cell. The numbers of free slots are on a stack of their own. When two thirds of the heap or of the
list are free and few enough keys are left, everything is copied to new ones, so that the memory of a million
removed keys is returned. A tree with more keys than that keeps its free memory for the keys to come,
because a copy of 300,000 keys would stop a server for 20 ms. What a copy leaves behind is freed in parts, by
the changes that follow. A tree that becomes empty keeps a small heap and list for the next keys: a stream
whose entries are deleted as they are read empties its tree each time.

Invariants
  R6  every cell below `top` belongs to the head's link, to one node's block, or to one free block; `live`
      counts the cells of nodes.
  R7  every slot of `values` belongs to one key, or is free: then it holds None, and its number is among the
      first `slots_free` numbers of the stack `free_slots`.

Cost: taking or freeing a block is O(1), changing a node O(its size). A copy takes 20 to 60 ns per key, of at
most COPY_KEYS_MAX keys. `_reserve` and `_reserve_release` run before every change and are the only
steps that can fail: so a change happens completely or not at all.

Rejected: joining free neighbours, as an allocator would. In a tree that grows in order the nodes pass
through the same sizes one after another and reuse each other's blocks. The copy handles all other cases.
"""

from __future__ import annotations

from typing import Any

from penstock.core import memory

KEY = 1  # header bits
NULL = 2
COMPRESSED = 4
CHARACTERS_MAX = 2**29 - 1  # the largest size that fits the header
LEAF = 2**31  # a link to a leaf; below it, a link to a node
NO_VALUE = LEAF - 1  # slot of a key whose value is None
BARE = LEAF + LEAF - 2  # the head of an empty tree: neither key nor children
HEAP_CELLS_MAX = 2**31  # leaves are fewer than cells, so a slot always fits beside the tag
TIDY_CELLS_MIN = 16384  # 64 KiB: below this, free memory is not worth a copy
TIDY_SLOTS_MIN = 8192
COPY_KEYS_MAX = 16384  # one copy takes two milliseconds at most
SHED_MAX = (
    2048  # slots freed by one change: 2 us; a command may make a hundred changes to two trees
)

_KEY = KEY  # copies for C, see heap.pxd
_NULL = NULL
_COMPRESSED = COMPRESSED
_LEAF = LEAF
_NO_VALUE = NO_VALUE
_BARE = BARE
_HEAP_CELLS_MAX = HEAP_CELLS_MAX
_SPARE_CELLS_MAX = 256  # what an empty tree keeps: the memory of about 30 keys
_SPARE_SLOTS_MAX = 64
_TIDY_CELLS_MIN = TIDY_CELLS_MIN
_TIDY_SLOTS_MIN = TIDY_SLOTS_MIN
_COPY_KEYS_MAX = COPY_KEYS_MAX
_SHED_MAX = SHED_MAX
_LISTS_AT_ONCE = 32

# Empty trees share these and never write to them: every stream and every group has one.
_NO_BYTES = bytearray()
_NO_VALUES: list[Any] = []


class Trail:
    """The nodes on the way down, and the child taken in each."""

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


class NodeHeap:
    """Nodes, links and values of one tree. Rax gives them their meaning."""

    __slots__ = (
        "characters_max",
        "count",
        "doomed",
        "free",
        "free_slots",
        "heap",
        "live",
        "node_count",
        "slots_free",
        "top",
        "values",
    )

    def __init__(self, characters_max: int) -> None:
        self.characters_max = characters_max
        self.heap = _NO_BYTES
        self._drop()

    # Nodes: `at` is a byte position in the heap, `link_at` the position of a link.

    def _slot(self, link: int) -> int:
        """The slot of the value of the key at this link; -1 if it is not a key."""
        if link >= _LEAF:
            return link - _LEAF if link != _BARE else -1
        header = memory.load32(self.heap, 4 * link)
        if not header & _KEY:
            return -1
        if header & _NULL:
            return _NO_VALUE
        return memory.load32(self.heap, 4 * (link + cells_of(header)) - 4)

    def _cells(self, link: int) -> int:
        """The number of cells that the node at this link needs."""
        return cells_of(memory.load32(self.heap, 4 * link)) if link < _LEAF else 0

    def _node(self, header: int, slot: int) -> int:
        """Make a node; `slot` is its value as a key (-1: not a key). Characters and links come later."""
        header |= _key_bits(slot)
        cells = cells_of(header)
        at = self._take(cells)
        memory.store32(self.heap, at, header)
        if slot >= 0 and slot != _NO_VALUE:
            memory.store32(self.heap, at + 4 * cells - 4, slot)
        return at

    def _single(self, size: int, slot: int, child: int) -> int:
        """Make a node with one child; its characters come later."""
        at = self._node(size << 3 | (_COMPRESSED if size > 1 else 0), slot)
        memory.store32(self.heap, links_of(at, size), child)
        return at

    def _move_to_fit(self, link_at: int, before: int, after: int) -> int:
        """Give the node another block if `after` cells need one; the contents are not copied.

        They stay readable in the old block until the next block is taken, except the header.
        """
        at = 4 * memory.load32(self.heap, link_at)
        if block_cells(before) == block_cells(after):
            return at
        place = self._take(after)
        self._give(at, before)
        memory.store32(self.heap, link_at, place >> 2)
        return place

    def _set_slot(self, link_at: int, slot: int) -> None:
        """Set the slot of a node or a leaf; -1 makes a node stop being a key."""
        if memory.load32(self.heap, link_at) >= _LEAF:
            memory.store32(self.heap, link_at, _LEAF + slot)
        else:
            self._set_slot_of_node(link_at, slot)

    def _set_slot_of_node(self, link_at: int, slot: int) -> None:
        heap = self.heap
        at = 4 * memory.load32(heap, link_at)
        header = memory.load32(heap, at)
        before = cells_of(header)
        header = header >> 2 << 2 | _key_bits(slot)
        after = cells_of(header)
        place = self._move_to_fit(link_at, before, after)
        if place != at:
            memory.move(heap, place + 4, at + 4, 4 * min(before, after) - 4)
        memory.store32(heap, place, header)
        if slot >= 0 and slot != _NO_VALUE:
            memory.store32(heap, place + 4 * after - 4, slot)

    def _add_child(self, link_at: int, index: int, char: int, child: int) -> None:
        """Add a child at `index` to a branching node."""
        heap = self.heap
        at = 4 * memory.load32(heap, link_at)
        header = memory.load32(heap, at)
        size = header >> 3
        cells = cells_of(header)
        links = links_of(at, size)
        words = cells - (links - at >> 2)  # the links, and the slot if there is one
        place = self._move_to_fit(link_at, cells, cells_of(header + 8))
        new_links = links_of(place, size + 1)
        # From the back to the front: in place, everything moves towards the end.
        memory.move(heap, new_links + 4 * index + 4, links + 4 * index, 4 * (words - index))
        if new_links != links:
            memory.move(heap, new_links, links, 4 * index)
        memory.move(heap, place + 4 + index + 1, at + 4 + index, size - index)
        if place != at:
            memory.move(heap, place + 4, at + 4, index)
        memory.store32(heap, place, header + 8)
        memory.store32(heap, new_links + 4 * index, child)
        heap[place + 4 + index] = char
        self.node_count += 1

    def _remove_child(self, link_at: int, index: int) -> None:
        """Remove a child from a node that has others."""
        heap = self.heap
        at = 4 * memory.load32(heap, link_at)
        header = memory.load32(heap, at)
        size = header >> 3
        cells = cells_of(header)
        links = links_of(at, size)
        words = cells - (links - at >> 2)
        place = self._move_to_fit(link_at, cells, cells_of(header - 8))
        new_links = links_of(place, size - 1)
        # From the front to the back: in place, everything moves towards the start.
        memory.store32(heap, place, header - 8)
        if place != at:
            memory.move(heap, place + 4, at + 4, index)
        memory.move(heap, place + 4 + index, at + 4 + index + 1, size - index - 1)
        if new_links != links:
            memory.move(heap, new_links, links, 4 * index)
        memory.move(heap, new_links + 4 * index, links + 4 * index + 4, 4 * (words - index - 1))

    # Nodes in a row.

    def _chain(self, key: bytes, start: int, slot: int, tip: int) -> int:
        """Build the nodes for the key from `start` on, down to the link `tip`; return the link to the first.

        `slot` is the first node's value as a key (-1: not a key).
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

    def _compress(self, link_at: int) -> None:
        """Join a node with one child and the nodes below it that are neither key nor fork into one node.

        Does nothing at a fork, or if there is nothing to join.
        """
        heap = self.heap
        link = memory.load32(heap, link_at)
        size = nodes = 0
        while link < _LEAF:
            header = memory.load32(heap, 4 * link)
            fork = header >> 3 > 1 and not header & _COMPRESSED
            if fork or (nodes and header & _KEY) or size + (header >> 3) > self.characters_max:
                break
            size += header >> 3
            nodes += 1
            link = memory.load32(heap, links_of(4 * link, header >> 3))
        if nodes > 1:
            self._merge(link_at, nodes, size, link)

    def _merge(self, link_at: int, nodes: int, size: int, tip: int) -> None:
        """Join `nodes` nodes in a row, with `size` characters together and ending at `tip`, into one."""
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
            link = memory.load32(heap, links_of(4 * first, header >> 3))
            self._give(4 * first, cells_of(header))
            first = link
            nodes -= 1

    # Memory: blocks of the heap, slots of the list.

    def _drop(self) -> None:
        """Reset the tree to empty."""
        self.count = 0
        self.node_count = 1  # the head
        self.free = _NO_BYTES
        self.doomed: list[Any] = _NO_VALUES  # the old heap and list, after a copy
        self.heap = _NO_BYTES
        self.values: list[Any] = _NO_VALUES
        self.free_slots = _NO_BYTES
        self.top = self.live = self.slots_free = 0

    def _is_small(self) -> bool:
        """Tell whether the tree keeps its heap and list when it becomes empty."""
        return (
            self.top <= _SPARE_CELLS_MAX
            and len(self.values) <= _SPARE_SLOTS_MAX
            and not self.doomed  # nothing would free it any more
        )

    def _reset(self) -> None:
        """The last key is gone and its slot is released: free all blocks, keep the memory."""
        if self.live + 1 != self.top:  # there are free blocks
            for place in range(0, len(self.free), 8):
                memory.store64(self.free, place, 0)
        memory.store32(self.heap, 0, _BARE)
        self.count = 0
        self.node_count = 1  # the head
        self.top = 1
        self.live = 0

    def _start(self) -> None:
        """Allocate heap and list before the first key."""
        self.heap = bytearray(4)
        memory.store32(self.heap, 0, _BARE)
        self.values = []
        self.top = 1

    def _reserve(self, cells: int) -> None:
        """Make sure that a few blocks, `cells` cells together, can be taken.

        Raises: MemoryError when the heap would pass 8 GiB.
        """
        cells += self.top + (cells >> 5) + 4  # blocks are rounded up
        if cells > _HEAP_CELLS_MAX:
            raise MemoryError("a rax holds at most 8 GiB of nodes")
        missing = 4 * cells - len(self.heap)
        if missing > 0:
            # A small heap doubles: an eighth of it would be used up by the next key.
            more = len(self.heap) if cells <= _SPARE_CELLS_MAX else len(self.heap) >> 3
            self.heap += bytes(max(missing, more + 32))

    def _take(self, cells: int) -> int:
        """Take a block from its free list, or from the end; return its place."""
        place = 4 * _free_list(cells)
        cells = block_cells(cells)
        self.live += cells
        if place < len(self.free):
            at = 4 * memory.load32(self.free, place)
            if at:
                memory.store32(self.free, place, memory.load32(self.heap, at))
                return at
        at = 4 * self.top
        self.top += cells
        return at

    def _give(self, at: int, cells: int) -> None:
        """Put a block on its free list."""
        place = 4 * _free_list(cells)
        if place >= len(self.free):
            lists = (place >> 2) // _LISTS_AT_ONCE * _LISTS_AT_ONCE + _LISTS_AT_ONCE
            self.free = self.free + bytes(4 * lists - len(self.free))
        memory.store32(self.heap, at, memory.load32(self.free, place))
        memory.store32(self.free, place, at >> 2)
        self.live -= block_cells(cells)

    def _keep(self, value: Any) -> int:
        """Store the value in a slot and return the slot."""
        if value is None:
            return _NO_VALUE
        if self.slots_free == 0:
            self.values.append(value)
            return len(self.values) - 1
        self.slots_free -= 1
        slot = memory.load32(self.free_slots, 4 * self.slots_free)
        self.values[slot] = value
        return slot

    def _reserve_release(self) -> None:
        """Make sure that a slot can be released."""
        if 4 * self.slots_free == len(self.free_slots):
            if self.slots_free == 0:
                self.free_slots = bytearray()  # its own
            self.free_slots += bytes((self.slots_free >> 3 << 2) + 64)

    def _release(self, slot: int) -> Any:
        """Free a slot; return its value."""
        if slot == _NO_VALUE:
            return None
        value = self.values[slot]
        self.values[slot] = None
        memory.store32(self.free_slots, 4 * self.slots_free, slot)
        self.slots_free += 1
        return value

    def _value(self, slot: int) -> Any:
        return None if slot == _NO_VALUE else self.values[slot]

    def _tidy(self) -> None:
        """Copy the tree when two thirds of the heap or of the list are free, unless it is too large.

        Cost: the copy is half the size of what was freed since the last one, so O(1) per removal.
        """
        if len(self.doomed):
            self._shed()
        slots = len(self.values)
        if self.count <= _COPY_KEYS_MAX and (
            (self.top > _TIDY_CELLS_MIN and 3 * self.live < self.top)
            or (slots > _TIDY_SLOTS_MIN and 3 * (slots - self.slots_free) < slots)
        ):
            self._copy()

    def _shed(self) -> None:
        """Free a part of what the last copy has left behind."""
        old = self.doomed[len(self.doomed) - 1]
        if type(old) is list:
            del old[max(0, len(old) - _SHED_MAX) :]
        if type(old) is not list or len(old) == 0:  # a buffer goes back to the system as a whole
            self.doomed.pop()

    def _copy(self) -> None:
        """Copy all nodes to a new heap and all values to a new list.

        The new heap is its own queue: nodes are copied when a link to them is found, and then the links of
        the copies are followed (Cheney's algorithm, which needs no stack).
        """
        values: list[Any] = []
        old = self.heap
        heap = bytearray(4 * (self.live + (self.live >> 3) + 1))
        memory.store32(heap, 0, memory.load32(old, 0))
        top = 1
        scan = link_at = 0
        links = 1
        while True:
            for _ in range(links):
                link = memory.load32(heap, link_at)
                if link < _LEAF:
                    cells = cells_of(memory.load32(old, 4 * link))
                    memory.copy(heap, 4 * top, old, 4 * link, 4 * cells)
                    memory.store32(heap, link_at, top)
                    top += block_cells(cells)
                elif link < _BARE:
                    memory.store32(heap, link_at, _LEAF + len(values))
                    values.append(self.values[link - _LEAF])
                link_at += 4
            scan += block_cells(cells_of(memory.load32(heap, 4 * scan))) if scan else 1
            if scan == top:
                break
            header = memory.load32(heap, 4 * scan)
            link_at = links_of(4 * scan, header >> 3)
            links = 1 if header & _COMPRESSED else header >> 3
            if header & (_KEY | _NULL) == _KEY:
                slot = memory.load32(heap, link_at + 4 * links)
                memory.store32(heap, link_at + 4 * links, len(values))
                values.append(self.values[slot])
        self.doomed = [old, self.free_slots, self.values]
        self.heap = heap
        self.values = values
        self.free = _NO_BYTES
        self.top = top
        self.free_slots = _NO_BYTES
        self.slots_free = 0


def _key_bits(slot: int) -> int:
    if slot < 0:
        return 0
    return _KEY | _NULL if slot == _NO_VALUE else _KEY


def cells_of(header: int) -> int:
    """The number of cells a node needs."""
    size = header >> 3
    links = 1 if header & _COMPRESSED else size
    return 1 + (size + 3 >> 2) + links + (1 if header & (_KEY | _NULL) == _KEY else 0)


def links_of(at: int, size: int) -> int:
    """The position of a node's first link."""
    return at + 4 + (size + 3 & -4)


def _free_list(cells: int) -> int:
    """The free list for blocks of this size."""
    shift = 0
    while (cells - 1) >> shift >= 64:
        shift += 1
    return 32 * shift + ((cells - 1) >> shift)


def block_cells(cells: int) -> int:
    """The size of the block that holds this many cells."""
    shift = 0
    while (cells - 1) >> shift >= 64:
        shift += 1
    return (((cells - 1) >> shift) + 1) << shift
