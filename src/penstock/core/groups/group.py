"""Consumer groups: what each consumer has read, and what is not acknowledged yet.

    group "workers"   last id 5-0, entries read 5
      pending         ──> 3-0 <──   consumer "a"   pending
                      ──> 4-0 <──   consumer "b"
                      ──> 5-0 <──   consumer "a"

A delivered entry has one record (its id, when, how often, to whom), and two lists have it: the group's for
claims and summaries, the consumer's for its own history (pending_list.py).

A consumer can return an entry that it cannot handle. It stays pending, but nobody owns it: its record names
NOBODY and is in the group's `returned` instead of a consumer's list. Returned entries are claimed first, in
the order in which they were returned.

Reads that claim idle entries take those first that have waited longest. For them the group keeps its records
by delivery time as well (`_idle_order`), from the first such read on: other groups do not pay for it. Records
of the same millisecond are in the order of their ids.

Invariants
  G1  every record is in the group's list and in exactly one consumer's list, the one it names; or in
      `returned`, with a delivery time of 0, and it names NOBODY.
  G2  a consumer's number is its index in the group's list; numbers of deleted consumers are reused.
  G3  entries_read is -1 (unknown), or from 0 to 2**63 - 1.
  G4  pending ids need not exist in the stream any more, nor be below last_id: entries can be deleted, and
      a group can be moved back.
  G5  no pending id is 0-0. Times are not negative, except an active_ms of NEVER_MS. Counts and times are at
      most 2**63 - 1; a count stays there.
  G6  `_idle_order`, if it exists, has one key for each record with an owner: its delivery time and its id.

A record names its consumer by number, not by reference. So it is an object without references: the garbage
collector does not look into it, deleting a consumer leaves no cycle, and the record is 16 bytes smaller. (A
full collection still visits each place of the lists: 40 ms for a million records.)

Cost: deliver and acknowledge are two operations on lists each; a summary is O(consumers); rows and claims are
O(rows examined), and claim_idle examines the records of entries that are gone each time. Nothing here reads a
clock: callers pass `now_ms`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from penstock.core import memory, stream_cursor, stream_id
from penstock.core.groups import positions
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.pending_index import PendingIndex
from penstock.core.groups.pending_list import PendingList
from penstock.core.groups.records import NEVER_MS, ClaimOptions, Pending, idle_key, made_pending
from penstock.core.groups.results import AutoClaim, ClaimedEntry, PendingRow
from penstock.core.rax import cutting
from penstock.core.rax.last_found import LastFound
from penstock.core.rax.tree import Rax
from penstock.core.stream import (
    COUNT_MAX,
    LAG_COUNTS_TRIMMED,
    LAG_RECOUNTS,
    Stream,
)
from penstock.core.stream_cursor import Bookmark, EntryCursor, EntryRange
from penstock.core.stream_id import StreamID
from penstock.reply import ReplyWriter

if TYPE_CHECKING:
    from penstock.core.garbage import Garbage

ENTRIES_READ_UNKNOWN = -1
NOBODY = -1
VAIN_SCANS_MAX = 2048  # rows without a claim after which an autoclaim ends: 1 us each

_NOBODY = NOBODY
_UNKNOWN = ENTRIES_READ_UNKNOWN
_COUNT_MAX = COUNT_MAX
_LAG_COUNTS_TRIMMED = LAG_COUNTS_TRIMMED
_LAG_RECOUNTS = LAG_RECOUNTS
_SCANS_PER_CLAIM = 10  # an autoclaim examines ten rows for each that it may return
_VAIN_SCANS_MAX = VAIN_SCANS_MAX


class Group:
    """A position in a stream, and the deliveries from it.

    Consumers: consumer_or_none, create_consumer, delete_consumer, consumer_by_number. Reading: deliver,
    deliver_to, redeliver, acknowledge. Taking over: claim, autoclaim, claim_idle. Returning: give_back.
    Looking: pending, returned, consumer_counts, pending_rows, lag_or_none. Position: set_position. Whole:
    copy, use_index.
    """

    __slots__ = (
        "_by_number",
        "_cursor",
        "_free_numbers",
        "_idle_order",
        "_index",
        "consumer_found",
        "consumers",
        "entries_read",
        "last_ms",
        "last_seq",
        "pending",
        "returned",
    )

    def __init__(self, last: StreamID, entries_read: int = ENTRIES_READ_UNKNOWN) -> None:
        self.last_ms = last.ms
        self.last_seq = last.seq
        self.entries_read = entries_read
        self.pending = PendingList()
        self.consumers = Rax()
        self.consumer_found = LastFound()
        # Not a plain dict: finding its first key would cost O(keys removed before it).
        self.returned: OrderedDict[bytes, Pending] = OrderedDict()
        self._idle_order: Rax | None = None
        self._index: PendingIndex | None = None  # the stream's, if it has one
        self._by_number: list[Consumer | None] = []
        self._free_numbers: list[int] = []
        # On the last delivered entry. Without it every read would walk half a node to find where the last one
        # stopped (benchmarks/core.py, "read and acknowledge").
        self._cursor: EntryCursor | None = None

    @property
    def last_id(self) -> StreamID:
        """The last delivered id."""
        return stream_id.make(self.last_ms, self.last_seq)

    def set_position(self, last: StreamID, entries_read: int) -> None:
        """Continue reading after this id. Pending entries stay pending."""
        self.last_ms = last.ms
        self.last_seq = last.seq
        self.entries_read = entries_read

    def copy(self) -> Group:
        """A group with the same position, consumers and records. Cost: O(pending)."""
        made = Group(self.last_id, self.entries_read)
        made._free_numbers = list(self._free_numbers)
        made._by_number = [None] * len(self._by_number)
        for name, original in self.consumers.pairs():
            consumer = Consumer(name, original.number, original.seen_ms)
            consumer.active_ms = original.active_ms
            made._by_number[original.number] = consumer
            made.consumers.insert(name, consumer)
        for known in self.pending:
            record = made_pending(
                known.ms,
                known.seq,
                known.consumer_number,
                known.delivery_ms,
                known.delivery_count,
            )
            made.pending.add(record)
            if known.consumer_number != _NOBODY:
                made.consumer_by_number(known.consumer_number).pending.add(record)
        for key in self.returned:
            returned = made.pending.find(key)
            assert returned is not None
            made.returned[key] = returned
        return made

    def use_index(self, index: PendingIndex | None) -> None:
        """Keep the stream's index of pending entries up to date from now on; None: no longer.

        The group's records are added to an index, and removed from the one used before.
        """
        if self._index is index:
            return
        records = self.pending.walk()
        while records.next():
            key = records.record.key()
            if self._index is not None:
                self._index.remove(key)
            if index is not None:
                index.add(key)
        self._index = index

    # --- Consumers -------------------------------------------------------------------------------

    def consumer_or_none(self, name: bytes) -> Consumer | None:
        consumer: Consumer | None = self.consumers.find(name)
        return consumer

    def consumer_by_number(self, number: int) -> Consumer:
        """The consumer that a record names."""
        consumer = self._by_number[number]
        assert consumer is not None
        return consumer

    def create_consumer(self, name: bytes, now_ms: int) -> Consumer:
        """Add a consumer that does not exist yet."""
        if self._free_numbers:
            number = self._free_numbers.pop()
        else:
            number = len(self._by_number)
            self._by_number.append(None)
        consumer = Consumer(name, number, now_ms)
        self._by_number[number] = consumer
        self.consumers.insert(name, consumer)
        return consumer

    def delete_consumer(self, consumer: Consumer, garbage: Garbage | None = None) -> int:
        """Remove a consumer and its pending records; return their number.

        Cost: O(its records), or O(all other records) if those are far fewer. `garbage` frees the memory.
        """
        forgotten = consumer.pending.count
        if self._index is None and self.pending.count < forgotten + forgotten // 2:
            self._keep_others(consumer, garbage)
        else:
            records = consumer.pending.walk()
            while records.next():
                self.pending.discard(records.record)
                self._forget(records.record)
        if garbage is not None:
            garbage.discard(consumer)
        self.consumers.remove(consumer.name)
        self.consumer_found.forget()
        self._by_number[consumer.number] = None
        self._free_numbers.append(consumer.number)
        return forgotten

    def _keep_others(self, consumer: Consumer, garbage: Garbage | None) -> None:
        """Replace the list of all records by one without this consumer's; drop the order of times (G6)."""
        kept = PendingList()
        for _, other in self.consumers.pairs():
            if other is not consumer:
                for record in other.pending:
                    kept.add(record)
        for record in self.returned.values():
            kept.add(record)
        if garbage is not None:
            for block in self.pending.take_blocks():
                garbage.discard(block)
            if self._idle_order is not None:
                garbage.discard(cutting.take_values(self._idle_order))
        self.pending = kept
        self._idle_order = None

    # --- Reading ---------------------------------------------------------------------------------

    def deliver(
        self, stream: Stream, consumer: Consumer, limit: int, now_ms: int, ack: bool
    ) -> EntryRange | None:
        """Deliver the next entries, at most `limit` (0: all), to a consumer; None if there are none.

        With `ack` they become pending. The range covers exactly the delivered entries.
        """
        if not self._is_behind(stream):
            return None
        cursor = self._cursor_at_position(stream)
        delivered = 0
        first: Bookmark | None = None
        while (limit <= 0 or delivered < limit) and self._deliver_next(
            stream, cursor, consumer, now_ms, ack
        ):
            if delivered == 0:
                first = cursor.bookmark()
            delivered += 1
        cursor.rest()
        if first is None:
            return None
        found = stream.range(
            stream_id.make(first.ms, first.seq),
            stream_id.make(self.last_ms, self.last_seq),
            delivered,
        )
        found.bookmark = first
        return found

    def deliver_to(
        self,
        stream: Stream,
        consumer: Consumer,
        limit: int,
        now_ms: int,
        ack: bool,
        key: bytes,
        reply: ReplyWriter,
        ids: list[bytes] | None,
    ) -> int:
        """As deliver, but write the entries to a reply, of a read of one stream; return their number.

        `key` is the stream's key, for the reply. `ids`, if given, gets the ids as text. Nothing is written if
        there is no entry.
        """
        if not self._is_behind(stream):
            return 0
        cursor = self._cursor_at_position(stream)
        delivered = 0
        while (limit <= 0 or delivered < limit) and self._deliver_next(
            stream, cursor, consumer, now_ms, ack
        ):
            if delivered == 0:
                reply.begin_served(key, min(limit, stream.length) if limit > 0 else stream.length)
            reply.put_entry(cursor.entry)
            if ids is not None:
                ids.append(memory.format_pair(self.last_ms, self.last_seq))
            delivered += 1
        cursor.rest()
        if delivered:
            reply.end_served(delivered)
        return delivered

    def _is_behind(self, stream: Stream) -> bool:
        """Tell whether the position is before the stream's last id."""
        return stream_id.compare(self.last_ms, self.last_seq, stream.last_ms, stream.last_seq) < 0

    def _cursor_at_position(self, stream: Stream) -> EntryCursor:
        """The cursor with which the next entry is found; the caller lets it rest when it is done."""
        cursor = self._cursor
        is_known = cursor is not None and cursor.resume(stream, self.last_ms, self.last_seq)
        if stream.limits.lag_rule == _LAG_RECOUNTS and not is_known and self._was_overtaken(stream):
            self.entries_read = _UNKNOWN  # until the first entry is counted below
        if cursor is None or not is_known:
            start = stream_id.make(self.last_ms, self.last_seq).next()
            cursor = stream_cursor.cursor_from(stream, start, stream_id.LARGEST, False, None)
            self._cursor = cursor
        return cursor

    def _deliver_next(
        self, stream: Stream, cursor: EntryCursor, consumer: Consumer, now_ms: int, ack: bool
    ) -> bool:
        """Deliver one entry; False if there is none. A cursor behind the last one could not continue."""
        if not self._is_behind(stream) or not cursor.advance():
            return False
        self._advance_to(stream, cursor)
        if ack:
            self._add_pending(consumer, now_ms)
        return True

    def _was_overtaken(self, stream: Stream) -> bool:
        """Tell whether a trim has passed the position, so that the entries read no longer follow from it."""
        return self.entries_read != _UNKNOWN and positions.starts_after(stream, self.last_id)

    def _advance_to(self, stream: Stream, cursor: EntryCursor) -> None:
        """Move the position to the cursor's entry, and count it if possible."""
        ms, seq = cursor.entry.ms, cursor.entry.seq
        start_ms, start_seq = self.last_ms, self.last_seq
        if stream.limits.lag_rule == _LAG_COUNTS_TRIMMED:
            start_ms, start_seq = ms, seq
        if self.entries_read != _UNKNOWN and not positions.has_tombstones_from(
            stream, start_ms, start_seq
        ):
            if self.entries_read != _COUNT_MAX:
                self.entries_read += 1
        elif stream.entries_added:
            self.entries_read = positions.rank_or_unknown(stream, stream_id.make(ms, seq))
        self.last_ms = ms
        self.last_seq = seq

    def _add_pending(self, consumer: Consumer, now_ms: int) -> None:
        """Record a first delivery, of the last id. An entry that is already pending moves here."""
        record = made_pending(self.last_ms, self.last_seq, consumer.number, now_ms, 1)
        if self.pending.add(record):
            consumer.pending.add(record)
            self._remember(record)
        else:
            known = self.pending.find(record.key())
            assert known is not None
            self._hand_over(known, consumer, now_ms)
            known.delivery_count = 1

    def _remember(self, record: Pending) -> None:
        """Add a new record to the orders and indexes beside the lists, where they exist."""
        if self._index is not None:
            self._index.add(record.key())
        if self._idle_order is not None:
            self._idle_order.insert(idle_key(record), record)

    def _forget(self, record: Pending) -> None:
        """Undo _remember for a record with an owner."""
        if self._index is not None:
            self._index.remove(record.key())
        if self._idle_order is not None:
            self._idle_order.remove(idle_key(record))

    def _hand_over(self, record: Pending, consumer: Consumer, delivery_ms: int) -> None:
        """Give a record to a consumer, with a new delivery time. It may have an owner or none (G1)."""
        if record.consumer_number == _NOBODY:
            del self.returned[record.key()]
        elif self._idle_order is not None:
            self._idle_order.remove(idle_key(record))
        if record.consumer_number != consumer.number:
            if record.consumer_number != _NOBODY:
                self.consumer_by_number(record.consumer_number).pending.discard(record)
            consumer.pending.add(record)
            record.consumer_number = consumer.number
        record.delivery_ms = delivery_ms
        if self._idle_order is not None:
            self._idle_order.insert(idle_key(record), record)

    def redeliver(
        self, stream: Stream, consumer: Consumer, after: StreamID, limit: int, now_ms: int
    ) -> list[tuple[bytes, list[bytes] | None]]:
        """A consumer's pending entries after an id: (id, fields), or (id, None) if the entry was deleted.

        Counts as a delivery of each entry that still exists.
        """
        found: list[tuple[bytes, list[bytes] | None]] = []
        if after == stream_id.LARGEST:
            return found
        start = after.next()
        records = consumer.pending.walk(start.ms, start.seq)
        while (limit <= 0 or len(found) < limit) and records.next():
            record = records.record
            entry_id = record.entry_id()
            cursor = stream.cursor(entry_id, entry_id)
            if cursor.advance():
                self._hand_over(record, consumer, now_ms)
                if record.delivery_count != _COUNT_MAX:
                    record.delivery_count += 1
                found.append((entry_id.text, cursor.entry.fields()))
            else:
                found.append((entry_id.text, None))
        return found

    def acknowledge(self, entry_id: StreamID) -> bool:
        """Remove a pending record; False if there was none."""
        return self.acknowledge_key(entry_id.key)

    def acknowledge_key(self, key: bytes) -> bool:
        """As acknowledge, for the key of an id."""
        record = self.pending.pop(key)
        if record is None:
            return False
        if record.consumer_number == _NOBODY:
            del self.returned[key]
            if self._index is not None:
                self._index.remove(key)
        else:
            self.consumer_by_number(record.consumer_number).pending.discard(record)
            self._forget(record)
        return True

    def give_back(self, entry_id: StreamID, delivery_count: int) -> None:
        """Take a pending entry away from its consumer: the next read that claims entries gets it.

        Raises: ValueError if the entry is not pending.
        """
        key = entry_id.key
        record = self.pending.find(key)
        if record is None:
            raise ValueError(f"{entry_id} is not pending")
        if record.consumer_number != _NOBODY:
            self.consumer_by_number(record.consumer_number).pending.discard(record)
            if self._idle_order is not None:
                self._idle_order.remove(idle_key(record))
            record.consumer_number = _NOBODY
            record.delivery_ms = 0
            self.returned[key] = record
        record.delivery_count = delivery_count

    def add_returned(self, entry_id: StreamID, delivery_count: int) -> None:
        """Add a record that nobody owns. Raises: ValueError if the entry is pending already."""
        key = entry_id.key
        record = made_pending(entry_id.ms, entry_id.seq, _NOBODY, 0, delivery_count)
        if not self.pending.add(record):
            raise ValueError(f"{entry_id} is pending already")
        self.returned[key] = record
        if self._index is not None:
            self._index.add(key)

    # --- Claiming --------------------------------------------------------------------------------

    def claim(
        self,
        stream: Stream,
        entry_id: StreamID,
        consumer: Consumer,
        options: ClaimOptions,
        now_ms: int,
    ) -> bool:
        """Give one pending entry to a consumer; False if the conditions are not met.

        If the entry no longer exists in the stream, its record is removed instead.
        """
        if not stream.contains(entry_id):
            self.acknowledge(entry_id)
            return False
        record = self.pending.find(entry_id.key)
        if record is None:
            if not options.force:
                return False
            # It starts with one delivery and is counted again below, as in Redis.
            record = made_pending(entry_id.ms, entry_id.seq, consumer.number, now_ms, 1)
            self.pending.add(record)
            consumer.pending.add(record)
            self._remember(record)
        elif options.idle_ms_min > 0 and now_ms - record.delivery_ms < options.idle_ms_min:
            return False
        self._take(record, consumer, options)
        return True

    def _take(self, record: Pending, consumer: Consumer, options: ClaimOptions) -> None:
        self._hand_over(record, consumer, options.delivery_ms)
        if options.delivery_count >= 0:
            record.delivery_count = options.delivery_count
        elif not options.just_id and record.delivery_count != _COUNT_MAX:
            record.delivery_count += 1

    def autoclaim(
        self,
        stream: Stream,
        start: StreamID,
        limit: int,
        consumer: Consumer,
        options: ClaimOptions,
    ) -> AutoClaim:
        """Claim idle entries from an id on; examines at most ten rows for each entry wanted.

        Records of entries that no longer exist are removed and reported, and count towards the limit.
        """
        found = AutoClaim()
        now_ms = options.delivery_ms
        scans_left = _COUNT_MAX
        if limit < _COUNT_MAX // _SCANS_PER_CLAIM:  # otherwise the product overflows in C
            scans_left = limit * _SCANS_PER_CLAIM
        records = self.pending.walk(start.ms, start.seq)
        vain_left = _VAIN_SCANS_MAX
        while scans_left > 0 and vain_left > 0 and limit > 0 and records.next():
            scans_left -= 1
            vain_left -= 1
            record = records.record
            entry_id = record.entry_id()
            if not stream.contains(entry_id):
                self.acknowledge(entry_id)
                found.deleted.append(entry_id)
                limit -= 1
                continue
            if options.idle_ms_min > 0 and now_ms - record.delivery_ms < options.idle_ms_min:
                continue
            vain_left += 1
            self._take(record, consumer, options)
            found.claimed.append(entry_id)
            limit -= 1
        found.cursor = records.record.entry_id() if records.next() else stream_id.SMALLEST
        return found

    def claim_idle(
        self, stream: Stream, consumer: Consumer, idle_ms_min: int, limit: int, now_ms: int
    ) -> list[ClaimedEntry]:
        """Deliver pending entries again: the returned ones, then the idle ones, longest idle first.

        At most `limit` (0: all). Entries that no longer exist are skipped; they stay pending.
        """
        found: list[ClaimedEntry] = []
        for returned in self.returned.values():
            if limit > 0 and len(found) == limit:
                break
            self._add_claimed(stream, returned, NEVER_MS, found)
        if limit <= 0 or len(found) < limit:
            rows = self._by_idle_time().iterator()
            rows.seek("^")
            while (limit <= 0 or len(found) < limit) and rows.next():
                record: Pending = rows.value
                idle_ms = now_ms - record.delivery_ms
                if idle_ms < idle_ms_min:
                    break
                self._add_claimed(stream, record, idle_ms, found)
        # Only now: a claim changes both orders, and an entry must not be found again after its claim.
        for entry in found:
            claimed = self.pending.find(entry.id.key)
            assert claimed is not None
            self._hand_over(claimed, consumer, now_ms)
            if claimed.delivery_count != _COUNT_MAX:
                claimed.delivery_count += 1
        return found

    def _add_claimed(
        self, stream: Stream, record: Pending, idle_ms: int, found: list[ClaimedEntry]
    ) -> None:
        """Add a pending entry to those that a read claims, unless it no longer exists."""
        entry_id = record.entry_id()
        cursor = stream.cursor(entry_id, entry_id)
        if cursor.advance():
            fields = cursor.entry.fields()
            found.append(ClaimedEntry(entry_id, fields, idle_ms, record.delivery_count))

    def next_claim_ms_or_none(self, stream: Stream, idle_ms_min: int) -> int | None:
        """When claim_idle finds an entry for the first time; None if no pending entry exists any more.

        0 if an entry was returned: it can be claimed at any time.
        """
        for key in self.returned:
            if stream.contains(stream_id.from_key(key)):
                return 0
        rows = self._by_idle_time().iterator()
        rows.seek("^")
        while rows.next():
            record: Pending = rows.value
            if stream.contains(record.entry_id()):
                if idle_ms_min > _COUNT_MAX - record.delivery_ms:
                    return COUNT_MAX
                return record.delivery_ms + idle_ms_min
        return None

    def idle_order_or_none(self) -> Rax | None:
        """The records by delivery time and id, if they are kept; for inspection."""
        return self._idle_order

    def _by_idle_time(self) -> Rax:
        """The records by delivery time; made by the first call (G6)."""
        if self._idle_order is None:
            self._idle_order = Rax()
            records = self.pending.walk()
            while records.next():
                if records.record.consumer_number != _NOBODY:
                    self._idle_order.insert(idle_key(records.record), records.record)
        return self._idle_order

    # --- Inspection ------------------------------------------------------------------------------

    def consumer_counts(self) -> list[tuple[bytes, int]]:
        """The consumers with pending entries and their number of entries, by name."""
        counts: list[tuple[bytes, int]] = []
        consumers = self.consumers.iterator()
        consumers.seek("^")
        while consumers.next():
            consumer: Consumer = consumers.value
            if consumer.pending.count > 0:
                counts.append((consumer.name, consumer.pending.count))
        return counts

    def pending_edge_or_none(self, last: bool) -> StreamID | None:
        """The smallest or the largest pending id."""
        record = self.pending.edge_or_none(last)
        return None if record is None else record.entry_id()

    def pending_rows(
        self,
        start: StreamID,
        end: StreamID,
        limit: int,
        consumer: Consumer | None = None,
        idle_since_ms: int | None = None,
    ) -> list[PendingRow]:
        """Pending entries of a range, of one consumer if given, idle since a time if given."""
        rows: list[PendingRow] = []
        whole = self.pending if consumer is None else consumer.pending
        records = whole.walk(start.ms, start.seq)
        while len(rows) < limit and records.next():
            record = records.record
            if stream_id.compare(record.ms, record.seq, end.ms, end.seq) > 0:
                break
            if idle_since_ms is not None and record.delivery_ms > idle_since_ms:
                continue
            name = b""
            if record.consumer_number != _NOBODY:
                name = self.consumer_by_number(record.consumer_number).name
            rows.append(
                PendingRow(
                    record.entry_id(),
                    name,
                    record.delivery_ms,
                    record.delivery_count,
                    record.consumer_number != _NOBODY,
                )
            )
        return rows

    def lag_or_none(self, stream: Stream) -> int | None:
        """The number of entries not delivered yet, or None if it cannot be known.

        Negative if the group is said to have read more entries than were ever added to the stream. Whether
        trimmed entries count depends on the rule of the stream (`NodeLimits.lag_rule`).
        """
        if stream.entries_added == 0:
            return 0
        if stream.limits.lag_rule != _LAG_COUNTS_TRIMMED:
            if stream.length == 0:
                return 0
            first = stream.first_id()
            if self.last_id < first and stream.max_deleted_id < first:
                return stream.length
        position = self.entries_read
        if position == _UNKNOWN or positions.has_tombstones_from(
            stream, self.last_ms, self.last_seq
        ):
            position = positions.rank_or_unknown(stream, self.last_id)
        return None if position == _UNKNOWN else stream.entries_added - position
