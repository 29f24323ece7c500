"""Lists: both ends, every width of element, nodes of every size, removals."""

from __future__ import annotations

import sys

import pytest

from penstock.core import listpack
from penstock.core.check import check_list
from penstock.core.list_value import NODE_BYTES_MAX, NODE_ENTRIES_MAX, ListLimits, ListValue
from penstock.errors import CorruptData, TooLarge
from tests.support.structures.listpacks import (
    EDGE_INTEGERS,
    EDGE_STRING_SIZES,
    NOT_INTEGERS,
    craft,
    pack,
)

LETTERS = [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]


def list_of(*elements: bytes, limits: ListLimits | None = None) -> ListValue:
    value = ListValue(limits)
    for element in elements:
        value.push_right(element)
    check_list(value, limits)
    return value


def small(*elements: bytes) -> ListValue:
    """A list with two elements per node."""
    return list_of(*elements, limits=ListLimits(entries_max=2))


def elements_of(value: ListValue) -> list[bytes]:
    check_list(value)
    return value.range(0, value.length - 1)


def nodes_of(value: ListValue) -> list[list[bytes]]:
    """The elements, node by node."""
    made = []
    for node in value.nodes():
        one = ListValue()
        one.load_node(node)
        made.append(elements_of(one))
    return made


# --- Elements ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", EDGE_INTEGERS)
def test_an_integer_is_stored_as_one_and_comes_back_as_its_text(number: int) -> None:
    text = b"%d" % number
    value = list_of(b"before", text, b"behind")
    value.push_left(text)
    assert elements_of(value) == [text, b"before", text, b"behind"]
    (node,) = value.nodes()
    assert node == pack(number, b"before", number, b"behind")
    assert value.pop_left_or_none() == text
    assert value.remove(text, 0) == 1
    assert elements_of(value) == [b"before", b"behind"]


@pytest.mark.parametrize("text", NOT_INTEGERS)
def test_a_text_that_only_looks_like_an_integer_stays_a_string(text: bytes) -> None:
    value = list_of(text)
    value.push_left(text)
    (node,) = value.nodes()
    assert not listpack.is_int(node, listpack.first(node))
    assert value.pop_right_or_none() == text
    assert value.pop_left_or_none() == text


@pytest.mark.parametrize("size", EDGE_STRING_SIZES)
def test_a_string_of_any_size_goes_in_and_out_at_both_ends(size: int) -> None:
    data = b"s" * size
    value = list_of(b"x", data, b"y")
    value.push_left(data)
    value.push_left(b"")
    assert elements_of(value) == [b"", data, b"x", data, b"y"]
    assert value.pop_left_or_none() == b""
    assert value.pop_left_or_none() == data
    assert value.pop_right_or_none() == b"y"
    assert value.pop_right_or_none() == data
    assert elements_of(value) == [b"x"]


def test_an_element_larger_than_a_node_has_a_node_to_itself() -> None:
    huge = b"h" * (NODE_BYTES_MAX + 1)
    value = list_of(b"a", huge, b"b", b"c")
    value.push_left(huge)
    value.push_left(b"z")
    assert nodes_of(value) == [[b"z"], [huge], [b"a"], [huge], [b"b", b"c"]]
    check_list(value, ListLimits())


def test_an_element_larger_than_any_listpack_is_refused_and_nothing_changes() -> None:
    value = small(b"a", b"b")
    before = nodes_of(value)
    source = bytearray(b"piece")
    for left in (True, False):
        with pytest.raises(TooLarge, match="cannot exceed"):
            value.push_piece(source, 0, listpack.TOTAL_BYTES_MAX - 10, left)
    assert nodes_of(value) == before
    with pytest.raises(TooLarge, match="cannot exceed"):
        ListValue().push_piece(source, 0, listpack.TOTAL_BYTES_MAX, False)


@pytest.mark.parametrize(("start", "size"), [(0, 6), (5, 1), (-1, 2), (6, 0), (2, -1), (2**62, 9)])
@pytest.mark.parametrize("left", [True, False])
def test_a_piece_that_is_not_in_its_buffer_is_refused_and_nothing_changes(
    start: int, size: int, left: bool
) -> None:
    value = small(b"a", b"b", b"c")
    before = nodes_of(value)
    with pytest.raises(IndexError):
        value.push_piece(bytearray(b"piece"), start, size, left)
    assert nodes_of(value) == before


