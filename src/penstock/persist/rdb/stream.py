"""Reads streams of an RDB file: nodes, counters, groups.

    nodes      count, then each node: its key as a string of 16 bytes, its listpack as a string
    length     entries in all nodes
    last id    ms, seq
    from 7.0 on (type 19):  first id, largest deleted id, entries added
    groups     count, then each group: name, last id, from 7.0 on entries read,
                 pending: count, then 16 bytes of id, 8 of delivery time, delivery count
                 consumers: count, then each consumer: name, 8 bytes: last attempt,
                   from 7.2 on (type 21) 8 bytes: last successful read,
                   pending: count, then 16 bytes of id: those records of the group that it owns
                 from 8.8 on (type 27) returned: count, then 16 bytes of id: the records that nobody owns
    from 8.6 on (type 26):  duration in seconds, most names of a producer
      producers  count, then each producer: name,
                   names: count, then each name: a string, ms and seq of its entry
      names ever added, names that were known already

A stream of Redis 5 (type 15) lacks the counters. They are derived as in Redis 7: nothing was deleted, the
entries added are the entries present, and a group's entries read follow from its last id.

Always checked: ids rise from node to node, counters agree with the nodes, every pending record has exactly
one owner or is returned, every record of a consumer is in its group, and producers and their names occur once
and within the limits. The inside of nodes is checked with `deep`.

A node with nothing but tombstones, which Redis can leave behind (its issue 15808), is dropped. If tombstones
are out of order, all tombstones of the stream are dropped: Redis 7.0 lets XSETID go below deleted ids and
then assigns the same ids again. Live entries must be in order.

A producer without names, which Redis writes after an append that failed, is left out.

Counts that wrapped over 2**63 - 1 into negative numbers in Redis are read as 2**63 - 1, the maximum here.

The first id is written for Redis but ignored when read; it is looked up when needed.
"""

from __future__ import annotations

from collections import OrderedDict

from penstock.core import listpack, memory, stream_id, stream_node
from penstock.core.frame import Frame
from penstock.core.groups import positions
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import Group
from penstock.core.groups.records import made_pending
from penstock.core.idempotency import (
    DURATION_S_MAX,
    SIZE_MAX,
    Idempotency,
    IdempotencySettings,
)
from penstock.core.rax.tree import Rax
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import StreamID
from penstock.engine.arguments import unwrapped
from penstock.errors import CoreError, CorruptData
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb import node_check
from penstock.persist.rdb.input import RdbInput

_KEY_BYTES = 16
_STREAM_2 = rdb_format.STREAM_2
_STREAM_3 = rdb_format.STREAM_3
_STREAM_4 = rdb_format.STREAM_4
_STREAM_5 = rdb_format.STREAM_5
_COUNT_MAX = 2**63 - 1
_NOBODY = -1
_NO_ENTRY = bytes(_KEY_BYTES)
_END = listpack.END
_TOTAL_BYTES_MAX = listpack.TOTAL_BYTES_MAX


def read_stream(source: RdbInput, kind: int, limits: NodeLimits, deep: bool) -> Stream:
    """Read a stream of type 15, 19, 21, 26 or 27. Raises: CorruptData."""
    stream = Stream(limits)
    nodes_start = source.offset
    last = _read_nodes(source, stream, deep)
    start = source.offset
    length = source.length()
    if length != stream.length:
        raise source.corrupt(
            f"a stream says that it has {length} entries, its nodes hold {stream.length}", start
        )
    start = source.offset
    last_id = read_id(source)
    if last is None or last_id < last:
        stream = _in_order(source, stream, nodes_start)
        if last_id < stream.last_id:
            raise source.corrupt(
                f"the last id is {last_id}, below the entry {stream.last_id}", start
            )
    _read_counters(source, stream, last_id, kind)
    count = source.length()
    if count > 0:
        stream.groups = Rax()
        for _ in range(count):
            _read_group(source, stream, kind)
    if kind >= _STREAM_4:
        _read_settings(source, stream)
        _read_producers(source, stream)
    return stream


def _read_nodes(source: RdbInput, stream: Stream, deep: bool) -> StreamID | None:
    """Load the nodes; return the last id in them, or None if ids are out of order."""
    previous = stream_id.SMALLEST  # the last node's key
    last: StreamID | None = previous
    rising = True
    for number in range(source.length()):
        start = source.offset
        key = source.string()
        if len(key) != _KEY_BYTES:
            raise source.corrupt(f"a node's key of {len(key)} bytes, not {_KEY_BYTES}", start)
        master = stream_id.from_key(key)
        if master == stream_id.SMALLEST:  # the id of its first entry
            raise source.corrupt("an entry under the id 0-0", start)
        start = source.offset
        node = source.blob()
        if number > 0 and master <= previous:
            raise source.corrupt(f"the node {master} comes after the node {previous}", start)
        previous = master
        if last is None or (number > 0 and master <= last):
            rising = False
        try:
            if deep:
                last = node_check.validate_node(node, master.ms, master.seq)
            else:
                check_head(node)
                last = master  # the node is not looked into
            live = stream_node.live_count(node)
        except CorruptData as error:
            raise source.corrupt(
                f"the node {master} is damaged at its byte {error.offset}: {error.what}", start
            ) from None
        except IndexError:
            raise source.corrupt(f"the node {master} ends inside its header", start) from None
        if live > 0:
            stream.load_node(master, node)
    return last if rising else None


