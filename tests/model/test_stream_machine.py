"""A stream behaves like a sorted mapping of ids, however small its nodes are."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.core import stream_id
from penstock.core.check import check_stream
from penstock.core.groups.references import References
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_cursor import EntryCursor
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.errors import CoreError
from tests.support.campaign import cases
from tests.support.engine.streams import frame_of, node_keys, state_of

# Few, so that they collide; with the limits of 64 bits among them.
MILLISECONDS = st.sampled_from([0, 1, 2, 3, 5, 8, 2**63 - 1, 2**63, MAX64 - 1, MAX64])
SEQS = st.sampled_from([0, 1, 2, 3, 2**63 - 1, 2**63, MAX64 - 1, MAX64])
LIMITS = st.builds(NodeLimits, st.sampled_from([0, 1, 40, 80, 4096]), st.sampled_from([0, 1, 2, 3]))
NAMES = st.sampled_from([(b"k",), (b"k", b"l"), (b"l", b"k"), (b"7",), (b"",), (b"n" * 64,)])
VALUES = st.sampled_from([b"", b"0", b"-1", b"12345", b"v", b"007", b"\x00\xff", b"w" * 70])


@st.composite
def entries(draw: st.DrawFn) -> list[bytes]:
    flat = []
    for name in draw(NAMES):
        flat += [name, draw(VALUES)]
    return flat


class StreamMachine(RuleBasedStateMachine):
    """All operations on a stream, with a cursor or two open meanwhile."""

    @initialize(limits=LIMITS)
    def begin(self, limits: NodeLimits) -> None:
        self.stream = Stream(limits)
        self.limits_changed = False
        self.model: dict[StreamID, list[bytes]] = {}
        self.last = SMALLEST
        self.max_deleted = SMALLEST
        self.added = 0
        self.now_ms = 1
        self.cursors: dict[bool, tuple[EntryCursor, StreamID | None]] = {}
        self.ended: list[EntryCursor] = []

    def ids(self) -> list[StreamID]:
        return sorted(self.model)

    def near(self, data: st.DataObject) -> StreamID:
        """An id, most often one that exists or its neighbour."""
        known = [*self.ids(), self.last, SMALLEST, LARGEST]
        chosen = data.draw(st.sampled_from(known) | st.builds(StreamID, MILLISECONDS, SEQS))
        step = data.draw(st.sampled_from("=<>"))
        if step == "<" and chosen != SMALLEST:
            return chosen.previous()
        if step == ">" and chosen != LARGEST:
            return chosen.next()
        return chosen

    def expect_added(self, entry_id: StreamID, fields: list[bytes]) -> None:
        assert self.stream.last_id == entry_id
        self.model[entry_id] = fields
        self.last = entry_id
        self.added += 1

    def expect_refused(self, call: str, *arguments: object) -> None:
        before = state_of(self.stream)
        try:
            getattr(self.stream, call)(*arguments)
        except CoreError:
            assert state_of(self.stream) == before
        else:
            raise AssertionError(f"{call}{arguments} was not refused")

    # --- Adding ------------------------------------------------------------------------------------

    @rule(step_ms=st.integers(-2, 3), fields=entries())
    def append(self, step_ms: int, fields: list[bytes]) -> None:
        self.now_ms = max(0, self.now_ms + step_ms)
        if self.last == LARGEST:
            self.expect_refused("append", self.now_ms, frame_of(*fields), 0)
            return
        expected = StreamID(self.now_ms, 0) if self.now_ms > self.last.ms else self.last.next()
        self.stream.append(self.now_ms, frame_of(*fields), 0)
        self.expect_added(expected, fields)

    @rule(data=st.data(), fields=entries())
    def append_at(self, data: st.DataObject, fields: list[bytes]) -> None:
        entry_id = self.near(data)
        if entry_id <= self.last:
            self.expect_refused("append_at", entry_id.ms, entry_id.seq, frame_of(*fields), 0)
            return
        self.stream.append_at(entry_id.ms, entry_id.seq, frame_of(*fields), 0)
        self.expect_added(entry_id, fields)

    @rule(ms=MILLISECONDS, same=st.booleans(), fields=entries())
    def append_in_ms(self, ms: int, same: bool, fields: list[bytes]) -> None:
        ms = self.last.ms if same else ms
        used_up = ms == self.last.ms and self.last.seq == MAX64
        if ms < self.last.ms or used_up:
            self.expect_refused("append_in_ms", ms, frame_of(*fields), 0)
            return
        expected = self.last.next() if ms == self.last.ms else StreamID(ms, 0)
        self.stream.append_in_ms(ms, frame_of(*fields), 0)
        self.expect_added(expected, fields)

    @precondition(lambda self: self.last != LARGEST)
    @rule()
    def append_more_than_a_buffer_keeps(self) -> None:
        fields = [b"k", b"v" * 20_000]
        self.stream.append(0, frame_of(*fields), 0)
        self.expect_added(self.last.next(), fields)

    @rule(bytes_max=st.sampled_from([0, 1, 60, 4096]), entries_max=st.sampled_from([0, 1, 2, 5]))
    def change_limits(self, bytes_max: int, entries_max: int) -> None:
        self.stream.limits.bytes_max = bytes_max
        self.stream.limits.entries_max = entries_max
        self.limits_changed = True

    # --- Removing ----------------------------------------------------------------------------------

    def expect_deleted(self, entry_id: StreamID) -> None:
        del self.model[entry_id]
        self.max_deleted = max(self.max_deleted, entry_id)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        entry_id = self.near(data)
        assert self.stream.delete(entry_id) == (entry_id in self.model)
        if entry_id in self.model:
            self.expect_deleted(entry_id)

    @rule(data=st.data())
    def trim_length(self, data: st.DataObject) -> None:
        keep = data.draw(st.integers(0, len(self.model) + 1))
        doomed = self.ids()[: max(0, len(self.model) - keep)]
        assert self.stream.trim_length(keep) == len(doomed)
        for entry_id in doomed:
            del self.model[entry_id]

    @rule(data=st.data())
    def trim_min_id(self, data: st.DataObject) -> None:
        min_id = self.near(data)
        doomed = [entry_id for entry_id in self.ids() if entry_id < min_id]
        assert self.stream.trim_min_id(min_id) == len(doomed)
        for entry_id in doomed:
            del self.model[entry_id]

    @rule(data=st.data(), thorough=st.booleans())
    def trim_what_no_group_needs(self, data: st.DataObject, thorough: bool) -> None:
        """The stream has no groups: everything below the threshold goes, entry by entry."""
        if data.draw(st.booleans()):
            keep = data.draw(st.sampled_from([0, 1, len(self.model) // 2, 2**31, 2**63 - 1]))
            doomed = self.ids()[: max(0, len(self.model) - keep)]
            removed = References(self.stream).trim_unreferenced(keep, None, 0, thorough)
        else:
            min_id = self.near(data)
            doomed = [entry_id for entry_id in self.ids() if entry_id < min_id]
            removed = References(self.stream).trim_unreferenced(0, min_id, 0, thorough)
        assert removed == len(doomed)
        for entry_id in doomed:
            del self.model[entry_id]

    @rule(data=st.data(), limit=st.integers(0, 7))
    def trim_approximately(self, data: st.DataObject, limit: int) -> None:
        """Only whole nodes are removed, none that the threshold touches, and as many as the limit allows."""
        by_length = data.draw(st.booleans())
        keep, min_id = data.draw(st.integers(0, len(self.model) + 1)), self.near(data)
        keys = [stream_id.parse(key.encode()) for key in node_keys(self.stream)]
        if by_length:
            removed = self.stream.trim_length(keep, approximate=True, limit=limit)
        else:
            removed = self.stream.trim_min_id(min_id, approximate=True, limit=limit)
        left = node_keys(self.stream)
        gone = len(keys) - len(left)
        assert left == [str(key) for key in keys[gone:]]
        nodes = [
            [
                entry
                for entry in self.ids()
                if key <= entry and (n + 1 == len(keys) or entry < keys[n + 1])
            ]
            for n, key in enumerate(keys)
        ]
        doomed = [entry for node in nodes[:gone] for entry in node]
        assert removed == len(doomed)
        assert not limit or removed <= limit
        if by_length:
            assert not doomed or len(self.model) - removed >= keep
        else:
            assert all(entry_id < min_id for entry_id in doomed)
        if gone < len(keys) and by_length and len(self.model) - removed > keep:
            stays = len(nodes[gone])
            too_many = bool(limit) and removed + stays > limit
            assert too_many or len(self.model) - removed - stays < keep
        for entry_id in doomed:
            del self.model[entry_id]

    # --- Reading -----------------------------------------------------------------------------------

    @rule(data=st.data(), limit=st.integers(0, 5), reverse=st.booleans())
    def read_a_range(self, data: st.DataObject, limit: int, reverse: bool) -> None:
        start, end = self.near(data), self.near(data)
        chosen = [entry_id for entry_id in self.ids() if start <= entry_id <= end]
        chosen = (chosen[::-1] if reverse else chosen)[: limit or None]
        found = self.stream.range(start, end, limit, reverse)
        assert found.entries() == [(entry_id.text, self.model[entry_id]) for entry_id in chosen]

    @rule(reverse=st.booleans(), pattern=st.integers(0, 2**16))
    def iterate_and_remove(self, reverse: bool, pattern: int) -> None:
        cursor = self.stream.cursor(reverse=reverse)
        expected = self.ids()[:: -1 if reverse else 1]
        for entry_id in expected:
            assert cursor.advance()
            assert cursor.id == entry_id
            assert cursor.entry.fields() == self.model[entry_id]
            if pattern & 1:
                assert cursor.remove()
                self.expect_deleted(entry_id)
            pattern >>= 1
        assert not cursor.advance()

    @precondition(lambda self: self.model)
    @rule(reverse=st.booleans())
    def leave_a_cursor_open(self, reverse: bool) -> None:
        self.cursors[reverse] = (self.stream.cursor(reverse=reverse), None)

    @precondition(lambda self: self.cursors)
    @rule(data=st.data(), remove=st.booleans())
    def step_an_open_cursor(self, data: st.DataObject, remove: bool) -> None:
        """Whatever has happened since, the cursor moves to the next entry that exists now."""
        reverse = data.draw(st.sampled_from(sorted(self.cursors)))
        cursor, here = self.cursors[reverse]
        if remove and here is not None:
            assert cursor.remove() == (here in self.model)
            if here in self.model:
                self.expect_deleted(here)
            return
        ahead = [
            entry_id
            for entry_id in self.ids()
            if here is None or (entry_id < here if reverse else entry_id > here)
        ]
        assert cursor.advance() == bool(ahead)
        if not ahead:
            del self.cursors[reverse]
            self.ended = [*self.ended[-2:], cursor]
            return
        here = ahead[-1 if reverse else 0]
        assert cursor.id == here
        assert cursor.entry.fields() == self.model[here]
        self.cursors[reverse] = (cursor, here)

    @invariant()
    def a_cursor_that_has_ended_stays_so(self) -> None:
        for cursor in self.ended:
            assert not cursor.advance()
            assert not cursor.remove()

    @invariant()
    def agrees_with_the_model(self) -> None:
        check_stream(self.stream, None if self.limits_changed else self.stream.limits)
        expected = [(entry_id.text, self.model[entry_id]) for entry_id in self.ids()]
        assert self.stream.range().entries() == expected
        assert self.stream.range(reverse=True).entries() == expected[::-1]
        assert self.stream.length == len(self.model)
        assert self.stream.last_id == self.last
        assert self.stream.max_deleted_id == self.max_deleted
        assert self.stream.entries_added == self.added
        assert self.stream.first_id() == min(self.model, default=SMALLEST)


TestStream = StreamMachine.TestCase
TestStream.settings = settings(max_examples=cases(1200), stateful_step_count=40)
