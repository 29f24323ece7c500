"""Builds streams in one line, and returns all of a stream at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.core import listpack, stream_id
from penstock.core.check import check_stream
from penstock.core.frame import Frame
from penstock.core.groups.group import Group
from penstock.core.rax.tree import Rax
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import StreamID
from penstock.errors import CoreError


def sid(text: str) -> StreamID:
    """The id in a text. A missing seq is 0."""
    return stream_id.parse(text.encode())


def frame_of(*pieces: bytes) -> Frame:
    frame = Frame()
    for piece in pieces:
        frame.add(piece)
    return frame


def add(stream: Stream, entry_id: str, *pieces: bytes) -> None:
    """Append an entry, by default with the field k=v."""
    given = sid(entry_id)
    stream.append_at(given.ms, given.seq, frame_of(*(pieces or (b"k", b"v"))), 0)


def stream_of(*entry_ids: str, entries_max: int = 3, bytes_max: int = 4096) -> Stream:
    """A stream of small nodes with an entry k=v for each id."""
    stream = Stream(NodeLimits(bytes_max, entries_max))
    for entry_id in entry_ids:
        add(stream, entry_id)
    return stream


def ids_of(stream: Stream) -> list[str]:
    """The ids of the live entries."""
    return [entry_id.decode() for entry_id, _ in stream.range().entries()]


def nodes_of(stream: Stream) -> list[tuple[str, bytes]]:
    """Every node: its key as an id, and its listpack without the unused space after it."""
    nodes = []
    walk = stream.nodes.iterator()
    walk.seek("^")
    while walk.next():
        node = walk.value
        assert isinstance(node, bytearray)
        nodes.append((str(stream_id.from_key(walk.key)), bytes(node[: listpack.total_bytes(node)])))
    return nodes


def node_keys(stream: Stream) -> list[str]:
    return [key for key, _ in nodes_of(stream)]


def node_at(stream: Stream, key: str) -> bytearray:
    """The bytearray of a node itself, not a copy."""
    node = stream.nodes.find(sid(key).key)
    assert isinstance(node, bytearray)
    return node


def state_of(stream: Stream) -> tuple[object, ...]:
    """All that can be observed of a stream, to compare before and after."""
    return (
        stream.length,
        str(stream.last_id),
        str(stream.max_deleted_id),
        str(stream.first_id()),
        stream.entries_added,
        nodes_of(stream),
        stream.nodes.node_count,
    )


def refused(stream: Stream, append: Callable[[], None]) -> type[CoreError]:
    """The class of the error that an append raises. The stream has not changed."""
    before = state_of(stream)
    with pytest.raises(CoreError) as caught:
        append()
    assert state_of(stream) == before
    check_stream(stream)
    return caught.type


def pending_of(group: Group) -> list[tuple[str, bytes, int, int]]:
    """Every pending entry: id, consumer, delivery time, delivery count."""
    rows = group.pending_rows(stream_id.SMALLEST, stream_id.LARGEST, 1 << 40)
    return [(str(row.id), row.consumer, row.delivery_ms, row.delivery_count) for row in rows]


def keys_of(rax: Rax) -> list[bytes]:
    keys = []
    walk = rax.iterator()
    walk.seek("^")
    while walk.next():
        keys.append(walk.key)
    return keys
