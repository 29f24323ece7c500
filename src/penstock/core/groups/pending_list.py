"""The pending records of a group or of a consumer, in the order of their entries' ids.

    blocks    [ 3-0 4-0 5-0 ... ]  [ 131-0 132-0 ... ]  [ 260-0 ]
                128 at most

Deliveries add records at the end, and acknowledgements remove them, mostly near the start. Both touch one
block. A full block at the end is left as it is, and the next record begins a new one. Elsewhere a full block
is split in the middle. A block that becomes small is joined with a neighbour if both together are still
small. A record is found by two binary searches: for the block, then inside of it.

Invariants
  PL1  records are in the order of their ids, and no two have the same id.
  PL2  no block has more than BLOCK_MAX records; a block is empty only if it is the only one.
  PL3  `count` is the number of records.

Cost: add and pop are O(log n) comparisons, and move at most a block; making or dropping a block moves 8 bytes
for each block behind it. Why not a rax: decision 0017.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from penstock.core import memory, stream_id
from penstock.core.groups.records import Pending

BLOCK_MAX = 128
_BLOCK_HEAD_BYTES = 72  # of a Python list, without its items
_ITEM_BYTES = 8

_BLOCK_MAX = BLOCK_MAX
_SMALL = BLOCK_MAX // 4


class PendingList:
    """Sorted records. Change: add, pop, discard. Look: find, count, edge_or_none, walk, iteration."""

    __slots__ = ("_blocks", "count", "version")

    def __init__(self) -> None:
        self._blocks: list[list[Pending]] = [[]]
        self.count = 0
        self.version = 0  # changes with every record that is added or removed

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Pending]:
        """The records in order. The list must not change meanwhile."""
        for block in self._blocks:
            yield from block

    def find(self, key: bytes) -> Pending | None:
        """The record of an entry, by the key of its id."""
        return self._find(memory.load64_big(key, 0), memory.load64_big(key, 8))

    def add(self, record: Pending) -> bool:
        """Add a record; False if there is one for this entry already."""
        at = self._block_of(record.ms, record.seq)
        block = self._blocks[at]
        index = _place(block, record.ms, record.seq)
        size = len(block)
        if index < size:
            other = block[index]
            if other.ms == record.ms and other.seq == record.seq:
                return False
        self.count += 1
        self.version += 1
        if size < _BLOCK_MAX:
            if index == size:
                block.append(record)
            else:
                block.insert(index, record)
        elif index == size and at + 1 == len(self._blocks):
            self._blocks.append([record])
        else:
            self._split(at)
            half = _BLOCK_MAX // 2
            if index > half:
                block = self._blocks[at + 1]
                index -= half
            block.insert(index, record)
        return True

    def pop(self, key: bytes) -> Pending | None:
        """Remove and return the record of an entry, by the key of its id."""
        return self._pop(memory.load64_big(key, 0), memory.load64_big(key, 8))

    def discard(self, record: Pending) -> None:
        """Remove the record of the same entry, if there is one."""
        self._pop(record.ms, record.seq)

    def edge_or_none(self, last: bool) -> Pending | None:
        """The first or the last record."""
        block = self._blocks[len(self._blocks) - 1 if last else 0]
        if not block:
            return None
        return block[len(block) - 1 if last else 0]

    def walk(self, ms: int = 0, seq: int = 0) -> PendingWalk:
        """A walk that begins with the first record at or above an id."""
        return PendingWalk(self, ms, seq)

    def take_blocks(self) -> list[list[Pending]]:
        """Remove all records; return them as lists of at most BLOCK_MAX."""
        blocks = self._blocks
        self._blocks = [[]]
        self.count = 0
        self.version += 1
        return blocks

    def memory_bytes(self) -> int:
        """About the bytes of the blocks, without the records themselves."""
        blocks = sys.getsizeof(self._blocks) + len(self._blocks) * _BLOCK_HEAD_BYTES
        return blocks + self.count * _ITEM_BYTES

    def blocks(self) -> list[list[Pending]]:
        """The blocks themselves, for inspection."""
        return self._blocks

    def _find(self, ms: int, seq: int) -> Pending | None:
        block = self._blocks[self._block_of(ms, seq)]
        index = _place(block, ms, seq)
        if index < len(block):
            record = block[index]
            if record.ms == ms and record.seq == seq:
                return record
        return None

    def _pop(self, ms: int, seq: int) -> Pending | None:
        at = self._block_of(ms, seq)
        block = self._blocks[at]
        index = _place(block, ms, seq)
        if index == len(block):
            return None
        record = block[index]
        if record.ms != ms or record.seq != seq:
            return None
        block.pop(index)
        self.count -= 1
        self.version += 1
        if len(block) < _SMALL:
            self._join(at)
        return record

    def _block_of(self, ms: int, seq: int) -> int:
        """The index of the last block that begins at or below an id, 0 if all begin above it."""
        high = len(self._blocks) - 1
        if high == 0 or _is_at_or_below(self._blocks[high], ms, seq):
            return high
        low = 0
        while low < high:  # the answer is in [low, high)
            middle = (low + high) >> 1
            if _is_at_or_below(self._blocks[middle], ms, seq):
                low = middle + 1
            else:
                high = middle
        return low - 1 if low > 0 else 0

    def _join(self, at: int) -> None:
        """Join a small block with its neighbours, or drop it if it is empty (PL2)."""
        if self._blocks[at]:
            self._join_with_next(at)
            self._join_with_next(at - 1)
        elif len(self._blocks) > 1:
            self._blocks.pop(at)

    def _join_with_next(self, at: int) -> None:
        """Move the next block into this one, if there are both and they are small together."""
        if 0 <= at < len(self._blocks) - 1:
            block, behind = self._blocks[at], self._blocks[at + 1]
            if len(block) + len(behind) <= 2 * _SMALL:
                block.extend(behind)
                self._blocks.pop(at + 1)

    def _split(self, at: int) -> None:
        """Move the second half of a block to a new one behind it."""
        block = self._blocks[at]
        half = _BLOCK_MAX // 2
        self._blocks.insert(at + 1, block[half:])
        del block[half:]


class PendingWalk:
    """Goes from record to record, in order. If the list changes, it goes on after the record it gave last."""

    __slots__ = ("_at", "_began", "_index", "_ms", "_records", "_seq", "_version", "record")

    record: Pending

    def __init__(self, records: PendingList, ms: int, seq: int) -> None:
        self._records = records
        self._ms = ms
        self._seq = seq
        self._began = False
        self._version = -1  # no place yet
        self._at = 0
        self._index = 0

    def next(self) -> bool:
        """Go to the next record; False at the end."""
        if self._version != self._records.version:
            self._find_place()
        blocks = self._records.blocks()
        block: list[Pending] = blocks[self._at]
        if self._index == len(block):
            if self._at + 1 == len(blocks):
                return False
            self._at += 1
            self._index = 0
            block = blocks[self._at]
        record = block[self._index]
        self._index += 1
        self._ms = record.ms
        self._seq = record.seq
        self._began = True
        self.record = record
        return True

    def _find_place(self) -> None:
        """Find the next record: above the last one, or at or above the start."""
        records = self._records
        self._version = records.version
        self._at = records._block_of(self._ms, self._seq)
        block: list[Pending] = records.blocks()[self._at]
        self._index = _place(block, self._ms, self._seq)
        if self._began and self._index < len(block):
            record = block[self._index]
            if record.ms == self._ms and record.seq == self._seq:
                self._index += 1


def _is_at_or_below(block: list[Pending], ms: int, seq: int) -> bool:
    """Tell whether a block begins at or below an id. It is not empty: there are several (PL2)."""
    first = block[0]
    return stream_id.compare(first.ms, first.seq, ms, seq) <= 0


def _place(block: list[Pending], ms: int, seq: int) -> int:
    """The index of the first record at or above an id."""
    high = len(block)
    if high == 0:
        return 0
    record = block[high - 1]
    if stream_id.compare(record.ms, record.seq, ms, seq) < 0:
        return high  # a delivery
    record = block[0]
    if stream_id.compare(record.ms, record.seq, ms, seq) >= 0:
        return 0  # the oldest is acknowledged
    low = 1
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        record = block[middle]
        if stream_id.compare(record.ms, record.seq, ms, seq) < 0:
            low = middle + 1
        else:
            high = middle
    return low
