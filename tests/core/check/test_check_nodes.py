"""The checks of listpacks, trees and nodes find every kind of damage, and name the invariant."""

from __future__ import annotations

import pytest

from penstock.core import listpack
from penstock.core.check import check_listpack, check_node, check_rax
from penstock.core.rax.tree import Rax
from penstock.core.stream import NodeLimits, Stream
from tests.support.engine.streams import add, nodes_of, sid, stream_of
from tests.support.structures.damage import ENTRY, HEADER, SECOND, broken, counted, packed

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
