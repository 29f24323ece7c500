"""Listpacks: encodings, walking, editing, and errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.listpack import walk, walk_back
from penstock.core import listpack
from penstock.core.listpack import AFTER, BEFORE, REPLACE
from penstock.errors import CorruptData, TooLarge
from tests.support.structures.listpacks import (
    EDGE_INTEGERS,
    EDGE_STRING_SIZES,
    NOT_INTEGERS,
    craft,
    pack,
)

FIRST = listpack.HEADER_BYTES
UNKNOWN = listpack.COUNT_UNKNOWN


def texts(lp: bytearray) -> list[bytes]:
    return [listpack.get_bytes(lp, at) for at in walk(lp)]


def body(lp: bytearray) -> bytes:
    """The bytes of the elements, without header and end."""
    return bytes(lp[FIRST : listpack.total_bytes(lp) - 1])


def check(lp: bytearray, expected: list[bytes]) -> None:
    """Check that the listpack is valid and holds these elements from either end."""
    assert listpack.validate(lp[: listpack.total_bytes(lp)]) == lp[: listpack.total_bytes(lp)]
    assert texts(lp) == expected
    assert walk_back(lp)[::-1] == walk(lp)
    assert listpack.length(lp) == len(expected)


# --- Encodings -----------------------------------------------------------------------------------------

# Both limits of every integer encoding, and the bytes of the whole element.
INTEGER_BYTES = [
    (0, "00 01"),
    (127, "7f 01"),
    (128, "c0 80 02"),
    (4095, "cf ff 02"),
    (-1, "df ff 02"),
    (-4096, "d0 00 02"),
    (4096, "f1 00 10 03"),
    (32767, "f1 ff 7f 03"),
    (-4097, "f1 ff ef 03"),
    (-32768, "f1 00 80 03"),
    (32768, "f2 00 80 00 04"),
    (8388607, "f2 ff ff 7f 04"),
    (-32769, "f2 ff 7f ff 04"),
    (-8388608, "f2 00 00 80 04"),
    (8388608, "f3 00 00 80 00 05"),
    (2147483647, "f3 ff ff ff 7f 05"),
    (-8388609, "f3 ff ff 7f ff 05"),
    (-2147483648, "f3 00 00 00 80 05"),
    (2147483648, "f4 00 00 00 80 00 00 00 00 09"),
    (2**63 - 1, "f4 ff ff ff ff ff ff ff 7f 09"),
    (-2147483649, "f4 ff ff ff 7f ff ff ff ff 09"),
    (-(2**63), "f4 00 00 00 00 00 00 00 80 09"),
]


@pytest.mark.parametrize(("value", "element"), INTEGER_BYTES)
def test_an_integer_takes_the_shortest_encoding_that_holds_it(value: int, element: str) -> None:
    lp = pack(value)
    assert body(lp) == bytes.fromhex(element)
    assert listpack.int_size(value) == len(body(lp))
    assert listpack.is_int(lp, FIRST)
    assert listpack.get_int(lp, FIRST) == value
    assert listpack.get(lp, FIRST) == value
    assert listpack.get_bytes(lp, FIRST) == b"%d" % value


@pytest.mark.parametrize("value", EDGE_INTEGERS)
def test_the_text_of_an_integer_is_stored_as_that_integer(value: int) -> None:
    assert pack(b"%d" % value) == pack(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_integer_comes_back(value: int) -> None:
    lp = pack(value)
    assert listpack.get(lp, FIRST) == value
    assert pack(b"%d" % value) == lp
    check(lp, [b"%d" % value])


@pytest.mark.parametrize("text", NOT_INTEGERS)
def test_a_text_that_is_not_how_an_integer_is_written_stays_a_string(text: bytes) -> None:
    lp = pack(text)
    assert not listpack.is_int(lp, FIRST)
    assert body(lp) == bytes([0x80 | len(text)]) + text + bytes([1 + len(text)])
    assert listpack.get(lp, FIRST) == text
    check(lp, [text])


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64])
def test_an_integer_of_more_than_64_bits_is_refused(value: int) -> None:
    lp = pack(b"a")
    before = bytes(lp)
    with pytest.raises(OverflowError):
        listpack.append_int(lp, value)
    with pytest.raises(OverflowError):
        listpack.replace_int(lp, FIRST, value)
    assert lp == before


@pytest.mark.parametrize("size", EDGE_STRING_SIZES)
def test_a_string_of_each_edge_size_has_its_lead_and_backlen(size: int) -> None:
    content = b"s" * size
    lp = pack(1, content, 2)
    at = listpack.seek(lp, 1)
    if size < 64:
        lead = bytes([0x80 | size])
    elif size < 4096:
        lead = bytes([0xE0 | size >> 8, size & 0xFF])
    else:
        lead = b"\xf0" + size.to_bytes(4, "little")
    assert lp.startswith(lead, at)
    assert listpack.encoded_size(lp, at) == len(lead) + size
    assert listpack.string_at(lp, at) == at + len(lead)
    assert listpack.string_size(lp, at) == size
    assert not listpack.is_int(lp, at)
    check(lp, [b"1", content, b"2"])


@pytest.mark.parametrize(
    ("size", "backlen"),
    [
        (0, "01"),
        (63, "40"),
        (125, "7f"),
        (126, "01 80"),
        (4095, "20 81"),
        (16377, "7f fe"),
        (16378, "00 ff ff"),
        (16379, "01 80 80"),
        (2097145, "7f ff fe"),
        (2097146, "00 ff ff ff"),
        (2097147, "01 80 80 80"),
    ],
)
def test_the_backlen_of_a_string_is_written_most_significant_bits_first(
    size: int, backlen: str
) -> None:
    assert body(pack(b"x" * size)).endswith(b"x" * min(size, 1) + bytes.fromhex(backlen))


def test_a_backlen_of_16383_takes_three_bytes() -> None:
    assert listpack.backlen_size(16382) == 2
    assert listpack.backlen_size(16383) == 3


@pytest.mark.parametrize(
    ("size", "width"),
    [
        (0, 1),
        (127, 1),
        (128, 2),
        (16382, 2),
        (16383, 3),
        (2097150, 3),
        (2097151, 4),
        (268435454, 4),
        (268435455, 5),
        (2**32 - 1, 5),
        (2**32 + 4, 5),
    ],
)
def test_a_backlen_grows_one_short_of_what_its_bits_could_hold(size: int, width: int) -> None:
    assert listpack.backlen_size(size) == width


@pytest.mark.parametrize("size", [268435449, 268435450, 2**31 - 5, 2**31, 2**32 - 5, 2**32 - 1])
def test_a_giant_length_is_skipped_without_wrapping_around(size: int) -> None:
    lp = bytearray(craft(1, b"\xf0" + size.to_bytes(4, "little")))
    behind = FIRST + 5 + size + listpack.backlen_size(5 + size)
    assert listpack.encoded_size(lp, FIRST) == 5 + size
    assert listpack.string_size(lp, FIRST) == size
    assert listpack.skip(lp, FIRST) == behind
    with pytest.raises(IndexError):
        listpack.next_at(lp, FIRST)
    with pytest.raises(IndexError):
        listpack.get_bytes(lp, FIRST)


@pytest.mark.parametrize("size", [128, 2**28 - 1, 2**28, 2**31, 2**32 - 1, 2**35 - 1])
def test_a_giant_backlen_is_read_without_wrapping_around(size: int) -> None:
    groups = [size >> 7 * place & 0x7F for place in range(5)][::-1]
    backlen = bytes([groups[0], *(0x80 | group for group in groups[1:])])
    lp = bytearray(craft(1, backlen))
    with pytest.raises(CorruptData, match=f"a backlen of {size} bytes leads into the header"):
        listpack.last(lp)


@pytest.mark.parametrize("size", range(2, 9))
def test_a_backlen_that_leads_to_the_header_or_before_the_start_is_corrupt(size: int) -> None:
    lp = bytearray(craft(1, bytes([7, size])))
    with pytest.raises(CorruptData, match="leads into the header") as raised:
        listpack.last(lp)
    assert raised.value.offset == 7


@pytest.mark.parametrize("backlen", [b"\x80", b"\x80\x80", b"\x80" * 6, b"\x00" + b"\x80" * 5])
def test_a_backlen_without_an_end_is_corrupt(backlen: bytes) -> None:
    with pytest.raises(CorruptData, match="a backlen of more than five bytes"):
        listpack.last(bytearray(craft(1, backlen)))


@pytest.mark.parametrize("lead", range(0xF5, 0x100))
def test_a_lead_that_starts_no_element_is_corrupt(lead: int) -> None:
    lp = bytearray(craft(1, bytes([lead, 1, 2, 3, 4, 5])))
    looks: list[Callable[[bytearray, int], object]] = [
        listpack.encoded_size,
        listpack.skip,
        listpack.get,
        listpack.get_bytes,
        listpack.get_int,
        listpack.string_size,
    ]
    for look in looks:
        with pytest.raises(CorruptData) as raised:
            look(lp, FIRST)
        assert raised.value.offset == FIRST


@pytest.mark.parametrize("size", [0, 5, 63, 64, 4096])
def test_get_int_on_a_string_is_corrupt(size: int) -> None:
    lp = pack(7, b"s" * size)
    at = listpack.last(lp)
    with pytest.raises(CorruptData, match="an integer is expected here") as raised:
        listpack.get_int(lp, at)
    assert raised.value.offset == at


@pytest.mark.parametrize("value", [7, 128, 4096, 100_000, 2**31 - 1, 2**62])
def test_string_size_on_an_integer_is_corrupt(value: int) -> None:
    with pytest.raises(CorruptData, match="a string is expected here"):
        listpack.string_size(pack(value), FIRST)


@pytest.mark.parametrize(
    "stored", [b"", b"a", b"x" * 63, b"x" * 64, b"x" * 5000, b"7", b"-70000", b"07"]
)
def test_equals_is_true_for_the_same_string_alone(stored: bytes) -> None:
    lp = pack(stored)
    others = [stored + b"0", stored[:-1], stored[:-1] + b"?", b"0" + stored]
    for text in [stored, *(other for other in others if other != stored)]:
        source = bytearray(b"<" + text + b">")
        assert listpack.equals(lp, FIRST, source, 1, len(text)) == (text == stored)


@pytest.mark.parametrize("source", [b"", b"hello", b"123", b"-123", b"x" * 100])
def test_a_piece_of_a_buffer_is_written_like_the_same_string(source: bytes) -> None:
    buffer = bytearray(b"12" + source + b"34")
    lp = bytearray(len(source) + listpack.ELEMENT_OVERHEAD_MAX)
    behind = listpack.put_string(lp, 0, buffer, 2, len(source))
    assert lp[:behind] == body(pack(source))


@pytest.mark.parametrize(
    "element", [b"hello", b"x" * 64, b"x" * 4096, b"7", b"-70000", b"123456789012"]
)
def test_an_element_is_never_written_behind_the_buffer(element: bytes) -> None:
    size = len(body(pack(element)))
    for room in range(size):
        with pytest.raises(IndexError):
            listpack.put_string(bytearray(room), 0, bytearray(element), 0, len(element))
    assert listpack.put_string(bytearray(size), 0, bytearray(element), 0, len(element)) == size


# --- Walking -------------------------------------------------------------------------------------------


def test_the_empty_listpack_has_seven_bytes_and_no_element() -> None:
    lp = listpack.new()
    assert lp == bytes.fromhex("07000000 0000 ff")
    assert listpack.first(lp) == listpack.last(lp) == 0
    assert listpack.seek(lp, 0) == listpack.seek(lp, -1) == listpack.seek(lp, 5) == 0
    assert listpack.total_bytes(lp) == 7
    check(lp, [])


def test_every_new_listpack_has_bytes_of_its_own() -> None:
    listpack.append(listpack.new(), b"a")
    assert listpack.length(listpack.new()) == 0


def test_a_walk_from_either_end_stops_with_zero() -> None:
    lp = pack(b"a", 5, b"ccc")
    first, second, third = 6, 9, 11
    assert walk(lp) == [first, second, third]
    assert listpack.next_at(lp, third) == 0
    assert listpack.skip(lp, third) == listpack.total_bytes(lp) - 1
    assert listpack.previous_at(lp, first) == 0
    assert listpack.previous_at(lp, listpack.total_bytes(lp) - 1) == third
    assert listpack.previous_at(lp, third) == second


@given(st.lists(st.one_of(st.binary(max_size=200), st.sampled_from(EDGE_INTEGERS)), max_size=30))
def test_seek_finds_the_same_element_from_either_end(elements: list[bytes | int]) -> None:
    lp = pack(*elements)
    places = walk(lp)
    count = len(places)
    assert [listpack.seek(lp, index) for index in range(count)] == places
    assert [listpack.seek(lp, index) for index in range(-count, 0)] == places
    for beyond in (count, count + 1, -count - 1, -count - 2, 2**62, -(2**62)):
        assert listpack.seek(lp, beyond) == 0


@given(st.lists(st.one_of(st.binary(max_size=300), st.sampled_from(EDGE_INTEGERS)), max_size=20))
def test_our_own_listpacks_pass_deep_validation(elements: list[bytes | int]) -> None:
    lp = pack(*elements)
    check(lp, [b"%d" % e if isinstance(e, int) else e for e in elements])


# --- Editing -------------------------------------------------------------------------------------------

ELEMENTS: list[bytes | int] = [b"a", 300, b"x" * 70, b"y" * 5000, -(2**63)]
TEXTS = [b"a", b"300", b"x" * 70, b"y" * 5000, b"-9223372036854775808"]
INSERTED = [b"", b"new", b"1024", b"n" * 64, b"n" * 4096]


@pytest.mark.parametrize("data", INSERTED)
@pytest.mark.parametrize("index", range(len(ELEMENTS)))
def test_insert_before_puts_the_element_in_the_old_one_s_place(index: int, data: bytes) -> None:
    lp = pack(*ELEMENTS)
    at = listpack.seek(lp, index)
    assert listpack.insert(lp, at, data, BEFORE) == at == listpack.seek(lp, index)
    check(lp, [*TEXTS[:index], data, *TEXTS[index:]])


@pytest.mark.parametrize("data", INSERTED)
@pytest.mark.parametrize("index", range(len(ELEMENTS)))
def test_insert_after_returns_the_place_behind_the_old_one(index: int, data: bytes) -> None:
    lp = pack(*ELEMENTS)
    behind = listpack.skip(lp, listpack.seek(lp, index))
    assert listpack.insert(lp, listpack.seek(lp, index), data, AFTER) == behind
    assert behind == listpack.seek(lp, index + 1)
    check(lp, [*TEXTS[: index + 1], data, *TEXTS[index + 1 :]])


@pytest.mark.parametrize("data", INSERTED)
@pytest.mark.parametrize("index", range(len(ELEMENTS)))
def test_replace_keeps_the_place_and_the_count(index: int, data: bytes) -> None:
    lp = pack(*ELEMENTS)
    at = listpack.seek(lp, index)
    assert listpack.insert(lp, at, data, REPLACE) == at
    check(lp, [*TEXTS[:index], data, *TEXTS[index + 1 :]])


@pytest.mark.parametrize("index", range(len(ELEMENTS)))
def test_delete_returns_the_place_of_the_element_that_followed(index: int) -> None:
    lp = pack(*ELEMENTS)
    at = listpack.seek(lp, index)
    assert listpack.delete(lp, at) == (0 if index == len(ELEMENTS) - 1 else at)
    check(lp, TEXTS[:index] + TEXTS[index + 1 :])


def test_the_only_element_is_replaced_and_deleted() -> None:
    lp = pack(b"a")
    assert listpack.insert(lp, FIRST, b"b" * 100, REPLACE) == FIRST
    check(lp, [b"b" * 100])
    assert listpack.delete(lp, FIRST) == 0
    assert lp == listpack.new()


def test_insert_before_the_end_byte_appends() -> None:
    lp = listpack.new()
    assert listpack.insert(lp, FIRST, b"a", BEFORE) == FIRST
    end = listpack.total_bytes(lp) - 1
    assert listpack.insert(lp, end, b"b", BEFORE) == end
    check(lp, [b"a", b"b"])


def test_append_returns_the_place_of_the_new_element() -> None:
    lp = listpack.new()
    assert listpack.append(lp, b"a") == FIRST
    assert listpack.append_int(lp, 5) == FIRST + 3
    assert listpack.append(lp, b"5") == FIRST + 5
    check(lp, [b"a", b"5", b"5"])


@pytest.mark.parametrize("value", EDGE_INTEGERS)
@pytest.mark.parametrize("index", range(3))
def test_replace_int_tells_how_far_the_rest_has_moved(index: int, value: int) -> None:
    elements: list[int | bytes] = [1, 300, b"abc"]
    lp = pack(*elements)
    at = listpack.seek(lp, index)
    behind = listpack.skip(lp, at)
    moved = listpack.replace_int(lp, at, value)
    assert listpack.skip(lp, at) == behind + moved
    expected = [b"1", b"300", b"abc"]
    expected[index] = b"%d" % value
    check(lp, expected)


def test_the_end_byte_is_no_element_to_replace_delete_or_follow() -> None:
    lp = pack(b"a")
    before = bytes(lp)
    end = len(lp) - 1
    with pytest.raises(CorruptData):
        listpack.delete(lp, end)
    with pytest.raises(CorruptData):
        listpack.insert(lp, end, b"b", REPLACE)
    with pytest.raises(CorruptData):
        listpack.insert(lp, end, b"b", AFTER)
    with pytest.raises(CorruptData):
        listpack.replace_int(lp, end, 1)
    assert lp == before


@pytest.mark.parametrize("where", [-1, 3, 100])
def test_an_insert_anywhere_else_is_refused(where: int) -> None:
    lp = pack(b"a")
    with pytest.raises(ValueError, match=f"where is BEFORE, AFTER or REPLACE, not {where}"):
        listpack.insert(lp, FIRST, b"b", where)
    check(lp, [b"a"])


def test_room_behind_the_end_byte_survives_every_edit() -> None:
    room = bytes(range(50))
    lp, plain = listpack.new(), listpack.new()
    lp += room
    edits: list[Callable[[bytearray], object]] = [
        lambda pack: listpack.append(pack, b"one"),
        lambda pack: listpack.append_int(pack, 2),
        lambda pack: listpack.insert(pack, FIRST, b"z" * 300, BEFORE),
        lambda pack: listpack.insert(pack, listpack.last(pack), b"three", AFTER),
        lambda pack: listpack.insert(pack, listpack.last(pack), b"t" * 70, REPLACE),
        lambda pack: listpack.replace_int(pack, listpack.seek(pack, 2), 2**40),
        lambda pack: listpack.delete(pack, FIRST),
        lambda pack: listpack.delete(pack, listpack.last(pack)),
        lambda pack: listpack.delete(pack, FIRST),
        lambda pack: listpack.delete(pack, FIRST),
    ]
    for edit in edits:
        assert edit(lp) == edit(plain)
        assert lp == plain + room
        assert walk(lp) == walk(plain)
        assert walk_back(lp) == walk_back(plain)
    assert plain == listpack.new()


# --- The count that the header cannot hold ---------------------------------------------------------------


def many(count: int, stated: int) -> bytearray:
    """A listpack of small integers."""
    return listpack.validate(craft(stated, b"\x05\x01" * count))


def stated_count(lp: bytearray) -> int:
    return lp[4] | lp[5] << 8


def test_the_count_becomes_unknown_when_it_grows_to_65535() -> None:
    lp = many(65533, stated=65533)
    listpack.append(lp, b"a")
    assert stated_count(lp) == listpack.length(lp) == 65534
    for length in (65535, 65536, 65537):
        listpack.append(lp, b"a")
        assert stated_count(lp) == UNKNOWN
        assert listpack.length(lp) == length
    listpack.validate(lp)


def test_an_unknown_count_stays_unknown_while_elements_are_replaced() -> None:
    lp = many(65536, stated=UNKNOWN)
    listpack.insert(lp, FIRST, b"abc", REPLACE)
    listpack.replace_int(lp, FIRST, 1)
    assert stated_count(lp) == UNKNOWN
    assert listpack.length(lp) == 65536


def test_the_count_is_known_again_when_it_shrinks_below_65535() -> None:
    lp = many(65537, stated=UNKNOWN)
    for length in (65536, 65535):
        listpack.delete(lp, FIRST)
        assert stated_count(lp) == UNKNOWN
        assert listpack.length(lp) == length
    listpack.delete(lp, listpack.last(lp))
    assert stated_count(lp) == listpack.length(lp) == 65534
    listpack.validate(lp)


def test_an_unknown_count_of_a_few_elements_is_taken() -> None:
    lp = many(3, stated=UNKNOWN)
    assert listpack.length(lp) == 3
    listpack.append(lp, b"a")
    assert listpack.length(lp) == 4
    listpack.delete(lp, FIRST)
    assert stated_count(lp) == listpack.length(lp) == 3


def test_an_element_too_many_for_the_header_is_not_deleted() -> None:
    lp = bytearray(craft(0, b"\x05\x01"))
    before = bytes(lp)
    with pytest.raises(CorruptData, match="header says 0 elements, there is one"):
        listpack.delete(lp, FIRST)
    assert lp == before


# --- The limit -------------------------------------------------------------------------------------------


def nearly_full(room: int) -> bytearray:
    """A listpack whose header leaves `room` bytes to grow; most of its claimed bytes do not exist."""
    lp = pack(b"abc")
    lp[:4] = (listpack.TOTAL_BYTES_MAX - room).to_bytes(4, "little")
    return lp


EDITS: list[tuple[str, int, Callable[[bytearray], object]]] = [
    ("append", 5, lambda lp: listpack.append(lp, b"abc")),
    ("append of a long string", 5004, lambda lp: listpack.append(lp, b"x" * 4997)),
    ("append_int", 3, lambda lp: listpack.append_int(lp, 300)),
    ("insert before", 5, lambda lp: listpack.insert(lp, FIRST, b"new", BEFORE)),
    ("insert after", 5, lambda lp: listpack.insert(lp, FIRST, b"new", AFTER)),
    ("replace", 2, lambda lp: listpack.insert(lp, FIRST, b"longs", REPLACE)),
    ("replace_int", 5, lambda lp: listpack.replace_int(lp, FIRST, 2**40)),
]


@pytest.mark.parametrize(("name", "more", "edit"), EDITS, ids=[edit[0] for edit in EDITS])
def test_no_edit_grows_past_what_the_header_can_say(
    name: str, more: int, edit: Callable[[bytearray], object]
) -> None:
    for room in (0, more - 1):
        lp = nearly_full(room)
        before = bytes(lp)
        with pytest.raises(TooLarge, match="a listpack cannot exceed 4294967295 bytes"):
            edit(lp)
        assert lp == before, name
    lp = nearly_full(more)
    edit(lp)
    assert listpack.total_bytes(lp) == listpack.TOTAL_BYTES_MAX


def test_a_full_listpack_still_shrinks() -> None:
    lp = nearly_full(0)
    listpack.delete(lp, FIRST)
    assert listpack.total_bytes(lp) == listpack.TOTAL_BYTES_MAX - 5
