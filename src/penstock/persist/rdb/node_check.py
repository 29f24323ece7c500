# cython: wraparound=False
"""Checks untrusted nodes, from files and clients, before they are used.

    validate_node      a stream's node: L1 to L4, N1 to N3, one pass over the elements
    validate_listpack  a list's node: L1 to L4

core/check checks our own structures with their own readers, slowly. Here the bytes can be anything, so no
reader is used before the element is known to be inside the buffer. A node that passes also passes
`check_node`, with two exceptions that Redis can write. A node with tombstones only is accepted (`live` may
be 0); loaders drop it. And ids that do not rise (N2) are reported, not refused: after XSETID below a
tombstone, Redis 7.0 assigns the same ids again.

Cost: about 5 ns per element, compiled.
"""

from __future__ import annotations

from penstock.core import listpack, memory, stream_id
from penstock.core.stream_id import StreamID
from penstock.errors import CorruptData

_HEADER_BYTES = listpack.HEADER_BYTES
_END = listpack.END
_COUNT_UNKNOWN = listpack.COUNT_UNKNOWN
_DELETED = 1
_SAME_FIELDS = 2
_DIGITS_MAX = 20
_NINE = 57
_FIXED_PIECES = 3


def validate_listpack(lp: bytearray) -> None:
    """Check L1 to L4 of a listpack without spare bytes. Raises: CorruptData."""
    elements = _open(lp)
    while elements.at < elements.end:
        elements.step()
    elements.close()


def validate_node(node: bytearray, ms: int, seq: int) -> StreamID | None:
    """Check a stream's node with the key ms-seq; return the id of its last entry.

    None if only the order of ids is wrong. Raises: CorruptData.
    """
    elements = _open(node)
    live = elements.integer()
    deleted = elements.integer()
    fields = elements.integer()
    if live < 0 or deleted < 0 or fields < 0:
        elements.refuse(f"counts of {live} live, {deleted} deleted entries and {fields} fields")
    names_at = elements.at
    elements.skip(fields)
    names_end = elements.at
    if elements.integer() != 0:
        elements.refuse("the header does not end with zero")
    found = found_deleted = 0
    last_ms = last_seq = 0
    rising = True
    while elements.at < elements.end:
        flags = elements.integer()
        if flags & ~(_DELETED | _SAME_FIELDS):
            elements.refuse(f"an entry with unknown flags {flags}")
        entry_ms = memory.advance(ms, elements.integer())
        entry_seq = memory.advance(seq, elements.integer())
        if found == 0 and (entry_ms != ms or entry_seq != seq):
            elements.refuse(f"the first entry is {entry_ms}-{entry_seq}, not the key {ms}-{seq}")
        if found and stream_id.compare(entry_ms, entry_seq, last_ms, last_seq) <= 0:
            rising = False
        last_ms = entry_ms
        last_seq = entry_seq
        if flags & _SAME_FIELDS:
            elements.skip(fields)
            pieces = fields + _FIXED_PIECES
        else:
            pieces = 2 * elements.own_fields(fields, names_at, names_end) + _FIXED_PIECES + 1
        stated = elements.integer()
        if stated != pieces:
            elements.refuse(f"{last_ms}-{last_seq} says {stated} pieces, there are {pieces}")
        found += 1
        if flags & _DELETED:
            found_deleted += 1
    elements.close()
    if found == 0:
        elements.refuse("a node without an entry")
    if live != found - found_deleted or deleted != found_deleted:
        elements.refuse(
            f"{live} live and {deleted} deleted entries are stated,"
            f" there are {found - found_deleted} and {found_deleted}"
        )
    return stream_id.make(last_ms, last_seq) if rising else None


def _open(lp: bytearray) -> _UntrustedElements:
    made = _UntrustedElements.__new__(_UntrustedElements)
    made._reset(lp)
    return made


