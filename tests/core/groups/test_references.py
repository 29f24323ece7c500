"""References of groups: which entries are still needed, removing references, and trimming what is free."""

from __future__ import annotations

import random

import pytest

from penstock.core.check import check_stream
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.pending_index import PendingIndex
from penstock.core.groups.records import ClaimOptions
from penstock.core.groups.references import References, add_group, remove_group
from penstock.core.stream import Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from tests.support.campaign import cases
from tests.support.engine.dumb_references import Trim, entries_to_trim, is_referenced
from tests.support.engine.streams import add, ids_of, node_keys, sid, state_of, stream_of

BIG = [0, 1, 2**31, 2**32, 2**63 - 1]


def group_on(stream: Stream, name: bytes, last: StreamID = SMALLEST) -> Group:
    group = Group(last)
    add_group(stream, name, group)
    return group


def consumer_of(group: Group, name: bytes = b"c") -> Consumer:
    found = group.consumer_or_none(name)
    return group.create_consumer(name, 0) if found is None else found


def read(stream: Stream, group: Group, count: int, *done: str) -> None:
    """Deliver entries to a consumer, and acknowledge some of them."""
    group.deliver(stream, consumer_of(group), count, 100, True)
    for entry_id in done:
        assert group.acknowledge(sid(entry_id))


def two_groups() -> tuple[Stream, Group, Group]:
    """The picture of references.py."""
    stream = stream_of(*(f"{n}-0" for n in range(1, 7)))
    a, b = group_on(stream, b"a"), group_on(stream, b"b")
    read(stream, a, 4, "1-0", "2-0", "4-0")
    read(stream, b, 5, "1-0", "3-0", "4-0", "5-0")
    return stream, a, b


def needed(stream: Stream) -> list[str]:
    """The entries that are referenced."""
    references = References(stream)
    return [i for i in ids_of(stream) if references.holds(sid(i).ms, sid(i).seq)]


