"""The checks of lists find every kind of damage, and name the invariant."""

from __future__ import annotations

from penstock.core import listpack
from penstock.core.check import check_list
from penstock.core.list_value import ListLimits, ListValue
from tests.support.structures.damage import broken


def three_nodes() -> ListValue:
    """a b | c d | e"""
    value = ListValue(ListLimits(entries_max=2))
    for data in (b"a", b"b", b"c", b"d", b"e"):
        value.push_right(data)
    check_list(value, value.limits)
    return value


def test_valid_lists_pass() -> None:
    check_list(ListValue())
    value = three_nodes()
    value.push_left(b"z")
    check_list(value, value.limits)
    value.trim(3, 4)
    check_list(value, value.limits)


def test_a_broken_node_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0][1][4] = 9  # type: ignore[index]
    with broken("L2", "node 1: the header says 9 elements, there are 2"):
        check_list(value)


def test_an_empty_node_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0][2] = listpack.new()
    with broken("Q1", "node 2: no element is left"):
        check_list(value)


def test_a_wrong_length_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0].pop()
    with broken("Q2", "length is 5, the nodes hold 4"):
        check_list(value)


def test_room_behind_a_node_in_the_middle_of_a_list_is_found() -> None:
    value = three_nodes()
    node = value.inside()[0][1]
    assert node is not None
    node += b"room"
    with broken("Q3", "node 1: room"):
        check_list(value)


def test_a_hole_between_the_nodes_of_a_list_is_found() -> None:
    value = three_nodes()
    value.inside()[0][1] = None
    with broken("Q4", "node 1: None is not a node"):
        check_list(value)


def test_a_node_before_the_first_of_a_list_is_found() -> None:
    value = three_nodes()
    value.pop_left_or_none()
    value.pop_left_or_none()
    places, first = value.inside()
    assert first == 1
    places[0] = places[1]
    with broken("Q4", "a node at 0, before the first at 1"):
        check_list(value)
    del places[1:]
    with broken("Q4", "the first node is said to be at 1 of 1"):
        check_list(value)


def test_a_node_of_a_list_beyond_the_limits_is_found() -> None:
    value = three_nodes()
    with broken("Q5", "node 0: 2 elements, of 1 allowed"):
        check_list(value, ListLimits(entries_max=1))
    with broken("Q5", "node 0: 13 bytes, of 12 allowed"):
        check_list(value, ListLimits(bytes_max=12))
    alone = ListValue()
    alone.push_right(b"x" * 10_000)
    check_list(alone, alone.limits)  # one element may be of any size


def test_an_edited_node_may_be_longer_but_its_elements_may_not() -> None:
    value = three_nodes()
    value.replace(0, b"x" * 12)
    with broken("Q5", "node 0: 24 bytes, of 23 allowed"):
        check_list(value, ListLimits(bytes_max=23))
    check_list(value, ListLimits(bytes_max=23), edited=True)
    with broken("Q5", "node 0: an element of 12 bytes is not alone"):
        check_list(value, ListLimits(bytes_max=11), edited=True)
