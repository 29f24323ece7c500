"""Every check finds every kind of damage, and names the invariant."""

from __future__ import annotations

import re

import pytest

from penstock.core import check, listpack
from penstock.core.check import (
    check_group,
    check_list,
    check_listpack,
    check_node,
    check_rax,
    check_stream,
)
from penstock.core.groups.group import Consumer, Group, Pending
from penstock.core.groups.pending_index import PendingIndex
from penstock.core.groups.references import References, add_group
from penstock.core.idempotency import Idempotency, IdempotencySettings
from penstock.core.list_value import ListLimits, ListValue
from penstock.core.rax.tree import Rax
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import InvariantBroken
from tests.support.engine.streams import add, node_at, nodes_of, sid, stream_of
from tests.support.source_tree import PACKAGE

HEADER = "0101 0001 0101 816b02 0001"  # live 1, deleted 0, one field: k
ENTRY = "0201 0001 0001 817602 0401"  # SAME, +0, +0, v
SECOND = "0201 0101 0001 817602 0401"  # the same a millisecond later


def packed(count: int, *parts: str) -> bytearray:
    """A listpack from the hex of its elements."""
    body = bytes.fromhex(" ".join(parts))
    return bytearray((len(body) + 7).to_bytes(4, "little") + count.to_bytes(2, "little")) + (
        body + b"\xff"
    )


def counted(*parts: str) -> bytearray:
    """A listpack from the hex of its elements, which are well-formed, with the right count."""
    lp = packed(0xFFFF, *parts)
    lp[4:6] = listpack.length(lp).to_bytes(2, "little")
    return lp


def broken(number: str, what: str) -> pytest.RaisesExc[InvariantBroken]:
    return pytest.raises(InvariantBroken, match=rf"^{number}\b.*{re.escape(what)}")


# --- Listpacks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"7", b"-1", b"x" * 70, b"y" * 5000, b"%d" % 2**62, b"007"]
)
def test_a_valid_listpack_passes(content: bytes) -> None:
    lp = listpack.new()
    check_listpack(lp)
    for _ in range(3):
        listpack.append(lp, content)
        check_listpack(lp)
    check_listpack(lp + b"room behind the end byte")


def test_a_listpack_of_more_elements_than_its_header_can_count_passes() -> None:
    lp = packed(0xFFFF, "0001" * 70_000)
    check_listpack(lp)
    lp[4:6] = (70_000 - 65_536).to_bytes(2, "little")
    with broken("L2", "there are 70000"):
        check_listpack(lp)


@pytest.mark.parametrize(
    ("lp", "number", "what"),
    [
        (bytearray(), "L1", "0 bytes are too few"),
        (bytearray.fromhex("0600000000ff"), "L1", "6 bytes are too few"),
        (bytearray.fromhex("06000000 0000 ff"), "L1", "the header says 6 bytes"),
        (bytearray.fromhex("08000000 0000 ff"), "L1", "the header says 8 bytes"),
        (bytearray.fromhex("ffffffff 0000 ff"), "L1", "4294967295"),
        (packed(2, "0001"), "L2", "the header says 2 elements, there are 1"),
        (packed(0, "0001"), "L2", "the header says 0 elements, there are 1"),
        (packed(1, "0002"), "L3", "at 6"),  # backlen 2 for one byte
        (packed(1, "8100"), "L3", "at 6"),  # cut off
        (packed(1, "f0ffffff7f 00"), "L3", "no element at 6"),  # 2 GiB that do not exist
        (packed(1, "f501"), "L3", "no element at 6"),  # unused encoding
        (packed(1, "c00502"), "L3", "not in its canonical form"),  # 5 in 13 bits
        (packed(1, "813502"), "L3", "not in its canonical form"),  # 5 as a string
        (packed(1, "e0016103"), "L3", "not in its canonical form"),  # a in 12 bits
        (packed(1, "f0010000006106"), "L3", "not in its canonical form"),  # a in 32 bits
        (packed(1, "f1050003"), "L3", "not in its canonical form"),  # 5 in 16 bits
        (packed(1, "f4050000000000000009"), "L3", "not in its canonical form"),
        (packed(1, "00"), "L3", "at 6"),  # no backlen
        (packed(1, "0001")[:-1] + b"\x00", "L4", "where the end byte belongs"),
        (packed(2, "0001 ff 0001"), "L4", "an end byte at 8"),
    ],
)
def test_a_broken_listpack_is_found(lp: bytearray, number: str, what: str) -> None:
    with broken(number, what):
        check_listpack(lp)


