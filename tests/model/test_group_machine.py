"""Groups behave like positions and dictionaries of pending entries, whichever consumer owns these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.build import KIND
from penstock.core.check import check_stream
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import ENTRIES_READ_UNKNOWN, Group
from penstock.core.groups.records import NEVER_MS, ClaimOptions
from penstock.core.groups.references import References, add_group, remove_group
from penstock.core.stream import COUNT_MAX, NodeLimits, Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from tests.support.campaign import cases
from tests.support.engine.dumb_references import Trim, entries_to_trim, is_referenced
from tests.support.engine.streams import frame_of, pending_of

GROUPS = [b"g", b"h", b"i"]
NAMES = st.sampled_from([b"a", b"ab", b"abc", b"b", b""])
VALUES = st.sampled_from([b"1", b"2", b"v", b"v" * 20_000])  # the last: larger than a kept buffer
LIMITS = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 2**31, 2**32, COUNT_MAX, MAX64])
IDLE_TIMES = st.sampled_from([0, 1, 50, 120, 2**31, 2**32, COUNT_MAX])
COUNTS = st.sampled_from([0, 1, 5, 2**31, COUNT_MAX - 1, COUNT_MAX])
TIMES = st.sampled_from([1000, 2**32, COUNT_MAX - 10_000])
SCANS_PER_CLAIM = 10


@dataclass
class Row:
    """The model of one pending entry; without a consumer if it was returned."""

    consumer: bytes | None
    delivery_ms: int
    delivery_count: int

    def delivered_again(self, consumer: bytes, now_ms: int) -> None:
        self.consumer = consumer
        self.delivery_ms = now_ms
        self.delivery_count = min(self.delivery_count + 1, COUNT_MAX)


@dataclass
class DumbGroup:
    """The model of one group."""

    last: StreamID
    pending: dict[StreamID, Row] = field(default_factory=dict)
    consumers: set[bytes] = field(default_factory=set)
    returned: list[StreamID] = field(default_factory=list)

    def forget(self, entry_id: StreamID) -> bool:
        """Remove a record; tell whether there was one."""
        if entry_id in self.returned:
            self.returned.remove(entry_id)
        return self.pending.pop(entry_id, None) is not None

    def take(self, entry_id: StreamID, name: bytes, options: ClaimOptions) -> None:
        row = self.pending[entry_id]
        if entry_id in self.returned:
            self.returned.remove(entry_id)
        before = row.delivery_count
        row.delivered_again(name, options.delivery_ms)
        if options.delivery_count >= 0:
            row.delivery_count = options.delivery_count
        elif options.just_id:
            row.delivery_count = before


class GroupMachine(RuleBasedStateMachine):
    """All operations on the groups of a stream while the stream changes."""

    @initialize(entries_max=st.integers(1, 4), entries_read=st.sampled_from([0, -1]), now_ms=TIMES)
    def begin(self, entries_max: int, entries_read: int, now_ms: int) -> None:
        self.stream = Stream(NodeLimits(4096, entries_max))
        self.entries: dict[StreamID, list[bytes]] = {}
        self.groups: dict[bytes, DumbGroup] = {}
        self.now_ms = now_ms
        add_group(self.stream, b"g", Group(SMALLEST, entries_read))
        self.groups[b"g"] = DumbGroup(SMALLEST)

    def pick_group(self, data: st.DataObject) -> tuple[Group, DumbGroup]:
        name = data.draw(st.sampled_from(sorted(self.groups)))
        assert self.stream.groups is not None
        return self.stream.groups.find(name), self.groups[name]

    def consumer(self, group: Group, model: DumbGroup, name: bytes) -> Consumer:
        """A consumer by name, created if it does not exist."""
        found = group.consumer_or_none(name)
        assert (found is not None) == (name in model.consumers)
        model.consumers.add(name)
        return found if found is not None else group.create_consumer(name, self.now_ms)

    def known_ids(self) -> list[StreamID]:
        pending = (entry_id for model in self.groups.values() for entry_id in model.pending)
        lasts = (model.last for model in self.groups.values())
        return sorted({*self.entries, *pending, *lasts, SMALLEST, StreamID(7, 7), LARGEST})

    def pick(self, data: st.DataObject) -> StreamID:
        """An id that is pending, or in the stream, or neither."""
        return data.draw(st.sampled_from(self.known_ids()))

    def is_refused(self, limit: int, call: Callable[[], object]) -> bool:
        """C numbers end at COUNT_MAX: then nothing is done. In Python a larger limit is none."""
        if limit <= COUNT_MAX or KIND == "interpreted":
            return False
        try:
            call()
        except OverflowError:
            return True
        raise AssertionError(f"a limit of {limit} was not refused")

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

    @rule(step_ms=st.sampled_from([-30, 1, 10, 50, 100]))
    def wait(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule()
    def copy(self) -> None:
        """Continue with a copy: it lacks the index and the orders, and has everything else."""
        self.stream = self.stream.copy()

    # --- Groups and references ---------------------------------------------------------------------

    @rule(data=st.data(), name=st.sampled_from(GROUPS))
    def add_a_group(self, data: st.DataObject, name: bytes) -> None:
        if name not in self.groups:
            self.groups[name] = DumbGroup(self.pick(data))
            add_group(self.stream, name, Group(self.groups[name].last))

    @rule(name=st.sampled_from(GROUPS))
    def remove_a_group(self, name: bytes) -> None:
        assert remove_group(self.stream, name) == (name in self.groups)
        self.groups.pop(name, None)

    def needed(self) -> set[StreamID]:
        groups = [(model.last, model.pending) for model in self.groups.values()]
        return {entry_id for entry_id in self.known_ids() if is_referenced(entry_id, groups)}

    @rule()
    def ask_for_references(self) -> None:
        references = References(self.stream)
        held = {i for i in self.known_ids() if references.holds(i.ms, i.seq)}
        assert held == self.needed()

    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        entry_id = self.pick(data)
        forgotten = [model.forget(entry_id) for model in self.groups.values()]
        assert References(self.stream).forget(entry_id) == any(forgotten)

    @rule(data=st.data())
    def forget_before(self, data: st.DataObject) -> None:
        first = self.pick(data)
        forgotten = 0
        for model in self.groups.values():
            for entry_id in sorted(model.pending):
                forgotten += entry_id < first and model.forget(entry_id)
        assert References(self.stream).forget_before(first) == forgotten

    @rule(
        data=st.data(),
        length_max=LIMITS,
        limit=LIMITS,
        by_id=st.booleans(),
        thorough=st.booleans(),
    )
    def trim_unreferenced(
        self, data: st.DataObject, length_max: int, limit: int, by_id: bool, thorough: bool
    ) -> None:
        given = Trim(length_max, self.pick(data) if by_id else None, limit, thorough)
        doomed = entries_to_trim(self.stream, self.needed(), given)

        def trim() -> int:
            return References(self.stream).trim_unreferenced(
                length_max, given.min_id, limit, thorough
            )

        if self.is_refused(max(length_max, limit), trim):
            return
        assert trim() == len(doomed)
        for entry_id in doomed:
            del self.entries[entry_id]

    # --- Reading -----------------------------------------------------------------------------------

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), name=NAMES, limit=LIMITS, ack=st.booleans())
    def deliver(self, data: st.DataObject, name: bytes, limit: int, ack: bool) -> None:
        group, model = self.pick_group(data)
        expected = sorted(entry_id for entry_id in self.entries if entry_id > model.last)
        expected = expected[: limit or None]
        consumer = self.consumer(group, model, name)

        def deliver() -> object:
            return group.deliver(self.stream, consumer, limit, self.now_ms, ack)

        if self.is_refused(limit, deliver):
            return
        found = group.deliver(self.stream, consumer, limit, self.now_ms, ack)
        assert (found is None) == (not expected)
        if found is None:
            return
        assert found.entries() == [(entry_id.text, self.entries[entry_id]) for entry_id in expected]
        model.last = expected[-1]
        if ack:
            for entry_id in expected:
                model.forget(entry_id)
                model.pending[entry_id] = Row(name, self.now_ms, 1)

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), name=NAMES, limit=LIMITS)
    def redeliver(self, data: st.DataObject, name: bytes, limit: int) -> None:
        group, model = self.pick_group(data)
        after = self.pick(data)
        mine = sorted(i for i, row in model.pending.items() if row.consumer == name and i > after)
        mine = mine[: limit or None]
        consumer = self.consumer(group, model, name)

        def redeliver() -> object:
            return group.redeliver(self.stream, consumer, after, limit, self.now_ms)

        if self.is_refused(limit, redeliver):
            return
        assert redeliver() == [(entry_id.text, self.entries.get(entry_id)) for entry_id in mine]
        for entry_id in mine:
            if entry_id in self.entries:
                model.pending[entry_id].delivered_again(name, self.now_ms)

    @precondition(lambda self: self.groups)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        group, model = self.pick_group(data)
        entry_id = self.pick(data)
        assert group.acknowledge(entry_id) == model.forget(entry_id)

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), entries_read=st.sampled_from([-1, 0, 3, COUNT_MAX]))
    def set_position(self, data: st.DataObject, entries_read: int) -> None:
        group, model = self.pick_group(data)
        model.last = self.pick(data)
        group.set_position(model.last, entries_read)

    # --- Returning ---------------------------------------------------------------------------------

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), delivery_count=COUNTS)
    def give_back(self, data: st.DataObject, delivery_count: int) -> None:
        """Also an entry that is not pending: its record is made."""
        group, model = self.pick_group(data)
        entry_id = self.pick(data)
        row = model.pending.get(entry_id)
        if row is not None:
            group.give_back(entry_id, delivery_count)
        elif entry_id != SMALLEST:
            group.add_returned(entry_id, delivery_count)
        else:
            return
        model.pending[entry_id] = Row(None, 0, delivery_count)
        if entry_id not in model.returned:
            model.returned.append(entry_id)

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), name=NAMES, idle_ms_min=IDLE_TIMES, limit=LIMITS)
    def claim_idle(self, data: st.DataObject, name: bytes, idle_ms_min: int, limit: int) -> None:
        group, model = self.pick_group(data)
        consumer = self.consumer(group, model, name)
        owned = sorted(
            (row.delivery_ms, i) for i, row in model.pending.items() if row.consumer is not None
        )
        idle = [i for delivery_ms, i in owned if self.now_ms - delivery_ms >= idle_ms_min]
        expected = [i for i in [*model.returned, *idle] if i in self.entries][: limit or None]

        def claim_idle() -> object:
            return group.claim_idle(self.stream, consumer, idle_ms_min, limit, self.now_ms)

        if self.is_refused(limit, claim_idle):
            return
        rows = [
            (
                entry_id,
                self.entries[entry_id],
                NEVER_MS if row.consumer is None else self.now_ms - row.delivery_ms,
                row.delivery_count,
            )
            for entry_id in expected
            for row in [model.pending[entry_id]]
        ]
        found = group.claim_idle(self.stream, consumer, idle_ms_min, limit, self.now_ms)
        assert [(row.id, row.fields, row.idle_ms, row.delivery_count) for row in found] == rows
        for entry_id in expected:
            model.take(entry_id, name, ClaimOptions(0, self.now_ms))

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), idle_ms_min=IDLE_TIMES)
    def ask_for_the_next_claim(self, data: st.DataObject, idle_ms_min: int) -> None:
        group, model = self.pick_group(data)
        times = [
            0 if row.consumer is None else min(row.delivery_ms + idle_ms_min, COUNT_MAX)
            for entry_id, row in model.pending.items()
            if entry_id in self.entries
        ]
        found = group.next_claim_ms_or_none(self.stream, idle_ms_min)
        assert found == min(times, default=None)

    # --- Claiming ----------------------------------------------------------------------------------

    def is_idle(self, row: Row, idle_ms_min: int) -> bool:
        return idle_ms_min == 0 or self.now_ms - row.delivery_ms >= idle_ms_min

    @precondition(lambda self: self.groups)
    @rule(
        data=st.data(),
        name=NAMES,
        idle_ms_min=IDLE_TIMES,
        earlier_ms=st.integers(0, 60),
        delivery_count=st.just(-1) | COUNTS,
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
        group, model = self.pick_group(data)
        entry_id = self.pick(data)
        options = ClaimOptions(
            idle_ms_min, self.now_ms - earlier_ms, delivery_count, force, just_id
        )
        consumer = self.consumer(group, model, name)
        taken = group.claim(self.stream, entry_id, consumer, options, self.now_ms)
        row = model.pending.get(entry_id)
        if entry_id not in self.entries:
            assert not taken
            model.forget(entry_id)
        elif row is None and force:
            assert taken
            model.pending[entry_id] = Row(name, 0, 1)
            model.take(entry_id, name, options)
        else:
            assert taken == (row is not None and self.is_idle(row, idle_ms_min))
            if taken:
                model.take(entry_id, name, options)

    @precondition(lambda self: self.groups)
    @rule(
        data=st.data(),
        name=NAMES,
        limit=LIMITS,
        idle_ms_min=IDLE_TIMES,
        just_id=st.booleans(),
    )
    def autoclaim(
        self, data: st.DataObject, name: bytes, limit: int, idle_ms_min: int, just_id: bool
    ) -> None:
        group, model = self.pick_group(data)
        start = self.pick(data)
        options = ClaimOptions(idle_ms_min, self.now_ms, just_id=just_id)
        consumer = self.consumer(group, model, name)
        if self.is_refused(
            limit, lambda: group.autoclaim(self.stream, start, limit, consumer, options)
        ):
            return
        found = group.autoclaim(self.stream, start, limit, consumer, options)
        rows = sorted(entry_id for entry_id in model.pending if entry_id >= start)
        claimed: list[StreamID] = []
        deleted: list[StreamID] = []
        looked = 0
        for entry_id in rows[: limit * SCANS_PER_CLAIM]:
            if len(claimed) + len(deleted) == limit:
                break
            looked += 1
            if entry_id not in self.entries:
                deleted.append(entry_id)
            elif self.is_idle(model.pending[entry_id], idle_ms_min):
                claimed.append(entry_id)
        assert (found.claimed, found.deleted) == (claimed, deleted)
        assert found.cursor == (rows[looked] if looked < len(rows) else SMALLEST)
        for entry_id in deleted:
            model.forget(entry_id)
        for entry_id in claimed:
            model.take(entry_id, name, options)

    # --- Consumers ---------------------------------------------------------------------------------

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), name=NAMES)
    def create_consumer(self, data: st.DataObject, name: bytes) -> None:
        group, model = self.pick_group(data)
        consumer = self.consumer(group, model, name)
        assert (consumer.name, group.consumer_or_none(name)) == (name, consumer)

    @precondition(lambda self: any(model.consumers for model in self.groups.values()))
    @rule(data=st.data())
    def delete_consumer(self, data: st.DataObject) -> None:
        group, model = self.pick_group(data)
        if not model.consumers:
            return
        name = data.draw(st.sampled_from(sorted(model.consumers)))
        mine = [entry_id for entry_id, row in model.pending.items() if row.consumer == name]
        assert group.delete_consumer(self.consumer(group, model, name)) == len(mine)
        for entry_id in mine:
            del model.pending[entry_id]
        model.consumers.remove(name)

    # --- Inspection --------------------------------------------------------------------------------

    @precondition(lambda self: self.groups)
    @rule(data=st.data(), limit=LIMITS, idle_ms=st.sampled_from([None, 0, 20, 100]))
    def look(self, data: st.DataObject, limit: int, idle_ms: int | None) -> None:
        group, model = self.pick_group(data)
        start, end = self.pick(data), self.pick(data)
        name = data.draw(st.sampled_from([None, *sorted(model.consumers)]))
        since = None if idle_ms is None else self.now_ms - idle_ms
        chosen = None if name is None else self.consumer(group, model, name)
        if self.is_refused(limit, lambda: group.pending_rows(start, end, limit, chosen, since)):
            return
        found = group.pending_rows(start, end, limit, chosen, since)
        expected = [
            (entry_id, row.consumer or b"", row.consumer is not None)
            for entry_id, row in sorted(model.pending.items())
            if start <= entry_id <= end
            and (name is None or name == row.consumer)
            and (since is None or row.delivery_ms <= since)
        ]
        assert [(row.id, row.consumer, row.owned) for row in found] == expected[:limit]

    @invariant()
    def agrees_with_the_models(self) -> None:
        check_stream(self.stream)
        groups = {} if self.stream.groups is None else dict(self.stream.groups.pairs())
        assert groups.keys() == self.groups.keys()
        for name, group in groups.items():
            self.agrees_with(group, self.groups[name])

    def agrees_with(self, group: Group, model: DumbGroup) -> None:
        assert group.last_id == model.last
        assert list(group.returned) == [entry_id.key for entry_id in model.returned]
        assert pending_of(group) == [
            (str(entry_id), row.consumer or b"", row.delivery_ms, row.delivery_count)
            for entry_id, row in sorted(model.pending.items())
        ]
        counts = dict.fromkeys(sorted(model.consumers), 0)
        for row in model.pending.values():
            if row.consumer is not None:
                counts[row.consumer] += 1
        assert group.consumer_counts() == [(n, count) for n, count in counts.items() if count]
        assert group.consumers.count == len(model.consumers)
        assert group.pending_edge_or_none(False) == min(model.pending, default=None)
        assert group.pending_edge_or_none(True) == max(model.pending, default=None)
        lag = group.lag_or_none(self.stream)
        assert lag is None or lag >= 0 or group.entries_read > self.stream.entries_added


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
