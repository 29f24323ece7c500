"""Checks the invariants of all structures.

    check_stream ──> check_rax, check_node for every node ──> check_listpack
         └────────> check_group for every group ──> check_rax, check_pending
    check_list ──> check_listpack for every node

Each raises InvariantBroken with the invariant's number, the place and a short dump:

    N1 node 5-0: the header counts 2 live and 0 deleted entries, there are 3; 2f000000 1100 0201 ...

What is checked where:

    check_listpack   L1 to L4: sizes, count, encodings, end byte            (listpack.py)
    check_rax        R1 to R7, by Rax.check()                               (core/rax/tree.py)
    check_node       N1 to N3; N4 if the limits are given, for they may     (stream_node.py)
                     have changed since the node was written
    check_stream     S1 to S5, and all of the above for its nodes           (stream.py)
                     X1 for its index of pending entries                    (pending_index.py)
                     D1, D3 for its producers                               (idempotency.py)
    check_group      G1 to G3, G5, G6, and R1 to R7 for its trees           (group.py)
    check_pending    PL1 to PL3: order, blocks, count                       (pending_list.py)
    check_list       Q1 to Q4, L1 to L4 for its nodes; Q5 if the limits     (list_value.py)
                     are given, as N4

G4 allows something and forbids nothing, and D2 leaves no trace. An unreadable header counts as N1, a
truncated entry as N3. F1, F2 (frame.py) and I1, I2 (stream_id.py) belong to values that live for one command:
their tests check them.

The checks use the readers of the structures, never their shortcuts: every element is encoded again and
compared, every entry decoded, every record looked up from both sides. Model tests call them after every
step.

Cost: O(everything). Nothing is changed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NoReturn

from penstock.core import listpack, stream_id, stream_node
from penstock.core.groups.consumer import Consumer
from penstock.core.groups.group import NOBODY, Group
from penstock.core.groups.pending_list import BLOCK_MAX, PendingList
from penstock.core.groups.records import NEVER_MS, Pending
from penstock.core.idempotency import Idempotency, IdempotencySettings
from penstock.core.list_value import ListLimits, ListValue
from penstock.core.rax.tree import Rax
from penstock.core.stream import COUNT_MAX, ENTRY_BYTES_MAX, NodeLimits, Stream
from penstock.core.stream_id import StreamID
from penstock.errors import CorruptData, InvariantBroken

DUMP_BYTES_MAX = 64
_KEY_BYTES = 16
_FIXED_PIECES = 3  # flags and two distances
_COUNTER_BYTES_SAVED_MAX = 4  # two counters, each up to two bytes shorter when the entry was added


# --- Listpacks ---------------------------------------------------------------------------------------


def check_listpack(lp: bytearray, place: str = "listpack") -> None:
    """Check L1 to L4 for any bytes; bytes after the end byte are ignored."""
    if len(lp) < listpack.HEADER_BYTES + 1:
        _broken("L1", place, f"{len(lp)} bytes are too few for a header and an end", lp)
    total = listpack.total_bytes(lp)
    if not listpack.HEADER_BYTES < total <= len(lp):
        _broken("L1", place, f"the header says {total} bytes, there are {len(lp)}", lp)
    end = total - 1
    if lp[end] != listpack.END:
        _broken("L4", place, f"0x{lp[end]:02x} at {end}, where the end byte belongs", lp)
    at = listpack.HEADER_BYTES
    count = 0
    packed = lp[:total]  # a reader that runs past the end must not find valid elements in the room
    while at < end:
        if packed[at] == listpack.END:
            _broken("L4", place, f"an end byte at {at}, before the end at {end}", lp)
        at = _check_element(packed, at, place)
        count += 1
    stated = packed[4] | packed[5] << 8
    if stated not in (count, listpack.COUNT_UNKNOWN):
        _broken("L2", place, f"the header says {stated} elements, there are {count}", lp)


def _check_element(lp: bytearray, at: int, place: str) -> int:
    """Check L3 for one element; return the position after it."""
    try:
        content = listpack.get_bytes(lp, at)
    except (CorruptData, IndexError) as error:
        _broken("L3", place, f"no element at {at} ({error})", lp)
    element = bytearray(len(content) + listpack.ELEMENT_OVERHEAD_MAX)
    size = listpack.put_string(element, 0, bytearray(content), 0, len(content))
    if lp[at : at + size] != element[:size]:
        found = lp[at : at + min(size, DUMP_BYTES_MAX)].hex()
        _broken("L3", place, f"{content[:40]!r} at {at} is not in its canonical form: {found}", lp)
    if at + size >= len(lp):
        _broken("L3", place, f"the element at {at} runs into the end byte", lp)
    return at + size


# --- Rax ---------------------------------------------------------------------------------------------


def check_rax(rax: Rax) -> None:
    """Check R1 to R7."""
    rax.check()


# --- Nodes -------------------------------------------------------------------------------------------


class _Entry:
    """One entry, decoded element by element."""

    __slots__ = ("at", "deleted", "id", "raw_bytes")

    def __init__(self, at: int, entry_id: StreamID, deleted: bool, raw_bytes: int) -> None:
        self.at = at
        self.id = entry_id
        self.deleted = deleted
        self.raw_bytes = raw_bytes


class _Elements:
    """Reads the elements of a node in order and checks the type of each."""

    __slots__ = ("at", "node", "place")

    def __init__(self, place: str, node: bytearray) -> None:
        self.place = place
        self.node = node
        self.at = listpack.first(node)

    def integer(self, number: str, what: str) -> int:
        if not self.at or not listpack.is_int(self.node, self.at):
            self.broken(number, f"{what} is missing at {self.at}")
        value = listpack.get_int(self.node, self.at)
        self.at = listpack.next_at(self.node, self.at)
        return value

    def string(self, number: str, what: str) -> bytes:
        if not self.at:
            self.broken(number, f"{what} is missing")
        value = listpack.get_bytes(self.node, self.at)
        self.at = listpack.next_at(self.node, self.at)
        return value

    def broken(self, number: str, what: str) -> NoReturn:
        _broken(number, self.place, what, self.node)


def check_node(key: bytes, node: bytearray, limits: NodeLimits | None = None) -> None:
    """Check a node with its key: L1 to L4, N1 to N3, and N4 if the limits are given."""
    _checked_entries(key, node, limits)


def _checked_entries(key: bytes, node: bytearray, limits: NodeLimits | None) -> list[_Entry]:
    """Check a node and return its entries."""
    if len(key) != _KEY_BYTES:
        _broken("S1", "nodes", f"a key of {len(key)} bytes: {key.hex()}")
    master = stream_id.from_key(key)
    place = f"node {master}"
    check_listpack(node, place)
    elements = _Elements(place, node)
    live = elements.integer("N1", "the count of live entries")
    deleted = elements.integer("N1", "the count of deleted entries")
    field_count = elements.integer("N1", "the count of fields")
    names = [elements.string("N1", "a field's name") for _ in range(field_count)]
    if elements.integer("N1", "the zero after the header") != 0:
        elements.broken("N1", "the header does not end with zero")

    entries: list[_Entry] = []
    while elements.at:
        entry = _checked_entry(elements, master, names)
        if not entries and entry.id != master:
            elements.broken("N2", f"the first entry is {entry.id}, not the key")
        if entries and entry.id <= entries[-1].id:
            elements.broken("N2", f"{entry.id} comes after {entries[-1].id}")
        entries.append(entry)
    tombstones = sum(entry.deleted for entry in entries)
    if (live, deleted) != (len(entries) - tombstones, tombstones):
        elements.broken(
            "N1",
            f"the header counts {live} live and {deleted} deleted entries, "
            f"there are {len(entries) - tombstones} and {tombstones}",
        )
    if live < 1:
        elements.broken("N1", "no live entry is left")
    if limits is not None:
        _check_limits(elements, entries, limits)
    return entries


def _checked_entry(elements: _Elements, master: StreamID, names: list[bytes]) -> _Entry:
    """Read the next entry and check N3."""
    at = elements.at
    flags = elements.integer("N3", "an entry's flags")
    if flags & ~(stream_node.FLAG_DELETED | stream_node.FLAG_SAME_FIELDS):
        elements.broken("N3", f"unknown flags {flags} at {at}")
    ms = (master.ms + elements.integer("N3", "a distance in ms")) & stream_id.MAX64
    seq = (master.seq + elements.integer("N3", "a distance in seq")) & stream_id.MAX64
    same = bool(flags & stream_node.FLAG_SAME_FIELDS)
    field_count = len(names) if same else elements.integer("N3", "an entry's count of fields")
    raw_bytes = 0
    own_names: list[bytes] = names if same else []
    for _ in range(field_count):
        if not same:
            own_names.append(elements.string("N3", "an entry's field name"))
        raw_bytes += len(elements.string("N3", "an entry's value"))
    raw_bytes += sum(map(len, own_names))
    if not same and own_names == names:
        elements.broken("N3", f"{ms}-{seq} has the header's names and does not say SAME")
    pieces = _FIXED_PIECES + field_count if same else _FIXED_PIECES + 1 + 2 * field_count
    stated = elements.integer("N3", "the pieces to step back")
    if stated != pieces:
        elements.broken("N3", f"{ms}-{seq} has {pieces} pieces to step back, not {stated}")
    deleted = bool(flags & stream_node.FLAG_DELETED)
    return _Entry(at, StreamID(ms, seq), deleted, raw_bytes)


def _check_limits(elements: _Elements, entries: list[_Entry], limits: NodeLimits) -> None:
    """Check N4 for the last entry: if it fitted, so did all before it."""
    if 0 < limits.entries_max < len(entries):
        elements.broken("N4", f"{len(entries)} entries, more than {limits.entries_max}")
    bytes_max = min(limits.bytes_max, ENTRY_BYTES_MAX) if limits.bytes_max > 0 else ENTRY_BYTES_MAX
    last = entries[-1]
    before = last.at + 1 - _COUNTER_BYTES_SAVED_MAX
    if len(entries) > 1 and before + last.raw_bytes >= bytes_max:
        elements.broken(
            "N4", f"{last.id} with {last.raw_bytes} bytes came to {before}, of {bytes_max} allowed"
        )


# --- Streams -----------------------------------------------------------------------------------------


def check_stream(stream: Stream, limits: NodeLimits | None = None) -> None:
    """Check a stream, its nodes (N4 only if limits are given) and its groups."""
    check_rax(stream.nodes)
    length = 0
    last = stream_id.SMALLEST
    tail_key = b""
    tail: object = None
    nodes = stream.nodes.iterator()
    nodes.seek("^")
    while nodes.next():
        if not isinstance(nodes.value, bytearray):
            _broken("S1", f"key {nodes.key.hex()}", f"{nodes.value!r} is not a node")
        if isinstance(tail, bytearray) and len(tail) != listpack.total_bytes(tail):
            _broken("S5", f"node {stream_id.from_key(tail_key)}", "room, and it is not the tail")
        entries = _checked_entries(nodes.key, nodes.value, limits)
        if entries[0].id <= last:
            _broken("S3", f"node {entries[0].id}", f"it is not above {last}, which precedes it")
        last = entries[-1].id
        length += sum(not entry.deleted for entry in entries)
        tail_key, tail = nodes.key, nodes.value
    if length != stream.length:
        _broken("S2", "stream", f"length is {stream.length}, the nodes hold {length}")
    if last > stream.last_id:
        _broken("S3", "stream", f"last id is {stream.last_id}, below the entry {last}")
    if not stream.length <= stream.entries_added <= COUNT_MAX:
        _broken("S4", "stream", f"{stream.entries_added} added, but {stream.length} there")
    if stream.max_deleted_id > stream.last_id:
        _broken("S4", "stream", f"{stream.max_deleted_id} deleted, above {stream.last_id}")
    _check_tail(stream, tail_key, tail)
    if stream.groups is not None:
        _check_groups(stream.groups)
    _check_index(stream)
    if stream.idempotency is not None:
        _check_producers(stream.idempotency, stream.idempotency_settings)


def _check_tail(stream: Stream, key: bytes, node: object) -> None:
    """Check S5 against the rax's last node."""
    found = stream.tail_or_none()
    if node is None:
        if found is not None:
            _broken("S5", "stream", f"the tail is {found[0]}, but there is no node")
        return
    last = stream_id.from_key(key)
    if found is None:
        _broken("S5", "stream", f"there is no tail, but the node {last}")
    if found[1] is not node:
        _broken("S5", "stream", f"the tail is not the last node, {last}")
    if found[0] != last:
        _broken("S5", "stream", f"the tail's key is {found[0]}, not {last}")