def _in_order(source: RdbInput, stream: Stream, start: int) -> Stream:
    """Rebuild a stream without its tombstones, which are out of order (S3)."""
    made = Stream(stream.limits)
    entry = stream_node.new_cursor()
    nodes = stream.nodes.iterator()
    nodes.seek("^")
    while nodes.next():
        master = stream_id.from_key(nodes.key)
        entry.open(nodes.value, master.ms, master.seq)
        found = entry.first()
        while found:
            if not entry.deleted:
                frame = Frame()
                for piece in entry.fields():
                    frame.add(piece)
                _append(source, made, stream_id.make(entry.ms, entry.seq), frame, start)
            found = entry.next()  # fields() has moved the cursor; next() continues there
    return made


def _append(source: RdbInput, made: Stream, entry_id: StreamID, frame: Frame, start: int) -> None:
    try:
        made.append_at(entry_id.ms, entry_id.seq, frame, 0)
    except CoreError as error:
        raise source.corrupt(f"{entry_id} after {made.last_id}: {error}", start) from None


def check_head(node: bytearray) -> None:
    """Check that a node is a listpack with counters and room for an entry. The checksum covers the rest."""
    size = len(node)
    if size < _SMALLEST_NODE_BYTES or memory.load32(node, 0) != size or node[size - 1] != _END:
        raise CorruptData(f"{size} bytes are not a node", 0)
    at = listpack.HEADER_BYTES
    for _ in range(3):
        if listpack.get_int(node, at) < 0:
            raise CorruptData("a count below zero", at)
        at = listpack.skip(node, at)


_SMALLEST_NODE_BYTES = (
    listpack.HEADER_BYTES + 1 + 8 + 8
)  # four elements of header, four of an entry


def _read_counters(source: RdbInput, stream: Stream, last_id: StreamID, kind: int) -> None:
    if kind < _STREAM_2:
        stream.set_last_id(last_id, stream.length, stream_id.SMALLEST)
        return
    read_id(source)  # the first entry's
    # After an XSETID as above it may exceed the last id, where it affects no count (S4).
    max_deleted = min(read_id(source), last_id)
    start = source.offset
    added = unwrapped(memory.distance(source.number(), 0))
    if added < stream.length:
        raise source.corrupt(f"{added} entries were added, but {stream.length} are there", start)
    stream.set_last_id(last_id, added, max_deleted)


def _read_group(source: RdbInput, stream: Stream, kind: int) -> None:
    start = source.offset
    name = source.string()
    last = read_id(source)
    if kind >= _STREAM_2:
        entries_read = unwrapped(memory.distance(source.number(), 0))
        if entries_read < -1:
            raise source.corrupt(f"group {name!r} has read {entries_read} entries", start)
    else:
        entries_read = positions.rank_or_unknown(stream, last)
    group = Group(last, entries_read)
    assert stream.groups is not None
    if not stream.groups.try_insert(name, group):
        raise source.corrupt(f"a second group {name!r}", start)
    _read_pending(source, group)
    owned = 0
    for _ in range(source.length()):
        owned += _read_consumer(source, group, kind)
    if kind >= _STREAM_5:
        owned += _read_returned(source, group)
    if owned != group.pending.count:
        missing = group.pending.count - owned
        raise source.corrupt(f"{missing} pending entries of group {name!r} belong to nobody", start)


def _read_pending(source: RdbInput, group: Group) -> None:
    """Read the pending records of a group. Their owners follow with the consumers."""
    pending = group.pending
    left = source.length()
    while left > 0:
        left -= 1
        key = source.raw(_KEY_BYTES)
        delivery_ms = source.milliseconds()
        source.take_number()
        # Redis lets the count wrap into negative numbers. Here it stays at the maximum.
        count = min(source.value, _COUNT_MAX)
        if delivery_ms < 0:
            raise source.corrupt(f"an entry delivered at {delivery_ms} ms")
        if key == _NO_ENTRY:
            raise source.corrupt("0-0 is pending, and no entry can have that id")
        ms, seq = memory.load64_big(key, 0), memory.load64_big(key, 8)
        if not pending.add(made_pending(ms, seq, _NOBODY, delivery_ms, count)):
            raise source.corrupt(f"{stream_id.from_key(key)} is pending twice in a group")


