"""The value of a list: elements in a row of listpacks, changed at both ends.

    RPUSH l job:1 job:2 17 18           with at most two elements per node

    nodes   [ job:1 job:2 ]   [ 17 18 ]  + room          length 4
              head              tail
            12000000 0200 85"job:1"06 85"job:2"06 ff
                              0b000000 0200 1101 1201 ff

A node equals one node of Redis's quicklist, byte for byte: a snapshot is the nodes one after the other. An
element is added to the node at its end of the list, or to a new node if that is full. Elements are encoded
as in any listpack, so 17 takes two bytes, and are returned as the strings that they were.

A node is full for an element if its bytes, the element's raw bytes and eight for the encoding exceed
bytes_max, or if it has entries_max elements. A node always takes its first element: an element larger than
the limit gets a node of its own.

The two end nodes may have room after their listpack (see L1), so that a push writes into existing memory. A
full node is replaced by an exact copy, because a bytearray that has grown never shrinks. Its buffer, already
large enough, becomes the next node.

The nodes are in a plain list, the first of them at `_first`: nodes removed from the left leave a gap, and
new nodes at the left fill it.

    _nodes   [ None  None  A  B  C ]     _first 2

The gap is closed when it is more than three quarters of the list. If a new node finds no gap, one as wide as
the list is made. Both copy the list, at most once per half as many nodes.

An insert into a full node adds the element to the neighbour if it is at the edge between them. Otherwise it
splits the node, adds the element to the half without the pivot, and joins neighbours that fit into one node:

    LINSERT l AFTER c x      [ a b c d ]  [ e ]               with at most four elements per node
                             [ a b c ]  [ x d ]  [ e ]        split, added
                             [ a b c ]  [ x d e ]             joined

Invariants
  Q1  every node is a valid listpack with at least one element.
  Q2  length is the number of elements of all nodes.
  Q3  only the first and the last node have room after their listpack.
  Q4  all places before `_first` are empty, and all others hold a node.
  Q5  a node of more than one element has at most entries_max elements, and none of them is larger than
      bytes_max. If nothing was inserted or replaced, its bytes do not exceed bytes_max either. The limits
      are those at the time of the change. Loaded nodes are exempt.

Cost: a push or pop at the right end is O(bytes of the element), amortised; at the left end it also moves
the node's contents, 8 KiB by default. An index is O(nodes) from the nearer end plus a walk inside one node; a
range costs the same plus its elements; a trim O(nodes dropped) plus one node; remove, insert and positions
O(everything up to the last match); replace as an index, plus the bytes of one node.

Node boundaries equal those of Redis 7.0 after any sequence of these operations, with three exceptions. Redis
fixes the limits of a list when it is created; here they are shared and apply to the next change. Redis stores
an element of 1 GiB or more as a plain string (later versions: one larger than a node); here it is a listpack
of one element, and the snapshot loader converts it. An inserted or replaced element larger than a node gets a
node of its own, as in later versions; 7.0 adds it to an existing one, which may grow to any size.

Rejected: a deque of nodes. It takes 760 bytes before the first node, and there may be a list for every user.
A deque of elements: 49 bytes for an element of 8, where a listpack takes 10.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from penstock.core import listpack, memory, stream_node

NODE_BYTES_MAX = 8192
NODE_ENTRIES_MAX = 32767  # Redis keeps the limit in 16 bits

_HEADER_BYTES = listpack.HEADER_BYTES
_END = listpack.END
_COUNT_UNKNOWN = listpack.COUNT_UNKNOWN
_OVERHEAD_MAX = listpack.ELEMENT_OVERHEAD_MAX
_BEFORE = listpack.BEFORE
_REPLACE = listpack.REPLACE
_OVERHEAD_ESTIMATE = 8  # Redis's estimate: node boundaries depend on it
_JOIN_UNDERESTIMATE = 4  # Redis still subtracts the longer header of its former format
_KEPT_ROOM_FACTOR = 4
_SLACK_BYTES_MAX = 16  # not worth a copy
_EMPTY = listpack.new()


class ListLimits:
    """The size limits of a node. All lists of an engine share them, so a change applies to all."""

    __slots__ = ("bytes_max", "entries_max")

    def __init__(
        self, bytes_max: int = NODE_BYTES_MAX, entries_max: int = NODE_ENTRIES_MAX
    ) -> None:
        self.bytes_max = bytes_max
        self.entries_max = entries_max

    def set_listpack_size(self, size: int) -> None:
        """Set both from Redis's list-max-listpack-size: -1 to -5 mean 4 to 64 KiB, else elements.

        Numbers outside Redis's range become the nearest valid one. A limit on elements implies a limit of
        8 KiB. A limit on bytes needs no limit on elements, because every element takes two bytes or more.
        """
        if size < 0:
            self.bytes_max = 2048 << min(-size, 5)
            self.entries_max = NODE_ENTRIES_MAX
        else:
            self.bytes_max = NODE_BYTES_MAX
            self.entries_max = min(size, NODE_ENTRIES_MAX)


class ListValue:
    """Elements in order, pushed and popped at both ends.

    Add: push_left, push_right, push_piece, insert. Remove: pop_left_or_none, pop_right_or_none, remove, trim.
    Change: replace. Read: length, get_or_none, range, positions. To pop many at once: range, then trim.
    Save and restore: nodes, load_node, copy. Inspect: inside, memory_bytes.
    """

    __slots__ = ("_first", "_nodes", "length", "limits")

    def __init__(self, limits: ListLimits | None = None) -> None:
        self.limits = ListLimits() if limits is None else limits
        self._nodes: list[bytearray | None] = []
        self._first = 0
        self.length = 0

    # --- Adding ----------------------------------------------------------------------------------

    def push_left(self, data: bytes) -> None:
        """Add an element before the first. Raises: TooLarge if it fits into no node."""
        self.push_piece(bytearray(data), 0, len(data), True)

    def push_right(self, data: bytes) -> None:
        """Add an element after the last. Raises: TooLarge if it fits into no node."""
        self.push_piece(bytearray(data), 0, len(data), False)

    def push_piece(self, source: bytearray, start: int, size: int, left: bool) -> None:
        """Add a piece of a buffer (such as a frame) at one end, without copying it first."""
        listpack.check_room(_EMPTY, size + _OVERHEAD_MAX)
        if start < 0 or size < 0 or start > len(source) - size:
            raise IndexError(f"{size} bytes at {start}, in a buffer of {len(source)}")
        node = self._node_for(size, left)
        total = memory.load32(node, 0)
        if left:
            # Written after the listpack first: only then is it known how far the others must move.
            grown = listpack.put_string(node, total, source, start, size) - total
            memory.move(node, _HEADER_BYTES + grown, _HEADER_BYTES, total - _HEADER_BYTES)
            listpack.put_string(node, _HEADER_BYTES, source, start, size)
        else:
            grown = listpack.put_string(node, total - 1, source, start, size) - (total - 1)
            node[total - 1 + grown] = _END
        memory.store32(node, 0, total + grown)
        memory.store16(node, 4, memory.load16(node, 4) + 1)
        self.length += 1

    def _node_for(self, size: int, left: bool) -> bytearray:
        """The node at one end, or a new one, with room for an element of `size` raw bytes."""
        if self.length == 0:
            fresh = self._fresh(size)
            self._nodes.append(fresh)
            return fresh
        number = self._first if left else len(self._nodes) - 1
        node = self._node(number)
        total = memory.load32(node, 0)
        if (
            total + size + _OVERHEAD_ESTIMATE <= self.limits.bytes_max
            and memory.load16(node, 4) < self.limits.entries_max
        ):
            stream_node.lengthen(node, total + size + _OVERHEAD_MAX)
            return node
        return self._begin_node(node, size, left)

    def _begin_node(self, full: bytearray, size: int, left: bool) -> bytearray:
        """Seal the node at one end and add an empty one there, with room for an element."""
        # Everything that can run out of memory comes before the first change.
        sealed = _sealed(full)
        if sealed is full or len(full) > _KEPT_ROOM_FACTOR * self.limits.bytes_max:
            fresh = self._fresh(size)
        else:
            stream_node.lengthen(full, len(_EMPTY) + size + _OVERHEAD_MAX)
            fresh = full
        if left:
            if self._first == 0:
                self._open_gap()
            self._nodes[self._first] = sealed
            self._first -= 1
            self._nodes[self._first] = fresh
        else:
            self._nodes.append(fresh)
            self._nodes[len(self._nodes) - 2] = sealed
        memory.copy(fresh, 0, _EMPTY, 0, len(_EMPTY))
        return fresh

    def _fresh(self, size: int) -> bytearray:
        """An empty node with room for an element of `size` raw bytes."""
        made = listpack.new()
        stream_node.lengthen(made, len(made) + size + _OVERHEAD_MAX)
        return made

    def _open_gap(self) -> None:
        """Make room before the first node."""
        gap = len(self._nodes)
        self._nodes[:0] = [None] * gap
        self._first = gap

    def _node(self, number: int) -> bytearray:
        """A node by its index in the list, from `_first` on (Q4)."""
        node = self._nodes[number]
        assert node is not None
        return node

    # --- Removing --------------------------------------------------------------------------------

    def pop_left_or_none(self) -> bytes | None:
        """Remove and return the first element."""
        if self.length == 0:
            return None
        node = self._node(self._first)
        data = listpack.get_bytes(node, _HEADER_BYTES)
        _cut(node, _HEADER_BYTES, listpack.skip(node, _HEADER_BYTES), 1)
        if node[_HEADER_BYTES] == _END:
            self._drop_first()
        self.length -= 1
        return data

    def pop_right_or_none(self) -> bytes | None:
        """Remove and return the last element."""
        if self.length == 0:
            return None
        node = self._node(len(self._nodes) - 1)
        at = listpack.last(node)
        data = listpack.get_bytes(node, at)
        _cut(node, at, memory.load32(node, 0) - 1, 1)
        if at == _HEADER_BYTES:
            self._drop_last()
        self.length -= 1
        return data

    def _drop_first(self) -> None:
        """Remove the first node."""
        self._nodes[self._first] = None
        self._first += 1
        self._close_gap()

    def _drop_last(self) -> None:
        """Remove the last node."""
        self._nodes.pop()
        self._close_gap()

    def _close_gap(self) -> None:
        """Remove the gap before the first node if it is most of the list."""
        if 4 * self._first > 3 * len(self._nodes):
            del self._nodes[: self._first]
            self._first = 0

    def trim(self, start: int, end: int) -> None:
        """Keep only the elements from `start` to `end`; none if start is above end.

        Both count from the left and are inside the list: the caller resolves negative ones.
        """
        if start > end:
            self._nodes.clear()
            self._first = 0
            self.length = 0
            return
        if start < 0 or end >= self.length:
            raise IndexError(f"{start} to {end}, in a list of {self.length}")
        self._drop_right(self.length - 1 - end)
        self._drop_left(start)

    def _drop_left(self, count: int) -> None:
        """Remove the first `count` elements, fewer than there are."""
        self.length -= count
        while count > 0:
            node = self._node(self._first)
            present = listpack.length(node)
            if present > count:
                _cut(node, _HEADER_BYTES, _seek(node, count, present), count)
                return
            self._drop_first()
            count -= present

    def _drop_right(self, count: int) -> None:
        """Remove the last `count` elements, fewer than there are."""
        self.length -= count
        while count > 0:
            node = self._node(len(self._nodes) - 1)
            present = listpack.length(node)
            if present > count:
                _cut(node, _seek(node, present - count, present), memory.load32(node, 0) - 1, count)
                return
            self._drop_last()
            count -= present

    def remove(self, value: bytes, count: int) -> int:
        """Remove elements equal to a value; return how many were removed.

        At most `count` of them from the left, or -count from the right; 0 removes all.
        """
        needle = _Needle(value)
        nodes = self._nodes
        backwards = count < 0
        # Compared, not negated: the smallest 64-bit number has no positive counterpart.
        limit = abs(count) if count and -self.length < count < self.length else self.length
        removed = 0
        emptied = False
        number = len(nodes) - 1 if backwards else self._first
        while removed < limit and self._first <= number < len(nodes):
            node = self._node(number)
            places = needle.places(node, limit - removed, backwards)
            if places:
                _cut_all(node, places)
                removed += len(places)
                emptied = emptied or node[_HEADER_BYTES] == _END
                if self._first < number < len(nodes) - 1:
                    nodes[number] = _sealed(node)
            number += -1 if backwards else 1
        self.length -= removed
        if emptied:
            self._nodes = [node for node in self._present() if node[_HEADER_BYTES] != _END]
            self._first = 0
        return removed

    # --- Changing in the middle ------------------------------------------------------------------

    def replace(self, index: int, data: bytes) -> bool:
        """Replace the element with this index (as in get_or_none); False if there is none.

        Raises: TooLarge, and nothing has changed.
        """
        listpack.check_room(_EMPTY, len(data) + _OVERHEAD_MAX)
        if index < 0:
            index += self.length
        if not 0 <= index < self.length:
            return False
        number, inner = self._find(index)
        node = self._node(number)
        present = listpack.length(node)
        at = _seek(node, inner, present)
        if present == 1 or len(data) <= self.limits.bytes_max:
            listpack.insert(node, at, data, _REPLACE)
            self._seal(number)
            return True
        behind = listpack.skip(node, at)
        parts = [_part(node, _HEADER_BYTES, at, inner)] if inner else []
        parts.append(_node_of(data))
        if inner + 1 < present:
            parts.append(_part(node, behind, memory.load32(node, 0) - 1, present - inner - 1))
        self._nodes[number : number + 1] = parts
        self._join_around(number + 1 if inner else number)
        return True

    def insert(self, pivot: bytes, data: bytes, after: bool) -> bool:
        """Add an element before or after the first one that equals `pivot`; False if there is none.

        Raises: TooLarge, and nothing has changed.
        """
        listpack.check_room(_EMPTY, len(data) + _OVERHEAD_MAX)
        needle = _Needle(pivot)
        number = self._first
        at = 0
        while number < len(self._nodes):
            at = needle.first_or_zero(self._node(number))
            if at:
                break
            number += 1
        if at == 0:
            return False
        node = self._node(number)
        if after:
            at = listpack.skip(node, at)
        self._insert_at(number, at, data, after)
        self.length += 1
        return True

    def _insert_at(self, number: int, at: int, data: bytes, after: bool) -> None:
        """Add an element at a position of a node, where one ends (if after) or begins."""
        node = self._node(number)
        if self._takes(number, len(data)):
            listpack.insert(node, at, data, _BEFORE)
            self._seal(number)
            return
        if node[at] != _END and at != _HEADER_BYTES:
            self._split(number, at, data, after)
        elif after and self._takes(number + 1, len(data)):
            listpack.insert(self._node(number + 1), _HEADER_BYTES, data, _BEFORE)
            self._seal(number + 1)
        elif not after and self._takes(number - 1, len(data)):
            listpack.append(self._node(number - 1), data)
            self._seal(number - 1)
        else:
            self._nodes.insert(number + 1 if after else number, _node_of(data))
            self._seal(number if after else number + 1)

    def _takes(self, number: int, size: int) -> bool:
        """Tell whether there is a node with this number that is not full for an element of `size` bytes."""
        if not self._first <= number < len(self._nodes):
            return False
        node = self._node(number)
        return (
            memory.load32(node, 0) + size + _OVERHEAD_ESTIMATE <= self.limits.bytes_max
            and memory.load16(node, 4) < self.limits.entries_max
        )

    def _split(self, number: int, at: int, data: bytes, after: bool) -> None:
        """Split a full node at a position and add an element there, to the half without the pivot."""
        node = self._node(number)
        before = _count_before(node, at)
        left = _part(node, _HEADER_BYTES, at, before)
        right = _part(node, at, memory.load32(node, 0) - 1, listpack.length(node) - before)
        if len(data) > self.limits.bytes_max:
            self._nodes[number : number + 1] = [left, _node_of(data), right]
            return
        if after:
            listpack.insert(right, _HEADER_BYTES, data, _BEFORE)
        else:
            listpack.append(left, data)
        self._nodes[number : number + 1] = [left, right]
        self._join_around(number if after else number + 1)

    def _join_around(self, number: int) -> None:
        """Join a node and its neighbours where they fit into one node, in the order of Redis."""
        if self._join(number - 2):
            number -= 1
        self._join(number + 1)
        if self._join(number - 1):
            number -= 1
        self._join(number)

    def _join(self, number: int) -> bool:
        """Join a node with the next one, if both exist and together stay within the limits."""
        if not self._first <= number < len(self._nodes) - 1:
            return False
        left, right = self._node(number), self._node(number + 1)
        count = memory.load16(left, 4) + memory.load16(right, 4)
        total = memory.load32(left, 0) + memory.load32(right, 0) - len(_EMPTY)
        estimate = total - _JOIN_UNDERESTIMATE
        if estimate > self.limits.bytes_max or count > self.limits.entries_max:
            return False
        made = bytearray(total)
        kept = memory.load32(left, 0) - 1
        memory.copy(made, 0, left, 0, kept)
        memory.copy(made, kept, right, _HEADER_BYTES, total - kept)
        _finish(made, total, count)
        self._nodes[number : number + 2] = [made]
        return True

    def _seal(self, number: int) -> None:
        """Remove the room of a node that has grown or moved, unless it is the first or the last (Q3)."""
        if self._first < number < len(self._nodes) - 1:
            self._nodes[number] = stream_node.sealed(self._node(number))

    # --- Reading ---------------------------------------------------------------------------------

    def get_or_none(self, index: int) -> bytes | None:
        """The element with this index; negative ones count from the end (-1 is the last)."""
        if index < 0:
            index += self.length
        if not 0 <= index < self.length:
            return None
        number, inner = self._find(index)
        node = self._node(number)
        return listpack.get_bytes(node, _seek(node, inner, listpack.length(node)))

    def range(self, start: int, end: int) -> list[bytes]:
        """The elements from `start` to `end`; none if start is above end. Indexes as for trim."""
        found: list[bytes] = []
        if start > end:
            return found
        if start < 0 or end >= self.length:
            raise IndexError(f"{start} to {end}, in a list of {self.length}")
        number, inner = self._find(start)
        left = end - start + 1
        while left > 0:
            node = self._node(number)
            at = _seek(node, inner, listpack.length(node))
            while at and left > 0:
                found.append(listpack.get_bytes(node, at))
                left -= 1
                at = listpack.next_at(node, at)
            number += 1
            inner = 0
        return found

    def positions(self, value: bytes, rank: int, limit: int, scan_max: int) -> list[int]:
        """The indexes of elements equal to a value, in the order in which they are found.

        From the `rank`-th match on; a negative rank searches from the end. At most `limit` matches among the
        first `scan_max` elements; 0 means all.
        """
        needle = _Needle(value)
        found: list[int] = []
        backwards = rank < 0
        skipped = abs(rank) - 1
        left = scan_max if 0 < scan_max < self.length else self.length
        index = self.length - 1 if backwards else 0
        step = -1 if backwards else 1
        number = len(self._nodes) - 1 if backwards else self._first
        while left > 0:
            node = self._node(number)
            at = listpack.last(node) if backwards else listpack.first(node)
            while at and left > 0:
                if needle.is_at(node, at):
                    if skipped > 0:
                        skipped -= 1
                    else:
                        found.append(index)
                        if len(found) == limit:
                            return found
                left -= 1
                index += step
                at = listpack.previous_at(node, at) if backwards else listpack.next_at(node, at)
            number += step
        return found

    def _find(self, index: int) -> tuple[int, int]:
        """The index of the node that holds an element, and the element's index in it."""
        if index < self.length >> 1:
            number = self._first
            present = listpack.length(self._node(number))
            while index >= present:
                index -= present
                number += 1
                present = listpack.length(self._node(number))
            return number, index
        number = len(self._nodes) - 1
        first = self.length - listpack.length(
            self._node(number)
        )  # the index of the node's first element
        while index < first:
            number -= 1
            first -= listpack.length(self._node(number))
        return number, index - first

    # --- Saving and inspecting -------------------------------------------------------------------

    def nodes(self) -> Iterator[bytearray]:
        """Yield every node as an exact listpack. Read it before the list changes."""
        for node in self._present():
            total = listpack.total_bytes(node)
            yield node if len(node) == total else node[:total]

    def load_node(self, data: bytes | bytearray) -> None:
        """Add a saved node after the last one; an empty one is skipped.

        Raises: CorruptData.
        """
        node = listpack.validate(data)
        count = listpack.length(node)
        if count == 0:
            return  # as Redis does: old versions saved such nodes
        if self.length > 0:
            last = len(self._nodes) - 1
            self._nodes[last] = _sealed(self._node(last))
        self._nodes.append(node)
        self.length += count

    def copy(self) -> ListValue:
        """A copy with the same elements in the same nodes. Cost: O(bytes)."""
        made = ListValue(self.limits)
        made._nodes = [stream_node.sealed(node) for node in self._present()]
        made.length = self.length
        return made

    def inside(self) -> tuple[list[bytearray | None], int]:
        """The list of nodes, with their room, and the index of the first: for check_list."""
        return self._nodes, self._first

    def _present(self) -> list[bytearray]:
        return [self._node(number) for number in range(self._first, len(self._nodes))]

    def memory_bytes(self) -> int:
        """Bytes that the list occupies. Cost: O(nodes)."""
        total = sys.getsizeof(self) + sys.getsizeof(self._nodes)
        for node in self._present():
            total += sys.getsizeof(node)
        return total