def test_bytes_after_the_end_cannot_complete_an_element() -> None:
    with broken("L3", "at 6"):
        check_listpack(packed(1, "83 6162") + bytes.fromhex("6304"))


# --- Rax ---------------------------------------------------------------------------------------------


def test_a_valid_tree_passes_and_a_broken_one_does_not() -> None:
    rax = Rax()
    for key in (b"foo", b"foobar", b"footer"):
        rax.insert(key, key)
        check_rax(rax)
    at = rax.heap.index(b"bt")
    rax.heap[at : at + 2] = b"tb"
    with broken("R2", ""):
        check_rax(rax)


# --- Nodes -------------------------------------------------------------------------------------------


KEY = sid("5-0").key


@pytest.mark.parametrize(
    ("node", "number", "what"),
    [
        (counted(HEADER, ENTRY, SECOND), "N1", "counts 1 live and 0 deleted"),
        (counted("0101 0101 0101 816b02 0001", ENTRY), "N1", "there are 1 and 0"),
        (counted("0001 0101 0101 816b02 0001", ENTRY.replace("02", "03", 1)), "N1", "no live"),
        (counted("0201 0001 0101 816b02 0001", ENTRY, SECOND.replace("02", "03", 1)), "N1", "1"),
        (counted(HEADER), "N1", "there are 0 and 0"),
        (counted("816102"), "N1", "the count of live entries is missing"),
        (counted("0101"), "N1", "the count of deleted entries is missing"),
        (counted("0101 0001 816102"), "N1", "the count of fields is missing"),
        (counted("0101 0001 0301 816b02"), "N1", "a field's name is missing"),
        (counted("0101 0001 0101 816b02"), "N1", "the zero after the header is missing"),
        (counted("0101 0001 0101 816b02 0701", ENTRY), "N1", "does not end with zero"),
        (counted(HEADER, SECOND), "N2", "the first entry is 6-0, not the key"),
        (counted("0201 0001 0101 816b02 0001", ENTRY, ENTRY), "N2", "5-0 comes after 5-0"),
        (counted(HEADER, "0401 0001 0001 817602 0401"), "N3", "unknown flags 4"),
        (counted(HEADER, "816102 0001 0001 817602 0401"), "N3", "an entry's flags is missing"),
        (counted(HEADER, "0201 816102 0001 817602 0401"), "N3", "a distance in ms is missing"),
        (counted(HEADER, "0201 0001 816102 817602 0401"), "N3", "a distance in seq is missing"),
        (counted(HEADER, "0001 0001 0001 816102 817602"), "N3", "an entry's count of fields"),
        (counted(HEADER, "0001 0001 0001 0101 816102"), "N3", "an entry's value is missing"),
        (counted(HEADER, "0001 0001 0001 0201 816102 816102"), "N3", "an entry's field name"),
        (counted(HEADER, "0201 0001 0001 817602"), "N3", "the pieces to step back is missing"),
        (counted(HEADER, "0201 0001 0001 817602 0501"), "N3", "4 pieces to step back, not 5"),
        (counted(HEADER, "0001 0001 0001 0101 816b02 817602 0601"), "N3", "does not say SAME"),
        (counted(HEADER, ENTRY)[:-1] + b"\0", "L4", "node 5-0"),
    ],
)
def test_a_broken_node_is_found(node: bytearray, number: str, what: str) -> None:
    with broken(number, what):
        check_node(KEY, node)


def test_a_valid_node_passes() -> None:
    check_node(KEY, counted(HEADER, ENTRY))
    check_node(KEY, counted("0101 0101 0101 816b02 0001", ENTRY.replace("02", "03", 1), SECOND))
    check_node(KEY, counted(HEADER, "0001 0001 0001 0101 817102 817602 0601"))


