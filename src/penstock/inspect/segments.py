"""Splits a listpack into segments. Every byte belongs to one segment, and every segment has a label.

    [ "hello", 1024 ]

    offset  bytes            kind       label                        value
         0  11 00 00 00      total      total bytes                  17
         4  02 00            count      elements                     2
         6  85               encoding   string, 6 bits of length     5
         7  68 65 6c 6c 6f   content    string, 6 bits of length     hello
        12  06               backlen    bytes back                   6
        13  c4               encoding   integer of 13 bits           1024
        14  00               content    integer of 13 bits           1024
        15  02               backlen    bytes back                   2
        16  ff               end        end

The terms are those of docs/formats/listpack.md. Labels never contain stored data. Stored data is only in
`value`, and callers that show it must make it harmless first.

Damage is a segment and never raises. Wrong numbers in the header and a wrong backlen are marked where they
occur. From the point where the meaning of the bytes is unknown, all the rest is one segment of kind "damage".
A missing byte is a segment of length 0. So this always holds: `b"".join(data[s.offset : s.offset + s.length]
for s in listpack_map(data)) == data`.

Cost: a few microseconds per element. Use it to inspect data, not to read it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from penstock.core import listpack, memory


class SegmentKind(StrEnum):
    """The kinds of bytes in a listpack."""

    TOTAL = "total"
    COUNT = "count"
    ENCODING = "encoding"
    CONTENT = "content"
    BACKLEN = "backlen"
    END = "end"
    DAMAGE = "damage"


class Role(StrEnum):
    """The role of an element in a stream node, NONE elsewhere. HEADER_* belong to the master entry."""

    NONE = ""
    HEADER_LIVE = "live"
    HEADER_DELETED = "deleted"
    HEADER_FIELDS = "header fields"
    HEADER_NAME = "header name"
    HEADER_END = "header end"
    FLAGS = "flags"
    MS = "ms distance"
    SEQ = "seq distance"
    FIELDS = "fields"
    NAME = "name"
    VALUE = "value"
    PIECES = "pieces"


NO_ELEMENT = -1
NO_ENTRY = -1


class Segment(NamedTuple):
    """Bytes with one meaning. `element`, `entry`: numbers from 0, or NO_ELEMENT, NO_ENTRY outside of one."""

    offset: int
    length: int
    kind: SegmentKind
    label: str
    value: int | bytes | None = None
    element: int = NO_ELEMENT
    role: Role = Role.NONE
    entry: int = NO_ENTRY


class Element(NamedTuple):
    """One element: its offset, the sizes of its three parts, its value."""

    at: int
    head_bytes: int
    content_bytes: int
    backlen_bytes: int
    value: int | bytes

    @property
    def size(self) -> int:
        return self.head_bytes + self.content_bytes + self.backlen_bytes

    @property
    def behind(self) -> int:
        return self.at + self.size


class Damage(Exception):
    """Damage at `offset`; the bytes before it have been decoded. Never leaves this package."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


_STRING_6, _STRING_12, _STRING_32 = (f"string, {bits} bits of length" for bits in (6, 12, 32))
_WIDE_INTEGERS = {0xF1: 16, 0xF2: 24, 0xF3: 32, 0xF4: 64}


def encoding_name(lead: int) -> str:
    """The encoding that the first byte of an element stands for."""
    if lead < 0x80:
        return "integer of 7 bits"
    if lead < 0xC0:
        return _STRING_6
    if lead < 0xE0:
        return "integer of 13 bits"
    if lead < 0xF0:
        return _STRING_12
    return _STRING_32 if lead == 0xF0 else f"integer of {_WIDE_INTEGERS[lead]} bits"


def _head_bytes(lead: int) -> int:
    """Bytes of encoding and length before the content."""
    if 0xE0 <= lead < 0xF0:
        return 2
    return 5 if lead == 0xF0 else 1


def element_at(lp: bytearray, at: int) -> Element:
    """The element at `at`, which must not be the end byte. Raises: Damage."""
    lead = lp[at]
    if lead > 0xF4:
        raise Damage(at, f"0x{lead:02x} is not the start of an element")
    head = _head_bytes(lead)
    if at + head > len(lp):
        raise Damage(at, "the data ends in the middle of an element's length")
    size = listpack.encoded_size(lp, at)
    if at + size > len(lp):
        missing = at + size - len(lp)
        raise Damage(at, f"an element of {size} bytes runs {missing} bytes past the end")
    width = listpack.backlen_size(size)
    return Element(at, head, size - head, width, listpack.get(lp, at))


