"""Loads, stores and copies stay inside their buffer; numbers wrap as they do in C."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.core import memory

BYTES = bytearray(range(1, 17))


def test_numbers_are_read_least_significant_byte_first() -> None:
    assert memory.load16(BYTES, 1) == 0x0302
    assert memory.load32(BYTES, 1) == 0x05040302
    assert memory.load64(BYTES, 1) == 0x0908070605040302


def test_a_key_is_read_most_significant_byte_first() -> None:
    assert memory.load64_big(bytes(BYTES), 0) == 0x0102030405060708
    assert memory.load64_big(bytes(BYTES), 8) == 0x090A0B0C0D0E0F10


@pytest.mark.parametrize(
    ("load", "store", "width"),
    [
        (memory.load16, memory.store16, 2),
        (memory.load32, memory.store32, 4),
        (memory.load64, memory.store64, 8),
    ],
)
def test_a_stored_number_is_loaded_and_nothing_else_changes(
    load: Callable[[bytearray, int], int],
    store: Callable[[bytearray, int, int], None],
    width: int,
) -> None:
    for value in (0, 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1):
        for at in (0, 3, 16 - width):
            buffer = bytearray(b"\xaa" * 16)
            store(buffer, at, value)
            assert load(buffer, at) == value
            assert len(buffer) == 16
            del buffer[at : at + width]
            assert buffer == b"\xaa" * (16 - width)


def test_a_number_too_large_for_32_bits_is_stored_as_infinite() -> None:
    buffer = bytearray(4)
    for value, stored in ((1e39, b"\x00\x00\x80\x7f"), (-1e39, b"\x00\x00\x80\xff")):
        memory.store_float(buffer, 0, value)
        assert buffer == stored


Access = Callable[[bytearray, int], object]
ACCESSES: list[tuple[str, int, Access]] = [
    ("load16", 2, memory.load16),
    ("load32", 4, memory.load32),
    ("load64", 8, memory.load64),
    ("load64_big", 8, lambda buffer, at: memory.load64_big(bytes(buffer), at)),
    ("store16", 2, lambda buffer, at: memory.store16(buffer, at, 7)),
    ("store32", 4, lambda buffer, at: memory.store32(buffer, at, 7)),
    ("store64", 8, lambda buffer, at: memory.store64(buffer, at, 7)),
    ("store_float", 4, lambda buffer, at: memory.store_float(buffer, at, 7.5)),
    ("store_double", 8, lambda buffer, at: memory.store_double(buffer, at, 7.5)),
    ("copy into", 5, lambda buffer, at: memory.copy(buffer, at, bytearray(5), 0, 5)),
    ("copy from", 5, lambda buffer, at: memory.copy(bytearray(5), 0, buffer, at, 5)),
    ("put", 5, lambda buffer, at: memory.put(buffer, at, b"hello")),
    ("move to", 5, lambda buffer, at: memory.move(buffer, at, 0, 5)),
    ("move from", 5, lambda buffer, at: memory.move(buffer, 0, at, 5)),
    ("equal left", 5, lambda buffer, at: memory.equal(buffer, at, bytearray(5), 0, 5)),
    ("equal right", 5, lambda buffer, at: memory.equal(bytearray(5), 0, buffer, at, 5)),
    ("common_prefix", 5, lambda buffer, at: memory.common_prefix(buffer, at, 5, b"hello", 0)),
    ("cut", 5, lambda buffer, at: memory.cut(buffer, at, 5)),
]


@pytest.mark.parametrize(("name", "width", "access"), ACCESSES, ids=[a[0] for a in ACCESSES])
def test_no_byte_outside_the_buffer_is_touched(name: str, width: int, access: Access) -> None:
    for size in (8, 16):
        access(bytearray(size), size - width)
        for at in (size - width + 1, size, size + 1, -1, -size, 2**63 - 1):
            buffer = bytearray(size)
            with pytest.raises(IndexError, match=f"do not lie inside a buffer of {size}"):
                access(buffer, at)
            assert buffer == bytes(size), name


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(IndexError):
        memory.cut(bytearray(8), 4, -1)
    with pytest.raises(IndexError):
        memory.copy(bytearray(8), 4, bytearray(8), 4, -1)


def test_nothing_may_be_taken_from_the_very_end() -> None:
    assert memory.cut(bytearray(8), 8, 0) == b""
    assert memory.equal(bytearray(8), 8, bytearray(3), 3, 0)
    assert memory.common_prefix(bytearray(8), 8, 0, b"key", 3) == 0


def test_a_key_with_nothing_left_has_no_prefix_in_common_and_one_past_its_end_is_refused() -> None:
    assert memory.common_prefix(bytearray(b"key"), 0, 3, b"key", 3) == 0
    with pytest.raises(IndexError):
        memory.common_prefix(bytearray(b"key"), 0, 3, b"key", 4)


def test_copies_land_where_they_should() -> None:
    target = bytearray(b"........")
    memory.copy(target, 2, bytearray(b"abcdef"), 1, 3)
    assert target == b"..bcd..."
    memory.put(target, 6, b"yz")
    assert target == b"..bcd.yz"


@pytest.mark.parametrize(("at", "start", "moved"), [(2, 0, b"ababcdgh"), (0, 2, b"cdefefgh")])
def test_a_move_may_overlap_itself_either_way(at: int, start: int, moved: bytes) -> None:
    buffer = bytearray(b"abcdefgh")
    memory.move(buffer, at, start, 4)
    assert buffer == moved


@pytest.mark.parametrize(
    ("at", "back", "size", "written"),
    [
        (2, 2, 4, b"abababgh"),
        (1, 1, 7, b"aaaaaaaa"),
        (5, 5, 3, b"abcdeabc"),
        (8, 3, 0, b"abcdefgh"),
    ],
)
def test_a_repetition_may_read_what_it_has_just_written(
    at: int, back: int, size: int, written: bytes
) -> None:
    buffer = bytearray(b"abcdefgh")
    memory.repeat(buffer, at, back, size)
    assert buffer == written


@pytest.mark.parametrize(("at", "back", "size"), [(0, 1, 1), (4, 5, 1), (4, 0, 1), (6, 2, 3)])
def test_a_repetition_stays_inside_of_its_buffer(at: int, back: int, size: int) -> None:
    with pytest.raises(IndexError):
        memory.repeat(bytearray(8), at, back, size)


def test_equal_compares_only_the_piece() -> None:
    left, right = bytearray(b"abcX"), bytearray(b"zabcY")
    assert memory.equal(left, 0, right, 1, 3)
    assert not memory.equal(left, 0, right, 1, 4)


@pytest.mark.parametrize(
    ("key", "start", "shared"),
    [(b"hello", 0, 5), (b"help", 0, 3), (b"xhel", 1, 3), (b"", 0, 0), (b"hello!", 0, 5)],
)
def test_the_common_prefix_ends_with_the_shorter_of_the_two(
    key: bytes, start: int, shared: int
) -> None:
    assert memory.common_prefix(bytearray(b".hello."), 1, 5, key, start) == shared


EDGES64 = [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]


@pytest.mark.parametrize("left", EDGES64)
@pytest.mark.parametrize("right", EDGES64)
def test_advance_undoes_distance_at_every_edge(left: int, right: int) -> None:
    delta = memory.distance(left, right)
    assert -(2**63) <= delta < 2**63
    assert memory.advance(right, delta) == left


def test_a_distance_wraps_into_a_signed_number() -> None:
    assert memory.distance(5, 7) == -2
    assert memory.distance(2**64 - 1, 0) == -1
    assert memory.distance(0, 2**64 - 1) == 1
    assert memory.distance(2**63, 0) == -(2**63)
    assert memory.distance(2**63 - 1, 0) == 2**63 - 1


@pytest.mark.parametrize("delta", [2**63, -(2**63) - 1])
def test_a_delta_that_c_cannot_hold_is_refused(delta: int) -> None:
    with pytest.raises(OverflowError):
        memory.advance(0, delta)


def test_the_largest_magnitude_is_negated() -> None:
    assert memory.negate(0) == 0
    assert memory.negate(2**63) == -(2**63)


def test_numbers_become_text_and_keys() -> None:
    assert memory.format_pair(0, 0) == b"0-0"
    assert memory.format_pair(2**64 - 1, 2**64 - 1) == b"18446744073709551615-18446744073709551615"
    assert memory.key_pair(1, 2**63) == bytes(7) + b"\x01\x80" + bytes(7)
    assert memory.format_int(0) == b"0"
    assert memory.format_int(-(2**63)) == b"-9223372036854775808"
    assert memory.format_int(2**63 - 1) == b"9223372036854775807"


@pytest.mark.parametrize(
    ("value", "text"), [(0, b"00000000"), (2**32 - 1, b"ffffffff"), (0xA1, b"000000a1")]
)
def test_hexadecimal_digits(value: int, text: bytes) -> None:
    target = bytearray(9)
    assert memory.put_hex(target, 1, value) == 9
    assert target == b"\0" + text
    with pytest.raises(IndexError):
        memory.put_hex(target, 2, value)


def test_a_buffer_that_grows_keeps_its_bytes_and_never_shrinks() -> None:
    buffer = bytearray(b"abc")
    memory.grow(buffer, 2000)
    assert len(buffer) == 2000
    assert buffer[:3] == b"abc"
    memory.grow(buffer, 10)
    assert len(buffer) == 2000