def test_a_piece_of_a_buffer_is_pushed_as_its_bytes() -> None:
    value = ListValue()
    buffer = bytearray(b"RPUSH l ab 17")
    value.push_piece(buffer, 8, 2, False)
    value.push_piece(buffer, 11, 2, True)
    value.push_piece(buffer, 3, 0, True)
    assert elements_of(value) == [b"", b"17", b"ab"]


# --- Nodes ---------------------------------------------------------------------------------------------


def test_a_push_goes_to_its_end_until_the_node_there_is_full() -> None:
    value = small(*LETTERS[:5])
    assert nodes_of(value) == [[b"a", b"b"], [b"c", b"d"], [b"e"]]
    value.push_left(b"1")
    value.push_left(b"2")
    value.push_left(b"3")
    assert nodes_of(value) == [[b"3"], [b"2", b"1"], [b"a", b"b"], [b"c", b"d"], [b"e"]]


@pytest.mark.parametrize("left", [True, False])
def test_a_node_takes_elements_up_to_eight_bytes_below_its_limit(left: bool) -> None:
    # A node of one such element: 7 bytes for header and end, 4 around the element.
    first = b"f" * 1000
    room = 2048 - (7 + 4 + 1000) - 8
    for size, nodes in ((room, 1), (room + 1, 2)):
        value = list_of(first, limits=ListLimits(bytes_max=2048))
        value.push_piece(bytearray(size), 0, size, left)
        assert len(nodes_of(value)) == nodes


@pytest.mark.parametrize(
    ("listpack_size", "bytes_max", "entries_max"),
    [
        (-1, 4096, NODE_ENTRIES_MAX),
        (-2, 8192, NODE_ENTRIES_MAX),
        (-3, 16384, NODE_ENTRIES_MAX),
        (-4, 32768, NODE_ENTRIES_MAX),
        (-5, 65536, NODE_ENTRIES_MAX),
        (-6, 65536, NODE_ENTRIES_MAX),
        (-(2**31), 65536, NODE_ENTRIES_MAX),
        (0, 8192, 0),
        (1, 8192, 1),
        (128, 8192, 128),
        (2**31 - 1, 8192, 32767),
    ],
)
def test_limits_follow_the_setting_of_redis(
    listpack_size: int, bytes_max: int, entries_max: int
) -> None:
    limits = ListLimits()
    limits.set_listpack_size(listpack_size)
    assert (limits.bytes_max, limits.entries_max) == (bytes_max, entries_max)


def test_a_limit_of_no_elements_gives_every_element_its_node() -> None:
    limits = ListLimits()
    limits.set_listpack_size(0)
    value = ListValue(limits)
    value.push_right(b"a")
    value.push_right(b"b")
    assert nodes_of(value) == [[b"a"], [b"b"]]


def test_a_limit_that_changes_holds_for_the_next_push() -> None:
    limits = ListLimits(entries_max=3)
    value = list_of(b"a", b"b", limits=limits)
    limits.entries_max = 1
    value.push_right(b"c")
    limits.entries_max = 3
    value.push_left(b"z")
    assert nodes_of(value) == [[b"z", b"a", b"b"], [b"c"]]


def test_full_nodes_keep_no_room() -> None:
    value = ListValue()
    for n in range(20_000):
        value.push_right(b"element %d" % n)
        value.push_left(b"element %d" % n)
    check_list(value, value.limits)
    places, first = value.inside()
    for node in places[first + 1 : -1]:
        assert node is not None
        assert sys.getsizeof(node) < listpack.total_bytes(node) + 100
    packed = sum(map(len, value.nodes()))
    assert packed < value.memory_bytes() < 1.05 * packed


def test_a_huge_element_leaves_no_huge_buffer_behind() -> None:
    value = list_of(b"x" * 1_000_000, b"a")
    value.push_left(b"b")
    value.push_right(b"c")
    assert value.memory_bytes() < 1_002_000


def test_a_list_with_one_element_is_small() -> None:
    assert list_of(b"x").memory_bytes() < 450


# --- Popping -------------------------------------------------------------------------------------------


