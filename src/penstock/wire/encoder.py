"""Encodes replies as RESP2 or RESP3.

    value            RESP2                 RESP3
    None             $-1                   _
    NULL_ARRAY       *-1                   _
    5                :5                    :5
    b"ab"            $2 ab                 $2 ab
    [...]            *n ...                *n ...
    Pairs            *2n name value ...    %n name value ...
    Served           *n of *2 key entries  %n key entries ...
    Push, Members    *n ...                >n ...   ~n ...
    OK               +OK                   +OK
    CommandError     -ERR text             -ERR text

An `Encoder` is one growing buffer. Its owner takes the contents and sends them. A range of a stream is not
turned into objects: its entries are written from the node's bytes directly into the buffer, run by run. Their
number is known only at the end, so room for the head is left in front, as wide as the expected count. If the
guess was wrong, the body moves by a byte or two.

Cost: O(bytes written), amortised.
"""

from __future__ import annotations

from typing import Any

from penstock.core import memory
from penstock.core.stream_cursor import EntryRange
from penstock.errors import CorruptData, PenstockError
from penstock.reply import (
    Double,
    Members,
    NullArray,
    Pairs,
    Push,
    ReplyWriter,
    Served,
    Status,
    Verbatim,
)

FIRST_BYTES = 1024
KEEP_BYTES_MAX = 64 * 1024

_FIRST_BYTES = FIRST_BYTES
_KEEP_BYTES_MAX = KEEP_BYTES_MAX
_ARRAY = 42
_BULK = 36
_NUMBER = 58
_STATUS = 43
_ERROR = 45
_MAP = 37
_PUSH = 62
_SET = 126
_VERBATIM = 61
_DOUBLE = 44
_HEAD_BYTES_MAX = 24  # a type, a sign, 20 digits, CR LF
_ID_BYTES_MAX = 41  # two numbers of 20 digits and a dash
_ID_ROOM = (
    72  # what memory.put_bulk_id wants at most: 48 bytes beside the first number and the dash
)
_CRLF = 0x0A0D  # as a little-endian 16-bit number
_DAMAGED = "a stream's node: a field is damaged or runs past the end"


