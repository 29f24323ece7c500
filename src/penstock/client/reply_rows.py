# cython: wraparound=False
r"""Decodes replies into rows as their bytes arrive: XRANGE of any server, PENSTOCK NODES of ours.

    XRANGE    *2  *2 $3 1-0  *4 $3 sku $2 A1 $3 qty $1 2     *2 $3 2-0 ...
    NODES     *2  $4 (2-0    *1  *2 $3 1-0 $51 <listpack>

The bytes are in a buffer that its owner fills and moves (inbox.py). A decoder reads whole entries (or nodes)
from `inbox.at`. It reads an incomplete one again from its start when more bytes have arrived, so there is no
state inside an entry. An incomplete value sets `inbox.wanted`, the end that the buffer must reach before the
next attempt: a value of 100 MB is not walked once per packet.

`run` returns MORE (receive more), FULL (take the batch, then call again) or DONE (end of the reply). An error
reply raises CommandError, any other unexpected bytes ProtocolError.

Field names are compared with those of the previous entry, so only an entry with other names costs a look-up.
"""

from __future__ import annotations

from penstock.client.inbox import Inbox
from penstock.client.node_rows import NodeRows
from penstock.client.rows import FieldNames, Rows
from penstock.core import memory, stream_id
from penstock.core.stream_id import StreamID
from penstock.errors import InvalidID, ProtocolError

MORE, FULL, DONE = 0, 1, 2
_MORE, _FULL, _DONE = MORE, FULL, DONE
_STAR, _DASH, _ZERO, _NINE = 42, 45, 48, 57
_DIGITS_MAX = 19
_PIECES_USUAL = 64
_ENTRY_PARTS = 2
_UNKNOWN = -1  # the first line of the reply has not arrived yet


class RangeReply:
    """Reads replies of XRANGE. Call `run` until DONE, then `expect` before the next reply."""

    __slots__ = (
        "_inbox",
        "_left",
        "_ms",
        "_names",
        "_rows",
        "_seq",
        "_values_bytes",
        "count",
        "last_ms",
        "last_seq",
    )

    def __init__(self, inbox: Inbox, rows: Rows) -> None:
        self._inbox = inbox
        self._rows = rows
        rows.step = 2
        self._names = rows.names_of([])
        self.last_ms = 0
        self.last_seq = 0
        self.expect()

    def expect(self) -> None:
        """Start with the next reply."""
        self._left = _UNKNOWN
        self.count = 0  # entries of this reply so far; last_ms-last_seq is the id of the last one

    @property
    def last_id(self) -> StreamID:
        """The id of the last entry that was read."""
        return StreamID(self.last_ms, self.last_seq)

    def run(self) -> int:
        """Add the entries that have arrived. Raises: CommandError, ProtocolError, UnreadableValue."""
        inbox = self._inbox
        if self._left == _UNKNOWN:
            if not inbox.head(_STAR):
                return _MORE
            self._left = inbox.number if inbox.number > 0 else 0  # a null array counts as empty
        while self._left > 0:
            entry_at = inbox.at
            state = self._entry()
            if state != _DONE:
                inbox.at = entry_at
                return state
            self._left -= 1
        return _DONE

    def _entry(self) -> int:
        """Add one entry, if it has arrived completely and the batch has room."""
        inbox = self._inbox
        rows = self._rows
        if not inbox.head(_STAR):
            return _MORE
        if inbox.number != _ENTRY_PARTS:
            inbox.refuse("an entry is an id and its fields")
        if not inbox.bulk():
            return _MORE
        self._read_id(inbox)
        if not inbox.head(_STAR):
            return _MORE
        if inbox.number < 0:
            return _DONE  # a pending entry that was deleted has no fields
        if inbox.number & 1:
            inbox.refuse("a field without a value")
        fields = inbox.number >> 1
        if not self._fields(fields):
            return _MORE
        if not rows.has_room(self._values_bytes, self._names):
            return _FULL
        rows.add(self._ms, self._seq, inbox.buffer, self._names)
        self.last_ms = self._ms
        self.last_seq = self._seq
        self.count += 1
        return _DONE

    def _read_id(self, inbox: Inbox) -> None:
        """Read the id that the inbox has found, without creating an object."""
        buffer = inbox.buffer
        at = inbox.start
        end = at + inbox.size
        dash = memory.find_byte(buffer, at, end, _DASH)
        self._ms = 0
        self._seq = 0
        # 19 digits never overflow 64 bits; longer numbers take the slow path.
        if at < dash <= at + _DIGITS_MAX and dash + 1 < end <= dash + 1 + _DIGITS_MAX:
            while at < dash and _ZERO <= buffer[at] <= _NINE:
                self._ms = self._ms * 10 + (buffer[at] - _ZERO)
                at += 1
            if at == dash:
                at += 1
                while at < end and _ZERO <= buffer[at] <= _NINE:
                    self._seq = self._seq * 10 + (buffer[at] - _ZERO)
                    at += 1
        if at < end:
            found = _parsed_id(inbox)
            self._ms = found.ms
            self._seq = found.seq

    def _fields(self, fields: int) -> bool:
        """Note the places of names and values, and look up the names. False if some have not arrived."""
        inbox = self._inbox
        rows = self._rows
        buffer = inbox.buffer
        pieces = 2 * fields
        # Room for a usual entry and for the fields received so far, never for a number only announced.
        rows.reserve_spans(min(pieces, _PIECES_USUAL))
        noted = memory.note_bulks(buffer, inbox.at, inbox.end, rows.spans, 0, pieces)
        if noted:
            last = noted - 1
            inbox.at = memory.span_start(rows.spans, last) + memory.span_size(rows.spans, last) + 2
        while noted < pieces:
            if not inbox.bulk():
                return False
            rows.reserve_spans(noted + 1)
            memory.store_pair(rows.spans, 16 * noted, inbox.start, inbox.size)
            noted += 1
        spans = rows.spans
        self._values_bytes = memory.sizes(spans, 0, pieces)
        known = self._names
        expected = known.names
        number = 0
        if known.count == fields:
            while number < fields:
                start = memory.span_start(spans, 2 * number)
                size = memory.span_size(spans, 2 * number)
                if not memory.is_bytes(buffer, start, size, expected[number]):
                    break
                number += 1
        if number < fields or known.count != fields:
            self._names = self._read_names(fields)
        return True

    def _read_names(self, fields: int) -> FieldNames:
        spans = self._rows.spans
        names: list[bytes] = []
        for number in range(fields):
            start = memory.span_start(spans, 2 * number)
            size = memory.span_size(spans, 2 * number)
            names.append(memory.cut(self._inbox.buffer, start, size))
        return self._rows.names_of(names)