# --- Inside one node ---------------------------------------------------------------------------------


def _sealed(node: bytearray) -> bytearray:
    """The node without its room: a copy, or itself if the room is small."""
    total = memory.load32(node, 0)
    if len(node) - total > _SLACK_BYTES_MAX:
        return stream_node.sealed(node)
    del node[total:]
    return node


def _seek(node: bytearray, index: int, count: int) -> int:
    """Position of one of `count` elements, from the nearer end."""
    return listpack.seek(node, index if index <= count >> 1 else index - count)


def _cut(node: bytearray, at: int, until: int, count: int) -> None:
    """Remove the `count` elements from `at` up to `until`; their bytes become room."""
    total = memory.load32(node, 0)
    memory.move(node, at, until, total - until)
    _shrink(node, total - (until - at), count)


def _cut_all(node: bytearray, places: list[int]) -> None:
    """Remove the elements at these ascending positions; every byte that stays moves once."""
    total = memory.load32(node, 0)
    end = places[0]
    index = 0
    while index < len(places):
        at = listpack.skip(node, places[index])
        index += 1
        kept = (places[index] if index < len(places) else total) - at
        memory.move(node, end, at, kept)
        end += kept
    _shrink(node, end, len(places))


def _shrink(node: bytearray, total: int, removed: int) -> None:
    """Update the header after a removal. An unknown count stays unknown, as in Redis."""
    memory.store32(node, 0, total)
    count = memory.load16(node, 4)
    if count != _COUNT_UNKNOWN:
        memory.store16(node, 4, count - removed)