def counts_of(stream: Stream) -> dict[str, int]:
    """The index, by id."""
    assert stream.pending_index is not None
    return {
        str(StreamID(int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big"))): count
        for key, count in stream.pending_index.counts.pairs()
    }


def trim(stream: Stream, given: Trim) -> int:
    removed = References(stream).trim_unreferenced(
        given.length_max, given.min_id, given.limit, given.thorough
    )
    check_stream(stream)
    return removed


# --- The index ---------------------------------------------------------------------------------------


def test_an_index_counts_and_forgets_at_zero() -> None:
    index = PendingIndex()
    key = LARGEST.key
    assert not index.has(key)
    index.add(key)
    index.add(key)
    assert (index.has(key), index.counts.find(key)) == (True, 2)
    index.remove(key)
    assert (index.has(key), index.counts.find(key)) == (True, 1)
    index.remove(key)
    assert (index.has(key), index.counts.count) == (False, 0)
    with pytest.raises(TypeError):
        index.remove(key)
    assert index.counts.count == 0


def test_only_a_stream_with_several_groups_gets_an_index_and_only_when_asked() -> None:
    stream, _, _ = two_groups()
    assert stream.pending_index is None
    remove_group(stream, b"a")
    References(stream).holds(0, 0)
    assert stream.pending_index is None
    add_group(stream, b"c", Group(SMALLEST))
    References(stream).holds(0, 0)
    assert counts_of(stream) == {"2-0": 1}
    check_stream(stream)


def test_every_change_of_a_group_reaches_the_index() -> None:
    stream, a, b = two_groups()
    References(stream).holds(0, 0)
    index = stream.pending_index
    assert counts_of(stream) == {"2-0": 1, "3-0": 1}
    read(stream, a, 2)  # 5-0 and 6-0
    a.claim(stream, sid("2-0"), consumer_of(a), ClaimOptions(0, 1, force=True), 1)
    assert counts_of(stream) == {"2-0": 2, "3-0": 1, "5-0": 1, "6-0": 1}
    b.give_back(sid("2-0"), 1)
    b.add_returned(sid("6-0"), 3)
    b.claim(stream, sid("2-0"), consumer_of(b, b"other"), ClaimOptions(0, 1), 1)
    assert counts_of(stream) == {"2-0": 2, "3-0": 1, "5-0": 1, "6-0": 2}
    stream.delete(sid("6-0"))
    b.autoclaim(stream, SMALLEST, 9, consumer_of(b), ClaimOptions(0, 1))
    assert counts_of(stream) == {"2-0": 2, "3-0": 1, "5-0": 1, "6-0": 1}
    a.set_position(SMALLEST, 0)
    read(stream, a, 2)  # 1-0, and 2-0 for the second time
    assert counts_of(stream) == {"1-0": 1, "2-0": 2, "3-0": 1, "5-0": 1, "6-0": 1}
    b.delete_consumer(consumer_of(b))
    b.delete_consumer(consumer_of(b, b"other"))
    a.delete_consumer(consumer_of(a))
    assert counts_of(stream) == {}
    check_stream(stream)
    assert stream.pending_index is index


def test_a_group_that_is_added_later_joins_the_index() -> None:
    stream, _, b = two_groups()
    References(stream).holds(0, 0)
    group = b.copy()
    add_group(stream, b"late", group)
    assert counts_of(stream) == {"2-0": 2, "3-0": 1}
    check_stream(stream)
    group.acknowledge(sid("2-0"))
    assert counts_of(stream) == {"2-0": 1, "3-0": 1}


def test_a_group_is_not_replaced_by_another_of_its_name() -> None:
    stream, a, _ = two_groups()
    References(stream).holds(0, 0)
    with pytest.raises(ValueError, match="a group b'a' already"):
        add_group(stream, b"a", Group(SMALLEST))
    assert stream.groups is not None
    assert stream.groups.find(b"a") is a
    check_stream(stream)


def test_a_group_that_is_removed_leaves_the_index() -> None:
    stream, a, b = two_groups()
    References(stream).holds(0, 0)
    assert remove_group(stream, b"b")
    assert counts_of(stream) == {"3-0": 1}
    check_stream(stream)
    b.acknowledge(sid("2-0"))  # it is no longer the stream's
    assert counts_of(stream) == {"3-0": 1}
    assert not remove_group(stream, b"b")
    assert needed(stream) == ["3-0", "5-0", "6-0"]
    read(stream, a, 9, "3-0")
    assert counts_of(stream) == {"5-0": 1, "6-0": 1}
    check_stream(stream)


def test_the_index_goes_with_the_last_group() -> None:
    stream, _, _ = two_groups()
    References(stream).holds(0, 0)
    assert remove_group(stream, b"a")
    assert remove_group(stream, b"b")
    assert stream.pending_index is None
    assert not remove_group(stream, b"b")
    assert not remove_group(Stream(), b"b")
    assert needed(stream) == []
    check_stream(stream)


def test_a_group_can_change_to_another_index_and_to_none() -> None:
    _, a, _ = two_groups()
    first, second = PendingIndex(), PendingIndex()
    a.give_back(sid("3-0"), 1)
    for _ in range(2):
        a.use_index(first)
    assert (first.counts.count, first.counts.find(sid("3-0").key)) == (1, 1)
    a.use_index(second)
    assert (first.counts.count, second.counts.count) == (0, 1)
    for _ in range(2):
        a.use_index(None)
    assert second.counts.count == 0
    a.acknowledge(sid("3-0"))
    assert second.counts.count == 0


# --- Asking ------------------------------------------------------------------------------------------


def test_without_groups_nothing_is_referenced() -> None:
    stream = stream_of("1-0", f"{MAX64}-{MAX64}")
    assert needed(stream) == []
    assert not References(stream).forget(sid("1-0"))
    assert References(stream).forget_before(LARGEST) == 0


def test_an_entry_is_needed_until_every_group_has_read_and_acknowledged_it() -> None:
    stream, a, b = two_groups()
    assert needed(stream) == ["2-0", "3-0", "5-0", "6-0"]
    b.acknowledge(sid("2-0"))
    assert needed(stream) == ["3-0", "5-0", "6-0"]
    a.acknowledge(sid("3-0"))
    assert needed(stream) == ["5-0", "6-0"]
    read(stream, a, 1, "5-0")
    assert needed(stream) == ["6-0"]
    a.set_position(SMALLEST, 0)
    assert needed(stream) == [f"{n}-0" for n in range(1, 7)]


def test_one_group_is_asked_without_an_index() -> None:
    stream = stream_of("1-0", "2-0", "3-0")
    group = group_on(stream, b"g")
    assert needed(stream) == ["1-0", "2-0", "3-0"]
    read(stream, group, 2, "1-0")
    assert needed(stream) == ["2-0", "3-0"]
    group.give_back(sid("2-0"), 0)
    assert needed(stream) == ["2-0", "3-0"]
    read(stream, group, 1, "2-0", "3-0")
    assert needed(stream) == []
    assert stream.pending_index is None


@pytest.mark.parametrize("names", [[b"g"], [b"g", b"h"]])
def test_ids_at_the_limits_of_64_bits(names: list[bytes]) -> None:
    ids = ["0-1", f"0-{MAX64}", f"{2**63}-0", f"{MAX64}-0", f"{MAX64}-{MAX64}"]
    stream = stream_of(*ids)
    groups = [group_on(stream, name) for name in names]
    for group in groups:
        read(stream, group, 4, *ids[:3])
    assert needed(stream) == ids[3:]
    for group in groups:
        read(stream, group, 1, ids[3])
    assert needed(stream) == ids[4:]
    assert References(stream).forget_before(LARGEST) == 0
    assert trim(stream, Trim(min_id=LARGEST)) == 4
    assert ids_of(stream) == ids[4:]
    assert References(stream).forget(LARGEST)
    assert not References(stream).forget(LARGEST)
    assert trim(stream, Trim(length_max=0)) == 1
    assert stream.length == 0
    assert stream.max_deleted_id == SMALLEST


def test_a_group_ahead_of_the_stream_needs_nothing_more() -> None:
    stream = stream_of("1-0", "2-0")
    group_on(stream, b"g", LARGEST)
    assert needed(stream) == []
    group_on(stream, b"h", sid("1-0"))
    assert needed(stream) == ["2-0"]


# --- Forgetting --------------------------------------------------------------------------------------


def test_an_entry_is_forgotten_by_all_groups() -> None:
    stream, a, b = two_groups()
    a.claim(stream, sid("2-0"), consumer_of(a), ClaimOptions(0, 1, force=True), 1)
    b.give_back(sid("2-0"), 1)
    references = References(stream)
    assert references.forget(sid("2-0"))
    assert not references.forget(sid("2-0"))
    assert not references.forget(sid("6-0"))  # not read yet: nothing is pending
    assert (a.pending.find(sid("2-0").key), b.pending.count) == (None, 0)
    assert counts_of(stream) == {"3-0": 1}
    assert not references.holds(2, 0)
    check_stream(stream)


def test_records_of_entries_that_are_gone_can_be_forgotten() -> None:
    stream, _, _ = two_groups()
    stream.trim_length(0)
    references = References(stream)
    assert references.holds(2, 0)
    assert references.forget(sid("2-0"))
    assert not references.holds(2, 0)
    check_stream(stream)


@pytest.mark.parametrize(
    ("first", "forgotten", "left"),
    [
        ("0-0", 0, {"2-0": 1, "3-0": 2}),
        ("2-0", 0, {"2-0": 1, "3-0": 2}),
        ("2-1", 1, {"3-0": 2}),
        ("3-0", 1, {"3-0": 2}),
        (f"3-{MAX64}", 3, {}),
        (f"{MAX64}-{MAX64}", 3, {}),
    ],
)
def test_everything_before_an_id_can_be_forgotten(
    first: str, forgotten: int, left: dict[str, int]
) -> None:
    stream, _, b = two_groups()
    b.add_returned(sid("3-0"), 1)
    references = References(stream)
    assert not references.holds(0, 0)
    assert references.forget_before(sid(first)) == forgotten
    assert counts_of(stream) == left
    check_stream(stream)
    assert references.forget_before(sid(first)) == 0


# --- Trimming ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length_max", BIG)
@pytest.mark.parametrize("limit", BIG)
def test_an_empty_stream_has_nothing_to_trim(length_max: int, limit: int) -> None:
    stream = Stream()
    assert trim(stream, Trim(length_max, None, limit)) == 0
    assert trim(stream, Trim(length_max, LARGEST, limit, True)) == 0
    group_on(stream, b"g")
    assert trim(stream, Trim(length_max, None, limit)) == 0


@pytest.mark.parametrize("length_max", range(9))
def test_without_groups_a_trim_is_exact(length_max: int) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 8)))
    twin = stream.copy()
    assert trim(stream, Trim(length_max)) == twin.trim_length(length_max)
    assert state_of(stream) == state_of(twin)


