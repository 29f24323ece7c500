"""Copies of streams and groups: equal to the last byte, and independent afterwards."""

from __future__ import annotations

import random

import pytest

from penstock.core.check import check_group, check_stream
from penstock.core.groups.group import Group
from penstock.core.groups.records import NEVER_MS
from penstock.core.groups.references import References, add_group, remove_group
from penstock.core.idempotency import Idempotency, IdempotencySettings
from penstock.core.rax.tree import Rax
from penstock.core.stream import Stream
from penstock.core.stream_id import LARGEST, SMALLEST
from tests.support.engine.engines import Bench
from tests.support.engine.streams import (
    add,
    ids_of,
    keys_of,
    nodes_of,
    pending_of,
    sid,
    state_of,
    stream_of,
)
from tests.support.random.stream_commands import STREAM_KEYS, World


def groups_of(stream: Stream) -> dict[bytes, object]:
    """Everything that is known about the groups of a stream."""
    names = [] if stream.groups is None else keys_of(stream.groups)
    found: dict[bytes, object] = {}
    for name in names:
        assert stream.groups is not None
        group: Group = stream.groups.find(name)
        found[name] = (
            str(group.last_id),
            group.entries_read,
            pending_of(group),
            [consumer_state(group, consumer) for consumer in keys_of(group.consumers)],
        )
    return found


def consumer_state(group: Group, name: bytes) -> tuple[object, ...]:
    consumer = group.consumer_or_none(name)
    assert consumer is not None
    pending = [str(record.entry_id()) for record in consumer.pending]
    return name, consumer.number, consumer.seen_ms, consumer.active_ms, pending


def test_an_empty_stream_is_copied_with_its_counters() -> None:
    stream = stream_of("1-0")
    stream.delete(sid("1-0"))
    twin = stream.copy()
    assert state_of(twin) == state_of(stream)
    assert twin.groups is None
    add(twin, "2-0")
    assert (ids_of(twin), ids_of(stream)) == (["2-0"], [])


def test_a_copy_shares_no_node() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0", "5-0")
    stream.delete(sid("2-0"))
    twin = stream.copy()
    check_stream(twin)
    before = nodes_of(stream)
    assert nodes_of(twin) == before
    twin.delete(sid("1-0"))
    add(twin, "6-0")
    assert nodes_of(stream) == before
    add(stream, "9-0")
    assert ids_of(twin) == ["3-0", "4-0", "5-0", "6-0"]
    assert twin.limits is stream.limits


def test_a_copied_group_keeps_numbers_and_gaps() -> None:
    stream = stream_of("1-0", "2-0", "3-0")
    group = Group(SMALLEST, 0)
    a, b, c = (group.create_consumer(name, 5) for name in (b"a", b"b", b"c"))
    group.deliver(stream, a, 1, 100, True)
    group.deliver(stream, c, 1, 200, True)
    c.active_ms = 200
    group.delete_consumer(b)
    twin = group.copy()
    check_group(twin)
    assert pending_of(twin) == pending_of(group)
    assert [consumer_state(twin, name) for name in (b"a", b"c")] == [
        (b"a", 0, 5, NEVER_MS, ["1-0"]),
        (b"c", 2, 5, 200, ["2-0"]),
    ]
    assert twin.create_consumer(b"new", 0).number == 1
    assert twin.acknowledge(sid("1-0"))
    assert [row[0] for row in pending_of(group)] == ["1-0", "2-0"]


def test_a_stream_is_copied_with_its_groups() -> None:
    stream = stream_of("1-0", "2-0")
    stream.groups = Rax()
    stream.groups.insert(b"g", Group(SMALLEST))
    stream.groups.insert(b"h", Group(sid("1-0"), 1))
    twin = stream.copy()
    check_stream(twin)
    assert groups_of(twin) == groups_of(stream)
    assert twin.groups is not None
    twin.groups.remove(b"g")
    assert keys_of(stream.groups) == [b"g", b"h"]