class _UntrustedElements:
    """A walk over untrusted elements; `at` never passes `end`, the position of the end byte."""

    __slots__ = ("at", "count", "end", "lp")

    def _reset(self, lp: bytearray) -> None:
        size = len(lp)
        self.lp = lp
        self.at = _HEADER_BYTES
        self.end = size - 1
        self.count = 0
        if size < _HEADER_BYTES + 1:
            raise CorruptData(f"listpack: {size} bytes are too few for a header and an end", 0)
        if memory.load32(lp, 0) != size:
            stated = memory.load32(lp, 0)
            raise CorruptData(f"listpack: header says {stated} bytes, there are {size}", 0)
        if lp[size - 1] != _END:
            raise CorruptData("listpack: the last byte is not 0xff", size - 1)

    def refuse(self, what: str) -> None:
        raise CorruptData(what, self.at)

    def close(self) -> None:
        """Check the count at the end."""
        stated = memory.load16(self.lp, 4)
        # A count below 65535 must be right; an unknown count may be anything.
        if stated != self.count and stated != _COUNT_UNKNOWN:
            raise CorruptData(f"listpack: header says {stated} elements, there are {self.count}", 4)

    def skip(self, count: int) -> None:
        """Skip `count` elements. Small integers, and short strings that cannot be numbers, need no call."""
        lp = self.lp
        at = self.at
        while count > 0:
            lead = lp[at] if self.end > at else _END
            size = 1 if lead < 0x80 else 1 + (lead & 0x3F)
            if (
                lead < 0xC0
                and size < self.end - at
                and lp[at + size] == size
                and (size == 1 or lp[at + 1] > _NINE or lp[at + size - 1] > _NINE)
            ):
                at += size + 1
                self.count += 1
            else:
                self.at = at
                self.step()
                at = self.at
            count -= 1
        self.at = at

    def integer(self) -> int:
        """Read the next element, which must be an integer."""
        at = self.at
        lp = self.lp
        if self.end - at >= 2 and lp[at] < 0x80 and lp[at + 1] == 1:
            self.at = at + 2  # the usual case
            self.count += 1
            return lp[at]
        self.step()
        return listpack.get_int(lp, at)

    def step(self) -> None:
        """Check the next element and move past it."""
        lp = self.lp
        at = self.at
        left = self.end - at
        if left < 2:
            self.refuse("listpack: it ends where an element is expected")
        lead = lp[at]
        if 0x80 <= lead < 0xC0 or lead < 0x80:
            size = 1 if lead < 0x80 else 1 + (lead & 0x3F)
            if size + 1 > left:
                self.refuse(f"listpack: an element of {size} bytes runs past the end")
            if lp[at + size] != size:
                self.refuse(f"listpack: the backlen of an element of {size} bytes is wrong")
            if size > 1 and lp[at + 1] <= 57:
                self.check_string(at + 1, size - 1)
            self.at = at + size + 1
        else:
            self.step_wide(lead, left)
        self.count += 1

    def step_wide(self, lead: int, left: int) -> None:
        """As step, for an element with a longer head."""
        lp = self.lp
        at = self.at
        if left < 3 or (lead == 0xF0 and left < 6):
            self.refuse("listpack: an element's length is cut off")
        size = listpack.encoded_size(lp, at)
        width = listpack.backlen_size(size)
        if size + width > left:
            self.refuse(f"listpack: an element of {size} bytes runs past the end")
        continued = 0
        place = at + size
        while width > 0:
            width -= 1
            if lp[place] != (size >> (7 * width) & 0x7F | continued):
                self.refuse(f"listpack: the backlen of an element of {size} bytes is wrong")
            continued = 0x80
            place += 1
        self.at = place
        if listpack.is_int(lp, at):
            shortest = listpack.int_size(listpack.get_int(lp, at)) == place - at
        else:
            shortest = listpack.string_size(lp, at) >= (4096 if lead == 0xF0 else 64)
        if not shortest:
            self.refuse("listpack: an element is not in its shortest form")

    def check_string(self, at: int, size: int) -> None:
        """Refuse a string that would have been stored as an integer (L3)."""
        lp = self.lp
        end = at + size
        digits = at + 1 if lp[at] == 45 else at
        while digits < end and 48 <= lp[digits] <= 57:
            digits += 1
        if digits == end and size <= _DIGITS_MAX:
            element = bytearray(size + listpack.ELEMENT_OVERHEAD_MAX)
            listpack.put_string(element, 0, lp, at, size)
            if listpack.is_int(element, 0):
                self.refuse("listpack: an integer is stored as a string")

    def own_fields(self, header_fields: int, names_at: int, names_end: int) -> int:
        """Check the count, names and values of an entry with its own names; return the count."""
        lp = self.lp
        fields = self.integer()
        if fields < 0 or fields > self.end - self.at:
            self.refuse(f"an entry with {fields} fields")
        same = fields == header_fields
        left = fields
        while left > 0:
            at = self.at
            self.step()
            # Elements in their shortest form are equal if their bytes are.
            if same:
                size = self.at - at
                if size > names_end - names_at or not memory.equal(lp, at, lp, names_at, size):
                    same = False
                names_at += size
            self.step()
            left -= 1
        if same:
            self.refuse("an entry has the header's field names and does not say so")
        return fields
