"""One node: its bytes, its ids, walking in both directions."""

from __future__ import annotations

import re

import pytest

from penstock.core import listpack, memory, stream_node
from penstock.core.check import check_node
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import MAX64, StreamID
from penstock.core.stream_node import NodeCursor
from penstock.errors import CorruptData
from tests.support.engine.streams import add, frame_of, node_at, nodes_of, sid
from tests.support.source_tree import ROOT

FRESH_NODE = bytes.fromhex(
    "1f000000 0a00 01010001 0101 8474656d7005 0001 0201 0001 0001 1501 0401 ff"
)
DOCUMENT = ROOT / "docs" / "formats" / "stream-node.md"
EDGES = [0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]

Fields = tuple[bytes, ...]


def node_of(*entries: tuple[str, Fields]) -> tuple[StreamID, bytearray]:
    """A node with these entries, and its key."""
    master = sid(entries[0][0])
    node = bytearray(7)
    frame = frame_of(*entries[0][1])
    stream_node.begin(node, frame, 0, frame.bytes_from(0))
    for text, fields in entries:
        entry_id = sid(text)
        put(
            node,
            memory.distance(entry_id.ms, master.ms),
            memory.distance(entry_id.seq, master.seq),
            fields,
        )
    check_node(master.key, node)
    return master, node


def put(node: bytearray, ms_delta: int, seq_delta: int, fields: Fields) -> bool:
    frame = frame_of(*fields)
    return stream_node.append_entry(node, ms_delta, seq_delta, frame, 0, frame.bytes_from(0))


def opened(master: StreamID, node: bytearray) -> NodeCursor:
    cursor = NodeCursor()
    cursor.open(node, master.ms, master.seq)
    return cursor


def walk(master: StreamID, node: bytearray, reverse: bool = False) -> list[tuple[str, list[bytes]]]:
    """Every entry by a cursor, tombstones in brackets."""
    cursor = opened(master, node)
    found = []
    here = cursor.last() if reverse else cursor.first()
    while here:
        name = f"{cursor.ms}-{cursor.seq}"
        found.append((f"[{name}]" if cursor.deleted else name, cursor.fields()))
        here = cursor.previous() if reverse else cursor.next()
    return found


def elements(node: bytearray) -> list[int | bytes]:
    found = []
    at = listpack.first(node)
    while at:
        found.append(listpack.get(node, at))
        at = listpack.next_at(node, at)
    return found


# --- Bytes -------------------------------------------------------------------------------------------


def test_a_fresh_node_with_one_small_entry_is_31_bytes() -> None:
    stream = Stream()
    add(stream, "1700000000000-0", b"temp", b"21")
    assert nodes_of(stream) == [("1700000000000-0", FRESH_NODE)]
    assert len(FRESH_NODE) == 31


