"""Every node has the same bytes as in a real Redis, and XINFO STREAM the same counters."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from penstock.core import stream_id, stream_node
from penstock.core.check import check_stream
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.core.stream_node import NodeCursor
from tests.support.campaign import cases
from tests.support.engine.streams import add, frame_of, nodes_of, sid
from tests.support.rdb.dump_payloads import stream_nodes
from tests.support.servers.redis_server import RedisServer

KEY = "s"
STEPS = 150
CHECKPOINT_STEPS = 30
NAME_SETS = [
    (b"temp",),
    (b"temp", b"humid"),
    (b"humid", b"temp"),
    (b"7", b"-3"),
    (b"", b"\x00\xff"),
    (b"n" * 63, b"n" * 64),
    tuple(b"f%d" % n for n in range(20)),
    (b"same", b"same"),
]
INTEGER_EDGES = [
    edge + step
    for edge in (0, 127, 128, 4095, 32767, 8388607, 2**31 - 1, 2**63 - 1, -1, -4096, -32768)
    for step in (-1, 0, 1)
] + [-8388608, -(2**31), -(2**31) - 1, -(2**63), -(2**63) - 1, 2**63]
ODD_TEXTS = [b"", b"0", b"00", b"-0", b"+1", b" 1", b"1 ", b"1.5", b"1e3", b"-", b"9" * 21, b"\xff"]
LONG_SIZES = [62, 63, 64, 125, 126, 127, 128, 4094, 4095, 4096, 16380, 16381, 70_000]


class Pair:
    """One stream in penstock and in Redis. Every step is done in both."""

    def __init__(self, server: RedisServer, dice: random.Random) -> None:
        self.dice = dice
        self.client = server.client
        self.client.config_set("rdbcompression", "no")
        self.client.delete(KEY)
        self.limits = NodeLimits()
        self.choose_limits()
        self.stream = Stream(self.limits)
        self.names = dice.sample(NAME_SETS, dice.randint(1, 3))
        self.log: list[tuple[object, ...]] = []

    def redis(self, *command: bytes | str | int) -> object:
        self.log.append(tuple(part if len(str(part)) < 60 else "..." for part in command))
        return self.client.execute_command(*command)  # type: ignore[no-untyped-call]

    # --- Steps -------------------------------------------------------------------------------------

    def choose_limits(self) -> None:
        self.limits.bytes_max = self.dice.choice([0, 1, 64, 200, 1024, 4096, 4096])
        self.client.config_set("stream-node-max-bytes", self.limits.bytes_max)
        self.change_limit()

    def change_limit(self) -> None:
        """Change the maximum number of entries of a node, but not its bytes, because that crashes Redis 7.0:

        CONFIG SET stream-node-max-bytes 64
        XADD s 1-0 "" - ab 32127
        CONFIG SET stream-node-max-bytes 1
        XADD s 2-0 "" -14112503367462072 ab 999999999999999999999
        XRANGE s - +                                                  (an assertion in lpFirst fails)
        """
        self.limits.entries_max = self.dice.choice([0, 1, 2, 5, 100, 100, 1000])
        self.client.config_set("stream-node-max-entries", self.limits.entries_max)

    def append(self) -> None:
        next_id = self.next_id()
        fields = []
        for name in self.dice.choice(self.names):
            fields += [name, self.value()]
        found = self.redis("XADD", KEY, str(next_id), *fields)
        self.stream.append_at(next_id.ms, next_id.seq, frame_of(*fields), 0)
        assert found == next_id.text

    def append_in_ms(self) -> None:
        last = self.stream.last_id
        ms = last.ms + self.dice.randint(0, 1)
        if last.seq == MAX64 or ms > MAX64:
            return
        found = self.redis("XADD", KEY, f"{ms}-*", "k", "v")
        self.stream.append_in_ms(ms, frame_of(b"k", b"v"), 0)
        assert found == self.stream.last_id.text

    def delete(self) -> None:
        entry_id = self.some_id()
        deleted = self.stream.delete(entry_id)
        assert self.redis("XDEL", KEY, str(entry_id)) == deleted

    def trim_length(self) -> None:
        keep = max(0, self.stream.length - self.dice.choice([0, 1, 1, 2, 5, 20]))
        assert self.redis("XTRIM", KEY, "MAXLEN", "=", keep) == self.stream.trim_length(keep)

    def trim_length_approximately(self) -> None:
        keep = max(0, self.stream.length - self.dice.choice([1, 5, 20, 100]))
        limit = self.dice.choice([0, 0, 1, 3, 10])
        removed = self.stream.trim_length(keep, approximate=True, limit=limit)
        assert self.redis("XTRIM", KEY, "MAXLEN", "~", keep, "LIMIT", limit) == removed

    def trim_min_id(self) -> None:
        min_id = self.low_id()
        if not leaves_tombstones_only(self.stream, min_id):
            removed = self.stream.trim_min_id(min_id)
            assert self.redis("XTRIM", KEY, "MINID", "=", str(min_id)) == removed

    def trim_min_id_approximately(self) -> None:
        min_id = self.low_id()
        limit = self.dice.choice([0, 0, 1, 3, 10])
        removed = self.stream.trim_min_id(min_id, approximate=True, limit=limit)
        assert self.redis("XTRIM", KEY, "MINID", "~", str(min_id), "LIMIT", limit) == removed

    def set_last_id(self) -> None:
        last = self.next_id()
        added = self.stream.entries_added + self.dice.randint(0, 3)
        deleted = self.stream.max_deleted_id
        command = ("XSETID", KEY, str(last), "ENTRIESADDED", added, "MAXDELETEDID", str(deleted))
        assert self.redis(*command)
        self.stream.set_last_id(last, added, deleted)

    # --- Choices -----------------------------------------------------------------------------------

    def next_id(self) -> StreamID:
        last = self.stream.last_id
        jump = self.dice.random()
        if jump < 0.5 and last.seq < 2**40:
            return StreamID(last.ms, last.seq + self.dice.choice([1, 1, 1, 2, 130, 5000]))
        far = jump > 0.99 and last.ms < 2**62
        step_ms = 2**63 if far else self.dice.choice([1, 1, 17, 127, 128, 4096, 2**35])
        seq = self.dice.choice([0, 0, 0, 5, 2**31, 2**63 - 1, 2**63, MAX64])
        return StreamID(last.ms + step_ms, seq)

    def value(self) -> bytes:
        kind = self.dice.randrange(6)
        if kind == 0:
            return b"%d" % self.dice.choice(INTEGER_EDGES)
        if kind == 1:
            return b"%d" % self.dice.randint(-(2 ** self.dice.randint(1, 63)), 2**20)
        if kind == 2:
            return self.dice.choice(ODD_TEXTS)
        if kind == 3 and self.dice.random() < 0.2:
            return self.dice.randbytes(self.dice.choice(LONG_SIZES))
        return self.dice.randbytes(self.dice.randint(0, 20))

    def some_id(self) -> StreamID:
        """The id of an entry, often among the first or last, or an id that does not exist."""
        entries = self.stream.range().entries()
        if not entries or self.dice.random() < 0.1:
            return self.stream.last_id
        place = self.dice.choice([0, 0, -1, -1, self.dice.randrange(len(entries))])
        return sid(entries[place][0].decode())

    def low_id(self) -> StreamID:
        """An id among the first entries, or next to one."""
        entries = self.stream.range(limit=self.dice.choice([1, 2, 10, 50])).entries()
        if not entries or self.dice.random() < 0.1:
            return self.dice.choice([SMALLEST, LARGEST, self.stream.last_id])
        entry_id = sid(entries[-1][0].decode())
        return entry_id.next() if self.dice.random() < 0.3 else entry_id

    # --- Comparing ---------------------------------------------------------------------------------

    def compare(self) -> None:
        check_stream(self.stream)
        if not self.client.exists(KEY):
            assert self.stream.entries_added == 0
            return
        payload = self.client.dump(KEY)
        assert isinstance(payload, bytes)
        theirs = [(str(stream_id.from_key(key)), node) for key, node in stream_nodes(payload)]
        ours = nodes_of(self.stream)
        for (their_key, their_node), (our_key, our_node) in zip(theirs, ours, strict=False):
            assert our_key == their_key
            assert our_node.hex(" ") == their_node.hex(" "), f"node {our_key}"
        assert len(ours) == len(theirs)
        assert told_by(self.stream) == told_by_redis(self.client.xinfo_stream(KEY))


STEP_WEIGHTS = {
    Pair.append: 60,
    Pair.append_in_ms: 5,
    Pair.delete: 20,
    Pair.trim_length: 2,
    Pair.trim_length_approximately: 2,
    Pair.trim_min_id: 2,
    Pair.trim_min_id_approximately: 2,
    Pair.change_limit: 3,
    Pair.set_last_id: 1,
}


def told_by(stream: Stream) -> dict[str, object]:
    return {
        "length": stream.length,
        "radix-tree-keys": stream.nodes.count,
        "radix-tree-nodes": stream.nodes.node_count,
        "last-generated-id": stream.last_id.text,
        "max-deleted-entry-id": stream.max_deleted_id.text,
        "entries-added": stream.entries_added,
        "recorded-first-entry-id": stream.first_id().text,
    }


def told_by_redis(info: Mapping[str, object]) -> dict[str, object]:
    return {name: info[name] for name in told_by(Stream())}


def leaves_tombstones_only(stream: Stream, min_id: StreamID) -> bool:
    """Whether an exact trim makes Redis keep a node of tombstones: the only known difference."""
    nodes = stream.nodes.iterator()
    if not nodes.seek("<=", min_id.key) or not nodes.next():
        return False
    node = nodes.value
    assert isinstance(node, bytearray)
    master = stream_id.from_key(nodes.key)
    entry = NodeCursor()
    entry.open(node, master.ms, master.seq)
    survivors = 0
    here = entry.last()
    reaches = here and StreamID(entry.ms, entry.seq) >= min_id
    while here:
        survivors += not entry.deleted and StreamID(entry.ms, entry.seq) >= min_id
        here = entry.previous()
    return bool(reaches) and survivors == 0 and stream_node.live_count(node) > 0


@pytest.mark.parametrize("seed", range(cases(600)))
def test_a_random_stream_has_the_nodes_of_redis(redis_server: RedisServer, seed: int) -> None:
    dice = random.Random(seed)
    pair = Pair(redis_server, dice)
    steps = dice.choices(list(STEP_WEIGHTS), list(STEP_WEIGHTS.values()), k=STEPS)
    pair.append()
    try:
        for n, step in enumerate(steps):
            step(pair)
            if n % CHECKPOINT_STEPS == 0:
                pair.compare()
        pair.compare()
    except AssertionError as error:
        error.add_note(f"seed {seed}, the last commands: {pair.log[-8:]}")
        raise


@pytest.mark.parametrize("last_deleted", [False, True])
def test_counters_change_their_width_as_in_redis(
    redis_server: RedisServer, last_deleted: bool
) -> None:
    pair = Pair(redis_server, random.Random(0))
    pair.limits.bytes_max, pair.limits.entries_max = 0, 0
    redis_server.client.config_set("stream-node-max-bytes", 0)
    redis_server.client.config_set("stream-node-max-entries", 0)
    pipe = redis_server.client.pipeline(transaction=False)
    for n in range(1, 4201):  # past 127 and 4095
        add(pair.stream, f"{n}-0")
        pipe.xadd(KEY, {"k": "v"}, f"{n}-0")
    pipe.execute()
    pair.compare()
    order = range(4200, 0, -1) if last_deleted else range(1, 4201)
    for deleted, n in enumerate(order, 1):
        pair.stream.delete(sid(f"{n}-0"))
        pipe.xdel(KEY, f"{n}-0")
        if {deleted, 4200 - deleted} & {0, 1, 127, 128, 4095, 4096}:
            pipe.execute()
            pair.compare()


def test_an_entry_with_more_elements_than_a_header_counts_has_the_bytes_of_redis(
    redis_server: RedisServer,
) -> None:
    pair = Pair(redis_server, random.Random(0))
    fields = [b"%d" % n for n in range(70_000)]
    pair.redis("XADD", KEY, "1-0", *fields)
    pair.stream.append_at(1, 0, frame_of(*fields), 0)
    pair.compare()


@pytest.mark.parametrize("entry_id", ["0-1", f"{2**63}-{2**63}", f"{MAX64}-{MAX64}"])
def test_neighbours_at_any_distance_have_the_bytes_of_redis(
    redis_server: RedisServer, entry_id: str
) -> None:
    pair = Pair(redis_server, random.Random(0))
    pair.limits.bytes_max, pair.limits.entries_max = 4096, 100
    redis_server.client.config_set("stream-node-max-bytes", 4096)
    redis_server.client.config_set("stream-node-max-entries", 100)
    for each in ["0-1", f"1-{MAX64}", f"{2**63 - 1}-0", f"{2**63}-{2**63}", f"{MAX64}-{MAX64}"]:
        if sid(each) >= sid(entry_id):
            pair.redis("XADD", KEY, each, "k", "v")
            add(pair.stream, each)
            pair.compare()


def test_trimming_by_id_drops_a_node_that_redis_keeps_with_tombstones_only(
    redis_server: RedisServer,
) -> None:
    """Our only difference (see core/stream.py): the loader of Redis refuses such a node."""
    pair = Pair(redis_server, random.Random(0))
    redis_server.client.config_set("stream-node-max-bytes", 4096)
    redis_server.client.config_set("stream-node-max-entries", 3)
    pair.limits.bytes_max, pair.limits.entries_max = 4096, 3
    for n in range(1, 5):
        pair.redis("XADD", KEY, f"{n}-0", "k", "v")
        add(pair.stream, f"{n}-0")
    pair.redis("XDEL", KEY, "3-0")
    pair.stream.delete(sid("3-0"))
    pair.compare()
    assert leaves_tombstones_only(pair.stream, sid("3-0"))
    assert pair.redis("XTRIM", KEY, "MINID", "=", "3-0") == pair.stream.trim_min_id(sid("3-0")) == 2
    payload = redis_server.client.dump(KEY)
    assert isinstance(payload, bytes)
    (tombstones, kept), (last, _) = stream_nodes(payload)
    assert (tombstones, last) == (sid("1-0").key, sid("4-0").key)
    assert stream_node.live_count(bytearray(kept)) == 0
    assert [key for key, _ in nodes_of(pair.stream)] == ["4-0"]
    ours, theirs = told_by(pair.stream), told_by_redis(redis_server.client.xinfo_stream(KEY))
    assert {name for name in ours if ours[name] != theirs[name]} == {
        "radix-tree-keys",
        "radix-tree-nodes",
    }