def test_unread_entries_stay() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 8)))
    group = group_on(stream, b"g")
    before = state_of(stream)
    assert trim(stream, Trim(0, thorough=True)) == 0
    assert state_of(stream) == before
    read(stream, group, 2, "1-0", "2-0")
    assert trim(stream, Trim(0, thorough=True)) == 2
    assert ids_of(stream) == ["3-0", "4-0", "5-0", "6-0", "7-0"]


def acknowledged_except(*pending: str, entries: int = 9) -> tuple[Stream, Group]:
    """A stream in nodes of three that is read, with these entries pending."""
    every = [f"{n}-0" for n in range(1, entries + 1)]
    stream = stream_of(*every)
    group = group_on(stream, b"g")
    read(stream, group, 0, *(entry_id for entry_id in every if entry_id not in pending))
    return stream, group


def test_a_trim_leaves_holes_and_removes_nodes_that_become_empty() -> None:
    stream, _ = acknowledged_except("2-0", "9-0")
    assert trim(stream, Trim(0)) == 7
    assert ids_of(stream) == ["2-0", "9-0"]
    assert node_keys(stream) == ["1-0", "7-0"]
    assert str(stream.max_deleted_id) == "0-0"  # a trim is no deletion
    add(stream, "10-0")
    check_stream(stream)