# --- Groups ------------------------------------------------------------------------------------------


def _check_index(stream: Stream) -> None:
    """Check X1 by counting again."""
    if stream.pending_index is None:
        return
    counts: dict[bytes, int] = {}
    for _, group in [] if stream.groups is None else stream.groups.pairs():
        for record in group.pending:
            counts[record.key()] = counts.get(record.key(), 0) + 1
    check_rax(stream.pending_index.counts)
    found = dict(stream.pending_index.counts.pairs())
    for key in counts.keys() | found.keys():
        if counts.get(key) != found.get(key):
            entry_id = stream_id.from_key(key)
            text = f"{entry_id} is pending in {counts.get(key, 0)} groups, not {found.get(key)}"
            _broken("X1", "index", text)


def _check_producers(known: Idempotency, settings: IdempotencySettings) -> None:
    """Check D1 and D3."""
    for producer, names in known.producers.items():
        place = f"producer {producer!r}"
        if not 1 <= len(names) <= settings.size_max:
            _broken("D1", place, f"{len(names)} names, of {settings.size_max} allowed")
    for count in (known.added, known.duplicates):
        if not 0 <= count <= COUNT_MAX:
            _broken("D3", "producers", f"a counter of {count}")


def _check_groups(groups: Rax) -> None:
    check_rax(groups)
    members = groups.iterator()
    members.seek("^")
    while members.next():
        if not isinstance(members.value, Group):
            _broken("G1", f"group {members.key!r}", f"{members.value!r} is not a group")
        check_group(members.value)