def check_backlen(lp: bytearray, element: Element) -> None:
    """Raises: Damage, at the backlen, if it does not match the element."""
    size = element.head_bytes + element.content_bytes
    found = lp[element.at + size : element.behind]
    if element.backlen_bytes == 1 and found and found[0] == size:
        return  # the usual case
    due = bytearray(element.backlen_bytes)
    for place in range(len(due)):
        bits = size >> (7 * (len(due) - 1 - place)) & 0x7F
        due[place] = bits | (0x80 if place else 0)
    if found != due:
        raise Damage(
            element.at + size,
            f"the backlen of an element of {size} bytes must be {due.hex(' ')}, not"
            f" {found.hex(' ') or 'missing'}",
        )


def element_segments(
    lp: bytearray, element: Element, number: int, role: Role = Role.NONE, entry: int = NO_ENTRY
) -> list[Segment]:
    """The segments of an element, without its backlen."""
    label = encoding_name(lp[element.at])
    at, head, size, value = element.at, element.head_bytes, element.content_bytes, element.value
    stated = value if isinstance(value, int) else size
    made = [Segment(at, head, SegmentKind.ENCODING, label, stated, number, role, entry)]
    if size:
        made.append(
            Segment(at + head, size, SegmentKind.CONTENT, label, value, number, role, entry)
        )
    return made


def backlen_segment(element: Element, number: int, role: Role, entry: int) -> Segment:
    """The segment of an element's backlen."""
    size = element.head_bytes + element.content_bytes
    at = element.at + size
    return Segment(
        at, element.backlen_bytes, SegmentKind.BACKLEN, "bytes back", size, number, role, entry
    )


def header_segments(lp: bytearray) -> list[Segment]:
    """The total and the count. Raises: Damage if the bytes are too few."""
    if len(lp) < listpack.HEADER_BYTES:
        raise Damage(0, f"{len(lp)} bytes are too few for a header")
    total = memory.load32(lp, 0)
    count = memory.load16(lp, 4)
    kind, label = SegmentKind.TOTAL, "total bytes"
    if total != len(lp):
        kind, label = (
            SegmentKind.DAMAGE,
            f"total bytes: the header says {total}, there are {len(lp)}",
        )
    unknown = ": 65535 or more" if count == listpack.COUNT_UNKNOWN else ""
    return [
        Segment(0, 4, kind, label, total),
        Segment(4, 2, SegmentKind.COUNT, f"elements{unknown}", count),
    ]


def end_segments(lp: bytearray, at: int, segments: list[Segment], count: int) -> list[Segment]:
    """The end byte at `at` and the bytes after it. Marks a wrong number of elements in `segments`."""
    stated = memory.load16(lp, 4)
    if stated not in (count, listpack.COUNT_UNKNOWN):
        label = f"elements: the header says {stated}, there are {count}"
        segments[1] = segments[1]._replace(kind=SegmentKind.DAMAGE, label=label)
    if at >= len(lp):
        return [Segment(len(lp), 0, SegmentKind.DAMAGE, "the end byte is missing")]
    ends = [Segment(at, 1, SegmentKind.END, "end")]
    rest = len(lp) - at - 1
    if rest:
        ends.append(Segment(at + 1, rest, SegmentKind.DAMAGE, f"{rest} bytes after the end byte"))
    return ends


def damage_segment(lp: bytearray, damage: Damage) -> Segment:
    """All bytes from the damage to the end."""
    return Segment(damage.offset, len(lp) - damage.offset, SegmentKind.DAMAGE, damage.reason)


def is_at_end(lp: bytearray, at: int) -> bool:
    """Whether no element follows: `at` is the end byte or the end of the data."""
    return at >= len(lp) or lp[at] == listpack.END


def listpack_map(data: bytes | bytearray) -> list[Segment]:
    """The segments of a listpack, in order. Never raises, for any bytes."""
    lp = bytearray(data)
    segments: list[Segment] = []
    number = 0
    try:
        segments += header_segments(lp)
        at = listpack.HEADER_BYTES
        while not is_at_end(lp, at):
            element = element_at(lp, at)
            segments += element_segments(lp, element, number)
            check_backlen(lp, element)
            segments.append(backlen_segment(element, number, Role.NONE, NO_ENTRY))
            at = element.behind
            number += 1
        segments += end_segments(lp, at, segments, number)
    except Damage as damage:
        segments.append(damage_segment(lp, damage))
    return segments


def damages(segments: list[Segment]) -> list[tuple[int, str]]:
    """Offsets and reasons of all damage."""
    return [(s.offset, s.label) for s in segments if s.kind is SegmentKind.DAMAGE]