def test_a_key_that_is_no_id_is_found() -> None:
    with broken("S1", "a key of 3 bytes"):
        check_node(b"abc", counted(HEADER, ENTRY))


def test_a_node_with_more_entries_than_allowed_is_found() -> None:
    (_, node), *_ = nodes_of(stream_of("5-0", "6-0", "7-0", entries_max=3))
    check_node(KEY, bytearray(node), NodeLimits(4096, 3))
    check_node(KEY, bytearray(node), NodeLimits(0, 0))
    with broken("N4", "3 entries, more than 2"):
        check_node(KEY, bytearray(node), NodeLimits(4096, 2))


def test_a_node_with_more_bytes_than_allowed_is_found() -> None:
    stream = Stream(NodeLimits(4096, 100))
    add(stream, "5-0", b"k", b"v" * 1000)
    (_, alone), *_ = nodes_of(stream)
    check_node(KEY, bytearray(alone), NodeLimits(100, 100))  # one entry may be of any size
    add(stream, "6-0", b"k", b"v" * 500)
    (_, node), *_ = nodes_of(stream)
    check_node(KEY, bytearray(node), NodeLimits(4096, 100))
    with broken("N4", "of 1200 allowed"):
        check_node(KEY, bytearray(node), NodeLimits(1200, 100))


# --- Streams -----------------------------------------------------------------------------------------


def loaded(*nodes: tuple[str, bytearray], last: str = "99-0", added: int = 99) -> Stream:
    stream = Stream()
    for key, node in nodes:
        stream.load_node(sid(key), node)
    stream.set_last_id(sid(last), added, SMALLEST)
    return stream


def one_entry() -> bytearray:
    return counted(HEADER, ENTRY)


def test_valid_streams_pass() -> None:
    check_stream(Stream())
    check_stream(loaded(("5-0", one_entry()), ("6-0", one_entry())))
    check_stream(stream_of(*(f"{n}-0" for n in range(1, 20))), NodeLimits(4096, 3))


def test_a_broken_node_of_a_stream_is_found() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    node_at(stream, "1-0")[6] = 7
    with broken("N1", "node 1-0: the header counts 7 live"):
        check_stream(stream)


def test_something_else_than_a_node_is_found() -> None:
    stream = stream_of("1-0")
    stream.nodes.insert(sid("2-0").key, b"bytes are no bytearray")
    with broken("S1", "is not a node"):
        check_stream(stream)


def test_a_key_that_is_not_the_first_id_is_found() -> None:
    stream = loaded(("5-0", counted(HEADER, SECOND)))
    with broken("N2", "not the key"):
        check_stream(stream)


def test_a_wrong_length_is_found() -> None:
    stream = stream_of("1-0", "2-0")
    node = node_at(stream, "1-0")
    assert bytes(node[6:10]) == bytes.fromhex("0201 0001")
    node[6:10] = bytes.fromhex("0101 0101")
    at = bytes(node).index(bytes.fromhex("0201 0001 0001"), 10)
    node[at] = 3  # a valid node of one entry and one tombstone; the stream's length is now wrong
    with broken("S2", "length is 2, the nodes hold 1"):
        check_stream(stream)


def test_nodes_that_overlap_are_found() -> None:
    (_, wide), *_ = nodes_of(stream_of("1-0", "9-0"))
    stream = loaded(("1-0", bytearray(wide)), ("5-0", one_entry()))
    with broken("S3", "node 5-0: it is not above 9-0"):
        check_stream(stream)


def test_a_last_id_below_an_entry_is_found() -> None:
    with broken("S3", "last id is 4-0, below the entry 5-0"):
        check_stream(loaded(("5-0", one_entry()), last="4-0"))


def test_too_few_entries_added_are_found() -> None:
    with broken("S4", "0 added, but 1 there"):
        check_stream(loaded(("5-0", one_entry()), added=0))


def test_an_impossible_count_of_entries_added_is_found() -> None:
    stream = stream_of("5-0")
    stream.set_last_id(sid("5-0"), -(2**63), sid("0-0"))
    with broken("S4", "-9223372036854775808 added"):
        check_stream(stream)


