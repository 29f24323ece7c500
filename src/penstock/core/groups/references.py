"""Which entries the groups of a stream still need, and removing entries with regard to that.

    entries        1-0   2-0   3-0   4-0   5-0   6-0
    group "a"      done  done  pend. done  ──> last id 4-0
    group "b"      done  pend. done  done  done  ──> last id 5-0
                   ^                 ^
                   free              free        all others are referenced

An entry is referenced if a group has not read it yet, which means that it is above the smallest last id of
the groups, or if it is pending in a group. Without groups nothing is referenced.

A stream with one group is answered by that group. With several groups, the first question builds an index of
all pending entries (pending_index.py), which the groups then maintain.

Cost: making References is O(groups); a question is O(1) rax lookups, the first O(pending entries).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core import memory, stream_id, stream_node
from penstock.core.groups.group import Group
from penstock.core.groups.pending_index import PendingIndex
from penstock.core.rax.tree import Rax
from penstock.core.stream import Stream
from penstock.core.stream_id import StreamID

if TYPE_CHECKING:
    from penstock.core.garbage import Garbage

_LARGEST = stream_id.LARGEST


def add_group(stream: Stream, name: bytes, group: Group) -> None:
    """Add a new group to a stream. Raises: ValueError if there is one of this name."""
    if stream.groups is None:
        stream.groups = Rax()
    if not stream.groups.try_insert(name, group):
        raise ValueError(f"there is a group {name!r} already")
    if stream.pending_index is not None:
        group.use_index(stream.pending_index)


def remove_group(stream: Stream, name: bytes, garbage: Garbage | None = None) -> bool:
    """Remove a group with its pending records; False if there is none of this name.

    The memory is freed by `garbage`, if given.
    """
    if stream.groups is None:
        return False
    group: Group | None = stream.groups.pop(name)
    stream.group_found.forget()
    if group is None:
        return False
    group.use_index(None)
    if stream.groups.count == 0:
        stream.pending_index = None
    if garbage is not None:
        garbage.discard(group)
    return True


class References:
    """What the groups of a stream still need; for the time of one command.

    Ask: holds. Remove references: forget, forget_before. Trim: trim_unreferenced.
    """

    __slots__ = ("_groups", "_read_ms", "_read_seq", "_stream")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._groups: list[Group] = []
        self._read_ms = _LARGEST.ms  # the smallest last id
        self._read_seq = _LARGEST.seq
        if stream.groups is None:
            return
        groups = stream.groups.iterator()
        groups.seek("^")
        while groups.next():
            group: Group = groups.value
            self._groups.append(group)
            if stream_id.compare(group.last_ms, group.last_seq, self._read_ms, self._read_seq) < 0:
                self._read_ms = group.last_ms
                self._read_seq = group.last_seq

    def holds(self, ms: int, seq: int) -> bool:
        """Tell whether an entry is referenced."""
        if not self._groups:
            return False
        if stream_id.compare(ms, seq, self._read_ms, self._read_seq) > 0:
            return True
        return self._is_pending(memory.key_pair(ms, seq))

    def _is_pending(self, key: bytes) -> bool:
        """Tell whether a group has an entry pending; there are groups."""
        if len(self._groups) == 1:
            group: Group = self._groups[0]
            return group.pending.find(key) is not None
        index = self._stream.pending_index
        if index is None:
            index = self._stream.pending_index = PendingIndex()
            for group in self._groups:
                group.use_index(index)
        return index.has(key)

    def forget(self, entry_id: StreamID) -> bool:
        """Remove the pending records of an entry from all groups; False if there were none."""
        if not self._groups or not self._is_pending(entry_id.key):
            return False
        for group in self._groups:
            group.acknowledge(entry_id)
        return True

    def forget_before(self, first: StreamID | None) -> int:
        """Remove the pending records of all entries below an id, or of all entries; return their number."""
        forgotten = 0
        for group in self._groups:
            while True:
                pending = group.pending_edge_or_none(last=False)
                if pending is None or (first is not None and pending >= first):
                    break
                group.acknowledge(pending)
                forgotten += 1
        return forgotten

    def trim_unreferenced(
        self, length_max: int, min_id: StreamID | None, limit: int, thorough: bool
    ) -> int:
        """Remove the oldest entries that no group needs, until `length_max` are left or up to `min_id`.

        Returns how many were removed; `limit` > 0 caps them. As in Redis, a trim by length ends with the
        first node that need not go as a whole, even if its entries are referenced and later ones are not.
        `thorough`: it goes on after that node. A replay is thorough, so that a trim to the length that the
        original trim left removes the same entries, whatever made the original stop.
        """
        stream = self._stream
        removed = 0
        nodes = stream.nodes.iterator()
        nodes.seek("^")
        while nodes.next():
            if min_id is None and stream.length <= length_max:
                break
            ms = memory.load64_big(nodes.key, 0)
            seq = memory.load64_big(nodes.key, 8)
            if min_id is not None and stream_id.compare(ms, seq, min_id.ms, min_id.seq) >= 0:
                break
            if self._groups and stream_id.compare(ms, seq, self._read_ms, self._read_seq) > 0:
                break  # this entry and all later ones are unread
            live = stream_node.live_count(nodes.value)
            if limit and removed + live > limit:
                break
            is_last = min_id is None and stream.length - live < length_max
            removed += self._trim_node(nodes.key, nodes.value, length_max, min_id)
            if is_last and not thorough:
                break
        return removed

    def _trim_node(
        self, key: bytes, node: bytearray, length_max: int, min_id: StreamID | None
    ) -> int:
        """Remove the entries of one node that no group needs; return how many."""
        stream = self._stream
        removed = 0
        entry = stream_node.new_cursor()
        entry.open(node, memory.load64_big(key, 0), memory.load64_big(key, 8))
        found = entry.first()
        while found:
            if min_id is None:
                if stream.length <= length_max:
                    break
            elif stream_id.compare(entry.ms, entry.seq, min_id.ms, min_id.seq) >= 0:
                break
            if not entry.deleted and not self.holds(entry.ms, entry.seq):
                removed += 1
                if not stream.trim_entry(entry):
                    break
            found = entry.next()
        return removed