def _count_before(node: bytearray, at: int) -> int:
    """The number of elements before a position."""
    count = 0
    each = _HEADER_BYTES
    while each < at:
        each = listpack.skip(node, each)
        count += 1
    return count


def _part(node: bytearray, start: int, until: int, count: int) -> bytearray:
    """A new node with the `count` elements from `start` up to `until`."""
    total = len(_EMPTY) + until - start
    made = bytearray(total)
    memory.copy(made, _HEADER_BYTES, node, start, until - start)
    _finish(made, total, count)
    return made


def _node_of(data: bytes) -> bytearray:
    """A new node with one element."""
    made = listpack.new()
    listpack.append(made, data)
    return made


def _finish(node: bytearray, total: int, count: int) -> None:
    """Write the header and the end byte of a node whose elements are in place."""
    memory.store32(node, 0, total)
    memory.store16(node, 4, min(count, _COUNT_UNKNOWN))
    node[total - 1] = _END


class _Needle:
    """A value to search for, in both encodings that an element can have."""

    __slots__ = ("_is_int", "_number", "_size", "_source")

    def __init__(self, value: bytes) -> None:
        self._source = bytearray(value)
        self._size = len(value)
        element = bytearray(self._size + _OVERHEAD_MAX)
        listpack.put_string(element, 0, self._source, 0, self._size)
        self._is_int = listpack.is_int(element, 0)
        self._number = listpack.get_int(element, 0) if self._is_int else 0

    def places(self, node: bytearray, limit: int, backwards: bool) -> list[int]:
        """The positions of the first (or last) `limit` matches in a node, ascending."""
        found: list[int] = []
        at = listpack.last(node) if backwards else listpack.first(node)
        while at and len(found) < limit:
            if self.is_at(node, at):
                found.append(at)
            at = listpack.previous_at(node, at) if backwards else listpack.next_at(node, at)
        if backwards:
            found.reverse()
        return found

    def first_or_zero(self, node: bytearray) -> int:
        """The position of the first match in a node, or 0."""
        at = listpack.first(node)
        while at and not self.is_at(node, at):
            at = listpack.next_at(node, at)
        return at

    def is_at(self, node: bytearray, at: int) -> bool:
        """Tell whether the element at a position is equal."""
        if listpack.is_int(node, at):
            return self._is_int and listpack.get_int(node, at) == self._number
        # In a node of an old version, an integer may be stored as a string.
        return listpack.equals(node, at, self._source, 0, self._size)
