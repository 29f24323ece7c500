"""The nodes of a stream as unchecked bytes, from different sources.

    stream_of            a stream that persist has loaded, for example from a log
    dump_nodes           a DUMP payload
    nodes_question,      the command for a penstock server and its reply; the caller has the connection
    parse_nodes_reply

The nodes of a payload are not decoded, so that damaged ones can be shown. Groups are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.core import listpack, stream_id
from penstock.core.stream import NODE_BYTES_MAX, NODE_ENTRIES_MAX, Stream
from penstock.core.stream_id import StreamID
from penstock.errors import CorruptData, InvalidID
from penstock.persist.rdb import dump
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.input import RdbInput

KEY_BYTES = 16
PAGE_NODES = 256  # a megabyte, at the default size of nodes


@dataclass(frozen=True, slots=True)
class RawNode:
    """A node: its key and its listpack."""

    master: StreamID
    data: bytes


@dataclass(slots=True)
class RawStream:
    """The nodes of a stream that were read, in order.

    `nodes_total` and `length` are the numbers that the source reports, None if it does not. `notes` describe
    damage of the source. `number_first` is the number of the first node read, counted from 1; 0: unknown.
    """

    source: str
    key: bytes
    nodes: list[RawNode]
    nodes_total: int | None = None
    length: int | None = None
    tree_nodes: int | None = None
    number_first: int = 1
    node_bytes_max: int = NODE_BYTES_MAX
    node_entries_max: int = NODE_ENTRIES_MAX
    notes: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether all nodes were read."""
        return self.nodes_total in (None, len(self.nodes))


def stream_of(stream: Stream, limit: int = 0) -> list[RawNode]:
    """The first `limit` nodes (0: all) of a loaded stream, without unused space at their ends."""
    nodes: list[RawNode] = []
    walk = stream.nodes.iterator()
    walk.seek("^")
    while walk.next() and not (limit and len(nodes) == limit):
        total = listpack.total_bytes(walk.value)
        nodes.append(RawNode(stream_id.from_key(walk.key), bytes(walk.value[:total])))
    return nodes


def dump_nodes(payload: bytes) -> tuple[list[RawNode], list[str]]:
    """The nodes of a stream in a DUMP payload, and notes about damage. Nodes before damage are returned.

    Raises: CorruptData if the payload is not a stream.
    """
    notes = []
    if not dump.is_sealed(payload, rdb_format.VERSION_MAX):
        notes.append("the payload's version or checksum is wrong: RESTORE would refuse it")
    source = RdbInput(None, payload=payload[: max(len(payload) - dump.SEAL_BYTES, 0)])
    kind = source.byte()
    if kind not in rdb_format.STREAM_TYPES:
        name = rdb_format.FOREIGN_TYPES.get(kind, "not a stream")
        raise CorruptData(f"the payload holds type {kind} ({name}), which cannot be inspected", 0)
    nodes: list[RawNode] = []
    try:
        for _ in range(source.length()):
            nodes.append(_read_node(source))
    except CorruptData as error:
        notes.append(f"the payload is damaged after {len(nodes)} nodes: {error}")
    return nodes, notes


def _read_node(source: RdbInput) -> RawNode:
    start = source.offset
    key = source.string()
    if len(key) != KEY_BYTES:
        raise source.corrupt(f"a node's key of {len(key)} bytes, not {KEY_BYTES}", start)
    return RawNode(stream_id.from_key(key), bytes(source.blob()))


def nodes_question(
    key: bytes, start: bytes = b"-", count: int = PAGE_NODES
) -> tuple[bytes | str | int, ...]:
    """The command that reads nodes from `start` on from a penstock server."""
    return ("PENSTOCK", "NODES", key, start, "+", "COUNT", count)


def parse_nodes_reply(reply: object) -> tuple[bytes | None, list[RawNode]]:
    """The start of the next page, None at the end, and the nodes. Raises: CorruptData."""
    unexpected = CorruptData("the server's reply is not a reply of PENSTOCK NODES", 0)
    if not isinstance(reply, Sequence) or len(reply) != 2:
        raise unexpected
    start, rows = reply
    if not (start is None or isinstance(start, bytes)) or not isinstance(rows, Sequence):
        raise unexpected
    nodes = []
    for row in rows:
        if not isinstance(row, Sequence) or [type(item) for item in row] != [bytes, bytes]:
            raise unexpected
        try:
            nodes.append(RawNode(stream_id.parse(row[0]), row[1]))
        except InvalidID:
            raise unexpected from None
    return start, nodes


def place_of(nodes: Sequence[RawNode], entry_id: StreamID) -> int | None:
    """The place of the node that would hold an entry with this id, or None."""
    found = None
    for place, node in enumerate(nodes):
        if node.master > entry_id:
            break
        found = place
    return found
