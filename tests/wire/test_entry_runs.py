"""Runs of entries are written with the bytes that the entries have one by one, whatever the node holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import listpack
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_cursor import EntryRange
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import CorruptData
from penstock.reply import Served
from penstock.wire.encoder import Encoder
from tests.support.engine.streams import add, frame_of, node_at, nodes_of, sid

MAX64 = 2**64 - 1
# The smallest and the largest number of each width, and their neighbours; the same for sizes of strings.
EDGES = [0, 1, 9, 10, 127, 128, 4095, 4096, 2**15, 2**23, 2**31, 2**40, 2**63]
NUMBERS = [
    number
    for edge in EDGES
    for number in (edge - 1, edge, -edge, -edge - 1)
    if -(2**63) <= number < 2**63
]
SIZES = [0, 1, 9, 10, 15, 16, 17, 31, 32, 33, 62, 63, 64, 99, 100, 125, 126, 999, 4095, 4096, 5000]
MS_STEPS = [0, 0, 0, 1, 1, 127, 128, 4096, 2**15, 2**23, 2**31, 2**32, 2**45]
SEQUENCES = [0, 1, 5, 127, 4095, 4096, 2**15, 2**23, 2**24, 2**31, 2**63, MAX64 - 50]
FIELD_SETS = [[b"k"], [b"temp", b"door"], [b"", b"-7", b"n" * 70], [b"temp", b"other"]]


def encoded(reply: Any, resp3: bool = False) -> bytes:
    output = Encoder()
    output.resp3 = resp3
    output.put(reply)
    return output.take()


def one_by_one(entries: EntryRange) -> list[list[Any]]:
    """The entries as objects, which the encoder writes without knowing nodes."""
    return [list(entry) for entry in entries.entries()]


def values() -> st.SearchStrategy[bytes]:
    return st.one_of(
        st.sampled_from(NUMBERS).map(lambda number: b"%d" % number),
        st.integers(-300, 300).map(lambda number: b"%d" % number),
        st.sampled_from(SIZES).map(lambda size: b"v" * size),
        st.binary(max_size=20),
    )


@dataclass
class Step:
    ms_step: int
    seq: int
    names: list[bytes]
    values: list[bytes]
    is_deleted: bool


STEPS = st.builds(
    Step,
    st.sampled_from(MS_STEPS),
    st.sampled_from(SEQUENCES),
    st.sampled_from(FIELD_SETS + FIELD_SETS[:2] * 4),
    st.lists(values(), min_size=3, max_size=3),
    st.sampled_from([True, False, False, False, False]),
)


def built(steps: list[Step], limits: NodeLimits) -> tuple[Stream, list[StreamID]]:
    """A stream of these entries, some deleted again, and all ids that it had."""
    stream = Stream(limits)
    ids: list[StreamID] = []
    ms, seq = 5, 0
    for step in steps:
        seq = step.seq if step.ms_step else min(seq + 1 + step.seq % 3, MAX64)
        ms = min(ms + step.ms_step, MAX64)
        if ids and (ms, seq) <= (ids[-1].ms, ids[-1].seq):
            break
        pieces = [piece for pair in zip(step.names, step.values, strict=False) for piece in pair]
        stream.append_at(ms, seq, frame_of(*pieces), 0)
        ids.append(StreamID(ms, seq))
    for step, entry_id in zip(steps, ids, strict=False):
        if step.is_deleted:
            stream.delete(entry_id)
    return stream, ids


@given(
    st.lists(STEPS, min_size=1, max_size=30),
    st.sampled_from([NodeLimits(4096, 100), NodeLimits(200, 5), NodeLimits(0, 0)]),
    st.data(),
)
def test_a_range_has_the_bytes_of_its_entries(
    steps: list[Step], limits: NodeLimits, data: st.DataObject
) -> None:
    stream, ids = built(steps, limits)
    bounds = st.sampled_from([SMALLEST, LARGEST, *ids])
    output = Encoder()
    for _ in range(4):
        start, end = data.draw(bounds), data.draw(bounds)
        limit = data.draw(st.sampled_from([0, 1, 2, 5, 9, 10, 11, 100]))
        for reverse in (False, True):
            found = stream.range(start, end, limit, reverse)
            output.put(found)  # one encoder for all: it keeps the digits of the last id
            assert output.take() == encoded(one_by_one(found))
    whole = stream.range()
    for resp3 in (False, True):
        plain = Served([(b"s", one_by_one(whole))])
        assert encoded(Served([(b"s", whole)]), resp3) == encoded(plain, resp3)


def test_the_first_entries_of_a_node_may_be_deleted() -> None:
    stream = Stream(NodeLimits(4096, 4))
    for number in range(1, 10):
        add(stream, f"{number}-{10 - number}", b"k", b"%d" % number)
    for entry_id in ("1-9", "2-8", "4-6", "5-5"):
        stream.delete(sid(entry_id))
    assert encoded(stream.range()) == encoded(one_by_one(stream.range()))
    assert encoded(stream.range(sid("4-0"), sid("8-1"))) == (
        b"*2\r\n*2\r\n$3\r\n6-4\r\n*2\r\n$1\r\nk\r\n$1\r\n6\r\n"
        b"*2\r\n$3\r\n7-3\r\n*2\r\n$1\r\nk\r\n$1\r\n7\r\n"
    )


def test_a_run_outgrows_the_buffer() -> None:
    stream = Stream(NodeLimits(0, 0))
    for number in range(1, 400):
        add(stream, f"{number}-0", b"k", b"x" * 1000, b"n", b"%d" % number)
    assert len(nodes_of(stream)) == 1
    assert encoded(stream.range()) == encoded(one_by_one(stream.range()))


def damaged(node: bytearray, at: int, byte: int) -> Stream:
    """A stream whose only node has one wrong byte, with or without unused space behind it."""
    wrong = bytearray(node)
    wrong[at] = byte
    stream = Stream()
    stream.load_node(StreamID(5, 3), wrong)
    return stream


@pytest.mark.parametrize("spare", [0, 40])
def test_a_damaged_node_raises_or_agrees_with_its_entries(spare: int) -> None:
    stream = Stream()
    add(stream, "5-3", b"temp", b"21", b"door", b"open")
    add(stream, "6-0", b"temp", b"4096", b"door", b"x" * 70)
    add(stream, "6-1", b"wet", b"-70000", b"when", b"1700000000000")
    add(stream, "7-0", b"temp", b"-1", b"door", b"")
    node = node_at(stream, "5-3")
    node = node[: listpack.total_bytes(node)] + bytearray(spare)
    raised = agreed = 0
    for at in range(listpack.HEADER_BYTES, len(node) - spare):
        for byte in (0, 2, 3, 0x7F, 0x81, 0xBF, 0xC0, 0xDF, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF):
            try:
                whole = damaged(node, at, byte)
                written = encoded(whole.range(limit=50))
            except (CorruptData, IndexError):
                raised += 1
                continue
            try:
                plain = one_by_one(whole.range(limit=50))
            except (CorruptData, IndexError):
                continue
            assert written == encoded(plain)
            agreed += 1
    assert raised > 200
    assert agreed > 200


@pytest.mark.parametrize("byte", [0xBF, 0xEF, 0xF0, 0xF5, 0xFF])
def test_a_value_that_runs_past_the_end_is_refused(byte: int) -> None:
    stream = Stream()
    add(stream, "5-3", b"k", b"value")
    add(stream, "5-4", b"k", b"value")
    node = node_at(stream, "5-3")
    node = node[: listpack.total_bytes(node)]
    at = node.rindex(b"value") - 1
    with pytest.raises(CorruptData, match="a field is damaged or runs past the end"):
        encoded(damaged(node, at, byte).range())