def _read_consumer(source: RdbInput, group: Group, kind: int) -> int:
    """Read a consumer and its pending records; return their number."""
    start = source.offset
    name = source.string()
    if group.consumer_or_none(name) is not None:
        raise source.corrupt(f"a second consumer {name!r}", start)
    seen_ms = source.milliseconds()
    active_ms = source.milliseconds() if kind >= _STREAM_3 else seen_ms
    if seen_ms < 0 or active_ms < -1:
        raise source.corrupt(f"consumer {name!r} was seen at {seen_ms}, active at {active_ms} ms")
    consumer = group.create_consumer(name, seen_ms)
    consumer.active_ms = active_ms
    return _read_rows(source, group, consumer)


def _read_rows(source: RdbInput, group: Group, consumer: Consumer) -> int:
    count = source.length()
    left = count
    while left > 0:
        left -= 1
        key = source.raw(_KEY_BYTES)
        record = group.pending.find(key)
        if record is None:
            raise source.corrupt(
                f"{stream_id.from_key(key)} is pending for {consumer.name!r}, not in its group"
            )
        if record.consumer_number != _NOBODY:
            raise source.corrupt(f"{stream_id.from_key(key)} is pending for two consumers")
        record.consumer_number = consumer.number
        consumer.pending.add(record)
    return count


def _read_returned(source: RdbInput, group: Group) -> int:
    """Read the records that nobody owns, in the order in which they were returned; return their number."""
    count = source.length()
    left = count
    while left > 0:
        left -= 1
        key = source.raw(_KEY_BYTES)
        record = group.pending.find(key)
        if record is None:
            raise source.corrupt(f"{stream_id.from_key(key)} is returned, but not in its group")
        if record.consumer_number != _NOBODY:
            raise source.corrupt(f"{stream_id.from_key(key)} is returned and has a consumer")
        if key in group.returned:
            raise source.corrupt(f"{stream_id.from_key(key)} is returned twice")
        record.delivery_ms = 0  # G1; no version of Redis writes anything else
        group.returned[key] = record
    return count


# --- Producers ---------------------------------------------------------------------------------------


def _read_settings(source: RdbInput, stream: Stream) -> None:
    start = source.offset
    duration_s = source.number()
    size_max = source.number()
    if not (1 <= duration_s <= DURATION_S_MAX and 1 <= size_max <= SIZE_MAX):
        raise source.corrupt(
            f"a stream keeps {size_max} names for {duration_s} seconds;"
            f" the limits are {SIZE_MAX} and {DURATION_S_MAX}",
            start,
        )
    known = stream.idempotency_settings
    if (duration_s, size_max) != (known.duration_s, known.size_max):
        stream.idempotency_settings = IdempotencySettings(duration_s, size_max)


def _read_producers(source: RdbInput, stream: Stream) -> None:
    found: dict[bytes, OrderedDict[bytes, StreamID]] = {}
    size_max = stream.idempotency_settings.size_max
    for _ in range(source.length()):
        start = source.offset
        producer = source.string()
        if not producer:
            raise source.corrupt("a producer has an empty name", start)
        if producer in found:
            raise source.corrupt(f"a second producer {producer!r}", start)
        found[producer] = _read_names(source, producer, size_max)
    known = Idempotency()
    # The file has them by name. In memory they are in the order of their last record (D2).
    for producer in sorted(found, key=lambda one: _last_entry(found[one])):
        if found[producer]:
            known.producers[producer] = found[producer]
    known.added = _read_count(source)
    known.duplicates = _read_count(source)
    if known.producers or known.added or known.duplicates:
        stream.idempotency = known


def _last_entry(names: OrderedDict[bytes, StreamID]) -> StreamID:
    return names[next(reversed(names))] if names else stream_id.SMALLEST


def _read_names(source: RdbInput, producer: bytes, size_max: int) -> OrderedDict[bytes, StreamID]:
    """Read the names of a producer."""
    start = source.offset
    count = source.length()
    if count > size_max:
        raise source.corrupt(f"producer {producer!r} has {count} names, of {size_max}", start)
    names: OrderedDict[bytes, StreamID] = OrderedDict()
    left = count
    while left > 0:
        left -= 1
        start = source.offset
        name = source.string()
        if not name:
            raise source.corrupt(f"an empty name of producer {producer!r}", start)
        if name in names:
            raise source.corrupt(f"a second name {name!r} of producer {producer!r}", start)
        entry_id = read_id(source)
        if entry_id.ms == 0 and entry_id.seq == 0:
            raise source.corrupt(f"name {name!r} stands for 0-0, which is no entry", start)
        names[name] = entry_id
    return names


def _read_count(source: RdbInput) -> int:
    """Read a counter of a stream. Redis lets it wrap into negative numbers; here it stays at the maximum."""
    return min(source.number(), _COUNT_MAX)


def read_id(source: RdbInput) -> StreamID:
    ms = source.number()
    return stream_id.make(ms, source.number())
