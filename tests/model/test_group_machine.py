"""A group behaves like a position and a dictionary of pending entries, whichever consumer owns them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.core.check import check_stream
from penstock.core.groups.group import ENTRIES_READ_UNKNOWN, ClaimOptions, Consumer, Group
from penstock.core.rax.tree import Rax
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from tests.support.campaign import cases
from tests.support.engine.streams import frame_of, pending_of

NAMES = st.sampled_from([b"a", b"ab", b"abc", b"b", b""])
VALUES = st.sampled_from([b"1", b"2", b"v", b"v" * 20_000])  # the last: larger than a kept buffer
SCANS_PER_CLAIM = 10


@dataclass
class Row:
    """The model of one pending entry."""

    consumer: bytes
    delivery_ms: int
    delivery_count: int


class GroupMachine(RuleBasedStateMachine):
    """All operations on a group while its stream changes."""

    @initialize(entries_max=st.integers(1, 4), entries_read=st.sampled_from([0, -1]))
    def begin(self, entries_max: int, entries_read: int) -> None:
        self.stream = Stream(NodeLimits(4096, entries_max))
        self.group = Group(SMALLEST, entries_read)
        self.stream.groups = Rax()
        self.stream.groups.insert(b"g", self.group)
        self.entries: dict[StreamID, list[bytes]] = {}
        self.pending: dict[StreamID, Row] = {}
        self.consumers: set[bytes] = set()
        self.last = SMALLEST
        self.now_ms = 1000

    def consumer(self, name: bytes) -> Consumer:
        """A consumer by name, created if it does not exist."""
        found = self.group.consumer_or_none(name)
        assert (found is not None) == (name in self.consumers)
        self.consumers.add(name)
        return found if found is not None else self.group.create_consumer(name, self.now_ms)

    def pick(self, data: st.DataObject) -> StreamID:
        """An id that is pending, or in the stream, or neither."""
        known = sorted({*self.entries, *self.pending, self.last, SMALLEST, StreamID(7, 7)})
        return data.draw(st.sampled_from(known))

    # --- The stream --------------------------------------------------------------------------------

    @rule(step_ms=st.integers(0, 2), values=st.lists(VALUES, min_size=1, max_size=4))
    def append(self, step_ms: int, values: list[bytes]) -> None:
        for value in values:
            fields = [b"n", value]
            self.stream.append(self.now_ms // 100 + step_ms, frame_of(*fields), 0)
            self.entries[self.stream.last_id] = fields

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        entry_id = self.pick(data)
        assert self.stream.delete(entry_id) == (self.entries.pop(entry_id, None) is not None)

    @rule(keep=st.integers(0, 12))
    def trim(self, keep: int) -> None:
        self.stream.trim_length(keep)
        for entry_id in sorted(self.entries)[: max(0, len(self.entries) - keep)]:
            del self.entries[entry_id]

    @rule(step_ms=st.sampled_from([1, 10, 50, 100]))
    def wait(self, step_ms: int) -> None:
        self.now_ms += step_ms

    # --- Reading -----------------------------------------------------------------------------------

    @rule(name=NAMES, limit=st.integers(0, 4), ack=st.booleans())
    def deliver(self, name: bytes, limit: int, ack: bool) -> None:
        expected = sorted(entry_id for entry_id in self.entries if entry_id > self.last)
        expected = expected[: limit or None]
        consumer = self.consumer(name)
        found = self.group.deliver(self.stream, consumer, limit, self.now_ms, ack)
        assert (found is None) == (not expected)
        if found is None:
            return
        assert found.entries() == [(entry_id.text, self.entries[entry_id]) for entry_id in expected]
        self.last = expected[-1]
        if ack:
            for entry_id in expected:
                self.pending[entry_id] = Row(name, self.now_ms, 1)

    @rule(data=st.data(), name=NAMES, limit=st.integers(0, 4))
    def redeliver(self, data: st.DataObject, name: bytes, limit: int) -> None:
        after = self.pick(data)
        mine = sorted(i for i, row in self.pending.items() if row.consumer == name and i > after)
        mine = mine[: limit or None]
        consumer = self.consumer(name)
        found = self.group.redeliver(self.stream, consumer, after, limit, self.now_ms)
        assert found == [(entry_id.text, self.entries.get(entry_id)) for entry_id in mine]
        for entry_id in mine:
            if entry_id in self.entries:
                row = self.pending[entry_id]
                row.delivery_ms = self.now_ms
                row.delivery_count += 1

    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        entry_id = self.pick(data)
        was_pending = self.pending.pop(entry_id, None) is not None
        assert self.group.acknowledge(entry_id) == was_pending

    @rule(data=st.data(), entries_read=st.sampled_from([-1, 0, 3]))
    def set_position(self, data: st.DataObject, entries_read: int) -> None:
        self.last = self.pick(data)
        self.group.set_position(self.last, entries_read)

    # --- Claiming ----------------------------------------------------------------------------------

    def is_idle(self, row: Row, idle_ms_min: int, now_ms: int) -> bool:
        return idle_ms_min == 0 or now_ms - row.delivery_ms >= idle_ms_min

    def expect_taken(self, entry_id: StreamID, name: bytes, options: ClaimOptions) -> None:
        row = self.pending[entry_id]
        row.consumer = name
        row.delivery_ms = options.delivery_ms
        if options.delivery_count >= 0:
            row.delivery_count = options.delivery_count
        elif not options.just_id:
            row.delivery_count += 1

    @rule(
        data=st.data(),
        name=NAMES,
        idle_ms_min=st.sampled_from([0, 1, 50]),
        earlier_ms=st.integers(0, 60),
        delivery_count=st.sampled_from([-1, 0, 5]),
        force=st.booleans(),
        just_id=st.booleans(),
    )
    def claim(
        self,
        data: st.DataObject,
        name: bytes,
        idle_ms_min: int,
        earlier_ms: int,
        delivery_count: int,
        force: bool,
        just_id: bool,
    ) -> None:
        entry_id = self.pick(data)
        options = ClaimOptions(
            idle_ms_min, self.now_ms - earlier_ms, delivery_count, force, just_id
        )
        consumer = self.consumer(name)
        taken = self.group.claim(self.stream, entry_id, consumer, options, self.now_ms)
        row = self.pending.get(entry_id)
        if entry_id not in self.entries:
            assert not taken
            self.pending.pop(entry_id, None)
        elif row is None and force:
            assert taken
            self.pending[entry_id] = Row(name, 0, 1)
            self.expect_taken(entry_id, name, options)
        else:
            assert taken == (row is not None and self.is_idle(row, idle_ms_min, self.now_ms))
            if taken:
                self.expect_taken(entry_id, name, options)

    @rule(
        data=st.data(),
        name=NAMES,
        limit=st.integers(1, 3),
        idle_ms_min=st.sampled_from([0, 1, 50, 10_000]),
        just_id=st.booleans(),
    )
    def autoclaim(
        self, data: st.DataObject, name: bytes, limit: int, idle_ms_min: int, just_id: bool
    ) -> None:
        start = self.pick(data)
        options = ClaimOptions(idle_ms_min, self.now_ms, just_id=just_id)
        consumer = self.consumer(name)
        found = self.group.autoclaim(self.stream, start, limit, consumer, options)
        rows = sorted(entry_id for entry_id in self.pending if entry_id >= start)
        claimed: list[StreamID] = []
        deleted: list[StreamID] = []
        looked = 0
        for entry_id in rows[: limit * SCANS_PER_CLAIM]:
            if len(claimed) + len(deleted) == limit:
                break
            looked += 1
            if entry_id not in self.entries:
                deleted.append(entry_id)
            elif self.is_idle(self.pending[entry_id], idle_ms_min, self.now_ms):
                claimed.append(entry_id)
        assert (found.claimed, found.deleted) == (claimed, deleted)
        assert found.cursor == (rows[looked] if looked < len(rows) else SMALLEST)
        for entry_id in deleted:
            del self.pending[entry_id]
        for entry_id in claimed:
            self.expect_taken(entry_id, name, options)

    # --- Consumers ---------------------------------------------------------------------------------

    @rule(name=NAMES)
    def create_consumer(self, name: bytes) -> None:
        consumer = self.consumer(name)
        assert (consumer.name, self.group.consumer_or_none(name)) == (name, consumer)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def delete_consumer(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.consumers)))
        mine = [entry_id for entry_id, row in self.pending.items() if row.consumer == name]
        assert self.group.delete_consumer(self.consumer(name)) == len(mine)
        for entry_id in mine:
            del self.pending[entry_id]
        self.consumers.remove(name)

    # --- Inspection --------------------------------------------------------------------------------

    @rule(data=st.data(), limit=st.integers(0, 5), idle_ms=st.sampled_from([None, 0, 20, 100]))
    def look(self, data: st.DataObject, limit: int, idle_ms: int | None) -> None:
        start, end = self.pick(data), self.pick(data)
        name = data.draw(
            st.none() | st.sampled_from(sorted(self.consumers)) if self.consumers else st.none()
        )
        since = None if idle_ms is None else self.now_ms - idle_ms
        found = self.group.pending_rows(
            start, end, limit, None if name is None else self.consumer(name), since
        )
        expected = [
            (entry_id, row.consumer)
            for entry_id, row in sorted(self.pending.items())
            if start <= entry_id <= end
            and name in (None, row.consumer)
            and (since is None or row.delivery_ms <= since)
        ]
        assert [(row.id, row.consumer) for row in found] == expected[:limit]

    @invariant()
    def agrees_with_the_model(self) -> None:
        check_stream(self.stream)
        assert self.group.last_id == self.last
        assert pending_of(self.group) == [
            (str(entry_id), row.consumer, row.delivery_ms, row.delivery_count)
            for entry_id, row in sorted(self.pending.items())
        ]
        counts = dict.fromkeys(sorted(self.consumers), 0)
        for row in self.pending.values():
            counts[row.consumer] += 1
        assert self.group.consumer_counts() == [(n, count) for n, count in counts.items() if count]
        assert self.group.consumers.count == len(self.consumers)
        assert self.group.pending_edge_or_none(False) == min(self.pending, default=None)
        assert self.group.pending_edge_or_none(True) == max(self.pending, default=None)

    @invariant()
    def the_lag_is_unknown_or_within_what_was_added(self) -> None:
        lag = self.group.lag_or_none(self.stream)
        assert lag is None or lag >= 0 or self.group.entries_read > self.stream.entries_added


class ReadingMachine(RuleBasedStateMachine):
    """A group that never moves back, on a stream that is only appended to and trimmed: its lag is exact."""

    @initialize(entries_max=st.integers(1, 4))
    def begin(self, entries_max: int) -> None:
        self.stream = Stream(NodeLimits(4096, entries_max))
        self.group = Group(SMALLEST, 0)
        self.consumer = self.group.create_consumer(b"c", 0)
        self.ids: list[StreamID] = []

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        for _ in range(count):
            self.stream.append(1, frame_of(b"k", b"v"), 0)
            self.ids.append(self.stream.last_id)

    @rule(limit=st.integers(0, 3))
    def deliver(self, limit: int) -> None:
        self.group.deliver(self.stream, self.consumer, limit, 0, False)

    @rule(behind=st.integers(0, 3))
    def trim_what_was_read(self, behind: int) -> None:
        unread = sum(entry_id > self.group.last_id for entry_id in self.ids)
        self.stream.trim_length(unread + behind)

    @invariant()
    def lag_is_what_is_left_to_read(self) -> None:
        unread = sum(entry_id > self.group.last_id for entry_id in self.ids)
        assert self.group.entries_read in (ENTRIES_READ_UNKNOWN, len(self.ids) - unread)
        assert self.group.lag_or_none(self.stream) == unread
        assert self.group.pending_rows(SMALLEST, LARGEST, 1) == []


TestGroup = GroupMachine.TestCase
TestGroup.settings = settings(max_examples=cases(1200), stateful_step_count=40)
TestReading = ReadingMachine.TestCase
TestReading.settings = settings(max_examples=cases(500), stateful_step_count=20)
