"""Memory by use: the parts add up, and planned trims free what they say."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.stream import NodeLimits, Stream
from penstock.inspect.memory import StreamMemory, add_node, counters, explain_tree, plan_trim
from penstock.inspect.node_map import NodeMap, node_map
from penstock.inspect.stored import place_of, stream_of
from penstock.inspect.tree import draw_tree, tree_of
from tests.inspect.test_node_map import maps_of, streams
from tests.support.engine.streams import add, sid
from tests.support.engine.streams import stream_of as stream_with


def explain(nodes: Iterable[NodeMap]) -> StreamMemory:
    memory = StreamMemory()
    for node in nodes:
        add_node(memory, node)
    return memory


@given(streams())
def test_the_parts_add_up_to_all_bytes(stream: Stream) -> None:
    nodes = stream_of(stream)
    memory = explain(maps_of(stream))
    assert sum(memory.parts.values()) == memory.total_bytes == sum(len(n.data) for n in nodes)
    assert memory.entries == stream.length
    assert memory.parts["damage"] == 0
    around = memory.encoding_bytes + memory.content_bytes + memory.backlen_bytes
    assert around + memory.parts["listpack"] == memory.total_bytes


def test_bytes_that_cannot_be_read_are_a_part_too() -> None:
    (node,) = stream_of(stream_with("1-0", "2-0"))
    cut = node.data[:-5]  # the head of the last value is the last byte
    memory = explain([node_map(cut, node.master), node_map(b"abc", node.master)])
    assert sum(memory.parts.values()) == len(cut) + 3
    assert memory.parts["damage"] == 1 + 3


def test_saved_names_are_those_that_would_be_repeated() -> None:
    same, own = Stream(), Stream()
    for number in range(1, 6):
        add(same, f"{number}-0", b"temperature", b"21", b"door", b"open")
        # The same names in another order are own names.
        first = number == 1
        pieces = (b"temperature", b"21", b"door", b"open")
        add(own, f"{number}-0", *(pieces if first else (*pieces[2:], *pieces[:2])))
    saved, paid = explain(maps_of(same)), explain(maps_of(own))
    assert paid.parts["own names"] == saved.names_saved * 4 // 5
    assert saved.names_saved_net == saved.names_saved - saved.parts["names"]
    assert paid.total_bytes - saved.total_bytes == paid.parts["own names"]


def test_a_tombstone_keeps_its_bytes() -> None:
    stream = stream_with("1-0", "2-0", "3-0")
    before = explain(maps_of(stream))
    stream.delete(sid("2-0"))
    after = explain(maps_of(stream))
    assert after.total_bytes == before.total_bytes
    assert (after.entries, after.tombstones) == (2, 1)
    assert after.parts["tombstones"] == before.total_bytes - sum(
        after.parts[name] for name in after.parts if name != "tombstones"
    )


@given(streams(), st.integers(0, 16), st.booleans())
def test_a_trim_frees_the_planned_bytes(stream: Stream, length_max: int, approximate: bool) -> None:
    plan = plan_trim(stream_of(stream), length_max, approximate)
    before = explain(maps_of(stream))
    removed = stream.trim_length(length_max, approximate)
    after = explain(maps_of(stream))
    assert plan.entries_removed == removed
    assert plan.entries_left == stream.length
    assert plan.nodes_dropped == before.nodes - after.nodes
    assert plan.bytes_freed == before.total_bytes - after.total_bytes


def test_an_exact_trim_turns_entries_of_one_node_into_tombstones() -> None:
    nodes = stream_of(stream_with(*(f"{n}-0" for n in range(1, 10)), entries_max=3))
    rough, exact = plan_trim(nodes, 4, True), plan_trim(nodes, 4, False)
    assert (rough.entries_left, exact.entries_left) == (6, 4)
    assert rough.bytes_freed == exact.bytes_freed == len(nodes[0].data)
    assert exact.tombstones_made == 2
    entries = node_map(nodes[1].data, nodes[1].master).entries
    assert exact.tombstones_made_bytes == sum(entry.length for entry in entries[:2])


@pytest.mark.parametrize(
    "data", [b"", b"abc", bytes(6), bytes(7), bytes(6) + b"\x81k\x02\xdf\xff\x02"]
)
def test_counters_that_cannot_be_read_count_nothing(data: bytes) -> None:
    assert counters(data) == (0, 0)


def test_counters_that_become_wider_are_counted() -> None:
    stream = Stream(NodeLimits(100_000, 1000))
    for number in range(1, 301):
        add(stream, f"{number}-0")
    plan = plan_trim(stream_of(stream), 100, False)
    before = explain(maps_of(stream)).total_bytes
    stream.trim_length(100)
    assert plan.bytes_freed == before - explain(maps_of(stream)).total_bytes


@given(streams())
def test_the_tree_is_that_of_the_stream(stream: Stream) -> None:
    nodes = stream_of(stream)
    tree = tree_of(node.master for node in reversed(nodes))
    assert explain_tree(tree).nodes == stream.nodes.node_count
    assert tree_of(node.master for node in nodes).draw() == stream.nodes.draw()
    drawing = draw_tree(tree)
    assert all(str(node.master) in drawing for node in nodes)
    assert drawing.isprintable() or "\n" in drawing


@pytest.mark.parametrize(
    ("entry_id", "place"),
    [("1-0", 0), ("2-5", 0), ("4-0", 1), ("99-0", 2), ("0-1", None)],
)
def test_the_node_of_an_id_is_the_last_one_not_after_it(entry_id: str, place: int | None) -> None:
    nodes = stream_of(stream_with(*(f"{n}-0" for n in range(1, 8)), entries_max=3))
    assert place_of(nodes, sid(entry_id)) == place