def check_group(group: Group) -> None:
    """Check G1 to G3, G5, G6, and the group's trees and lists."""
    check_pending(group.pending, "group")
    check_rax(group.consumers)
    owned = 0
    consumers = group.consumers.iterator()
    consumers.seek("^")
    while consumers.next():
        consumer = consumers.value
        place = f"consumer {consumers.key!r}"
        if not isinstance(consumer, Consumer) or consumer.name != consumers.key:
            _broken("G2", place, f"{consumer!r} is not the consumer of this name")
        if not _has_its_place(group, consumer):
            _broken("G2", place, f"number {consumer.number} is not its place in the list")
        if consumer.seen_ms < 0 or consumer.active_ms < NEVER_MS:
            times = f"seen at {consumer.seen_ms}, active at {consumer.active_ms} ms"
            _broken("G5", place, times)
        check_pending(consumer.pending, place)
        _check_records(group, consumer, place)
        owned += consumer.pending.count
    _check_returned(group)
    if owned + len(group.returned) != group.pending.count:
        _broken("G1", "group", f"{group.pending.count} records, consumers have {owned} of them")
    _check_idle_order(group)
    if not -1 <= group.entries_read <= COUNT_MAX:
        _broken("G3", "group", f"entries read is {group.entries_read}")


def _check_returned(group: Group) -> None:
    """Check G1 for the records that nobody owns."""
    for key, record in group.returned.items():
        entry_id = _checked_id(group, record, "returned")
        if key != record.key():
            _broken("G1", "returned", f"the key of {entry_id} is {key.hex()}")
        if record.consumer_number != NOBODY or record.delivery_ms != 0:
            owner = f"consumer number {record.consumer_number} at {record.delivery_ms} ms"
            _broken("G1", "returned", f"{entry_id} names {owner}")
        _check_numbers(entry_id, record, "returned")