def test_the_document_shows_the_bytes_that_are_written() -> None:
    stream = Stream()
    add(stream, "1700000000000-0", b"temp", b"21")
    fresh = nodes_of(stream)
    add(stream, "1700000000017-0", b"temp", b"22")
    add(stream, "1700000000018-0", b"door", b"open")
    stream.delete(sid("1700000000017-0"))
    wrapped = Stream()
    add(wrapped, "5-9", b"k", b"v")
    add(wrapped, "6-2", b"k", b"v")
    shown = [
        b"".join(bytes.fromhex(line.split("|")[0]) for line in block.splitlines())
        for block in re.findall(r"^```hex\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    ]
    assert shown == [node for _, node in (*fresh, *nodes_of(stream), *nodes_of(wrapped))]


def test_entries_with_the_names_of_the_header_store_values_only() -> None:
    _, node = node_of(("5-0", (b"a", b"1", b"b", b"x")), ("5-1", (b"a", b"2", b"b", b"y")))
    assert elements(node) == [
        *(2, 0, 2, b"a", b"b", 0),
        *(2, 0, 0, 1, b"x", 5),
        *(2, 0, 1, 2, b"y", 5),
    ]


def test_entries_with_other_names_store_their_own() -> None:
    _, node = node_of(("5-0", (b"a", b"1")), ("7-0", (b"b", b"2", b"c", b"3")))
    assert elements(node)[10:] == [0, 2, 0, 2, b"b", 2, b"c", 3, 8]


@pytest.mark.parametrize(
    "fields",
    [
        (b"b", b"1", b"a", b"2"),  # another order
        (b"a", b"1"),  # fewer
        (b"a", b"1", b"b", b"2", b"c", b"3"),  # more
        (b"a", b"1", b"bb", b"2"),  # another length
        (b"a", b"1", b"B", b"2"),  # another case
        (b"a", b"1", b"", b"2"),
    ],
)
def test_names_are_the_same_only_in_number_order_and_bytes(fields: Fields) -> None:
    first = (b"a", b"0", b"b", b"0")
    master, node = node_of(("5-0", first), ("5-1", fields), ("5-2", first))
    cursor = opened(master, node)
    flags = []
    here = cursor.first()
    while here:
        flags.append(cursor.same_fields)
        here = cursor.next()
    assert flags == [True, False, True]
    assert walk(master, node)[1] == ("5-1", list(fields))


@pytest.mark.parametrize(
    "names",
    [(b"7", b"-7"), (b"007", b"+7"), (b"", b"x" * 63), (b"x" * 64, b"y" * 5000), (b"n", b"n")],
)
def test_any_string_can_be_a_name(names: Fields) -> None:
    fields = (names[0], b"1", names[1], b"2")
    master, node = node_of(("5-0", fields), ("6-0", fields))
    assert walk(master, node) == [("5-0", list(fields)), ("6-0", list(fields))]
    cursor = opened(master, node)
    assert cursor.last()
    assert cursor.same_fields


def test_a_name_that_stands_twice_is_kept_twice_and_the_mapping_has_its_last_value() -> None:
    master, node = node_of(("5-0", (b"n", b"1", b"n", b"2")))
    assert walk(master, node) == [("5-0", [b"n", b"1", b"n", b"2"])]
    cursor = opened(master, node)
    cursor.first()
    assert cursor.mapping() == {b"n": b"2"}


# --- Ids ---------------------------------------------------------------------------------------------


def test_a_later_millisecond_with_a_smaller_seq_is_a_negative_distance() -> None:
    master, node = node_of(("5-9", (b"k", b"v")), ("6-2", (b"k", b"v")))
    assert elements(node)[-5:] == [2, 1, -7, b"v", 4]
    assert [name for name, _ in walk(master, node)] == ["5-9", "6-2"]


@pytest.mark.parametrize("start_ms", EDGES)
@pytest.mark.parametrize("seq", EDGES)
def test_ids_wrap_and_unwrap_at_every_edge(start_ms: int, seq: int) -> None:
    for end_ms in (ms for ms in EDGES if ms > start_ms):
        for end_seq in EDGES:
            names = [f"{start_ms}-{seq}", f"{end_ms}-{end_seq}"]
            master, node = node_of(*((name, (b"k", b"v")) for name in names))
            assert [name for name, _ in walk(master, node)] == names
            assert [name for name, _ in walk(master, node, reverse=True)] == names[::-1]


def test_a_distance_above_63_bits_is_stored_wrapped() -> None:
    _, node = node_of(("0-1", (b"k", b"v")), (f"{2**63 + 5}-1", (b"k", b"v")))
    assert elements(node)[-4:] == [-(2**63) + 5, 0, b"v", 4]


def test_the_smallest_and_the_largest_id_share_a_node() -> None:
    names = ["0-1", f"0-{MAX64}", f"{2**63 - 1}-0", f"{2**63}-0", f"{MAX64}-{MAX64}"]
    master, node = node_of(*((name, (b"k", b"v")) for name in names))
    assert [name for name, _ in walk(master, node)] == names


# --- Counts and tombstones ---------------------------------------------------------------------------


def test_the_counts_widen_and_narrow_at_128_and_nothing_is_lost() -> None:
    master, node = node_of(*((f"1-{n}", (b"k", b"%d" % n)) for n in range(300)))
    everything = walk(master, node)
    assert stream_node.live_count(node) == 300
    cursor = opened(master, node)
    assert cursor.first()
    while cursor.seq < 298:
        assert cursor.mark_deleted()
        assert cursor.deleted
        check_node(master.key, node)
        assert cursor.next()
    assert stream_node.live_count(node) == 2
    assert stream_node.entry_count(node) == 300
    assert walk(master, node) == [
        (f"[{name}]" if n < 298 else name, fields) for n, (name, fields) in enumerate(everything)
    ]


@pytest.mark.parametrize("live", [126, 127, 128, 129])
def test_an_append_says_when_it_has_moved_the_entries_before_it(live: int) -> None:
    master, node = node_of(*((f"1-{n}", (b"k", b"v")) for n in range(live)))
    assert put(node, 1, 0, (b"k", b"v")) == (live == 127)
    check_node(master.key, node)


def test_a_cursor_reads_on_after_the_counts_have_changed_their_width() -> None:
    master, node = node_of(*((f"1-{n}", (b"k", b"%d" % n)) for n in range(128)))
    cursor = opened(master, node)
    cursor.last()
    assert cursor.mark_deleted()  # 128 -> 127 live: everything moves by one byte
    assert cursor.fields() == [b"k", b"127"]
    assert cursor.previous()
    assert cursor.fields() == [b"k", b"126"]


@pytest.mark.parametrize("deleted_before", [0, 127])
def test_a_cursor_finds_both_ends_after_the_counts_have_changed_their_width(
    deleted_before: int,
) -> None:
    count = 128 if deleted_before == 0 else 200  # live falls to 127, or deleted rises to 128
    master, node = node_of(*((f"1-{n}", (b"key", b"%d" % n)) for n in range(count)))
    cursor = opened(master, node)
    cursor.last()
    for _ in range(deleted_before):
        assert cursor.mark_deleted()
        assert cursor.previous()
    before = listpack.total_bytes(node)
    assert cursor.mark_deleted()
    assert listpack.total_bytes(node) != before
    assert listpack.get_bytes(node, cursor.names_at) == b"key"
    steps = 0
    while cursor.previous():
        steps += 1
    assert steps == count - deleted_before - 1
    assert cursor.first()
    assert cursor.fields() == [b"key", b"0"]


def test_a_tombstone_keeps_its_bytes() -> None:
    master, node = node_of(("5-0", (b"k", b"1")), ("5-1", (b"k", b"2")), ("5-2", (b"q", b"3")))
    for at, name in ((0, "5-0"), (2, "5-2")):
        cursor = opened(master, node)
        cursor.first()
        for _ in range(at):
            cursor.next()
        assert cursor.mark_deleted()
        assert walk(master, node)[at][0] == f"[{name}]"
    assert elements(node)[:2] == [1, 2]
    assert walk(master, node, reverse=True) == [
        ("[5-2]", [b"q", b"3"]),
        ("5-1", [b"k", b"2"]),
        ("[5-0]", [b"k", b"1"]),
    ]


def test_the_last_live_entry_is_not_marked() -> None:
    master, node = node_of(("5-0", (b"k", b"v")))
    before = bytes(node)
    cursor = opened(master, node)
    cursor.first()
    assert not cursor.mark_deleted()
    assert not cursor.deleted
    assert node == before


# --- Walking -----------------------------------------------------------------------------------------


def test_the_next_entry_is_found_whether_the_fields_were_read_or_not() -> None:
    fields = (b"a", b"1", b"b", b"2", b"c", b"3")
    master, node = node_of(("5-0", fields), ("6-0", (b"x", b"9")), ("7-0", fields))
    cursor = opened(master, node)
    cursor.first()
    assert listpack.get_bytes(node, cursor.names_at) == b"a"
    assert listpack.get(node, cursor.pieces_at) == 1
    assert cursor.next()
    assert cursor.field_count == 1
    assert listpack.get_bytes(node, cursor.pieces_at) == b"x"
    assert cursor.mapping() == {b"x": b"9"}
    assert cursor.next()
    assert cursor.fields() == list(fields)
    assert not cursor.next()


def steps_of(master: StreamID, node: bytearray) -> int:
    """The number of entries, found without reading their fields."""
    cursor = opened(master, node)
    steps = 0
    here = cursor.first()
    while here:
        steps += 1
        here = cursor.next()
    return steps


def test_a_damaged_element_stops_the_walk() -> None:
    master, node = node_of(("5-0", (b"key", b"value")), ("5-1", (b"key", b"value")))
    assert steps_of(master, node) == 2
    for name, byte in ((b"key", 0xF5), (b"key", 0xF0), (b"value", 0xF5), (b"value", 0xBF)):
        wrong = node[: listpack.total_bytes(node)]
        wrong[wrong.rindex(name) - 1] = byte
        with pytest.raises(CorruptData, match="damaged or runs past the end"):
            steps_of(master, wrong)


def test_a_cursor_turns_round_anywhere() -> None:
    master, node = node_of(*((f"1-{n}", (b"k%d" % (n % 2), b"v")) for n in range(4)))
    cursor = opened(master, node)
    seen = []
    moves = (cursor.first, cursor.next, cursor.previous, cursor.next, cursor.next, cursor.next)
    for move in (*moves, cursor.previous, cursor.last):
        assert move()
        seen.append(cursor.seq)
    assert seen == [0, 1, 0, 1, 2, 3, 2, 3]
    assert not cursor.next()
    assert cursor.first()
    assert not cursor.previous()


def test_a_cursor_can_be_opened_on_another_node() -> None:
    first = node_of(("5-0", (b"a", b"1", b"b", b"2")))
    second = node_of(("7-0", (b"c", b"3")))
    cursor = opened(*first)
    cursor.first()
    assert cursor.fields() == [b"a", b"1", b"b", b"2"]
    cursor.open(second[1], second[0].ms, second[0].seq)
    cursor.first()
    assert (cursor.ms, cursor.fields()) == (7, [b"c", b"3"])


# --- Room --------------------------------------------------------------------------------------------


def test_the_node_that_is_appended_to_has_room_and_a_sealed_one_has_none() -> None:
    stream = Stream(NodeLimits(4096, 100))
    for n in range(1, 102):
        add(stream, f"{n}-0")
    full, tail = node_at(stream, "1-0"), node_at(stream, "101-0")
    assert len(full) == listpack.total_bytes(full)
    assert len(tail) > listpack.total_bytes(tail)


def test_sealing_changes_no_byte_of_the_listpack() -> None:
    _, node = node_of(*((f"1-{n}", (b"k", b"v" * n)) for n in range(20)))
    assert len(node) > listpack.total_bytes(node)
    assert stream_node.sealed(node) == node[: listpack.total_bytes(node)]


def test_reserve_adds_room_and_changes_nothing_else() -> None:
    _, node = node_of(("5-0", (b"k", b"v")))
    before = stream_node.sealed(node)
    stream_node.reserve(node, 100_000)
    assert len(node) >= listpack.total_bytes(node) + 100_000
    assert stream_node.sealed(node) == before