class NodesReply:
    """Reads replies of PENSTOCK NODES. Call `run` until DONE, then `expect` before the next reply.

    Once `cursor_is_known`, `cursor` is where the next call continues, or None at the end.
    """

    __slots__ = ("_inbox", "_left", "_nodes", "cursor", "cursor_is_known")

    def __init__(self, inbox: Inbox, nodes: NodeRows) -> None:
        self._inbox = inbox
        self._nodes = nodes
        self.expect()

    def expect(self) -> None:
        """Start with the next reply."""
        self._left = _UNKNOWN
        self.cursor: bytes | None = None
        self.cursor_is_known = False

    def read_cursor(self) -> bool:
        """Read the head of the reply, if it has arrived."""
        inbox = self._inbox
        start = inbox.at
        if not self.cursor_is_known and inbox.head(_STAR):
            if inbox.number != _ENTRY_PARTS:
                inbox.refuse("where to go on, and nodes, are expected")
            if inbox.bulk_or_null():
                if inbox.size >= 0:
                    self.cursor = memory.cut(inbox.buffer, inbox.start, inbox.size)
                if inbox.head(_STAR):
                    self._left = inbox.number
                    self.cursor_is_known = True
        if not self.cursor_is_known:
            inbox.at = start
        return self.cursor_is_known

    def run(self) -> int:
        """Add the entries of nodes that have arrived. Raises: CommandError, ProtocolError, CorruptData."""
        if not self.read_cursor():
            return _MORE
        inbox = self._inbox
        nodes = self._nodes
        while True:
            if nodes.is_open and not nodes.run():
                return _FULL
            if self._left <= 0:
                return _DONE
            node_at = inbox.at
            if not self._open_node():
                inbox.at = node_at
                return _MORE
            self._left -= 1

    def _open_node(self) -> bool:
        inbox = self._inbox
        if not inbox.head(_STAR):
            return False
        if inbox.number != _ENTRY_PARTS:
            inbox.refuse("a node is its first id and its bytes")
        if not inbox.bulk():
            return False
        master = _parsed_id(inbox)
        if not inbox.bulk():
            return False
        self._nodes.open(inbox.buffer, inbox.start, inbox.size, master)
        return True


def _parsed_id(inbox: Inbox) -> StreamID:
    """The id that the inbox has found."""
    try:
        return stream_id.parse_span(inbox.buffer, inbox.start, inbox.size, 0)
    except InvalidID:
        raise ProtocolError("an id that is none") from None