def _check_idle_order(group: Group) -> None:
    """Check G6."""
    order = group.idle_order_or_none()
    if order is None:
        return
    check_rax(order)
    owned = {
        record.delivery_ms.to_bytes(8, "big") + record.key(): record
        for record in group.pending
        if record.consumer_number != NOBODY
    }
    if dict(order.pairs()) != owned:
        _broken("G6", "group", f"{order.count} records by time, {len(owned)} with an owner")


def _has_its_place(group: Group, consumer: Consumer) -> bool:
    try:
        return consumer.number >= 0 and group.consumer_by_number(consumer.number) is consumer
    except (IndexError, AssertionError):
        return False


def _check_records(group: Group, consumer: Consumer, place: str) -> None:
    """Check G1 from the consumer's side; the counts show that no record is left over."""
    for record in consumer.pending:
        entry_id = _checked_id(group, record, place)
        if record.consumer_number != consumer.number:
            _broken("G1", place, f"{entry_id} names consumer number {record.consumer_number}")
        _check_numbers(entry_id, record, place)


def check_pending(records: PendingList, place: str) -> None:
    """Check PL1 to PL3."""
    blocks = records.blocks()
    for block in blocks:
        if (not block and len(blocks) > 1) or len(block) > BLOCK_MAX:
            _broken("PL2", place, f"a block of {len(block)} records, one of {len(blocks)}")
    ids = [record.entry_id() for record in records]
    for before, after in pairwise(ids):
        if before >= after:
            _broken("PL1", place, f"{after} follows {before}")
    if len(ids) != records.count:
        _broken("PL3", place, f"{len(ids)} records, counted as {records.count}")