def test_a_copied_group_keeps_the_order_of_returned_entries() -> None:
    stream = stream_of("1-0", "2-0", "3-0")
    group = Group(SMALLEST, 0)
    a = group.create_consumer(b"a", 5)
    group.deliver(stream, a, 0, 100, True)
    group.next_claim_ms_or_none(stream, 0)
    group.give_back(sid("3-0"), 4)
    group.give_back(sid("1-0"), 2)
    twin = group.copy()
    check_group(twin)
    assert pending_of(twin) == pending_of(group)
    assert list(twin.returned) == list(group.returned) == [sid("3-0").key, sid("1-0").key]
    assert twin.idle_order_or_none() is None  # made when it is needed
    consumer = twin.create_consumer(b"b", 5)
    claimed = twin.claim_idle(stream, consumer, 0, 0, 200)
    assert [str(entry.id) for entry in claimed] == ["3-0", "1-0", "2-0"]
    check_group(twin)
    check_group(group)
    assert pending_of(group) == [("1-0", b"", 0, 2), ("2-0", b"a", 100, 1), ("3-0", b"", 0, 4)]


def indexed(stream: Stream) -> int | None:
    """The number of entries in the index of pending entries, if there is one."""
    return None if stream.pending_index is None else stream.pending_index.counts.count


def test_a_copied_stream_makes_an_index_of_its_own() -> None:
    stream = stream_of("1-0", "2-0")
    for name in (b"g", b"h"):
        group = Group(SMALLEST, 0)
        add_group(stream, name, group)
        group.deliver(stream, group.create_consumer(b"c", 0), 0, 100, True)
    References(stream).holds(0, 0)
    twin = stream.copy()
    assert (indexed(twin), indexed(stream)) == (None, 2)
    References(twin).forget(sid("1-0"))
    check_stream(twin)
    check_stream(stream)
    assert (indexed(twin), indexed(stream)) == (1, 2)
    References(stream).forget_before(LARGEST)
    assert (indexed(twin), indexed(stream)) == (1, 0)
    assert remove_group(twin, b"g")
    check_stream(twin)
    check_stream(stream)


def test_a_copied_stream_knows_the_same_messages() -> None:
    stream = stream_of("1-0", "2-0")
    stream.idempotency_settings = IdempotencySettings(5, 2)
    twin = stream.copy()
    assert (twin.idempotency, twin.idempotency_settings) == (None, stream.idempotency_settings)
    stream.idempotency = Idempotency()
    stream.idempotency.record(b"p", b"a", sid("1-0"), stream.idempotency_settings, 0)
    stream.idempotency.count_duplicate()
    twin = stream.copy()
    check_stream(twin)
    assert twin.idempotency is not None
    assert twin.idempotency is not stream.idempotency
    settings = twin.idempotency_settings
    assert twin.idempotency.find_or_none(b"p", b"a", settings, 0) == sid("1-0")
    assert (twin.idempotency.added, twin.idempotency.duplicates) == (1, 1)
    twin.idempotency.clear()
    assert stream.idempotency.find_or_none(b"p", b"a", settings, 0) == sid("1-0")


@pytest.mark.parametrize("seed", range(20))
def test_a_copy_of_any_stream_is_the_same_and_stays_so(seed: int) -> None:
    bench = Bench()
    world = World(random.Random(f"copy {seed}"))
    bench.engine.limits.bytes_max = world.bytes_max
    bench.engine.limits.entries_max = world.entries_max

    def run() -> None:
        for _ in range(150):
            bench.run(*world.command())

    run()
    values = bench.engine.context.keyspace.values
    streams = [stream for key in STREAM_KEYS if isinstance(stream := values.get(key), Stream)]
    twins = [stream.copy() for stream in streams]
    states = [(state_of(twin), groups_of(twin)) for twin in twins]
    assert states == [(state_of(stream), groups_of(stream)) for stream in streams]
    run()
    for twin, state in zip(twins, states, strict=True):
        check_stream(twin)
        assert (state_of(twin), groups_of(twin)) == state