def test_a_trim_by_length_ends_with_the_first_node_that_need_not_go() -> None:
    stream, _ = acknowledged_except("4-0", "5-0", "6-0")
    assert trim(stream, Trim(4)) == 3
    assert ids_of(stream) == [f"{n}-0" for n in range(4, 10)]  # three of them are free
    assert trim(stream, Trim(4, thorough=True)) == 2
    assert ids_of(stream) == ["4-0", "5-0", "6-0", "9-0"]


def test_a_trim_removes_no_more_than_needed() -> None:
    stream, _ = acknowledged_except("1-0")
    assert trim(stream, Trim(7)) == 2
    assert ids_of(stream) == ["1-0", *(f"{n}-0" for n in range(4, 10))]
    assert trim(stream, Trim(7)) == 0
    assert trim(stream, Trim(2**63 - 1)) == 0


@pytest.mark.parametrize(("min_id", "left"), [("1-0", 9), ("5-0", 6), ("5-1", 5), ("9-9", 2)])
def test_a_trim_by_id_removes_what_is_free_below_it(min_id: str, left: int) -> None:
    stream, _ = acknowledged_except("2-0", "9-0")
    trim(stream, Trim(0, sid(min_id)))
    expected = [f"{n}-0" for n in range(1, 10) if n in (2, 9) or sid(f"{n}-0") >= sid(min_id)]
    assert (ids_of(stream), stream.length) == (expected, left)