def test_an_empty_list_gives_none() -> None:
    value = ListValue()
    assert value.pop_left_or_none() is None
    assert value.pop_right_or_none() is None
    assert value.get_or_none(0) is None
    assert value.get_or_none(-1) is None
    assert value.range(0, -1) == []
    assert value.remove(b"a", 0) == 0
    assert list(value.nodes()) == []
    value.trim(0, -1)
    assert value.length == 0


@pytest.mark.parametrize("push_left", [True, False])
@pytest.mark.parametrize("pop_left", [True, False])
def test_everything_pushed_is_popped(push_left: bool, pop_left: bool) -> None:
    value = ListValue(ListLimits(entries_max=3))
    for _ in range(2):  # an emptied list works like a new one
        for n in range(100):
            (value.push_left if push_left else value.push_right)(b"%d" % n)
            check_list(value, value.limits)
        popped = []
        while value.length:
            popped.append((value.pop_left_or_none if pop_left else value.pop_right_or_none)())
            check_list(value, value.limits)
        order = [b"%d" % n for n in range(100)]
        assert popped == (order if push_left != pop_left else order[::-1])
        assert value.inside() == ([], 0)


def test_a_queue_that_moves_on_for_long_keeps_a_short_row_of_nodes() -> None:
    limits = ListLimits(entries_max=1)
    for push, pop in (("push_right", "pop_left_or_none"), ("push_left", "pop_right_or_none")):
        value = list_of(*LETTERS, limits=limits)
        for n in range(1000):
            getattr(value, push)(b"%d" % n)
            getattr(value, pop)()
            assert len(value.inside()[0]) <= 4 * (len(LETTERS) + 1)
        check_list(value, limits)
        expected = [b"%d" % n for n in range(993, 1000)]
        assert elements_of(value) == (expected if push == "push_right" else expected[::-1])


# --- Reading -------------------------------------------------------------------------------------------


def test_an_index_counts_from_either_end() -> None:
    value = small(*LETTERS)
    for index in range(-9, 10):
        inside = -7 <= index < 7
        assert value.get_or_none(index) == (LETTERS[index] if inside else None)
    for index in (2**63 - 1, -(2**63)):
        assert value.get_or_none(index) is None


def test_a_range_has_both_its_ends() -> None:
    value = small(*LETTERS)
    value.pop_left_or_none()  # an uneven node at the head
    rest = LETTERS[1:]
    for start in range(6):
        for end in range(start - 1, 6):
            assert value.range(start, end) == rest[start : end + 1]


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 7), (-2, -1), (0, 2**62)])
def test_a_range_outside_of_the_list_is_the_callers_mistake(start: int, end: int) -> None:
    value = small(*LETTERS)
    with pytest.raises(IndexError):
        value.range(start, end)
    with pytest.raises(IndexError):
        value.trim(start, end)
    assert elements_of(value) == LETTERS


# --- Trimming ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(7))
def test_a_trim_keeps_exactly_its_range(start: int) -> None:
    for end in range(start - 1, 7):
        value = small(*LETTERS)
        value.trim(start, end)
        assert elements_of(value) == LETTERS[start : end + 1]
        value.push_left(b"new")
        value.push_right(b"new")
        assert elements_of(value) == [b"new", *LETTERS[start : end + 1], b"new"]
        check_list(value, value.limits)


def test_a_trim_inside_one_large_node_cuts_both_ends() -> None:
    elements = [b"%d" % n for n in range(1000)]
    value = list_of(*elements)
    value.trim(10, 20)
    assert elements_of(value) == elements[10:21]
    assert [bytes(node) for node in value.nodes()] == [bytes(pack(*elements[10:21]))]


# --- Removing by value ---------------------------------------------------------------------------------

ABA = [b"a", b"b", b"a", b"c", b"a", b"a", b"b", b"a"]


