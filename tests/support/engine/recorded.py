"""One long recorded sequence of operations on streams, groups and producers: results, node bytes, trees.

    python -m tests.support.engine.recorded FILE

writes to FILE what the penstock on the path does with the sequence: first the build, then every result,
every node, every pending entry, every producer and drawings of the trees. The seed is fixed, so two builds
that agree write the same file except for the first line (see tests/test_builds_agree.py).
tests/support/servers/recorded_session.py does the same for commands, replies and files.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.build import KIND
from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.groups import positions
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.records import ClaimOptions
from penstock.core.groups.references import References, add_group, remove_group
from penstock.core.idempotency import Idempotency, IdempotencySettings
from penstock.core.rax.tree import Rax
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.errors import PenstockError
from tests.support.engine.streams import frame_of, nodes_of, pending_of

SEED = 20241
STEPS = 6000
SNAPSHOT_STEPS = 250
LIMITS = [(4096, 100), (4096, 3), (64, 0), (0, 1000), (1, 1)]
NAMES = [(b"temp",), (b"temp", b"humid"), (b"humid", b"temp"), (b"7", b""), (b"n" * 70,)]
EDGES = [0, 1, 127, 128, 4095, 4096, 2**31, 2**63 - 1, 2**63, MAX64]
CONSUMERS = [b"a", b"ab", b"b", b"c"]


class Recording:
    """A few streams with groups and producers, and the random numbers that choose the operations."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.streams = [Stream(NodeLimits(*limits)) for limits in LIMITS]
        self.groups = [Group(SMALLEST, 0) for _ in LIMITS]
        for stream, group in zip(self.streams, self.groups, strict=True):
            add_group(stream, b"first", group)
            stream.idempotency = Idempotency()
            stream.idempotency_settings = IdempotencySettings(5, 3)
        self.now_ms = 1_700_000_000_000
        self.stream, self.group = self.streams[0], self.groups[0]

    def lines(self, steps: int) -> Iterator[str]:
        """Run the sequence. Yields a line per operation, and all bytes every SNAPSHOT_STEPS operations."""
        operations: list[Callable[[], object]] = [
            *[self.append] * 12,
            *[self.append_at, self.append_in_ms, self.delete, self.read, self.walk] * 2,
            *[self.deliver, self.acknowledge, self.claim, self.autoclaim, self.redeliver] * 2,
            *[self.trim_length, self.trim_min_id, self.set_position, self.delete_consumer],
            *[self.look, self.positions],
            *[self.give_back, self.claim_idle, self.forget, self.trim_unreferenced] * 2,
            *[self.add_or_remove_group, self.hold, self.send],
        ]
        for n in range(steps):
            place = self.dice.randrange(len(LIMITS))
            self.stream, self.group = self.streams[place], self.groups[place]
            self.now_ms += self.dice.choice([-1, 0, 0, 1, 1, 50])
            operation = self.dice.choice(operations)
            try:
                result = operation()
            except PenstockError as error:
                result = f"refused: {type(error).__name__} {error}"
            yield f"{n} {place} {operation.__name__} {result}"
            if n % SNAPSHOT_STEPS == 0:
                yield from self.snapshot()
        yield from self.snapshot()
        for stream in self.streams:
            yield from self.far_ids(stream)
        yield from self.snapshot()

    def far_ids(self, stream: Stream) -> Iterator[str]:
        """Append ids to a stream that are more than 2^63 away from all earlier ones."""
        for ms in (2**63 - 1, 2**63, MAX64 - 1, MAX64):
            for seq in (0, 1, 2**63 - 1, 2**63, MAX64):
                stream.append_at(ms, seq, self.frame(), 0)
        yield str(stream.range(limit=30, reverse=True).entries())

    def snapshot(self) -> Iterator[str]:
        for stream, group in zip(self.streams, self.groups, strict=True):
            yield f"{stream.length} {stream.last_id} {stream.max_deleted_id} {stream.entries_added}"
            yield from (f"{key} {node.hex()}" for key, node in nodes_of(stream))
            yield from stream.nodes.draw().splitlines()
            yield f"{group.last_id} {group.entries_read} {group.lag_or_none(stream)}"
            yield from map(str, pending_of(group))
            yield str([len(block) for block in group.pending.blocks()])
            yield from group.consumers.draw().splitlines()
            yield f"{[key.hex() for key in group.returned]} {order_of(group.idle_order_or_none())}"
            if stream.pending_index is not None:
                yield str([(key.hex(), n) for key, n in stream.pending_index.counts.pairs()])
            if stream.idempotency is not None:
                yield f"{stream.idempotency.added} {stream.idempotency.duplicates}"
                yield str({p: [*n.items()] for p, n in stream.idempotency.producers.items()})

    # --- Choices -----------------------------------------------------------------------------------

    def frame(self) -> Frame:
        flat = []
        for name in self.dice.choice(NAMES):
            flat += [name, self.value()]
        return frame_of(*flat)

    def value(self) -> bytes:
        kind = self.dice.randrange(4)
        if kind == 0:
            return b"%d" % (self.dice.choice([1, -1]) * self.dice.choice(EDGES))
        if kind == 1:
            return b"%d" % self.dice.randint(-(2 ** self.dice.randint(1, 64)), 2**16)
        return self.dice.randbytes(self.dice.choice([0, 1, 5, 20, 63, 64, 300]))

    def some_id(self) -> StreamID:
        kind = self.dice.randrange(8)
        if kind == 0:
            return StreamID(self.dice.choice(EDGES), self.dice.choice(EDGES))
        if kind == 1:
            return self.dice.choice([SMALLEST, LARGEST, self.stream.last_id, self.group.last_id])
        start = StreamID(self.now_ms - self.dice.randint(0, 3000), 0)
        cursor = self.stream.cursor(start)
        return cursor.id if cursor.advance() else self.stream.first_id()

    def pending_id(self) -> StreamID:
        rows = self.group.pending_rows(self.some_id(), LARGEST, 3)
        return self.dice.choice(rows).id if rows else self.some_id()

    def consumer(self) -> Consumer:
        name = self.dice.choice(CONSUMERS)
        found = self.group.consumer_or_none(name)
        return self.group.create_consumer(name, self.now_ms) if found is None else found

    # --- Operations --------------------------------------------------------------------------------

    def append(self) -> object:
        self.stream.append(self.now_ms, self.frame(), 0)
        return self.stream.last_id

    def append_at(self) -> object:
        last = self.stream.last_id
        near = StreamID(last.ms + self.dice.randint(0, 2), self.dice.choice([0, last.seq, 2**40]))
        entry_id = self.some_id() if self.dice.random() < 0.1 else near
        if entry_id.ms > self.now_ms + 10**6:
            return "too far: all later ids would follow it"
        self.stream.append_at(entry_id.ms, entry_id.seq, self.frame(), 0)
        return entry_id

    def append_in_ms(self) -> object:
        ms = max(0, self.stream.last_ms + self.dice.randint(-1, 1))
        self.stream.append_in_ms(ms, self.frame(), 0)
        return self.stream.last_id

    def delete(self) -> object:
        return bool(self.stream.delete(self.some_id()))

    def trim_length(self) -> object:
        keep = max(0, self.stream.length - self.dice.choice([0, 1, 7, 40]))
        return self.stream.trim_length(keep, self.dice.random() < 0.5, self.dice.choice([0, 5]))

    def trim_min_id(self) -> object:
        min_id = StreamID(self.now_ms - self.dice.randint(0, 5000), self.dice.choice(EDGES))
        return self.stream.trim_min_id(min_id, self.dice.random() < 0.5, self.dice.choice([0, 5]))

    def read(self) -> object:
        reverse = self.dice.random() < 0.5
        limit = self.dice.randint(0, 9)
        return self.stream.range(self.some_id(), self.some_id(), limit, reverse).entries()

    def walk(self) -> object:
        """Walk over a part of the stream, and remove some of its entries."""
        cursor = self.stream.cursor(self.some_id(), reverse=self.dice.random() < 0.5)
        seen: list[str] = []
        while len(seen) < 9 and cursor.advance():
            seen.append(f"{cursor.id} {cursor.entry.mapping()}")
            if self.dice.random() < 0.2:
                cursor.remove()
        return seen

    def deliver(self) -> object:
        ack = self.dice.random() < 0.8
        limit = self.dice.randint(0, 9)
        found = self.group.deliver(self.stream, self.consumer(), limit, self.now_ms, ack)
        return None if found is None else found.mappings()

    def redeliver(self) -> object:
        after, limit = self.some_id(), self.dice.randint(0, 5)
        return self.group.redeliver(self.stream, self.consumer(), after, limit, self.now_ms)

    def acknowledge(self) -> object:
        return bool(self.group.acknowledge(self.pending_id()))

    def options(self) -> ClaimOptions:
        return ClaimOptions(
            self.dice.choice([0, 10, 1000]),
            self.now_ms - self.dice.choice([0, 5]),
            self.dice.choice([-1, -1, 0, 7]),
            self.dice.random() < 0.3,
            self.dice.random() < 0.3,
        )

    def claim(self) -> object:
        entry_id, consumer = self.pending_id(), self.consumer()
        return bool(self.group.claim(self.stream, entry_id, consumer, self.options(), self.now_ms))

    def autoclaim(self) -> object:
        start, limit = self.some_id(), self.dice.randint(1, 4)
        found = self.group.autoclaim(self.stream, start, limit, self.consumer(), self.options())
        return [str(found.cursor), [*map(str, found.claimed)], [*map(str, found.deleted)]]

    def give_back(self) -> object:
        entry_id, count = self.pending_id(), self.dice.choice([0, 1, 2**63 - 1])
        if self.group.pending.find(entry_id.key) is not None:
            self.group.give_back(entry_id, count)
        elif entry_id != SMALLEST:
            self.group.add_returned(entry_id, count)
        return entry_id

    def claim_idle(self) -> object:
        idle_ms_min = self.dice.choice([0, 10, 300, 2**63 - 1])
        limit = self.dice.choice([0, 1, 3, 2**63 - 1])
        next_ms = self.group.next_claim_ms_or_none(self.stream, idle_ms_min)
        found = self.group.claim_idle(self.stream, self.consumer(), idle_ms_min, limit, self.now_ms)
        rows = [(str(row.id), row.fields, row.idle_ms, row.delivery_count) for row in found]
        return [next_ms, rows]

    def add_or_remove_group(self) -> object:
        name = self.dice.choice([b"second", b"third"])
        if remove_group(self.stream, name):
            return "removed"
        add_group(
            self.stream, name, self.group.copy() if self.dice.random() < 0.7 else Group(LARGEST)
        )
        return "added"

    def hold(self) -> object:
        entry_id = self.pending_id()
        return bool(References(self.stream).holds(entry_id.ms, entry_id.seq))

    def forget(self) -> object:
        if self.dice.random() < 0.1:
            first = StreamID(self.now_ms - 2000, self.dice.choice(EDGES))
            return References(self.stream).forget_before(first)
        return bool(References(self.stream).forget(self.pending_id()))

    def trim_unreferenced(self) -> object:
        keep = self.dice.choice([0, max(0, self.stream.length - 5), 2**63 - 1])
        min_id = self.some_id() if self.dice.random() < 0.3 else None
        limit = self.dice.choice([0, 1, 5, 2**63 - 1])
        thorough = self.dice.random() < 0.5
        return References(self.stream).trim_unreferenced(keep, min_id, limit, thorough)

    def send(self) -> object:
        """Add a message of a producer, unless it is known."""
        known, settings = self.stream.idempotency, self.stream.idempotency_settings
        assert known is not None
        producer, name = self.dice.choice([b"p", b"q"]), b"%d" % self.dice.randrange(6)
        found = known.find_or_none(producer, name, settings, self.now_ms)
        if found is not None:
            known.count_duplicate()
            return found
        self.stream.append(self.now_ms, self.frame(), 0)
        known.record(producer, name, self.stream.last_id, settings, self.now_ms)
        return known.names_count()

    def set_position(self) -> object:
        self.group.set_position(self.some_id(), self.dice.choice([-1, 0, 5]))
        return self.group.last_id

    def delete_consumer(self) -> object:
        return self.group.delete_consumer(self.consumer())

    def look(self) -> object:
        since = self.dice.choice([None, self.now_ms - 500])
        rows = self.group.pending_rows(self.some_id(), LARGEST, 5, self.consumer(), since)
        edges = [self.group.pending_edge_or_none(last) for last in (False, True)]
        return [[str(row.id) for row in rows], [*map(str, edges)], self.group.consumer_counts()]

    def positions(self) -> object:
        entry_id = self.some_id()
        key = stream_id.from_key(entry_id.key).text
        return [
            key,
            positions.rank_or_unknown(self.stream, entry_id),
            self.group.lag_or_none(self.stream),
        ]


def order_of(rax: Rax | None) -> list[str]:
    """The keys of a tree, if there is one."""
    return [] if rax is None else [key.hex() for key, _ in rax.pairs()]


def main(path: Path) -> None:
    text = "\n".join(Recording(SEED).lines(STEPS))
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(f"{KIND}\n{digest}\n{text}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