def _checked_id(group: Group, record: Pending, place: str) -> StreamID:
    """Check that a record is also in the group's list (G1); return the id of its entry."""
    entry_id = record.entry_id()
    if group.pending.find(record.key()) is not record:
        _broken("G1", place, f"the record of {entry_id} is not the group's")
    return entry_id


def _check_numbers(entry_id: StreamID, record: Pending, place: str) -> None:
    """Check G5 for one record."""
    if entry_id == stream_id.SMALLEST:
        _broken("G5", place, "0-0 is pending")
    if not (0 <= record.delivery_ms <= COUNT_MAX and 0 <= record.delivery_count <= COUNT_MAX):
        delivered = f"at {record.delivery_ms} ms, {record.delivery_count} times"
        _broken("G5", place, f"{entry_id} was delivered {delivered}")


# --- Lists -------------------------------------------------------------------------------------------


def check_list(value: ListValue, limits: ListLimits | None = None, edited: bool = False) -> None:
    """Check Q1 to Q4 and every node, and Q5 if the limits are given.

    `edited`: elements were inserted or replaced.
    """
    places, first = value.inside()
    if not 0 <= first <= len(places) or (first == len(places) and first > 0):
        _broken("Q4", "list", f"the first node is said to be at {first} of {len(places)}")
    length = 0
    for number, node in enumerate(places):
        place = f"node {number - first}"
        if number < first:
            if node is not None:
                _broken("Q4", "list", f"a node at {number}, before the first at {first}")
            continue
        if not isinstance(node, bytearray):
            _broken("Q4", place, f"{node!r} is not a node")
        check_listpack(node, place)
        count = listpack.length(node)
        if count == 0:
            _broken("Q1", place, "no element is left", node)
        if first < number < len(places) - 1 and len(node) != listpack.total_bytes(node):
            _broken("Q3", place, "room, and it is neither the first nor the last", node)
        if limits is not None and count > 1:
            _check_list_limits(place, node, limits, edited)
        length += count
    if length != value.length:
        _broken("Q2", "list", f"length is {value.length}, the nodes hold {length}")


def _check_list_limits(place: str, node: bytearray, limits: ListLimits, edited: bool) -> None:
    """Check Q5 for a node of more than one element."""
    total = listpack.total_bytes(node)
    count = listpack.length(node)
    if total > limits.bytes_max and not edited:
        _broken("Q5", place, f"{total} bytes, of {limits.bytes_max} allowed", node)
    if count > limits.entries_max:
        _broken("Q5", place, f"{count} elements, of {limits.entries_max} allowed", node)
    at = listpack.first(node)
    while at:
        size = len(listpack.get_bytes(node, at))
        if size > limits.bytes_max:
            _broken("Q5", place, f"an element of {size} bytes is not alone", node)
        at = listpack.next_at(node, at)


def _broken(number: str, place: str, what: str, dump: bytearray | None = None) -> NoReturn:
    hexed = "" if dump is None else f"; {dump[:DUMP_BYTES_MAX].hex(' ', 4)}"
    raise InvariantBroken(f"{number} {place}: {what}{hexed}")