@pytest.mark.parametrize(
    ("count", "left"),
    [
        (0, b"bcb"),
        (1, b"bacaaba"),
        (2, b"bcaaba"),
        (-1, b"abacaab"),
        (-2, b"abacab"),
        (-3, b"abacb"),
        (5, b"bcb"),
        (-5, b"bcb"),
        (8, b"bcb"),
        (100, b"bcb"),
        (2**63 - 1, b"bcb"),
        (-(2**63), b"bcb"),
    ],
)
@pytest.mark.parametrize("entries_max", [1, 2, 3, 100])
def test_removing_counts_from_the_head_or_the_tail(
    count: int, left: bytes, entries_max: int
) -> None:
    value = list_of(*ABA, limits=ListLimits(entries_max=entries_max))
    assert value.remove(b"a", count) == len(ABA) - len(left)
    assert b"".join(elements_of(value)) == left
    check_list(value, value.limits)
    assert value.remove(b"d", count) == 0


def test_removing_all_elements_leaves_no_node() -> None:
    value = small(*[b"x"] * 7)
    assert value.remove(b"x", 0) == 7
    assert value.inside() == ([], 0)
    value.push_left(b"y")
    assert elements_of(value) == [b"y"]


def test_removing_from_a_node_in_the_middle_leaves_no_room_in_it() -> None:
    value = list_of(*[b"x", b"keep"] * 5000)
    assert value.remove(b"x", 0) == 5000
    check_list(value, value.limits)
    places, first = value.inside()
    for node in places[first + 1 : -1]:
        assert node is not None
        assert sys.getsizeof(node) < listpack.total_bytes(node) + 100


@pytest.mark.parametrize("text", [b"7", b"-1", b"%d" % 2**62, b"", b"s" * 70, b"l" * 5000])
def test_removing_finds_an_element_however_it_is_stored(text: bytes) -> None:
    neighbours = [b"8", b"07", b"7 ", b"-", b"s" * 69, b"l" * 4999, b"t" * 70]
    value = list_of(*neighbours, text, *neighbours)
    assert value.remove(text, 0) == 1
    assert elements_of(value) == neighbours * 2


def test_an_integer_that_an_old_version_stored_as_a_string_is_found() -> None:
    value = ListValue()
    value.load_node(craft(2, bytes.fromhex("813702 0701")))  # "7" as a string, 7 as an integer
    assert value.range(0, 1) == [b"7", b"7"]
    assert value.remove(b"7", 0) == 2
    assert value.length == 0


# --- Changing in the middle ----------------------------------------------------------------------------


HUGE = b"h" * (NODE_BYTES_MAX + 1)


def four_each(*elements: bytes) -> ListValue:
    """A list with four elements per node."""
    return list_of(*elements, limits=ListLimits(entries_max=4))


def joined(value: ListValue) -> list[bytes]:
    """The elements of each node, joined."""
    check_list(value, value.limits, edited=True)
    return [b"".join(node) for node in nodes_of(value)]


@pytest.mark.parametrize("data", [b"x", b"7", b"", b"s" * 70, b"l" * 5000, b"-9223372036854775808"])
@pytest.mark.parametrize("entries_max", [1, 2, 3, 100])
def test_an_element_is_replaced_whatever_its_width(data: bytes, entries_max: int) -> None:
    for index in range(-7, 7):
        value = list_of(*LETTERS, limits=ListLimits(entries_max=entries_max))
        assert value.replace(index, data)
        expected = list(LETTERS)
        expected[index] = data
        assert elements_of(value) == expected
        assert value.replace(index, b"17")
        expected[index] = b"17"
        assert elements_of(value) == expected
        check_list(value, value.limits, edited=True)


@pytest.mark.parametrize("index", [7, -8, 2**63 - 1, -(2**63)])
def test_an_index_outside_of_the_list_replaces_nothing(index: int) -> None:
    value = small(*LETTERS)
    assert not value.replace(index, b"x")
    assert not ListValue().replace(index, b"x")
    assert elements_of(value) == LETTERS


@pytest.mark.parametrize(
    ("index", "nodes"),
    [
        (0, [[HUGE], [b"b", b"c"], [b"d", b"e", b"f"], [b"g"]]),
        (1, [[b"a"], [HUGE], [b"c"], [b"d", b"e", b"f"], [b"g"]]),
        (4, [[b"a", b"b", b"c"], [b"d"], [HUGE], [b"f", b"g"]]),
        (5, [[b"a", b"b", b"c"], [b"d", b"e"], [HUGE], [b"g"]]),
        (6, [[b"a", b"b", b"c"], [b"d", b"e", b"f"], [HUGE]]),
    ],
)
def test_an_element_that_becomes_larger_than_a_node_gets_a_node_to_itself(
    index: int, nodes: list[list[bytes]]
) -> None:
    value = list_of(*LETTERS, limits=ListLimits(entries_max=3))
    assert value.replace(index, HUGE)
    check_list(value, value.limits, edited=True)
    assert nodes_of(value) == nodes
    assert value.replace(index, b"x")
    assert elements_of(value) == [*LETTERS[:index], b"x", *LETTERS[index + 1 :]]


