"""Reads the entries of a stream in order: ranges, and the cursor that walks them.

    range 1-1 .. 7-0    node 1-0 [ 1-0  1-1  2-0x 2-1 ]    node 7-0 [ 7-0  8-0 ]
                                        ^ cursor: 1-1, 2-1, 7-0; the tombstone is passed over

All reads use one cursor, forwards or backwards between two ids. It decodes an entry only when it gets there,
so a range costs only the entries taken from it. The cursor survives changes: it notices that nodes have
moved and finds its position again by id.

Cost: the start of a range is O(log n) for the node plus a walk inside it, or O(1) for the node if it is the
tail or if a bookmark is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.core import memory, stream_id, stream_node
from penstock.core.rax.tree import RaxIterator
from penstock.core.stream_id import StreamID
from penstock.core.stream_node import NodeCursor

if TYPE_CHECKING:
    from penstock.core.stream import Stream

_SMALLEST = stream_id.SMALLEST
_LARGEST = stream_id.LARGEST


class Bookmark:
    """The position of one entry, for a read that starts there without a search.

    It is valid as long as the bytes before the entry have not moved (`holds_in`). After that the position is
    found by id as usual.
    """

    __slots__ = ("_master_ms", "_master_seq", "_node", "_place", "_version", "ms", "seq")

    def move_to(self, stream: Stream, entry: NodeCursor) -> None:
        """Move to another entry."""
        self.ms = entry.ms
        self.seq = entry.seq
        self._node = entry.node
        self._master_ms = entry.master_ms
        self._master_seq = entry.master_seq
        self._place = entry.place
        self._version = stream.version

    def holds_in(self, stream: Stream) -> bool:
        """Tell whether the entry is still at this position."""
        return self._version == stream.version and not stream.has_reused(
            self._node, self._master_ms, self._master_seq
        )


class EntryRange:
    """A range to be read: its bounds, not the entries themselves.

    The encoder of a reply walks `cursor()`; `entries` and `mappings` return objects.
    """

    __slots__ = ("bookmark", "end", "limit", "reverse", "start", "stream")

    def __init__(
        self, stream: Stream, start: StreamID, end: StreamID, limit: int, reverse: bool
    ) -> None:
        self.stream = stream
        self.start = start
        self.end = end
        self.limit = limit
        self.reverse = reverse
        # The position of an entry at or before `start`, if one is known.
        self.bookmark: Bookmark | None = None

    def cursor(self) -> EntryCursor:
        """A new cursor over the range. The caller enforces the limit."""
        return cursor_from(self.stream, self.start, self.end, self.reverse, self.bookmark)

    def entries(self) -> list[tuple[bytes, list[bytes]]]:
        """All entries: id text and the flat list of names and values."""
        found: list[tuple[bytes, list[bytes]]] = []
        cursor = self.cursor()
        entry = cursor.entry
        while (self.limit <= 0 or len(found) < self.limit) and cursor.advance():
            found.append((memory.format_pair(entry.ms, entry.seq), entry.fields()))
        return found

    def mappings(self) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """All entries: id text and a dictionary of the fields."""
        found: list[tuple[bytes, dict[bytes, bytes]]] = []
        cursor = self.cursor()
        entry = cursor.entry
        while (self.limit <= 0 or len(found) < self.limit) and cursor.advance():
            found.append((memory.format_pair(entry.ms, entry.seq), entry.mapping()))
        return found

    def __iter__(self) -> Iterator[tuple[bytes, list[bytes]]]:
        return iter(self.entries())


def cursor_from(
    stream: Stream, start: StreamID, end: StreamID, reverse: bool, bookmark: Bookmark | None
) -> EntryCursor:
    """Make a cursor; bypasses `type.__call__`."""
    made = EntryCursor.__new__(EntryCursor)
    made._open(stream, start, end, reverse, bookmark)
    return made


_BEFORE_NODE = 0  # a node is open, its first entry not entered yet
_IN_NODE = 1
_BEHIND_NODE = 2  # the next node must be opened
_DONE = 3


class EntryCursor:
    """Moves over the live entries of a range, in either direction.

    Move: advance. The entry: id, bookmark, entry (a NodeCursor: ms, seq, fields, mapping). The range: covers.
    Change: remove. The stream may change in any way between steps; fields must be read before it does. A
    cursor at its end stays there.
    """

    __slots__ = (
        "_end_ms",
        "_end_seq",
        "_nodes",
        "_place",
        "_returned",
        "_start_ms",
        "_start_seq",
        "_state",
        "_version",
        "entry",
        "reverse",
        "stream",
    )

    def _open(
        self,
        stream: Stream,
        start: StreamID,
        end: StreamID,
        reverse: bool,
        bookmark: Bookmark | None,
    ) -> None:
        self.stream = stream
        self._start_ms = start.ms
        self._start_seq = start.seq
        self._end_ms = end.ms
        self._end_seq = end.seq
        self.reverse = reverse
        self.entry = stream_node.new_cursor()
        self._returned = False
        self._state = _BEHIND_NODE
        self._seek(bookmark)

    @property
    def id(self) -> StreamID:
        """The id of the current entry."""
        return stream_id.make(self.entry.ms, self.entry.seq)

    def bookmark(self) -> Bookmark:
        """The position of the current entry."""
        made = Bookmark.__new__(Bookmark)
        made.move_to(self.stream, self.entry)
        return made

    def rest(self) -> None:
        """Let go of the stream until `resume`: its owner belongs to the stream, and no cycle may arise."""
        self.stream = None  # type: ignore[assignment]

    def resume(self, stream: Stream, ms: int, seq: int) -> bool:
        """Continue in a stream after `rest`; False unless the cursor is still on its live entry ms-seq."""
        self.stream = stream
        return (
            self._state == _IN_NODE
            and self.entry.ms == ms
            and self.entry.seq == seq
            and not self._is_stale()
        )

    def advance(self) -> bool:
        """Go to the next live entry of the range, or return False."""
        entry = self.entry
        if self._state != _DONE and self._is_stale():
            self._narrow()
            self._seek(None)
        while self._step():
            before_start = (
                stream_id.compare(entry.ms, entry.seq, self._start_ms, self._start_seq) < 0
            )
            behind_end = stream_id.compare(entry.ms, entry.seq, self._end_ms, self._end_seq) > 0
            if before_start if self.reverse else behind_end:
                self._state = _DONE
            elif not (entry.deleted or before_start or behind_end):
                self._returned = True
                return True
        return False

    def covers(self, ms: int, seq: int) -> bool:
        """Tell whether an id is inside the range."""
        if ms == self._start_ms and seq < self._start_seq:
            return False
        if ms == self._end_ms and seq > self._end_seq:
            return False
        return self._start_ms <= ms <= self._end_ms

    def _step(self) -> bool:
        """Go to the next physical entry, including tombstones and entries outside of the range."""
        entry = self.entry
        while self._state != _DONE:
            if self._state == _BEHIND_NODE:
                self._open_next_node()
                continue
            if self._state == _BEFORE_NODE:
                if self._place:
                    found = entry.enter(self._place)
                else:
                    found = entry.last() if self.reverse else entry.first()
            else:
                found = entry.previous() if self.reverse else entry.next()
            self._state = _IN_NODE if found else _BEHIND_NODE
            if found:
                return True
        return False

    def remove(self) -> bool:
        """Delete the current entry, unless it is gone; advance() then moves to the next one."""
        stream = self.stream
        entry = self.entry
        if self._state != _IN_NODE or entry.deleted:
            return False
        if self._is_stale():
            return stream.delete(self.id)  # the bytes may have moved, or belong to another node now
        if (
            stream_id.compare(entry.ms, entry.seq, stream.max_deleted_ms, stream.max_deleted_seq)
            > 0
        ):
            stream.max_deleted_ms = entry.ms
            stream.max_deleted_seq = entry.seq
        if entry.mark_deleted():
            stream.length -= 1
            stream.version += 1
            self._version += 1  # the node cursor has moved too: no need to find the position again
        else:
            stream._drop_node(memory.key_pair(entry.master_ms, entry.master_seq), 1)
        return True

    def _is_stale(self) -> bool:
        """Tell whether the cursor must find its position again."""
        entry = self.entry
        return self._version != self.stream.version or self.stream.has_reused(
            entry.node, entry.master_ms, entry.master_seq
        )

    def _narrow(self) -> None:
        """Exclude from the range what was already returned."""
        if not self._returned:
            return
        edge = _SMALLEST if self.reverse else _LARGEST
        if stream_id.compare(self.entry.ms, self.entry.seq, edge.ms, edge.seq) == 0:
            self._start_ms, self._start_seq = _LARGEST.ms, _LARGEST.seq  # nothing can follow
            self._end_ms, self._end_seq = _SMALLEST.ms, _SMALLEST.seq
        elif self.reverse:
            edge = self.id.previous()
            self._end_ms, self._end_seq = edge.ms, edge.seq
        else:
            edge = self.id.next()
            self._start_ms, self._start_seq = edge.ms, edge.seq

    def _seek(self, bookmark: Bookmark | None) -> None:
        """Open the node in which the range starts."""
        stream = self.stream
        self._version = stream.version
        self._nodes: RaxIterator | None = None
        self._place = 0
        self._state = _BEFORE_NODE
        if (
            stream._tail is None
            or stream_id.compare(self._start_ms, self._start_seq, self._end_ms, self._end_seq) > 0
        ):
            self._state = _DONE
            return
        if bookmark is not None and bookmark.holds_in(stream):
            self.entry.open(bookmark._node, bookmark._master_ms, bookmark._master_seq)
            self._place = bookmark._place
            return
        if self.reverse:
            near_ms, near_seq = self._end_ms, self._end_seq
        else:
            near_ms, near_seq = self._start_ms, self._start_seq
        if stream_id.compare(near_ms, near_seq, stream.tail_ms, stream.tail_seq) >= 0:
            self.entry.open(stream._tail, stream.tail_ms, stream.tail_seq)  # no search needed
            return
        self._nodes = stream.nodes.iterator()
        if not self._nodes.seek("<=", memory.key_pair(near_ms, near_seq)):
            if self.reverse:
                self._state = _DONE
                return
            self._nodes.seek("^")
        self._open_next_node()

    def _open_next_node(self) -> None:
        """Open the next node of the range, or end."""
        nodes = self._nodes
        if nodes is None:
            # The open node was found without an iterator: continue from its key.
            nodes = self._nodes = self.stream.nodes.iterator()
            key = memory.key_pair(self.entry.master_ms, self.entry.master_seq)
            nodes.seek("<" if self.reverse else ">", key)
        if nodes.previous() if self.reverse else nodes.next():
            self.entry.open(
                nodes.value, memory.load64_big(nodes.key, 0), memory.load64_big(nodes.key, 8)
            )
            self._place = 0
            self._state = _BEFORE_NODE
        else:
            self._state = _DONE