def test_a_deleted_id_above_the_last_is_found() -> None:
    stream = stream_of("5-0")
    stream.set_last_id(sid("5-0"), 1, sid("6-0"))
    with broken("S4", "6-0 deleted, above 5-0"):
        check_stream(stream)


def test_a_tail_that_is_not_the_last_node_is_found() -> None:
    with broken("S5", "the tail is not the last node, 7-0"):
        check_stream(loaded(("7-0", one_entry()), ("5-0", one_entry())))


def test_a_node_that_was_replaced_behind_the_stream_is_found() -> None:
    stream = stream_of("5-0")
    stream.nodes.insert(sid("5-0").key, one_entry())
    with broken("S5", "the tail is not the last node, 5-0"):
        check_stream(stream)


def test_a_tail_without_nodes_is_found() -> None:
    stream = stream_of("5-0")
    stream.nodes.remove(sid("5-0").key)
    with broken("S2", "length is 1"):
        check_stream(stream)
    stream = loaded(("5-0", counted("0001 0001 0001 0001")))
    stream.nodes.remove(sid("5-0").key)
    with broken("S5", "the tail is 5-0, but there is no node"):
        check_stream(stream)


def test_room_behind_a_node_that_is_not_the_tail_is_found() -> None:
    stream = loaded(("5-0", one_entry() + bytes(10)), ("6-0", one_entry()))
    with broken("S5", "room, and it is not the tail"):
        check_stream(stream)


# --- Groups ------------------------------------------------------------------------------------------


def working() -> tuple[Stream, Group, Consumer, Consumer]:
    """Consumer a has 1-0 and 2-0 pending, b has 3-0."""
    stream = stream_of("1-0", "2-0", "3-0")
    group = Group(SMALLEST, 0)
    a, b = group.create_consumer(b"a", 0), group.create_consumer(b"b", 0)
    group.deliver(stream, a, 2, 100, True)
    group.deliver(stream, b, 1, 100, True)
    check_group(group)
    return stream, group, a, b


def test_a_record_that_only_the_group_has_is_found() -> None:
    _, group, _, _ = working()
    group.pending.insert(sid("9-0").key, Pending(0, 0, 1))
    with broken("G1", "4 records, consumers have 3"):
        check_group(group)


def test_a_record_that_only_the_consumer_has_is_found() -> None:
    _, group, _, _ = working()
    group.pending.remove(sid("1-0").key)
    with broken("G1", "the record of 1-0 is not the group's"):
        check_group(group)


def test_a_record_that_is_there_twice_is_found() -> None:
    _, group, a, b = working()
    key = sid("3-0").key
    a.pending.insert(key, b.pending.find(key))
    with broken("G1", "3-0 names consumer number 1"):
        check_group(group)


def test_two_records_for_one_entry_are_found() -> None:
    _, group, _, _ = working()
    group.pending.insert(sid("3-0").key, Pending(1, 100, 1))
    with broken("G1", "the record of 3-0 is not the group's"):
        check_group(group)


def test_a_record_that_names_another_consumer_is_found() -> None:
    _, group, a, _ = working()
    record = a.pending.find(sid("1-0").key)
    assert isinstance(record, Pending)
    record.consumer_number = 1
    with broken("G1", "1-0 names consumer number 1"):
        check_group(group)


def test_a_pending_key_that_is_no_id_is_found() -> None:
    _, group, a, _ = working()
    a.pending.insert(b"short", Pending(0, 0, 1))
    with broken("G1", "a key of 5 bytes"):
        check_group(group)


@pytest.mark.parametrize("number", [0, 1, 7, -1])
def test_a_consumer_with_a_number_that_is_not_its_place_is_found(number: int) -> None:
    _, group, _, _ = working()
    group.consumers.insert(b"c", Consumer(b"c", number, 0))
    with broken("G2", "is not its place"):
        check_group(group)


def test_a_consumer_under_another_name_is_found() -> None:
    _, group, a, _ = working()
    group.consumers.remove(b"a")
    group.consumers.insert(b"z", a)
    with broken("G2", "is not the consumer of this name"):
        check_group(group)


def test_an_impossible_count_of_entries_read_is_found() -> None:
    _, group, _, _ = working()
    group.entries_read = -2
    with broken("G3", "-2"):
        check_group(group)