@pytest.mark.parametrize(
    ("pivot", "after", "nodes"),
    [
        (b"a", False, [b"x", b"abcd", b"efg"]),  # no node before it: a new one
        (b"a", True, [b"a", b"xbcd", b"efg"]),  # a and xbcd would be five
        (b"b", False, [b"ax", b"bcd", b"efg"]),
        (b"b", True, [b"ab", b"xcd", b"efg"]),
        (b"c", True, [b"abc", b"xd", b"efg"]),
        (b"d", False, [b"abcx", b"defg"]),
        (b"d", True, [b"abcd", b"xefg"]),  # the next node takes it
        (b"e", False, [b"abcd", b"xefg"]),
        (b"g", True, [b"abcd", b"efgx"]),
    ],
)
def test_an_insert_into_a_full_node_uses_the_neighbour_or_splits_and_joins(
    pivot: bytes, after: bool, nodes: list[bytes]
) -> None:
    value = four_each(*LETTERS)
    assert value.insert(pivot, b"x", after)
    assert joined(value) == nodes
    assert value.length == 8


def test_the_neighbour_before_takes_an_element_at_the_edge() -> None:
    value = four_each(*LETTERS, b"h")
    value.pop_left_or_none()
    assert joined(value) == [b"bcd", b"efgh"]
    assert value.insert(b"e", b"x", False)
    assert joined(value) == [b"bcdx", b"efgh"]
    assert value.insert(b"e", b"y", False)
    assert joined(value) == [b"bcdx", b"y", b"efgh"]
    assert value.insert(b"x", b"z", True)
    assert joined(value) == [b"bcdx", b"zy", b"efgh"]


def test_an_insert_after_removals_at_the_left_works_on_the_right_nodes() -> None:
    value = small(*LETTERS)
    value.trim(2, 6)
    assert value.inside()[1] == 1
    assert value.insert(b"c", b"x", False)
    assert value.insert(b"g", b"y", True)
    assert value.insert(b"d", b"z", True)
    assert b"".join(elements_of(value)) == b"xcdzefgy"


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("pivot", LETTERS)
def test_an_inserted_element_larger_than_a_node_gets_a_node_to_itself(
    pivot: bytes, after: bool
) -> None:
    value = list_of(*LETTERS, limits=ListLimits(entries_max=3))
    assert value.insert(pivot, HUGE, after)
    check_list(value, value.limits, edited=True)
    assert [HUGE] in nodes_of(value)
    place = LETTERS.index(pivot) + after
    assert elements_of(value) == [*LETTERS[:place], HUGE, *LETTERS[place:]]


def test_without_the_pivot_nothing_is_inserted() -> None:
    value = small(*LETTERS)
    assert not value.insert(b"x", b"y", True)
    assert not ListValue().insert(b"", b"y", False)
    assert elements_of(value) == LETTERS


def test_changes_in_the_middle_leave_no_room_in_their_nodes() -> None:
    value = list_of(*[b"%d:" % n + b"x" * 30 for n in range(2000)])
    for n in range(100, 1900, 50):
        assert value.insert(b"%d:" % n + b"x" * 30, b"y" * 20, n % 100 == 0)
        assert value.replace(n, b"z" * (n % 90))
    check_list(value, value.limits, edited=True)
    places, first = value.inside()
    for node in places[first + 1 : -1]:
        assert node is not None
        assert sys.getsizeof(node) < listpack.total_bytes(node) + 100


def test_a_loaded_node_with_an_unknown_count_is_split() -> None:
    value = ListValue()
    value.load_node(craft(65535, b"".join(b"\x81" + bytes([c]) + b"\x02" for c in b"abcdef")))
    assert value.insert(b"b", b"x", True)
    assert value.insert(b"x", HUGE, False)
    assert elements_of(value) == [b"a", b"b", HUGE, b"x", b"c", b"d", b"e", b"f"]