@pytest.mark.parametrize(
    ("limit", "removed"), [(0, 6), (1, 0), (2, 0), (3, 2), (4, 2), (5, 4), (6, 4), (7, 6)]
)
@pytest.mark.parametrize("by_id", [False, True])
def test_a_limit_counts_whole_nodes_but_only_what_was_removed(
    limit: int, removed: int, by_id: bool
) -> None:
    stream, _ = acknowledged_except("1-0", "5-0", "9-0")
    given = Trim(0, LARGEST if by_id else None, limit)
    assert trim(stream, given) == removed


@pytest.mark.parametrize("limit", [2**31, 2**32, 2**63 - 1])
def test_a_large_limit_is_no_limit(limit: int) -> None:
    stream, _ = acknowledged_except("1-0")
    assert trim(stream, Trim(0, None, limit)) == 8
    stream, _ = acknowledged_except("1-0")
    assert trim(stream, Trim(2**63 - 1, LARGEST, limit)) == 8


def test_a_cursor_survives_a_trim_around_it() -> None:
    stream, _ = acknowledged_except("2-0", "5-0", "9-0")
    cursor = stream.cursor()
    assert cursor.advance()
    trim(stream, Trim(0))
    seen = []
    while cursor.advance():
        seen.append(str(cursor.id))
    assert seen == ["2-0", "5-0", "9-0"]


def test_counters_of_a_node_can_change_their_width_during_a_trim() -> None:
    """The count of tombstones takes one byte up to 127, then two."""
    stream = stream_of(*(f"{n}-0" for n in range(1, 301)), entries_max=300, bytes_max=10**6)
    group = group_on(stream, b"g")
    read(stream, group, 0, *(f"{n}-0" for n in range(1, 301) if n % 50))
    assert trim(stream, Trim(0)) == 294
    assert ids_of(stream) == [f"{n}-0" for n in range(50, 301, 50)]


def test_a_trim_regards_all_groups() -> None:
    stream, _, _ = two_groups()
    assert trim(stream, Trim(0, thorough=True)) == 2
    assert ids_of(stream) == ["2-0", "3-0", "5-0", "6-0"]
    remove_group(stream, b"b")
    assert trim(stream, Trim(0, thorough=True)) == 1
    remove_group(stream, b"a")
    assert trim(stream, Trim(0, thorough=True)) == 3
    assert ids_of(stream) == []


# --- A model -----------------------------------------------------------------------------------------


