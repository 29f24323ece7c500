"""A stream: entries in the order of their ids, packed into nodes that a rax finds by id.

    nodes (rax)     ...01-0 ──> [ 1-0  1-1  2-0x 2-1 ]        x = tombstone
                    ...07-0 ──> [ 7-0  8-0  ]  + room          the tail: the only node appended to
    length 5, last id 8-0, entries added 6, max deleted id 2-0

An append goes to the tail. Its bytes and key are at hand, so no walk down the rax is needed. When the tail is
full, an exact copy of it stays in the rax (a bytearray that has grown never shrinks) and its buffer, already
large enough, becomes the next tail.

All reads use the cursor of `stream_cursor`.

Invariants
  S1  the rax's keys are the ids of the nodes' first entries (tombstones included), and every node is valid.
  S2  length is the sum of the nodes' live entries; a node without live entries is removed.
  S3  ids rise from node to node; last_id is not below any of them, and only set_last_id lowers it.
  S4  entries_added is at least length and at most 2**63 - 1, where it stays (in Redis it overflows into
      negative numbers); the max deleted id is not above the last id.
  S5  the tail is the rax's last node, or both are missing; no other node has spare bytes after its listpack.

Cost: append O(bytes of the entry); delete and the start of a range O(log n) for the node plus a walk inside
it, or O(1) for the node if it is the tail; an approximate trim O(nodes dropped).

Two things differ from Redis on purpose. Trimming by MINID removes a node together with its last live entry;
Redis keeps a node of tombstones that its own loader refuses (redis/redis issue 15808). The id of the first
entry is looked up when needed, not stored, so it cannot become stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core import memory, spans, stream_cursor, stream_id, stream_node
from penstock.core.frame import Frame
from penstock.core.groups.pending_index import PendingIndex
from penstock.core.idempotency import Idempotency, IdempotencySettings
from penstock.core.rax import cutting
from penstock.core.rax.last_found import LastFound
from penstock.core.rax.tree import Rax
from penstock.core.stream_cursor import EntryCursor, EntryRange
from penstock.core.stream_id import StreamID
from penstock.core.stream_node import NodeCursor
from penstock.errors import IDNotAboveLast, IDsExhausted, TooLarge

if TYPE_CHECKING:
    from penstock.core.garbage import Garbage

NODE_BYTES_MAX = 4096
NODE_ENTRIES_MAX = 100
ENTRY_BYTES_MAX = 1 << 30  # the hard limit of a node, and so of the raw bytes of one entry
COUNT_MAX = 2**63 - 1  # the limit of every count of streams and groups: replies are signed

# How groups count what they have read, and so their lag; each rule has those before it.
LAG_COUNTS_TRIMMED = 0  # entries that were trimmed before the group read them are part of its lag
LAG_SKIPS_TRIMMED = 1  # they are not; any deletion after the group's position makes the lag unknown
LAG_RECOUNTS = 2  # a group that a trim has overtaken counts again from the first entry that is left

_MAX64 = stream_id.MAX64
_ENTRY_BYTES_MAX = ENTRY_BYTES_MAX
_COUNT_MAX = COUNT_MAX
_SMALLEST = stream_id.SMALLEST
_LARGEST = stream_id.LARGEST
_KEPT_ROOM_FACTOR = 4


class NodeLimits:
    """The size limits of a node. All streams of an engine share them, so a change applies to all.

    `lag_rule` (LAG_...) decides how groups count what they have read. `idempotency` is what new streams start
    with; a stream keeps its own.
    """

    __slots__ = ("bytes_max", "entries_max", "idempotency", "lag_rule")

    def __init__(
        self, bytes_max: int = NODE_BYTES_MAX, entries_max: int = NODE_ENTRIES_MAX
    ) -> None:
        self.bytes_max = bytes_max
        self.entries_max = entries_max
        self.idempotency = IdempotencySettings()
        self.lag_rule = LAG_RECOUNTS


class Stream:
    """Entries and the groups that read them.

    Add: append, append_at, append_in_ms. Remove: delete, trim_length, trim_min_id.
    Read: range, cursor, contains, first_id, last_entry_id, last_id, max_deleted_id, length, entries_added.
    Restore: set_last_id, load_node. Copy: copy.
    """

    __slots__ = (
        "_head",
        "_tail",
        "_text",
        "_text_ms",
        "entries_added",
        "group_found",
        "groups",
        "idempotency",
        "idempotency_settings",
        "last_ms",
        "last_seq",
        "length",
        "limits",
        "max_deleted_ms",
        "max_deleted_seq",
        "nodes",
        "pending_index",
        "tail_ms",
        "tail_seq",
        "version",
    )

    def __init__(self, limits: NodeLimits | None = None) -> None:
        self.limits = NodeLimits() if limits is None else limits
        self.nodes = Rax()
        self.groups: Rax | None = None
        self.group_found = LastFound()
        self.pending_index: PendingIndex | None = None  # see references.py
        self.idempotency: Idempotency | None = None  # None: no producer has used it
        self.idempotency_settings: IdempotencySettings = self.limits.idempotency
        self._head: bytearray | None = None
        self._tail: bytearray | None = None
        self.tail_ms = 0
        self.tail_seq = 0
        self._text = b"0-"
        self._text_ms = 0
        self.length = 0
        self.last_ms = 0
        self.last_seq = 0
        self.max_deleted_ms = 0
        self.max_deleted_seq = 0
        self.entries_added = 0
        # Rises when entries are moved or removed: cursors then search their position again.
        self.version = 0

    # --- Adding ----------------------------------------------------------------------------------

    def append(self, now_ms: int, frame: Frame, first: int) -> None:
        """Add an entry with the next id at this time: the pieces of the frame from `first` on.

        Its id is then in last_ms, last_seq. Raises: IDsExhausted, TooLarge.
        """
        if now_ms > self.last_ms:
            self._append(now_ms, 0, frame, first)
        elif self.last_seq != _MAX64:
            # The clock stands still or went back: stay in the last millisecond. Otherwise readers would
            # miss an entry that sorts before one they have already seen.
            self._append(self.last_ms, self.last_seq + 1, frame, first)
        elif self.last_ms != _MAX64:
            self._append(self.last_ms + 1, 0, frame, first)
        else:
            raise IDsExhausted("the stream has used the largest id")

    def append_at(self, ms: int, seq: int, frame: Frame, first: int) -> None:
        """Add an entry with a given id. Raises: IDNotAboveLast, IDsExhausted, TooLarge."""
        if stream_id.compare(self.last_ms, self.last_seq, _MAX64, _MAX64) == 0:
            raise IDsExhausted("the stream has used the largest id")
        if stream_id.compare(ms, seq, self.last_ms, self.last_seq) <= 0:
            raise IDNotAboveLast(f"{ms}-{seq} is not above {self.last_ms}-{self.last_seq}")
        self._append(ms, seq, frame, first)

    def append_in_ms(self, ms: int, frame: Frame, first: int) -> None:
        """Add an entry in a given millisecond, with the next free seq. Raises: as append_at."""
        if ms != self.last_ms:
            self.append_at(ms, 0, frame, first)
        elif self.last_seq != _MAX64:
            self.append_at(ms, self.last_seq + 1, frame, first)
        elif self.last_ms == _MAX64:
            raise IDsExhausted("the stream has used the largest id")
        else:
            raise IDNotAboveLast(f"no id is left in millisecond {ms}")

    def _append(self, ms: int, seq: int, frame: Frame, first: int) -> None:
        if self._tail is None or not spans.append_same_entry(
            self._tail,
            memory.distance(ms, self.tail_ms),
            memory.distance(seq, self.tail_seq),
            frame.spans,
            first,
            frame.count,
            frame.buffer,
            self._node_bytes_max(),
            self._node_entries_max(),
        ):
            self._append_any(ms, seq, frame, first)
        self.length += 1
        if self.entries_added != _COUNT_MAX:  # XSETID can set it there (S4)
            self.entries_added += 1
        self.last_ms = ms
        self.last_seq = seq

    def _append_any(self, ms: int, seq: int, frame: Frame, first: int) -> None:
        """Write an entry of any kind to the tail or, if that is full, to a new node."""
        raw_bytes = frame.bytes_from(first)
        if raw_bytes > _ENTRY_BYTES_MAX:
            raise TooLarge(f"an entry has at most {_ENTRY_BYTES_MAX} bytes, not {raw_bytes}")
        tail = self._tail
        if tail is None or self._is_full(tail, raw_bytes):
            bound = stream_node.node_bound(frame, first, raw_bytes)
            tail = self._begin_node(tail, ms, seq, bound)
            stream_node.begin(tail, frame, first, raw_bytes)
        if stream_node.append_entry(
            tail,
            memory.distance(ms, self.tail_ms),
            memory.distance(seq, self.tail_seq),
            frame,
            first,
            raw_bytes,
        ):
            self.version += 1

    def _is_full(self, tail: bytearray, raw_bytes: int) -> bool:
        """Tell whether an entry with `raw_bytes` bytes needs a new node."""
        return (
            memory.load32(tail, 0) + raw_bytes >= self._node_bytes_max()
            or stream_node.entry_count(tail) >= self._node_entries_max()
        )

    def _node_bytes_max(self) -> int:
        bytes_max = self.limits.bytes_max
        return bytes_max if 0 < bytes_max < _ENTRY_BYTES_MAX else _ENTRY_BYTES_MAX

    def _node_entries_max(self) -> int:
        entries_max = self.limits.entries_max
        return entries_max if entries_max > 0 else _COUNT_MAX

    def _begin_node(self, tail: bytearray | None, ms: int, seq: int, bound: int) -> bytearray:
        """Seal the tail; return a buffer of at least `bound` bytes for a node with this id."""
        if tail is None or len(tail) > _KEPT_ROOM_FACTOR * max(self.limits.bytes_max, 4096):
            fresh = bytearray(7)
        else:
            fresh = tail
        # Everything that can run out of memory comes before the first change: the room for header and entry,
        # the copy, the place in the rax. Nothing after that can fail.
        stream_node.lengthen(fresh, bound)
        sealed = None if tail is None else stream_node.sealed(tail)
        self.nodes.insert(memory.key_pair(ms, seq), fresh)
        if sealed is not None:
            self.nodes.insert(memory.key_pair(self.tail_ms, self.tail_seq), sealed)
        if fresh is not tail:
            # The old buffer may already have held two nodes, and has_reused() could no longer tell.
            self.version += 1
        self._head = None
        self._tail = fresh
        self.tail_ms = ms
        self.tail_seq = seq
        return fresh

    # --- Removing --------------------------------------------------------------------------------

    def delete(self, entry_id: StreamID) -> bool:
        """Remove one entry; False if no entry has this id. Cost: O(log n) plus one node."""
        cursor = self.cursor(entry_id, entry_id)
        return cursor.advance() and cursor.remove()

    def trim_length(
        self,
        length_max: int,
        approximate: bool = False,
        limit: int = 0,
        garbage: Garbage | None = None,
    ) -> int:
        """Remove the oldest entries until `length_max` are left; return how many were removed.

        Approximate: whole nodes only, so a few more may stay. `limit` > 0 caps what one call removes. The
        memory of many nodes is freed by `garbage`, if given.
        """
        removed = 0
        if self.length <= length_max:
            return 0
        if approximate and self.length - stream_node.live_count(self._first_node()) < length_max:
            return 0  # the usual case for a producer that trims with every entry
        nodes = self.nodes.iterator()
        nodes.seek("^")
        dropped = 0
        capped = False
        while nodes.next():
            live = stream_node.live_count(nodes.value)
            if limit and removed + live > limit:
                capped = True
                break
            if self.length - removed - live < length_max:
                break
            removed += live
            dropped += 1
        self._drop_nodes(dropped, removed, nodes.key, garbage)
        if self.length > length_max and not approximate and not capped:
            nodes.seek("^")
            nodes.next()
            removed += self._trim_node(nodes.value, nodes.key, self.length - length_max, _LARGEST)
        return removed

    def trim_min_id(
        self,
        min_id: StreamID,
        approximate: bool = False,
        limit: int = 0,
        garbage: Garbage | None = None,
    ) -> int:
        """Remove the entries below an id; return how many were removed. Options as for trim_length."""
        removed = 0
        nodes = self.nodes.iterator()
        if not nodes.seek("<", min_id.key):
            return 0
        nodes.next()
        last_key = nodes.key  # all nodes before this one are below the id as a whole
        nodes.seek("^")
        dropped = 0
        capped = False
        entry = stream_node.new_cursor()
        while nodes.next():
            live = stream_node.live_count(nodes.value)
            if limit and removed + live > limit:
                capped = True
                break
            if nodes.key >= last_key:
                if nodes.key != last_key:
                    break
                entry.open(
                    nodes.value, memory.load64_big(last_key, 0), memory.load64_big(last_key, 8)
                )
                entry.last()
                if stream_id.compare(entry.ms, entry.seq, min_id.ms, min_id.seq) >= 0:
                    break
            removed += live
            dropped += 1
        self._drop_nodes(dropped, removed, nodes.key, garbage)
        if not approximate and not capped and nodes.seek("^"):
            nodes.next()
            removed += self._trim_node(nodes.value, nodes.key, self.length, min_id)
        return removed

    def _drop_nodes(self, count: int, live: int, key: bytes, garbage: Garbage | None) -> None:
        """Remove the first `count` nodes with their `live` entries; `key` is that of the node after them."""
        if count == 0:
            return
        if count == 1:  # the usual case for a producer that trims
            nodes = self.nodes.iterator()
            nodes.seek("^")
            nodes.next()
            self._drop_node(nodes.key, live)
            return
        if count == self.nodes.count:
            dropped = cutting.take_values(self.nodes)
            self._tail = None
        else:
            dropped = cutting.cut_below(self.nodes, key)
        self._head = None
        self.length -= live
        self.version += 1
        if garbage is not None:
            garbage.discard(dropped)

    def _trim_node(self, node: bytearray, key: bytes, most: int, min_id: StreamID) -> int:
        """Delete up to `most` entries below `min_id` from the start of a node; return how many."""
        removed = 0
        entry = stream_node.new_cursor()
        entry.open(node, memory.load64_big(key, 0), memory.load64_big(key, 8))
        found = entry.first()
        while (
            found
            and removed < most
            and stream_id.compare(entry.ms, entry.seq, min_id.ms, min_id.seq) < 0
        ):
            if not entry.deleted:
                removed += 1
                if not self.trim_entry(entry):
                    return removed
            found = entry.next()
        return removed

    def trim_entry(self, entry: NodeCursor) -> bool:
        """Remove one live entry of a node, as a trim does: it does not count as deleted (max_deleted_id).

        False if its node had no other entry: then the node is gone too.
        """
        if not entry.mark_deleted():
            self._drop_node(memory.key_pair(entry.master_ms, entry.master_seq), 1)
            return False
        self.length -= 1
        self.version += 1
        return True

    def _first_node(self) -> bytearray:
        """The first node of a stream that has one; cached until a node is added or removed."""
        if self._head is None:
            nodes = self.nodes.iterator()
            nodes.seek("^")
            nodes.next()
            self._head = nodes.value
        return self._head

    def _drop_node(self, key: bytes, live: int) -> None:
        """Remove a node with its `live` entries."""
        self.nodes.remove(key)
        self._head = None
        self.length -= live
        self.version += 1
        if memory.load64_big(key, 0) == self.tail_ms and (
            memory.load64_big(key, 8) == self.tail_seq
        ):
            self._find_tail()

    def _find_tail(self) -> None:
        """Make the rax's last node the tail (S5)."""
        nodes = self.nodes.iterator()
        self._tail = None
        if nodes.seek("$") and nodes.next():
            self._tail = nodes.value
            self.tail_ms = memory.load64_big(nodes.key, 0)
            self.tail_seq = memory.load64_big(nodes.key, 8)

    # --- Reading ---------------------------------------------------------------------------------

    def range(
        self,
        start: StreamID = _SMALLEST,
        end: StreamID = _LARGEST,
        limit: int = 0,
        reverse: bool = False,
    ) -> EntryRange:
        """The entries from `start` to `end`, both included, at most `limit` of them (0: all)."""
        return EntryRange(self, start, end, limit, reverse)

    def cursor(
        self, start: StreamID = _SMALLEST, end: StreamID = _LARGEST, reverse: bool = False
    ) -> EntryCursor:
        """A cursor before the first entry of a range, or after its last entry if reversed."""
        return stream_cursor.cursor_from(self, start, end, reverse, None)

    def contains(self, entry_id: StreamID) -> bool:
        """Tell whether an entry has this id. Cost: as the start of a range."""
        return self.cursor(entry_id, entry_id).advance()

    def last_id_text(self) -> bytes:
        """last_id as text."""
        return memory.format_behind(self.last_ms_text(), self.last_seq)

    def last_ms_text(self) -> bytes:
        """The first half of last_id and the dash, as text. It is cached: thousands of ids share it."""
        if self._text_ms != self.last_ms:
            self._text_ms = self.last_ms
            self._text = memory.format_behind(b"", self.last_ms) + b"-"
        return self._text

    @property
    def last_id(self) -> StreamID:
        """The largest id ever assigned."""
        return stream_id.make(self.last_ms, self.last_seq)

    @property
    def max_deleted_id(self) -> StreamID:
        """The largest id that was deleted (not trimmed), or 0-0."""
        return stream_id.make(self.max_deleted_ms, self.max_deleted_seq)

    def first_id(self) -> StreamID:
        """The id of the oldest entry, or 0-0 in an empty stream. Cost: a walk over tombstones before it."""
        cursor = self.cursor()
        if not cursor.advance():
            return _SMALLEST
        return stream_id.make(cursor.entry.ms, cursor.entry.seq)

    def last_entry_id(self) -> StreamID:
        """The id of the newest entry, or 0-0 in an empty stream. Cost: as first_id, from the tail."""
        cursor = self.cursor(reverse=True)
        if not cursor.advance():
            return _SMALLEST
        return stream_id.make(cursor.entry.ms, cursor.entry.seq)

    def tail_or_none(self) -> tuple[StreamID, bytearray] | None:
        """The node that is appended to, with its key."""
        if self._tail is None:
            return None
        return stream_id.make(self.tail_ms, self.tail_seq), self._tail

    def has_reused(self, node: bytearray, master_ms: int, master_seq: int) -> bool:
        """Tell whether this node's buffer has become the next tail."""
        return node is self._tail and (master_ms != self.tail_ms or master_seq != self.tail_seq)

    # --- Restoring -------------------------------------------------------------------------------

    def set_last_id(self, last: StreamID, entries_added: int, max_deleted: StreamID) -> None:
        """Set the counters as a snapshot or XSETID says. The caller has checked S3 and S4."""
        self.last_ms = last.ms
        self.last_seq = last.seq
        self.entries_added = entries_added
        self.max_deleted_ms = max_deleted.ms
        self.max_deleted_seq = max_deleted.seq

    def load_node(self, master: StreamID, node: bytearray) -> None:
        """Add a node from a snapshot after all others. The caller has checked S1 to S3."""
        self.nodes.insert(master.key, node)
        self.length += stream_node.live_count(node)
        self._head = None
        self._tail = node
        self.tail_ms = master.ms
        self.tail_seq = master.seq
        self.version += 1

    def copy(self) -> Stream:
        """A stream with the same nodes, byte for byte, and copies of all groups. Cost: O(bytes)."""
        made = Stream(self.limits)
        for key, node in self.nodes.pairs():
            made.load_node(stream_id.from_key(key), stream_node.sealed(node))
        made.set_last_id(self.last_id, self.entries_added, self.max_deleted_id)
        made.idempotency_settings = self.idempotency_settings
        if self.idempotency is not None:
            made.idempotency = self.idempotency.copy()
        if self.groups is not None:
            made.groups = Rax()
            for name, group in self.groups.pairs():
                made.groups.insert(name, group.copy())
        return made
