"""Reads the values of an RDB file: strings, lists of all Redis versions, streams.

    type   since   what follows
       0     1.0   one string
       1     1.0   a list: count, strings
      10     2.6   a list: one ziplist, as a string
      14     3.2   a list: count, ziplists as strings
      18     7.0   a list: count, then each node: 2 and a listpack as a string, or 1 and its only element
      15     5.0   a stream; 19 from 7.0, 21 from 7.2 on: stream.py

Lists of listpacks keep their nodes. So do lists of several ziplists, each node converted. Other lists are
rebuilt element by element, as in Redis. Unsupported types are refused by number and name, because skipping
them would lose them at the next save.
"""

from __future__ import annotations

from penstock.core import listpack
from penstock.core.list_value import ListLimits, ListValue
from penstock.core.stream import NodeLimits, Stream
from penstock.errors import CoreError, CorruptData
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb import node_check, ziplist
from penstock.persist.rdb import stream as rdb_stream
from penstock.persist.rdb.input import RdbInput

Value = bytes | ListValue | Stream


class ValueLimits:
    """The node limits of loaded values: those of the engine that they are loaded into."""

    __slots__ = ("lists", "nodes")

    def __init__(self, nodes: NodeLimits | None = None, lists: ListLimits | None = None) -> None:
        self.nodes = NodeLimits() if nodes is None else nodes
        self.lists = ListLimits() if lists is None else lists


def refusal_or_none(kind: int) -> str | None:
    """Why a value of this type cannot be loaded, or None if it can."""
    if kind in rdb_format.HELD_TYPES:
        return None
    return (
        f"type {kind} ({rdb_format.type_name(kind)}) is not supported:"
        " penstock holds strings, lists and streams"
    )


def is_empty_list(value: Value) -> bool:
    """Tell whether a value is an empty list, which no key may hold."""
    return isinstance(value, ListValue) and value.length == 0


def read_value(source: RdbInput, kind: int, limits: ValueLimits, deep: bool) -> Value:
    """Read a value. `deep`: validate its inside too. A list may be empty.

    Raises: CorruptData.
    """
    if kind == rdb_format.STRING:
        return source.string()
    if kind in rdb_format.STREAM_TYPES:
        return rdb_stream.read_stream(source, kind, limits.nodes, deep)
    if kind in rdb_format.LIST_TYPES:
        value = ListValue(limits.lists)
        start = source.offset
        try:
            _LIST_READERS[kind](source, value, deep)
        except CoreError as error:
            raise source.corrupt(f"a list: {error}", start) from None
        return value
    raise source.corrupt(str(refusal_or_none(kind)))


def _read_strings(source: RdbInput, value: ListValue, _deep: bool) -> None:
    for _ in range(source.length()):
        value.push_right(source.string())


def _read_ziplist(source: RdbInput, value: ListValue, _deep: bool) -> None:
    for element in _ziplist(source):
        value.push_right(element)


def _read_ziplists(source: RdbInput, value: ListValue, _deep: bool) -> None:
    for _ in range(source.length()):
        node = listpack.new()
        for element in _ziplist(source):
            listpack.append(node, element)
        value.load_node(node)


def _ziplist(source: RdbInput) -> list[bytes]:
    start = source.offset
    try:
        return ziplist.elements(source.blob())
    except CorruptData as error:
        if error.path or not error.what.startswith("ziplist"):
            raise
        raise _inside(source, start, error) from None


def _read_nodes(source: RdbInput, value: ListValue, deep: bool) -> None:
    for _ in range(source.length()):
        start = source.offset
        container = source.length()
        if container == rdb_format.NODE_PLAIN:
            node = listpack.new()
            listpack.append(node, source.string())
        elif container == rdb_format.NODE_PACKED:
            node = source.blob()
        else:
            raise source.corrupt(f"a list's node of kind {container}", start)
        try:
            if deep:
                node_check.validate_listpack(node)
            value.load_node(node)
        except CorruptData as error:
            raise _inside(source, start, error) from None


def _inside(source: RdbInput, start: int, error: CorruptData) -> CorruptData:
    return source.corrupt(
        f"a list's node is damaged at its byte {error.offset}: {error.what}", start
    )


_LIST_READERS = {
    rdb_format.LIST: _read_strings,
    rdb_format.LIST_ZIPLIST: _read_ziplist,
    rdb_format.LIST_ZIPLISTS: _read_ziplists,
    rdb_format.LIST_NODES: _read_nodes,
}