class World:
    """A stream with some groups, beside lists of what each group has read and has pending."""

    def __init__(self, seed: str) -> None:
        self.dice = random.Random(seed)
        entries_max = self.dice.choice([1, 2, 3, 5])
        self.stream = stream_of(entries_max=entries_max)
        self.last: dict[bytes, StreamID] = {}
        self.pending: dict[bytes, set[StreamID]] = {}
        self.ms = 0

    def group(self) -> tuple[bytes, Group]:
        """Some group; one is made if there is none."""
        if not self.last:
            self.add_group()
        name = self.dice.choice(sorted(self.last))
        assert self.stream.groups is not None
        return name, self.stream.groups.find(name)

    def ids(self) -> list[StreamID]:
        return [sid(entry_id) for entry_id in ids_of(self.stream)]

    def some_id(self) -> StreamID:
        known = [*self.ids(), *(i for ids in self.pending.values() for i in ids)]
        return self.dice.choice([SMALLEST, LARGEST, *known])

    def needed(self) -> set[StreamID]:
        groups = [(self.last[name], self.pending[name]) for name in self.last]
        return {i for i in [*self.ids(), LARGEST] if is_referenced(i, groups)}

    def step(self) -> None:
        """Do something, and compare."""
        actions = [self.append] * 4 + [self.deliver] * 4 + [self.acknowledge] * 6
        actions += [self.trim] * 3 + [self.forget, self.forget_before, self.delete, self.move]
        actions += [self.add_group, self.remove_group, self.add_record, self.give_back, self.copy]
        self.dice.choice(actions)()
        check_stream(self.stream)
        if self.dice.random() < 0.3:
            references = References(self.stream)
            held = {i for i in [*self.ids(), LARGEST] if references.holds(i.ms, i.seq)}
            assert held == self.needed()

    def append(self) -> None:
        for _ in range(self.dice.randint(1, 5)):
            self.ms += self.dice.choice([1, 1, 1, 2**40])
            add(self.stream, f"{self.ms}-{self.dice.choice([0, 7, MAX64])}")

    def add_group(self) -> None:
        name = self.dice.choice([b"a", b"b", b"c"])
        if name not in self.last:
            self.last[name] = self.dice.choice([SMALLEST, self.stream.last_id, self.some_id()])
            self.pending[name] = set()
            add_group(self.stream, name, Group(self.last[name]))

    def remove_group(self) -> None:
        name = self.dice.choice([b"a", b"b", b"c"])
        assert remove_group(self.stream, name) == (name in self.last)
        self.last.pop(name, None)
        self.pending.pop(name, None)

    def deliver(self) -> None:
        name, group = self.group()
        count = self.dice.choice([1, 2, 5, *BIG[2:]])
        unread = [i for i in self.ids() if i > self.last[name]][:count]
        group.deliver(self.stream, consumer_of(group), count, 100, True)
        if unread:
            self.last[name] = unread[-1]
            self.pending[name].update(unread)

    def acknowledge(self) -> None:
        name, group = self.group()
        entry_id = self.some_id()
        assert group.acknowledge(entry_id) == (entry_id in self.pending[name])
        self.pending[name].discard(entry_id)

    def add_record(self) -> None:
        name, group = self.group()
        entry_id = self.some_id()
        if entry_id not in (SMALLEST, *self.pending[name]):
            group.add_returned(entry_id, 1)
            self.pending[name].add(entry_id)

    def give_back(self) -> None:
        name, group = self.group()
        if self.pending[name]:
            group.give_back(self.dice.choice(sorted(self.pending[name])), 1)

    def move(self) -> None:
        name, group = self.group()
        self.last[name] = self.some_id()
        group.set_position(self.last[name], -1)

    def delete(self) -> None:
        self.stream.delete(self.some_id())

    def copy(self) -> None:
        self.stream = self.stream.copy()

    def forget(self) -> None:
        entry_id = self.some_id()
        was_pending = any(entry_id in ids for ids in self.pending.values())
        assert References(self.stream).forget(entry_id) == was_pending
        for ids in self.pending.values():
            ids.discard(entry_id)

    def forget_before(self) -> None:
        first = self.dice.choice([self.some_id(), self.some_id(), None])
        doomed = {
            name: {i for i in ids if first is None or i < first}
            for name, ids in self.pending.items()
        }
        assert References(self.stream).forget_before(first) == sum(map(len, doomed.values()))
        for name, ids in doomed.items():
            self.pending[name] -= ids

    def trim(self) -> None:
        length_max = self.dice.choice([0, 1, self.stream.length // 2, 2**32, 2**63 - 1])
        min_id = self.dice.choice([None, None, self.some_id()])
        limit = self.dice.choice([0, 0, 1, 3, 7, 2**31, 2**63 - 1])
        given = Trim(length_max, min_id, limit, self.dice.random() < 0.3)
        before = self.ids()
        needed = self.needed()
        free = [entry_id for entry_id in before if entry_id not in needed]
        doomed = entries_to_trim(self.stream, needed, given)
        twin = self.stream.copy()
        max_deleted = self.stream.max_deleted_id
        assert trim(self.stream, given) == len(doomed)
        assert self.ids() == [entry_id for entry_id in before if entry_id not in doomed]
        assert doomed == free[: len(doomed)], "a trim removes the oldest entries that are free"
        assert self.stream.max_deleted_id == max_deleted
        # A replay knows only the length that was left.
        trim(twin, Trim(self.stream.length, None, 0, True))
        assert state_of(twin) == state_of(self.stream)


@pytest.mark.parametrize("seed", range(cases(200)))
def test_any_sequence_gives_what_the_model_gives(seed: int) -> None:
    world = World(f"references {seed}")
    for _ in range(60):
        world.step()
