"""Collects what a quick form writes (engine/table.py) as the objects that redis-py returns.

A server writes replies as bytes. Here the same form of a command writes them as objects, so that a call of a
program is as short as a command of a client.
"""

from __future__ import annotations

from typing import Any

from penstock.core import memory
from penstock.core.stream_node import NodeCursor
from penstock.reply import ReplyWriter, Served


class Collector(ReplyWriter):
    """The reply of one call, for the commands whose quick forms do not write encoded bytes (`put_raw`).

    `reply` is in the form of the full command's, unless `is_shaped`: then it is what redis-py returns.
    """

    __slots__ = ("_entries", "_key", "is_shaped", "reply")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget the last reply."""
        self.reply: Any = None
        self.is_shaped = False
        self._key = b""
        self._entries: list[Any] | None = None

    def put(self, reply: Any) -> None:
        """Take a reply of any kind."""
        self.reply = reply

    def put_bulk(self, data: bytes) -> None:
        """Take a string."""
        self.reply = data

    def put_int(self, number: int) -> None:
        """Take a number."""
        self.reply = number

    def put_id(self, ms_text: bytes, seq: int) -> None:
        """Take a stream id."""
        self.reply = memory.format_behind(ms_text, seq)

    def put_served(self, key: bytes, entries: Any) -> None:
        """Take the result of a read from one stream."""
        self.reply = Served([(key, entries)])

    def begin_served(self, key: bytes, expected: int) -> None:
        """Begin the result of a read from one stream."""
        self._key = key
        self._entries = []

    def put_entry(self, entry: Any) -> None:
        """Take the entry of a NodeCursor."""
        assert self._entries is not None
        current: NodeCursor = entry
        self._entries.append((memory.format_pair(current.ms, current.seq), current.mapping()))

    def end_served(self, count: int) -> None:
        """End what begin_served began."""
        self.reply = [[self._key, self._entries]]
        self.is_shaped = True
