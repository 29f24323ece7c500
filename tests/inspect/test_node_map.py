"""Decoded nodes: ids, names and values match the stream, and damage never raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import stream_id
from penstock.core.stream import NodeLimits, Stream
from penstock.errors import CorruptData
from penstock.inspect.node_map import NodeMap, flags_text, node_map
from penstock.inspect.segments import NO_ENTRY, Role
from penstock.inspect.stored import RawNode, stream_of
from penstock.persist.rdb import node_check
from tests.inspect.test_segments import assert_covers
from tests.support.engine.streams import add, frame_of, ids_of, sid

MAX = 2**64 - 1
NAMES = [(b"temp",), (b"temp", b"humid"), (b"door",), (b"21",), (b"\x1b[31m", b"<script>")]


UNUSUAL = (
    "listpack: an element is not in its shortest form",
    "listpack: an integer is stored as a string",
    "an entry has the header's field names and does not say so",
    "a node without an entry",
)


def refusal_of(data: bytearray, node: RawNode) -> str:
    """Why a node would not be loaded, or empty."""
    try:
        node_check.validate_node(data, node.master.ms, node.master.seq)
    except CorruptData as error:
        return error.what
    return ""


def maps_of(stream: Stream) -> list[NodeMap]:
    return [node_map(node.data, node.master) for node in stream_of(stream)]


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Small nodes, different names, gaps between ids, some deleted entries."""
    stream = Stream(NodeLimits(bytes_max=draw(st.sampled_from([80, 4096])), entries_max=5))
    ms = draw(st.sampled_from([0, 1, 1_700_000_000_000, MAX - 5]))
    for number in range(draw(st.integers(1, 15))):
        seq = draw(st.sampled_from([0, 7, MAX]))
        step = draw(st.sampled_from([0, 1, 200, 2**40, 2**63]))
        given_ms = min(max(stream.last_ms, ms) + step, MAX)
        pieces = []
        for name in draw(st.sampled_from(NAMES)):
            value = draw(st.binary(max_size=20) | st.integers().map(lambda n: b"%d" % n))
            pieces += [name, value]
        wanted = stream_id.make(given_ms, seq)
        if wanted > stream.last_id:
            stream.append_at(wanted.ms, wanted.seq, frame_of(*pieces), 0)
        if number and draw(st.booleans()):
            entries = ids_of(stream)
            if entries:
                stream.delete(sid(draw(st.sampled_from(entries))))
    return stream


@given(streams())
def test_maps_hold_every_byte_once_and_every_entry_as_the_stream_has_it(stream: Stream) -> None:
    live = []
    for node in stream_of(stream):
        made = node_map(node.data, node.master)
        assert_covers(node.data, made.segments)
        assert made.damages == []
        assert all(entry.whole and entry.rises for entry in made.entries)
        assert made.live == sum(not entry.deleted for entry in made.entries)
        assert made.deleted == sum(entry.deleted for entry in made.entries)
        live += [(e.id.text, e.fields) for e in made.entries if not e.deleted]
    assert live == [
        (entry_id, list(zip(flat[::2], flat[1::2], strict=True)))
        for entry_id, flat in stream.range().entries()
    ]


@given(streams(), st.data())
def test_a_changed_byte_or_a_cut_is_damage_and_never_an_exception(
    stream: Stream, data: st.DataObject
) -> None:
    nodes = stream_of(stream)
    if not nodes:
        return
    node = data.draw(st.sampled_from(nodes))
    damaged = bytearray(node.data)
    if data.draw(st.booleans()):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    else:
        del damaged[data.draw(st.integers(0, len(damaged) - 1)) :]
    made = node_map(damaged, node.master)
    assert_covers(bytes(damaged), made.segments)
    if not made.damages:
        # A changed value, name or later distance cannot be told from a sound node, except for encodings
        # that no writer uses and every reader accepts.
        assert refusal_of(damaged, node) in ("", *UNUSUAL)


def worked() -> RawNode:
    """The node of docs/formats/stream-node.md, with a tombstone and an entry with own names."""
    stream = Stream()
    add(stream, "1700000000000-0", b"temp", b"21")
    add(stream, "1700000000017-0", b"temp", b"22")
    add(stream, "1700000000018-0", b"door", b"open")
    stream.delete(sid("1700000000017-0"))
    (node,) = stream_of(stream)
    return node


@pytest.mark.parametrize("place", range(63))
def test_every_flipped_bit_of_every_byte_of_a_node_is_survived(place: int) -> None:
    node = worked()
    for bit in range(8):
        damaged = bytearray(node.data)
        damaged[place] ^= 1 << bit
        assert_covers(bytes(damaged), node_map(damaged, node.master).segments)
    cut = node.data[:place]
    made = node_map(cut, node.master)
    assert_covers(cut, made.segments)
    assert made.damages


def test_the_worked_node_matches_its_document() -> None:
    node = worked()
    made = node_map(node.data, node.master)
    assert made.names == [b"temp"]
    rows = [
        (str(entry.id), entry.deleted, entry.same_fields, entry.fields) for entry in made.entries
    ]
    assert rows == [
        ("1700000000000-0", False, True, [(b"temp", b"21")]),
        ("1700000000017-0", True, True, [(b"temp", b"22")]),
        ("1700000000018-0", False, False, [(b"door", b"open")]),
    ]
    roles = [s.role for s in made.segments if s.kind == "encoding"]
    assert roles == [
        *(Role.HEADER_LIVE, Role.HEADER_DELETED, Role.HEADER_FIELDS, Role.HEADER_NAME),
        Role.HEADER_END,
        *(2 * [Role.FLAGS, Role.MS, Role.SEQ, Role.VALUE, Role.PIECES]),
        *(Role.FLAGS, Role.MS, Role.SEQ, Role.FIELDS, Role.NAME, Role.VALUE, Role.PIECES),
    ]
    assert {s.entry for s in made.segments} == {NO_ENTRY, 0, 1, 2}
    assert [flags_text(flags) for flags in range(4)] == ["none", "deleted", "SAME", "SAME, deleted"]


def test_ids_at_both_ends_of_64_bits_are_exact() -> None:
    stream = Stream()
    add(stream, "0-1")
    add(stream, f"{MAX}-{MAX}")
    (made,) = maps_of(stream)
    assert [str(entry.id) for entry in made.entries] == ["0-1", f"{MAX}-{MAX}"]
    assert made.damages == []


@pytest.mark.parametrize(
    ("place", "byte", "reason"),
    [
        (6, 7, "live: the header says 7, there are 2"),
        (8, 0, "deleted: the header says 0, there are 1"),
        (10, 0x7F, "header fields: 127 of them do not fit"),
        (18, 1, "the header does not end with zero"),
        (20, 9, "an entry with the flags 9, of which 1 and 2 exist"),
        (22, 1, "the first entry is 1700000000001-0, not the key 1700000000000-0"),
        (28, 9, "pieces: the entry says 9, there are 4"),
    ],
)
def test_damage_in_a_node_is_described(place: int, byte: int, reason: str) -> None:
    node = worked()
    damaged = bytearray(node.data)
    damaged[place] = byte
    made = node_map(damaged, node.master)
    assert_covers(bytes(damaged), made.segments)
    assert [found for _, found in made.damages] == [reason]


def test_ids_that_do_not_increase_are_reported() -> None:
    node = worked()
    damaged = bytearray(node.data)
    damaged[32] = 0  # the second entry's distance
    made = node_map(damaged, node.master)
    assert [entry.rises for entry in made.entries] == [True, False, True]
    assert made.damages == []
