"""Hand-made files: every type of value, every operation, and the errors for invalid ones."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from penstock.core import listpack, stream_node
from penstock.core.frame import Frame
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.errors import CorruptData
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb import ziplist
from penstock.persist.rdb.reader import load_databases
from tests.support.engine.streams import ids_of, nodes_of, pending_of, sid, stream_of
from tests.support.rdb.by_hand import (
    NODE,
    NODE_KEY,
    ZIPLIST_FORMS,
    group_bytes,
    stream_bytes,
    ziplist_of,
)
from tests.support.rdb.whole_files import (
    key,
    length,
    look,
    rdb_file,
    read_all,
    read_one,
    reader_of,
    string,
)


def refusal(data: bytes, deep: bool = True) -> str:
    with pytest.raises(CorruptData) as caught:
        read_all(data, deep)
    text = str(caught.value)
    assert text.startswith("test.rdb: ")
    assert f"(at byte {caught.value.offset})" in text
    assert 0 <= caught.value.offset <= len(data)
    return text


def elements_of(value: object) -> list[bytes]:
    assert isinstance(value, ListValue)
    return value.range(0, value.length - 1) if value.length else []


# --- Strings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (b"\x00", b""),
        (b"\x03abc", b"abc"),
        (b"\x40\x03abc", b"abc"),
        (b"\x80\x00\x00\x00\x03abc", b"abc"),
        (b"\x81" + bytes(7) + b"\x03abc", b"abc"),
        (b"\xc0\x85", b"-123"),
        (b"\xc1\x00\x80", b"-32768"),
        (b"\xc2\xff\xff\xff\x7f", b"2147483647"),
        (bytes.fromhex("c3 09 0d 02616263 e00002 0078"), b"abcabcabcabcx"),
    ],
)
def test_a_string_in_each_of_its_forms(stored: bytes, text: bytes) -> None:
    assert read_one(rdb_file(key(0, b"k", stored))) == text


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (b"\xc4", "unknown string encoding 4"),
        (b"\x82", "0x82 is not the start of a length"),
        (b"\x81" + b"\xff" * 8, "a string of 18446744073709551615 bytes"),
        (b"\x81\x00\x00\x10" + bytes(5), "bytes are missing"),
        (b"\x80\x7f\xff\xff\xff", "bytes are missing"),
        (
            b"\xc3\x02\x81" + bytes(4) + b"\x7f\xff\xff\xff\x00a",
            "2 bytes cannot stand for 2147483647",
        ),
        (b"\xc3\xc0\x01", "an encoded string where a number is expected"),
    ],
)
def test_an_invalid_string_is_refused(stored: bytes, said: str) -> None:
    assert said in refusal(rdb_file(key(0, b"k", stored)))


# --- Lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("element", "text"), ZIPLIST_FORMS)
def test_every_element_of_a_ziplist_is_known(element: bytes, text: bytes) -> None:
    packed = ziplist_of(b"\x01a", element, b"\x01b")
    assert ziplist.elements(packed) == [b"a", text, b"b"]
    assert elements_of(read_one(rdb_file(key(10, b"l", string(packed))))) == [b"a", text, b"b"]


def test_all_of_them_in_one_list() -> None:
    packed = ziplist_of(*(element for element, _ in ZIPLIST_FORMS))
    texts = [text for _, text in ZIPLIST_FORMS]
    assert elements_of(read_one(rdb_file(key(10, b"l", string(packed)), version=6))) == texts
    nodes = length(2) + string(packed) * 2
    assert elements_of(read_one(rdb_file(key(14, b"l", nodes), version=9))) == texts * 2


def test_a_ziplist_becomes_a_node_and_an_empty_one_none() -> None:
    nodes = (
        length(3)
        + string(ziplist_of(b"\x01a"))
        + string(ziplist_of())
        + string(ziplist_of(b"\xf3"))
    )
    value = read_one(rdb_file(key(14, b"l", nodes)))
    assert look(value) == [
        bytes.fromhex("0a000000 0100 8161 02 ff"),
        bytes.fromhex("09000000 0100 0201 ff"),
    ]


def test_a_list_of_strings() -> None:
    value = read_one(
        rdb_file(key(1, b"l", length(3) + b"\x01a" + b"\xc0\x07" + b"\x00"), version=1)
    )
    assert elements_of(value) == [b"a", b"7", b""]


def test_a_list_of_listpacks_and_of_plain_strings() -> None:
    packed = listpack.new()
    listpack.append(packed, b"a")
    listpack.append(packed, b"7")
    nodes = length(2) + length(2) + string(bytes(packed)) + length(1) + string(b"plain")
    value = read_one(rdb_file(key(18, b"l", nodes)))
    assert elements_of(value) == [b"a", b"7", b"plain"]


def test_a_plain_node_may_look_like_a_number() -> None:
    assert elements_of(read_one(rdb_file(key(18, b"l", b"\x01\x01\xc0\x07")))) == [b"7"]


@pytest.mark.parametrize("kind_and_value", [(1, b"\x00"), (18, b"\x00"), (14, b"\x00")])
def test_an_empty_list_is_counted_and_skipped(kind_and_value: tuple[int, bytes]) -> None:
    kind, value = kind_and_value
    reader = reader_of(rdb_file(key(kind, b"l", value), key(0, b"k", b"\x01v")))
    assert [item.key for item in reader.items()] == [b"k"]
    assert reader.empty_keys == 1


def damaged(position: int, byte: int) -> bytes:
    packed = bytearray(ziplist_of(b"\x01a", b"\xf3"))
    packed[position] = byte
    return bytes(packed)


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (b"\x00" * 10, "too few for a header"),
        (damaged(0, 99), "the header says 99 bytes"),
        (damaged(4, 12), "the last element is at 12, it is at 13"),
        (damaged(8, 3), "the header says 3 elements, there are 2"),
        (damaged(10, 1), "the previous element has 0 bytes, not 1"),
        (damaged(11, 0x3F), "a string of 63 bytes runs past the end"),
        (damaged(11, 0xC1), "0xc1 is not an encoding"),
        (damaged(14, 0xE0), "an integer of 8 bytes runs past the end"),
        (damaged(15, 0), "the last byte is not 0xff"),
        (damaged(13, 0xFE), "the previous element has"),
    ],
)
def test_a_damaged_ziplist_is_refused(packed: bytes, said: str) -> None:
    assert said in refusal(rdb_file(key(10, b"l", string(packed))))
    assert said in refusal(rdb_file(key(14, b"l", length(1) + string(packed))))


def test_a_damaged_list_names_key_and_place() -> None:
    text = refusal(
        rdb_file(key(18, b"jobs", b"\x01\x02\x09" + bytes.fromhex("09000000 0200 0201 ff")))
    )
    assert "the key b'jobs': a list's node is damaged at its byte 4" in text
    assert "a list's node of kind 3" in refusal(rdb_file(key(18, b"l", b"\x01\x03\x00")))


# --- Streams --------------------------------------------------------------------------------------


def stream_in(data: bytes) -> Stream:
    value = read_one(data)
    assert isinstance(value, Stream)
    return value


@pytest.mark.parametrize(
    ("kind", "version"),
    [(15, 9), (19, 10), (21, 11), (21, 12), (21, 13), (26, 13), (26, 14), (27, 14), (27, 15)],
)
def test_streams_of_all_redis_versions(kind: int, version: int) -> None:
    groups = group_bytes(kind, [NODE_KEY], [(b"alice", [NODE_KEY]), (b"bob", [])])
    stream = stream_in(
        rdb_file(key(kind, b"s", stream_bytes(kind, groups=groups)), version=version)
    )
    assert ids_of(stream) == ["1700000000000-0"]
    assert (stream.length, stream.entries_added, str(stream.max_deleted_id)) == (1, 1, "0-0")
    assert stream.groups is not None
    group = stream.groups.find(b"g")
    assert pending_of(group) == [("1700000000000-0", b"alice", 1234, 3)]
    assert group.entries_read == 1
    alice = group.consumer_or_none(b"alice")
    assert (alice.seen_ms, alice.active_ms) == (5000, 4000 if kind >= 21 else 5000)


def test_an_old_group_has_read_what_its_position_tells() -> None:
    """Type 15 does not state it: known at the ends of the stream, unknown between."""
    stream = stream_of("1-0", "2-0", "3-0", entries_max=100)
    ((node_key, node),) = [(sid("1-0").key, bytes(stream.tail_or_none()[1]))]  # type: ignore[index]
    node = node[: int.from_bytes(node[:4], "little")]
    counters = length(3) + length(3) + b"\x00"
    for position, entries_read in ((0, 0), (1, 1), (2, -1), (3, 3)):
        group = b"\x01" + string(b"g") + length(position) + b"\x00" + b"\x00\x00"
        loaded = stream_in(
            rdb_file(
                key(15, b"s", stream_bytes(15, [(node_key, node)], counters, group)), version=9
            )
        )
        assert loaded.groups is not None
        assert loaded.groups.find(b"g").entries_read == entries_read


def test_a_node_of_tombstones_is_left_out() -> None:
    """Redis keeps one when XTRIM MINID reaches tombstones of XDEL (redis/redis issue 15808)."""
    dead = listpack.new()
    for element in (0, 1, 1):
        listpack.append_int(dead, element)
    listpack.append(dead, b"k")
    for element in (0, 3, 0, 0):
        listpack.append_int(dead, element)
    listpack.append(dead, b"v")
    listpack.append_int(dead, 4)
    counters = length(1) + length(1700000000000) + b"\x00" * 3 + b"\x05\x00" + length(2)
    for deep in (True, False):
        value = read_one(
            rdb_file(
                key(
                    19,
                    b"s",
                    stream_bytes(19, [(sid("5-0").key, bytes(dead)), (NODE_KEY, NODE)], counters),
                )
            ),
            deep,
        )
        assert isinstance(value, Stream)
        assert ids_of(value) == ["1700000000000-0"]


OTHER = sid("1700000000001-0").key


def node_of_two() -> bytes:
    """A node with the entries +0-0 and +0-1, counted from its key."""
    [(_, node)] = nodes_of(stream_of("1-0", "1-1"))
    return node


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (lambda: stream_bytes(nodes=[(NODE_KEY[:15], NODE)]), "a node's key of 15 bytes"),
        (
            lambda: stream_bytes(nodes=[(NODE_KEY, NODE)] * 2),
            "comes after the node 1700000000000-0",
        ),
        (lambda: stream_bytes(nodes=[(NODE_KEY, NODE[:-1] + b"\x00")]), "damaged at its byte 30"),
        (lambda: stream_bytes(nodes=[(NODE_KEY, b"\x07\x00\x00\x00\x00\x00\xff")]), "is damaged"),
        (lambda: stream_bytes(nodes=[(bytes(16), NODE)]), "an entry under the id 0-0"),
        # A zeroed part of a file: only the first of two entries has the id 0-0.
        (lambda: stream_bytes(nodes=[(bytes(16), node_of_two())]), "an entry under the id 0-0"),
        (
            lambda: stream_bytes(nodes=[], counters=b"\x01\x00\x00\x00\x00\x00\x00\x00"),
            "its nodes hold 0",
        ),
        (lambda: stream_bytes(counters=b"\x01\x05\x00" + b"\x00" * 5), "the last id is 5-0, below"),
        (
            lambda: stream_bytes(counters=length(1) + length(1700000000000) + b"\x00" * 6),
            "0 entries were added, but 1 are there",
        ),
        (
            lambda: stream_bytes(
                counters=length(1) + length(1700000000000) + b"\x00" * 5 + length(2**64 - 1)
            ),
            "-1 entries were added",
        ),
        (
            lambda: stream_bytes(groups=group_bytes(19, [NODE_KEY], [])),
            "1 pending entries of group b'g' belong",
        ),
        (
            lambda: stream_bytes(groups=group_bytes(19, [], [(b"a", [NODE_KEY])])),
            "is pending for b'a', not in its group",
        ),
        (
            lambda: stream_bytes(
                groups=group_bytes(19, [NODE_KEY], [(b"a", [NODE_KEY]), (b"b", [NODE_KEY])])
            ),
            "is pending for two consumers",
        ),
        (
            lambda: stream_bytes(
                groups=group_bytes(19, [NODE_KEY], [(b"a", [NODE_KEY, NODE_KEY])])
            ),
            "is pending for two consumers",
        ),
        (
            lambda: stream_bytes(groups=group_bytes(19, [], [(b"a", []), (b"a", [])])),
            "a second consumer b'a'",
        ),
        (
            lambda: stream_bytes(
                groups=group_bytes(19, [NODE_KEY, NODE_KEY], [(b"a", [NODE_KEY])])
            ),
            "is pending twice in a group",
        ),
        (
            lambda: stream_bytes(groups=b"\x02" + (group_bytes(19, [], [])[1:]) * 2),
            "a second group b'g'",
        ),
        (
            lambda: stream_bytes(groups=b"\x01\x01g\x00\x00" + length(2**64 - 2) + b"\x00\x00"),
            "has read -2 entries",
        ),
        (
            lambda: stream_bytes(groups=group_bytes(19, [bytes(16)], [(b"a", [bytes(16)])])),
            "0-0 is pending",
        ),
        (
            lambda: stream_bytes(
                groups=group_bytes(19, [NODE_KEY], []).replace(struct.pack("<q", 1234), b"\xff" * 8)
            ),
            "an entry delivered at -1 ms",
        ),
    ],
)
def test_an_invalid_stream_is_refused(stream: Callable[[], bytes], said: str) -> None:
    text = refusal(rdb_file(key(19, b"orders", stream())))
    assert said in text
    assert "the key b'orders'" in text


def test_counts_that_wrapped_in_redis_are_read_as_the_maximum() -> None:
    counters = length(1) + length(1700000000000) + b"\x00" * 5 + length(2**63 + 7)
    group = group_bytes(19, [NODE_KEY], [(b"a", [NODE_KEY])])
    group = group.replace(
        length(1700000000000) + b"\x00\x01", length(1700000000000) + b"\x00" + length(2**63)
    )
    group = group.replace(
        struct.pack("<q", 1234) + b"\x03", struct.pack("<q", 1234) + length(2**63)
    )
    stream = read_one(rdb_file(key(19, b"s", stream_bytes(19, counters=counters, groups=group))))
    assert isinstance(stream, Stream)
    assert stream.groups is not None
    found = stream.groups.find(b"g")
    (pending,) = pending_of(found)
    assert (stream.entries_added, found.entries_read, pending[3]) == (2**63 - 1,) * 3


# --- Operations -----------------------------------------------------------------------------------


def test_operations_before_a_key_belong_to_it() -> None:
    items = read_all(
        rdb_file(
            b"\xfa" + string(b"redis-ver") + string(b"6.2.0"),
            b"\xfe\x03\xfb\x02\x01",
            b"\xf4\x01\x02\x03",
            b"\xfc" + struct.pack("<q", 1_800_000_000_000) + b"\xf8\x05" + key(0, b"a", b"\x01x"),
            b"\xfd" + struct.pack("<i", 1_800_000_000) + b"\xf9\x07" + key(0, b"b", b"\x01x"),
            key(0, b"c", b"\x01x"),
        )
    )
    assert [(item.database, item.key, item.expiry_ms) for item in items] == [
        (3, b"a", 1_800_000_000_000),
        (3, b"b", 1_800_000_000_000),
        (3, b"c", None),
    ]


@pytest.mark.parametrize("kind", [*sorted(rdb_format.FOREIGN_TYPES), 8, 34, 100, 239])
def test_an_unsupported_type_is_reported_with_its_key_and_offset(kind: int) -> None:
    text = refusal(rdb_file(b"\xfe\x02", key(0, b"a", b"\x01x"), key(kind, b"mine", b"\x00")))
    assert f"type {kind} ({rdb_format.type_name(kind)}) is not supported" in text
    assert "the key b'mine' in database 2" in text
    assert text.endswith("(at byte 16)")


@pytest.mark.parametrize("operation", [242, 243, 245, 246, 247])
def test_operations_that_would_be_lost_are_refused(operation: int) -> None:
    text = refusal(rdb_file(bytes([operation]) + string(b"#!lua name=f")))
    assert f"(operation {operation}), which penstock cannot keep" in text
    assert text.endswith("(at byte 9)")


def test_an_unknown_operation_is_refused() -> None:
    assert "unknown operation 241 (at byte 9)" in refusal(rdb_file(b"\xf1"))


@pytest.mark.parametrize("version", range(1, 16))
def test_every_version_up_to_the_newest_is_read(version: int) -> None:
    reader = reader_of(rdb_file(key(0, b"k", b"\x01v"), version=version) + b"rest")
    assert [item.value for item in reader.items()] == [b"v"]
    assert reader.version == version
    assert reader.rest() == b"rest"
    assert reader.vouched == (version >= 5)


@pytest.mark.parametrize(
    "head", [b"REDIS0016", b"REDIS9999", b"REDIS0000", b"REDIS-001", b"RIDES0010"]
)
def test_another_head_is_refused(head: bytes) -> None:
    refusal(head + rdb_file(key(0, b"k", b"\x01v"))[9:])


def test_a_wrong_checksum_is_refused_and_none_is_not() -> None:
    good = rdb_file(key(0, b"k", b"\x01v"))
    assert "the checksum of the file is" in refusal(good[:-1] + bytes([good[-1] ^ 1]))
    reader = reader_of(rdb_file(key(0, b"k", b"\x01v"), checksum=False))
    assert [item.key for item in reader.items()] == [b"k"]
    assert not reader.vouched


def test_a_second_key_and_a_database_too_many_are_refused() -> None:
    twice = rdb_file(key(0, b"k", b"\x01v") * 2)
    with pytest.raises(CorruptData, match=r"test.rdb: a second key b'k' in database 0"):
        load_databases(reader_of(twice), Engine(ManualClock(0)).context.databases)
    far = rdb_file(b"\xfe\x10", key(0, b"k", b"\x01v"))
    with pytest.raises(CorruptData, match="is in database 16, but there are only 16"):
        load_databases(reader_of(far), Engine(ManualClock(0)).context.databases)


def test_tombstones_out_of_order_are_dropped_and_entries_kept() -> None:
    """Redis 7.0: XADD 1-0 .. 4-0, XDEL 3-0 4-0, XSETID 2-0, XADD 3-0."""
    stream = stream_of("1-0", "2-0", "3-0", "4-0", entries_max=100)
    stream.delete(sid("3-0"))
    stream.delete(sid("4-0"))
    below = stream_with(
        stream, "2-0", length(2) + b"\x02\x00" + b"\x01\x00" + b"\x04\x00" + b"\x04"
    )
    assert (ids_of(below), str(below.last_id)) == (["1-0", "2-0"], "2-0")
    assert (below.entries_added, str(below.max_deleted_id)) == (4, "2-0")
    again = stream.copy()
    node = again.tail_or_none()
    assert node is not None
    frame = Frame()
    frame.add(b"k")
    frame.add(b"v")
    stream_node.append_entry(node[1], 2, 0, frame, 0, 2)
    loaded = stream_with(
        again, "3-0", length(3) + b"\x03\x00" + b"\x01\x00" + b"\x04\x00" + b"\x05"
    )
    assert ids_of(loaded) == ["1-0", "2-0", "3-0"]


def stream_with(stream: Stream, last: str, counters: bytes) -> Stream:
    nodes = [(sid(key_text).key, node) for key_text, node in nodes_of(stream)]
    return stream_in(rdb_file(key(19, b"s", stream_bytes(19, nodes, counters))))


def test_entries_out_of_order_are_refused() -> None:
    stream = stream_of("1-0", "2-0", entries_max=100)
    nodes = nodes_of(stream)
    node = bytearray(nodes[0][1])
    place = node.rindex(
        bytes.fromhex("0201 0101 0001")
    )  # the second entry, one ms before the first
    node[place + 2] = 0
    counters = length(2) + b"\x02\x00" + b"\x01\x00" + b"\x00\x00" + b"\x02"
    data = stream_bytes(19, [(sid("1-0").key, bytes(node))], counters)
    assert "1-0 is not above 1-0" in refusal(rdb_file(key(19, b"s", data)))