def test_times_and_counts_below_zero_are_found() -> None:
    _, group, a, _ = working()
    record = next(record for _, record in a.pending.pairs())
    record.delivery_count = -1
    with broken("G5", "-1 times"):
        check_group(group)
    record.delivery_count = 1
    record.delivery_ms = -1
    with broken("G5", "at -1 ms"):
        check_group(group)
    record.delivery_ms = 0
    a.active_ms = -2
    with broken("G5", "active at -2 ms"):
        check_group(group)


def test_the_groups_of_a_stream_are_checked() -> None:
    stream, group, _, _ = working()
    stream.groups = Rax()
    stream.groups.insert(b"g", group)
    check_stream(stream)
    group.entries_read = -2
    with broken("G3", "-2"):
        check_stream(stream)
    stream.groups.insert(b"g", None)
    with broken("G1", "is not a group"):
        check_stream(stream)


def test_pending_ids_may_be_gone_from_the_stream_or_lie_ahead() -> None:
    stream, group, a, _ = working()
    stream.trim_length(0)
    group.set_position(SMALLEST, 0)
    record = Pending(a.number, 0, 1)
    for tree in (group.pending, a.pending):
        tree.insert(LARGEST.key, record)
    check_group(group)
    check_stream(stream)


# --- Returned entries, orders and indexes --------------------------------------------------------------


def returned() -> tuple[Group, Pending]:
    """2-0 of the working group has no owner."""
    _, group, _, _ = working()
    group.give_back(sid("2-0"), 1)
    check_group(group)
    return group, group.returned[sid("2-0").key]


def test_a_record_without_an_owner_that_was_not_returned_is_found() -> None:
    group, _ = returned()
    group.returned.clear()
    with broken("G1", "3 records, consumers have 2"):
        check_group(group)


def test_a_returned_record_that_is_not_the_groups_is_found() -> None:
    group, record = returned()
    group.returned[sid("9-0").key] = record
    with broken("G1", "returned: the record of 9-0 is not the group's"):
        check_group(group)
    group.returned.clear()
    group.returned[sid("2-0").key] = Pending(-1, 0, 1)
    with broken("G1", "returned: the record of 2-0 is not the group's"):
        check_group(group)
    group.returned.clear()
    group.returned[b"short"] = record
    with broken("G1", "returned: a key of 5 bytes"):
        check_group(group)


@pytest.mark.parametrize(("number", "delivery_ms"), [(0, 0), (-1, 5), (-2, 0), (-1, -1)])
def test_a_returned_record_with_an_owner_or_a_time_is_found(number: int, delivery_ms: int) -> None:
    group, record = returned()
    record.consumer_number = number
    record.delivery_ms = delivery_ms
    with broken("G1", f"2-0 names consumer number {number} at {delivery_ms} ms"):
        check_group(group)


def test_a_returned_record_that_a_consumer_has_too_is_found() -> None:
    group, record = returned()
    group.consumer_by_number(0).pending.insert(sid("2-0").key, record)
    with broken("G1", "2-0 names consumer number -1"):
        check_group(group)


def test_numbers_of_returned_records_are_checked() -> None:
    group, record = returned()
    record.delivery_count = -1
    with broken("G5", "returned: 2-0 was delivered at 0 ms, -1 times"):
        check_group(group)
    record.delivery_count = 2**63 - 1
    check_group(group)
    group.add_returned(SMALLEST, 1)
    with broken("G5", "returned: 0-0 is pending"):
        check_group(group)


def ordered() -> tuple[Group, Rax]:
    """The working group with an order of its records by time."""
    stream, group, _, _ = working()
    assert group.next_claim_ms_or_none(stream, 0) == 100
    order = group.idle_order_or_none()
    assert order is not None
    check_group(group)
    return group, order


def test_a_record_that_is_missing_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    key, _ = next(order.pairs())
    order.remove(key)
    with broken("G6", "2 records by time, 3 with an owner"):
        check_group(group)


def test_a_record_that_is_too_much_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    order.insert(bytes(8) + sid("2-0").key, group.pending.find(sid("2-0").key))
    with broken("G6", "4 records by time, 3 with an owner"):
        check_group(group)