class Encoder(ReplyWriter):
    """The encoded replies for one client.

    Write: put and put_...; put_array_head, put_error. Read: size, take, clear.
    """

    __slots__ = ("_body_at", "_head_at", "_ms", "_ms_text", "buffer", "resp3", "size")

    def __init__(self) -> None:
        self.buffer = bytearray(_FIRST_BYTES)
        self.size = 0
        self.resp3 = False
        self._head_at = 0  # of the list of entries that is being written
        self._body_at = 0
        self._ms = 0
        self._ms_text = bytearray(24)
        memory.put_id_prefix(self._ms_text, 0)

    def take(self) -> bytes:
        """Return everything written and empty the buffer."""
        taken = memory.cut(self.buffer, 0, self.size)
        self.clear()
        return taken

    def clear(self) -> None:
        """Empty the buffer; if one huge reply enlarged it, free the memory."""
        self.size = 0
        if len(self.buffer) > _KEEP_BYTES_MAX:
            self.buffer = bytearray(_FIRST_BYTES)

    def cut_back(self, size: int) -> None:
        """Remove everything after the first `size` bytes."""
        self.size = size

    def put(self, reply: Any) -> None:
        """Write a reply of any kind."""
        kind = type(reply)
        if kind is bytes:
            self.put_bulk(reply)
        elif kind is int:
            self._put_head(_NUMBER, reply)
        elif reply is None:
            self.put_raw(b"_\r\n" if self.resp3 else b"$-1\r\n")
        elif kind is Status:
            self._put_line(_STATUS, reply.text.encode())
        elif kind is EntryRange:
            self._put_range(reply)
        elif kind is Served:
            self._put_served(reply)
        elif kind is list or kind is tuple:
            self._put_items(_ARRAY, reply)
        elif kind is NullArray:
            self.put_raw(b"_\r\n" if self.resp3 else b"*-1\r\n")
        else:
            self._put_rare(reply)

    def _put_rare(self, reply: Any) -> None:
        if isinstance(reply, Pairs):
            self._put_pairs(reply)
        elif isinstance(reply, Push):
            self._put_items(_PUSH if self.resp3 else _ARRAY, reply.items)
        elif isinstance(reply, Members):
            self._put_items(_SET if self.resp3 else _ARRAY, reply.items)
        elif isinstance(reply, Verbatim):
            if self.resp3:
                self._put_sized(_VERBATIM, b"txt:" + reply.text)
            else:
                self.put_bulk(reply.text)
        elif isinstance(reply, Double):
            text = double_text(reply.value)
            if self.resp3:
                self._put_line(_DOUBLE, text)
            else:
                self.put_bulk(text)
        elif isinstance(reply, PenstockError):
            self.put_error(reply)
        elif isinstance(reply, bytearray):
            self.put_bulk(bytes(reply))
        else:
            raise TypeError(f"a reply cannot be a {type(reply).__name__}")

    def put_error(self, error: PenstockError) -> None:
        """Write an error on one line, whatever it quotes."""
        text = getattr(error, "wire_text", None) or f"ERR {error}"
        line = text.encode("utf-8", "surrogateescape")
        self._put_line(_ERROR, line.replace(b"\r", b" ").replace(b"\n", b" "))

    def put_array_head(self, count: int) -> None:
        """Start an array; the caller writes its items."""
        self._put_head(_ARRAY, count)

    def put_raw(self, data: bytes) -> None:
        """Write bytes that are already RESP."""
        at = self._room(len(data))
        memory.put(self.buffer, at, data)
        self.size = at + len(data)

    def put_bulk(self, data: bytes) -> None:
        """Write a bulk string."""
        at = self._room(_HEAD_BYTES_MAX + len(data) + 2)
        self.size = memory.put_bulk_bytes(self.buffer, at, data)

    def put_int(self, number: int) -> None:
        """Write a number."""
        self._put_head(_NUMBER, number)

    def put_id(self, ms_text: bytes, seq: int) -> None:
        """Write a stream id as a bulk string."""
        at = self._room(_ID_ROOM)
        self.size = memory.put_bulk_id(self.buffer, at, ms_text, seq)

    def put_served(self, key: bytes, entries: Any) -> None:
        """Write the result of a read from one stream."""
        self._put_head(_MAP if self.resp3 else _ARRAY, 1)
        self._put_stream(key, entries)

    def begin_served(self, key: bytes, expected: int) -> None:
        """Begin the result of a read from one stream."""
        self.put_raw(b"%1\r\n" if self.resp3 else b"*1\r\n*2\r\n")
        self.put_bulk(key)
        self._begin_entries(expected)

    def put_entry(self, entry: Any) -> None:
        """Write the entry of a NodeCursor. Raises: CorruptData."""
        self._put_current(entry)

    def end_served(self, count: int) -> None:
        """End what begin_served began."""
        self._end_entries(count)

    def _room(self, size: int) -> int:
        """Make sure that `size` bytes fit; return the position for them."""
        if self.size + size > len(self.buffer):
            self._grow(size)
        return self.size

    def _grow(self, size: int) -> None:
        missing = self.size + size - len(self.buffer)
        memory.grow(self.buffer, len(self.buffer) + max(missing, len(self.buffer)))

    def _put_head(self, kind: int, number: int) -> None:
        at = self._room(_HEAD_BYTES_MAX)
        buffer = self.buffer
        buffer[at] = kind
        at = memory.put_number(buffer, at + 1, number)
        memory.store16(buffer, at, _CRLF)
        self.size = at + 2

    def _put_sized(self, kind: int, data: bytes) -> None:
        size = len(data)
        at = self._room(_HEAD_BYTES_MAX + size + 2)
        buffer = self.buffer
        buffer[at] = kind
        at = memory.put_number(buffer, at + 1, size)
        memory.store16(buffer, at, _CRLF)
        memory.put(buffer, at + 2, data)
        at += 2 + size
        memory.store16(buffer, at, _CRLF)
        self.size = at + 2

    def _put_line(self, kind: int, text: bytes) -> None:
        size = len(text)
        at = self._room(size + 3)
        self.buffer[at] = kind
        memory.put(self.buffer, at + 1, text)
        memory.store16(self.buffer, at + 1 + size, _CRLF)
        self.size = at + size + 3

    def _put_items(self, kind: int, items: Any) -> None:
        self._put_head(kind, len(items))
        for item in items:
            self.put(item)

    def _put_pairs(self, pairs: Pairs) -> None:
        items = pairs.items
        if self.resp3:
            self._put_head(_MAP, len(items))
        else:
            self._put_head(_ARRAY, 2 * len(items))
        for name, value in items:
            self.put(name)
            self.put(value)

    def _put_served(self, served: Served) -> None:
        items = served.items
        self._put_head(_MAP if self.resp3 else _ARRAY, len(items))
        for key, entries in items:
            self._put_stream(key, entries)

    def _put_stream(self, key: bytes, entries: Any) -> None:
        """Write one item of Served."""
        if not self.resp3:
            self._put_head(_ARRAY, 2)
        self.put_bulk(key)
        self.put(entries)

    # --- Entries, from the node to the buffer ------------------------------------------------------

    def _put_range(self, entries: EntryRange) -> None:
        limit = entries.limit
        expected = entries.stream.length
        if 0 < limit < expected:
            expected = limit
        self._begin_entries(expected)
        count = 0
        cursor = entries.cursor()
        while (limit <= 0 or count < limit) and cursor.advance():
            count += self._put_run(cursor, limit - count)
        self._end_entries(count)

    def _begin_entries(self, expected: int) -> None:
        """Leave room for the head of a list of entries."""
        self._head_at = self._room(_HEAD_BYTES_MAX)
        self.size = self._body_at = self._head_at + 3 + memory.digits(expected)

    def _end_entries(self, count: int) -> None:
        """Write the head; the entries move if their number has more or fewer digits than expected."""
        start = self._head_at
        behind = start + 3 + memory.digits(count)
        if behind != self._body_at:
            memory.move(self.buffer, behind, self._body_at, self.size - self._body_at)
            self.size += behind - self._body_at
        buffer = self.buffer
        buffer[start] = _ARRAY
        memory.store16(buffer, memory.put_number(buffer, start + 1, count), _CRLF)

    def _put_current(self, entry: Any) -> None:
        """Write one entry: `*2 id *2n name value ...`."""
        fields = entry.field_count
        if not 0 <= fields <= len(entry.node):
            raise CorruptData(_DAMAGED, entry.place)
        # As in _put_run.
        at = self._room(len(entry.node) + (2 * fields + 8) * _HEAD_BYTES_MAX + _ID_BYTES_MAX)
        names_at = entry.names_at if entry.same_fields else 0
        if entry.ms != self._ms:
            self._ms = entry.ms
            memory.put_id_prefix(self._ms_text, entry.ms)
        at = memory.put_entry_head(self.buffer, at, self._ms_text, entry.seq, fields)
        at = memory.put_fields(self.buffer, at, entry.node, names_at, entry.pieces_at, fields)
        if at == 0:
            raise CorruptData(_DAMAGED, entry.place)
        self.size = at

    def _put_run(self, cursor: Any, most: int) -> int:
        """Write the cursor's entry, and forwards also the plain ones behind it; return how many.

        Each is `*2 id *2n name value ...`. The run stays in the node and in the range. It ends before an
        entry that is not plain (deleted, with names of its own, or far from the node's key) and after `most`
        entries (0 or less: no limit). The cursor is then at the last one written. Raises: CorruptData.
        """
        entry = cursor.entry
        node = entry.node
        fields = entry.field_count
        names_at = entry.names_at if entry.same_fields else 0
        alone = names_at == 0 or cursor.reverse
        ms = entry.ms
        seq = entry.seq
        place = entry.place
        pieces_at = entry.pieces_at
        if not 0 <= fields <= len(node):
            raise CorruptData(_DAMAGED, place)
        # No element is longer than its node, and each adds at most its head and two line ends.
        room = len(node) + (2 * fields + 8) * _HEAD_BYTES_MAX + _ID_BYTES_MAX
        count = 0
        while True:
            if ms != self._ms:  # neighbours share their milliseconds, so the digits are kept
                self._ms = ms
                memory.put_id_prefix(self._ms_text, ms)
            at = self._room(room)
            at = memory.put_entry_head(self.buffer, at, self._ms_text, seq, fields)
            at = memory.put_fields(self.buffer, at, node, names_at, pieces_at, fields)
            if at == 0:
                raise CorruptData(_DAMAGED, place)
            self.size = at
            count += 1
            if alone or count == most:
                break
            at = memory.skip_elements(node, pieces_at, fields + 1)
            found = memory.plain_entry(node, at) if at else 0
            if found == 0:
                break
            ms = memory.advance(entry.master_ms, found >> 28)
            seq = memory.advance(entry.master_seq, (found >> 4 & 0xFFFFFF ^ 0x800000) - 0x800000)
            if not cursor.covers(ms, seq):
                break
            place = at
            pieces_at = at + (found & 15)
        if count > 1:
            entry.enter(place)
        return count


def double_text(value: float) -> bytes:
    """A float as Redis writes it: at most 17 digits, no fraction for whole numbers."""
    if value != value:
        return b"nan"
    if value in (float("inf"), float("-inf")):
        return b"inf" if value > 0 else b"-inf"
    return f"{value:.17g}".encode()