@pytest.mark.parametrize(
    ("rank", "limit", "scan_max", "found"),
    [
        (1, 0, 0, [0, 2, 4, 5, 7]),
        (1, 1, 0, [0]),
        (2, 2, 0, [2, 4]),
        (6, 0, 0, []),
        (-1, 0, 0, [7, 5, 4, 2, 0]),
        (-2, 2, 0, [5, 4]),
        (1, 0, 3, [0, 2]),
        (-1, 0, 3, [7, 5]),
        (2, 0, 2, []),
        (2**63 - 1, 0, 2**63 - 1, []),
        (-(2**63) + 1, 2**63 - 1, 0, []),
    ],
)
@pytest.mark.parametrize("entries_max", [1, 2, 3, 100])
def test_positions_have_a_rank_a_limit_and_an_end(
    rank: int, limit: int, scan_max: int, found: list[int], entries_max: int
) -> None:
    value = list_of(*ABA, limits=ListLimits(entries_max=entries_max))
    assert value.positions(b"a", rank, limit, scan_max) == found
    assert value.positions(b"z", rank, limit, scan_max) == []
    assert ListValue().positions(b"a", rank, limit, scan_max) == []


# --- Saving, loading, copying --------------------------------------------------------------------------


def test_saved_nodes_load_as_the_same_list() -> None:
    value = small(*LETTERS)
    value.push_left(b"12345")
    loaded = ListValue()
    for node in value.nodes():
        loaded.load_node(bytes(node))
    assert list(loaded.nodes()) == list(value.nodes())
    assert elements_of(loaded) == [b"12345", *LETTERS]


def test_nodes_are_exact_listpacks_also_where_there_is_room() -> None:
    value = list_of(b"a")
    (node,) = value.nodes()
    assert len(node) == listpack.total_bytes(node)
    assert len(value.inside()[0][0] or b"") > len(node)


def test_loading_after_a_push_removes_the_room() -> None:
    value = small(b"a", b"b", b"c")
    value.load_node(pack(b"d"))
    value.load_node(pack(b"e"))
    assert nodes_of(value) == [[b"a", b"b"], [b"c"], [b"d"], [b"e"]]


def test_a_saved_node_without_elements_is_passed_over() -> None:
    value = ListValue()
    value.load_node(listpack.new())
    assert value.inside() == ([], 0)


@pytest.mark.parametrize(
    "data", [b"", b"\x07\0\0\0\0\0", craft(1, b"\x81a\x03"), craft(2, b"\x81a\x02"), b"x" * 20]
)
def test_a_saved_node_that_is_corrupt_changes_nothing(data: bytes) -> None:
    value = small(b"a")
    with pytest.raises(CorruptData):
        value.load_node(data)
    assert elements_of(value) == [b"a"]


def test_a_loaded_node_with_more_elements_than_its_header_counts_works() -> None:
    value = ListValue()
    value.load_node(craft(listpack.COUNT_UNKNOWN, b"\x05\x01" * 70_000))
    assert value.length == 70_000
    value.push_right(b"end")
    value.push_left(b"start")
    assert len(list(value.nodes())) == 3
    assert value.get_or_none(-2) == b"5"
    value.trim(1, 70_000)
    assert value.pop_left_or_none() == b"5"
    assert value.pop_right_or_none() == b"5"
    assert value.remove(b"5", -8) == 8
    assert value.range(69_980, 69_989) == [b"5"] * 10
    value.trim(0, 9)
    assert elements_of(value) == [b"5"] * 10


def test_a_copy_goes_its_own_way() -> None:
    value = small(*LETTERS)
    twin = value.copy()
    assert twin.limits is value.limits
    assert list(twin.nodes()) == list(value.nodes())
    twin.push_left(b"z")
    twin.remove(b"d", 0)
    value.push_right(b"y")
    value.trim(1, 7)
    assert elements_of(twin) == [b"z", b"a", b"b", b"c", b"e", b"f", b"g"]
    assert elements_of(value) == [*LETTERS[1:], b"y"]
