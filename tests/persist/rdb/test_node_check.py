"""Untrusted nodes: those that pass also pass check_node; all others are refused."""

from __future__ import annotations

import random

import pytest

from penstock.core import listpack
from penstock.core.check import check_listpack, check_node
from penstock.core.stream import Stream
from penstock.errors import CorruptData, InvariantBroken
from penstock.persist.rdb import node_check
from tests.support.campaign import cases
from tests.support.engine.streams import add, node_at, sid, stream_of
from tests.support.structures.listpacks import EDGE_INTEGERS, NOT_INTEGERS


def exact(node: bytearray) -> bytearray:
    return node[: listpack.total_bytes(node)]


def sample() -> bytearray:
    stream = stream_of(entries_max=100)
    add(stream, "5-3", b"temp", b"21", b"humid", b"x" * 70)
    add(stream, "5-4", b"temp", b"-40000", b"humid", b"007")
    add(stream, "6-0", b"door", b"open")
    add(stream, "7-0", b"temp", b"9" * 20, b"humid", b"")
    stream.delete(sid("6-0"))
    return exact(node_at(stream, "5-3"))


def pack(*elements: int | bytes) -> bytearray:
    made = listpack.new()
    for element in elements:
        if isinstance(element, int):
            listpack.append_int(made, element)
        else:
            listpack.append(made, element)
    return made


def refused(node: bytearray) -> str:
    with pytest.raises(CorruptData) as caught:
        node_check.validate_node(node, 5, 3)
    return caught.value.what


def test_a_valid_node_returns_its_last_id() -> None:
    assert node_check.validate_node(sample(), 5, 3) == sid("7-0")


def test_a_node_of_tombstones_is_valid() -> None:
    assert node_check.validate_node(pack(0, 1, 1, b"k", 0, 3, 0, 0, b"v", 4), 5, 3) == sid("5-3")


def test_ids_that_do_not_rise_are_reported() -> None:
    """Redis 7.0 assigns ids again after XSETID below a tombstone; loaders must check further."""
    twice = pack(1, 1, 1, b"k", 0, 3, 0, 0, b"v", 4, 2, 0, 0, b"v", 4)
    assert node_check.validate_node(twice, 5, 3) is None


@pytest.mark.parametrize(
    ("elements", "said"),
    [
        ((), "it ends where an element is expected"),
        ((1, 0, b"x"), "an integer is expected"),
        ((1, 0, 0, 1), "does not end with zero"),
        ((1, 0, 0, 0), "without an entry"),
        ((-1, 0, 0, 0), "counts of -1 live"),
        ((1, 0, 1, b"k", 0, 2, 1, 0, b"v", 4), "the first entry is 6-3, not the key 5-3"),
        ((1, 0, 1, b"k", 0, 2, 0, 0, b"v", 5), "says 5 pieces, there are 4"),
        ((2, 0, 1, b"k", 0, 2, 0, 0, b"v", 4), "2 live and 0 deleted entries are stated"),
        ((1, 0, 1, b"k", 0, 6, 0, 0, b"v", 4), "unknown flags 6"),
        ((1, 0, 1, b"k", 0, 0, 0, 0, 1, b"k", b"v", 6), "has the header's field names"),
        ((1, 0, 1, b"k", 0, 0, 0, 0, -1, 2), "with -1 fields"),
        ((1, 0, 2**62, b"k", 0, 2, 0, 0, b"v", 4), "it ends where an element is expected"),
        ((1, 0, 1, b"k", 0, 0, 0, 0, 2**62, b"k", b"v", 4), "with 4611686018427387904 fields"),
        ((1, 0, 1, b"k", 0, 2, 0, 0), "it ends where an element is expected"),
    ],
)
def test_the_error_says_what_is_wrong(elements: tuple[int | bytes, ...], said: str) -> None:
    assert said in refused(pack(*elements))


@pytest.mark.parametrize(
    "element", ["c00502", "f10500 03", "f2050000 04", "f305000000 05", "f40500000000000000 09"]
)
def test_an_integer_in_a_longer_form_is_refused(element: str) -> None:
    data = bytes.fromhex(element)
    node = bytearray((7 + len(data)).to_bytes(4, "little") + b"\x01\x00" + data + b"\xff")
    with pytest.raises(CorruptData, match="shortest form"):
        node_check.validate_listpack(node)


@pytest.mark.parametrize("element", ["e001 61 03", "f001000000 61 06"])
def test_a_string_in_a_longer_form_is_refused(element: str) -> None:
    data = bytes.fromhex(element)
    node = bytearray((7 + len(data)).to_bytes(4, "little") + b"\x01\x00" + data + b"\xff")
    with pytest.raises(CorruptData, match="shortest form"):
        node_check.validate_listpack(node)


def test_integers_are_not_stored_as_strings() -> None:
    node = bytearray.fromhex("0a000000 0100 8137 02 ff")
    with pytest.raises(CorruptData, match="stored as a string"):
        node_check.validate_listpack(node)


def test_every_form_of_every_element_is_known() -> None:
    everything = [b"%d" % number for number in EDGE_INTEGERS] + list(NOT_INTEGERS)
    everything += [b"s" * size for size in (0, 1, 62, 63, 64, 125, 126, 4095, 4096, 16378, 70_000)]
    node_check.validate_listpack(pack(*everything))


@pytest.mark.parametrize("seed", range(cases(100)))
def test_it_agrees_with_check_node_on_damaged_nodes(seed: int) -> None:
    """One check reads bytes, the other uses the readers: both must agree."""
    dice = random.Random(seed)
    good = sample()
    accepted = 0
    for _ in range(200):
        bad = bytearray(good)
        for _ in range(dice.choice([1, 1, 1, 2, 3])):
            bad[dice.randrange(4, len(bad))] = dice.choice([dice.randrange(256), dice.randrange(8)])
        try:
            in_order = node_check.validate_node(bad, 5, 3) is not None
        except CorruptData:
            in_order = False
        if not in_order:
            with pytest.raises((InvariantBroken, CorruptData, IndexError, AssertionError)):
                check_node(sid("5-3").key, bad)
            continue
        accepted += 1
        check_node(sid("5-3").key, bad)
        check_listpack(bad)
        stream = Stream()
        stream.load_node(sid("5-3"), bad)
        assert len(stream.range().entries()) == stream.length
    assert accepted


def test_every_truncation_is_refused() -> None:
    good = sample()
    for size in range(len(good)):
        bad = good[:size]
        if size >= 7:
            bad[:4] = size.to_bytes(4, "little")
            bad[-1] = 0xFF
        with pytest.raises(CorruptData):
            node_check.validate_node(bad, 5, 3)
