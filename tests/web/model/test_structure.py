"""The window on a stream's tree and bytes."""

from __future__ import annotations

import re

import pytest

from penstock.core.stream_id import SMALLEST, StreamID
from penstock.web.model import structure
from penstock.web.model.facts import one_stream
from penstock.web.model.structure import (
    PIECE_BYTES_MAX,
    WINDOW_NODES,
    Window,
    blocks,
    bytes_html,
    read_window,
    tree_data,
    tree_options,
    trims,
)
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient
from tests.web.conftest import Live


def stream(live: Live, count: int) -> None:
    pipeline = live.client.pipeline(transaction=False)
    for number in range(1, count + 1):
        pipeline.xadd("s", {"n": number}, id=f"{number}-0")
    pipeline.execute()


def window(live: Live, start: StreamID = SMALLEST) -> Window:
    async def run(server: ServerClient) -> Window:
        return await read_window(server, await one_stream(server, b"s"), start)

    return live.ask(run)


def test_every_byte_of_every_node_is_in_one_piece(live: Live) -> None:
    stream(live, 250)
    live.client.xdel("s", "3-0", "150-0")
    found = window(live)
    assert (len(found.nodes), found.is_whole) == (3, True)
    for node in found.nodes:
        pieces = [piece for block in blocks(node) for piece in block.pieces]
        assert bytes.fromhex(" ".join(piece.hex for piece in pieces)) == node.data


def test_long_values_are_shortened(live: Live) -> None:
    live.client.xadd("s", {"v": b"z" * 3_000_000})
    (node,) = window(live).nodes
    text = bytes_html(node)
    assert f"{3_000_000 - PIECE_BYTES_MAX:,} more bytes" in text
    assert len(text) < 10 * PIECE_BYTES_MAX


def test_deleted_entries_are_shown_as_such(live: Live) -> None:
    stream(live, 5)
    live.client.xdel("s", "3-0")
    (node,) = window(live).nodes
    made = blocks(node)
    assert [block.title.split(":")[0] for block in made] == [
        *("header of 1-0", "1-0", "2-0", "deleted 3-0", "4-0", "5-0", "end"),
    ]
    assert [block.deleted for block in made] == [False, False, False, True, False, False, False]


def test_stored_data_is_never_markup(live: Live) -> None:
    live.client.xadd("s", {"<b>": "<script>alert(1)</script>", "esc": b"\x1b[31m\"'&"})
    (node,) = window(live).nodes
    text = bytes_html(node)
    assert set(re.findall(r"</?(\w+)", text)) == {"ol", "li", "div", "span", "i"}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\\x1b[31m" in text


def test_the_tree_has_a_leaf_for_each_node(live: Live) -> None:
    stream(live, 520)
    found = window(live)
    leaves = []
    heads = [tree_data(found)]
    while heads:
        head = heads.pop()
        heads += head.get("children", [])
        if "id" in head:
            leaves.append(head["id"])
    assert sorted(leaves, key=lambda text: int(text[:-2])) == [
        str(node.master) for node in found.nodes
    ]
    assert tree_options(found, tree_data(found))["series"][0]["type"] == "tree"


def test_windows_cover_the_whole_stream(live: Live) -> None:
    stream(live, 100 * (WINDOW_NODES + 3))
    first = window(live)
    assert (len(first.nodes), first.is_whole) == (WINDOW_NODES, False)
    assert first.following is not None
    second = window(live, first.following)
    masters = [node.master.ms for node in first.nodes + second.nodes]
    assert masters == list(range(1, 100 * (WINDOW_NODES + 3), 100))
    assert second.following is None
    assert trims(first, 100) == []


def test_memory_is_accounted_for_to_the_byte(live: Live) -> None:
    stream(live, 150)
    found = window(live)
    assert sum(found.memory.parts.values()) == sum(len(node.data) for node in found.nodes)
    rough, exact = trims(found, 150)
    assert (rough.nodes_dropped, rough.entries_left) == (0, 150)
    assert (exact.entries_left, exact.tombstones_made) == (75, 75)


def test_a_large_stream_of_redis_is_not_dumped(
    live_redis: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_redis.client.flushall()
    stream(live_redis, 100)
    monkeypatch.setattr(structure, "DUMP_BYTES_MAX", 10)
    with pytest.raises(Refused, match="only DUMP"):
        window(live_redis)