def test_a_record_with_another_time_than_its_place_in_the_order_is_found() -> None:
    group, _ = ordered()
    group.pending.find(sid("2-0").key).delivery_ms = 101
    with broken("G6", "3 records by time, 3 with an owner"):
        check_group(group)


def test_another_record_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    key, _ = next(order.pairs())
    order.insert(key, Pending(0, 100, 1))
    with broken("G6", "3 records by time, 3 with an owner"):
        check_group(group)


def test_a_returned_record_in_the_order_of_times_is_found() -> None:
    group, order = ordered()
    group.give_back(sid("2-0"), 1)
    check_group(group)
    order.insert(bytes(8) + sid("2-0").key, group.returned[sid("2-0").key])
    with broken("G6", "3 records by time, 2 with an owner"):
        check_group(group)


def indexed() -> tuple[Stream, Rax]:
    """Two groups with an index: 1-0 is pending in one of them, 2-0 in both."""
    stream = stream_of("1-0", "2-0", "3-0")
    for name, count in ((b"g", 2), (b"h", 2)):
        group = Group(SMALLEST, 0)
        add_group(stream, name, group)
        group.deliver(stream, group.create_consumer(b"c", 0), count, 100, True)
    References(stream)
    group.acknowledge(sid("1-0"))
    check_stream(stream)
    assert stream.pending_index is not None
    return stream, stream.pending_index.counts


@pytest.mark.parametrize(
    ("entry_id", "count", "what"),
    [
        ("1-0", 2, "1-0 is pending in 1 groups, not 2"),
        ("2-0", 1, "2-0 is pending in 2 groups, not 1"),
        ("2-0", 0, "2-0 is pending in 2 groups, not 0"),
        ("3-0", 1, "3-0 is pending in 0 groups, not 1"),
        ("3-0", 0, "3-0 is pending in 0 groups, not 0"),
    ],
)
def test_a_wrong_count_in_the_index_is_found(entry_id: str, count: int, what: str) -> None:
    stream, counts = indexed()
    counts.insert(sid(entry_id).key, count)
    with broken("X1", what):
        check_stream(stream)


def test_an_entry_that_is_missing_in_the_index_is_found() -> None:
    stream, counts = indexed()
    counts.remove(sid("2-0").key)
    with broken("X1", "2-0 is pending in 2 groups, not None"):
        check_stream(stream)


def test_a_group_that_does_not_keep_up_the_index_is_found() -> None:
    stream, _ = indexed()
    assert stream.groups is not None
    stream.groups.remove(b"g")
    with broken("X1", "is pending in"):
        check_stream(stream)


def test_an_index_without_groups_is_checked() -> None:
    stream = stream_of("1-0")
    stream.pending_index = PendingIndex()
    check_stream(stream)
    stream.pending_index.add(sid("1-0").key)
    with broken("X1", "1-0 is pending in 0 groups, not 1"):
        check_stream(stream)


# --- Producers -----------------------------------------------------------------------------------------


def with_producers() -> tuple[Stream, Idempotency]:
    """A stream with two names of one producer, which is all that it may have."""
    stream = stream_of("1-0", "2-0")
    stream.idempotency_settings = IdempotencySettings(100, 2)
    stream.idempotency = known = Idempotency()
    for name in (b"a", b"b"):
        known.record(b"p", name, sid("1-0"), stream.idempotency_settings, 0)
    check_stream(stream)
    return stream, known


def test_a_producer_with_too_many_names_is_found() -> None:
    stream, known = with_producers()
    known.producers[b"p"][b"c"] = sid("2-0")
    with broken("D1", "producer b'p': 3 names, of 2 allowed"):
        check_stream(stream)


def test_a_producer_without_names_is_found() -> None:
    stream, known = with_producers()
    known.producers[b"p"].clear()
    with broken("D1", "producer b'p': 0 names"):
        check_stream(stream)


def test_counters_of_producers_below_zero_are_found() -> None:
    stream, known = with_producers()
    known.duplicates = 2**63 - 1
    check_stream(stream)
    known.duplicates = -1
    with broken("D3", "a counter of -1"):
        check_stream(stream)
    known.duplicates = 0
    known.added = -(2**63)
    with broken("D3", "a counter of -9223372036854775808"):
        check_stream(stream)


