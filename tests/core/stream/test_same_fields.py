"""An entry with the names of its node is written in one pass: the bytes are those of the general way."""

from __future__ import annotations

import random

import pytest

from penstock.core import listpack, memory, stream_node
from penstock.core.frame import Frame
from penstock.core.stream import NodeLimits, Stream
from tests.support.campaign import cases, seed
from tests.support.engine.streams import frame_of, nodes_of

NAMES = [b"temp", b"", b"n" * 63, b"n" * 64, b"7", b"-1", b"humid", b"x" * 16, b"y" * 17]
EDGES = [
    0,
    1,
    127,
    128,
    4095,
    4096,
    2**15 - 1,
    2**15,
    2**23 - 1,
    2**23,
    2**31 - 1,
    2**31,
    2**63 - 1,
]
INTEGERS = [
    b"%d" % (sign * edge + more) for edge in EDGES for sign in (1, -1) for more in (-1, 0, 1)
]
TEXTS = [
    b"",
    b"-",
    b"-0",
    b"00",
    b"+1",
    b"1 ",
    b" 1",
    b"1.5",
    b"0x1",
    b"\xff",
    b"9" * 18,
    b"9" * 19,
    b"9" * 21,
]
SIZES = [1, 15, 16, 17, 62, 63, 64, 65, 125, 126, 127, 128, 4095, 4096, 5000]
DELTAS = [0, 1, 126, 127, 128, 4095, 4096, 2**15, 2**23, 2**31, 2**33, 2**50]


def values(dice: random.Random) -> bytes:
    kind = dice.random()
    if kind < 0.4:
        return dice.choice(INTEGERS)
    if kind < 0.6:
        return dice.choice(TEXTS)
    return dice.choice([b"v", b"5", b"-"]) * dice.choice(SIZES)


def node_by_the_general_way(entries: list[tuple[int, int, Frame]]) -> bytes:
    node = listpack.new()
    ms, seq, first = entries[0]
    stream_node.begin(node, first, 0, first.bytes_from(0))
    for entry_ms, entry_seq, frame in entries:
        raw_bytes = frame.bytes_from(0)
        stream_node.append_entry(
            node,
            memory.distance(entry_ms, ms),
            memory.distance(entry_seq, seq),
            frame,
            0,
            raw_bytes,
        )
    return bytes(node[: listpack.total_bytes(node)])


@pytest.mark.parametrize("number", range(cases(500)))
def test_a_node_has_the_same_bytes_in_whatever_way_its_entries_were_written(number: int) -> None:
    dice = random.Random(f"{seed()}/{number}")
    names = [dice.choice(NAMES) for _ in range(dice.choice([1, 1, 2, 5, 30]))]
    stream = Stream(NodeLimits(bytes_max=0, entries_max=0))
    entries: list[tuple[int, int, Frame]] = []
    ms, seq = 1_700_000_000_000, dice.choice([0, 5, 2**40])
    for _ in range(dice.choice([2, 20, 140])):
        used = names if dice.random() < 0.9 else [b"other", *names[1:]]
        frame = frame_of(*(piece for name in used for piece in (name, values(dice))))
        stream.append_at(ms, seq, frame, 0)
        entries.append((ms, seq, frame))
        passed = dice.choice(DELTAS) if dice.random() < 0.3 else 0
        ms, seq = (ms + passed, dice.choice([0, seq])) if passed else (ms, seq + 1)
    [(_, node)] = nodes_of(stream)
    assert node == node_by_the_general_way(entries)
