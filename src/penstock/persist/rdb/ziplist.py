"""Reads ziplists, the list encoding of Redis up to 6.2. They are never written.

    RPUSH l a 2          0f000000 | 0d000000 | 0200 | 00 01 'a' | 03 f3 | ff
                         total      tail       count   element     element end

An element has the length of the previous element, an encoding, and its content:

    00 .. fd             length of the previous element; the first has 00
    fe + 4 bytes         the same, from 254 on

    00LLLLLL             string of up to 63 bytes            11000000 + 2 bytes     integer of 16 bits
    01LLLLLL + 1 byte    up to 16383, high bits first        11010000 + 4 bytes     integer of 32 bits
    10000000 + 4 bytes   32 bits, high byte first            11100000 + 8 bytes     integer of 64 bits
    1111nnnn             the integer n - 1, n from 1 to 13   11110000 + 3 bytes     integer of 24 bits
                                                             11111110 + 1 byte      integer of 8 bits

All integers are signed and little-endian. Every length is checked against the size of the data, and the
total, the tail and the count against the elements found. The low six bits of a lead byte 10xxxxxx are
ignored, as in Redis.

Cost: O(bytes), in plain Python: a ziplist is converted once.
"""

from __future__ import annotations

from typing import NoReturn

from penstock.errors import CorruptData

_HEADER_BYTES = 10
_END = 0xFF
_COUNT_UNKNOWN = 0xFFFF
_LONG_PREVIOUS = 254
_INTEGER_BYTES = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}


def elements(data: bytes | bytearray) -> list[bytes]:
    """The elements, as strings. Raises: CorruptData."""
    size = len(data)
    if size < _HEADER_BYTES + 1:
        _refuse(f"{size} bytes are too few for a header and an end", 0)
    total = int.from_bytes(data[:4], "little")
    tail = int.from_bytes(data[4:8], "little")
    count = int.from_bytes(data[8:10], "little")
    if total != size:
        _refuse(f"the header says {total} bytes, there are {size}", 0)
    if data[size - 1] != _END:
        _refuse("the last byte is not 0xff", size - 1)
    found: list[bytes] = []
    at = last = _HEADER_BYTES
    previous = 0
    while at < size - 1:
        element, behind = _element(data, at, previous)
        found.append(element)
        previous = behind - at
        last, at = at, behind
    if count not in (len(found), _COUNT_UNKNOWN):
        _refuse(f"the header says {count} elements, there are {len(found)}", 8)
    if tail != last:
        _refuse(f"the header says that the last element is at {tail}, it is at {last}", 4)
    return found


def _element(data: bytes | bytearray, at: int, previous: int) -> tuple[bytes, int]:
    """The element at `at`, and the place after it."""
    end = len(data) - 1
    start = at
    stated = data[at]
    at += 1
    if stated == _LONG_PREVIOUS:
        stated = int.from_bytes(data[at : at + 4], "little")
        at += 4
    if stated != previous:
        _refuse(f"the previous element has {previous} bytes, not {stated}", start)
    if at >= end:
        _refuse("the end comes inside an element", start)
    lead = data[at]
    at += 1
    if lead < 0x40:
        length = lead
    elif lead < 0x80:
        length = (lead & 0x3F) << 8 | data[at]
        at += 1
    elif lead < 0xC0:
        length = int.from_bytes(data[at : at + 4], "big")
        at += 4
    else:
        return _integer(data, at, lead)
    if length > end - at:
        _refuse(f"a string of {length} bytes runs past the end", start)
    return bytes(data[at : at + length]), at + length


def _integer(data: bytes | bytearray, at: int, lead: int) -> tuple[bytes, int]:
    if 0xF1 <= lead <= 0xFD:
        return b"%d" % (lead - 0xF1), at
    width = _INTEGER_BYTES.get(lead)
    if width is None:
        _refuse(f"0x{lead:02x} is not an encoding", at - 1)
    if width > len(data) - 1 - at:
        _refuse(f"an integer of {width} bytes runs past the end", at - 1)
    return b"%d" % int.from_bytes(data[at : at + width], "little", signed=True), at + width


def _refuse(what: str, offset: int) -> NoReturn:
    raise CorruptData(f"ziplist: {what}", offset)