# --- Lists -------------------------------------------------------------------------------------------


def three_nodes() -> ListValue:
    """a b | c d | e"""
    value = ListValue(ListLimits(entries_max=2))
    for data in (b"a", b"b", b"c", b"d", b"e"):
        value.push_right(data)
    check_list(value, value.limits)
    return value


def test_valid_lists_pass() -> None:
    check_list(ListValue())
    value = three_nodes()
    value.push_left(b"z")
    check_list(value, value.limits)
    value.trim(3, 4)
    check_list(value, value.limits)


def test_a_broken_node_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0][1][4] = 9  # type: ignore[index]
    with broken("L2", "node 1: the header says 9 elements, there are 2"):
        check_list(value)


def test_an_empty_node_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0][2] = listpack.new()
    with broken("Q1", "node 2: no element is left"):
        check_list(value)


def test_a_wrong_length_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0].pop()
    with broken("Q2", "length is 5, the nodes hold 4"):
        check_list(value)


def test_room_behind_a_node_in_the_middle_of_a_list_is_found() -> None:
    value = three_nodes()
    node = value.inside()[0][1]
    assert node is not None
    node += b"room"
    with broken("Q3", "node 1: room"):
        check_list(value)


def test_a_hole_between_the_nodes_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0][1] = None
    with broken("Q4", "node 1: None is not a node"):
        check_list(value)


def test_a_node_before_the_first_of_a_list_is_found() -> None:
    value = three_nodes()
    value.pop_left_or_none()
    value.pop_left_or_none()
    places, first = value.inside()
    assert first == 1
    places[0] = places[1]
    with broken("Q4", "a node at 0, before the first at 1"):
        check_list(value)
    del places[1:]
    with broken("Q4", "the first node is said to be at 1 of 1"):
        check_list(value)


def test_a_node_of_a_list_beyond_the_limits_is_found() -> None:
    value = three_nodes()
    with broken("Q5", "node 0: 2 elements, of 1 allowed"):
        check_list(value, ListLimits(entries_max=1))
    with broken("Q5", "node 0: 13 bytes, of 12 allowed"):
        check_list(value, ListLimits(bytes_max=12))
    alone = ListValue()
    alone.push_right(b"x" * 10_000)
    check_list(alone, alone.limits)  # one element may be of any size


def test_an_edited_node_may_be_longer_but_its_elements_may_not() -> None:
    value = three_nodes()
    value.replace(0, b"x" * 12)
    with broken("Q5", "node 0: 24 bytes, of 23 allowed"):
        check_list(value, ListLimits(bytes_max=23))
    check_list(value, ListLimits(bytes_max=23), edited=True)
    with broken("Q5", "node 0: an element of 12 bytes is not alone"):
        check_list(value, ListLimits(bytes_max=11), edited=True)


# --- All of them -------------------------------------------------------------------------------------


def test_every_invariant_of_the_essays_is_known_to_check() -> None:
    stated = {
        number
        for name in (
            "listpack",
            "rax/tree",
            "rax/heap",
            "stream_node",
            "stream",
            "groups/group",
            "groups/pending_index",
            "idempotency",
            "list_value",
        )
        for number in re.findall(
            r"^  ([A-Z]\d)  ", (PACKAGE / "core" / f"{name}.py").read_text(), re.M
        )
    }
    assert {number[0] for number in stated} == set("LRNSGXDQ")
    ranges = re.findall(r"([LRNSGXDQ])(\d) to [LRNSGXDQ]?(\d)", str(check.__doc__))
    known = {f"{letter}{n}" for letter, low, high in ranges for n in range(int(low), int(high) + 1)}
    known |= set(re.findall(r"\b[LRNSGXDQ]\d\b", str(check.__doc__)))
    assert stated <= known


def test_ids_in_messages_are_those_of_the_entries() -> None:
    stream = Stream()
    stream.load_node(StreamID(2**64 - 1, 5), counted(HEADER, SECOND))
    stream.set_last_id(LARGEST, 1, SMALLEST)
    with broken("N2", "the first entry is 0-5"):
        check_stream(stream)
