# cython: wraparound=False
r"""Listpacks: a list of strings and integers in one run of bytes, readable from either end.

    07 00 00 00 | 00 00 | ff                       the empty listpack
    total bytes   count   end

An element is its encoding, its content, and its own length written backwards (the "backlen", with which a
walk from the end finds the start of the element). `hello`, then 1024:

    11 00 00 00 | 02 00 | 85 h e l l o  06 | c4 00  02 | ff
                          \_ encoding    \_ backlen: 6 bytes precede it

    encoding   content                                     content bytes
    0xxxxxxx   integer 0..127                              none
    10LLLLLL   string of up to 63 bytes                    L
    110xxxxx   integer -4096..4095, 13 bits                1
    1110LLLL   string of up to 4095 bytes                  1 of length, L
    11110000   string of up to 2**32-1 bytes               4 of length, L
    11110001   integer of 16 bits                          2
    11110010   integer of 24 bits                          3
    11110011   integer of 32 bits                          4
    11110100   integer of 64 bits                          8

Integers are little-endian; a negative one is stored as its two's complement in that many bits. A string in
the canonical form of an integer (`-7`, but not `007` or `+7`) is stored as that integer, in the shortest
encoding: so equal strings have equal bytes. The backlen holds seven bits per byte, most significant first;
every byte but the first has the high bit set, so a reader from behind knows where it ends.

Positions are offsets into the bytearray. Position 0 is the header, so 0 means "no element", and a walk is
`while at: ...; at = next_at(lp, at)`.

Invariants
  L1  total is the number of bytes from the header to the end byte, both included, below 2**32. The
      bytearray may be longer: the bytes after the end byte are room to grow (stream nodes use this).
  L2  count is the number of elements, or 65535 for "65535 or more, walk to find out".
  L3  every element is one of the nine encodings, in the shortest form for its content, and its backlen
      is its length.
  L4  the byte after the last element is 0xff, and nothing else starts with 0xff.

Cost: a step either way is O(1), a seek O(index), an insert O(bytes after it). No function allocates by a
length that it has read before checking that length against the buffer.

Rejected: pointers in the .pxd. Bounds checks cost a few percent and turn a corrupt node into an IndexError
instead of a read of unrelated memory.
"""

from __future__ import annotations

from penstock.core import memory
from penstock.errors import CorruptData, TooLarge

HEADER_BYTES = 6
END = 0xFF
COUNT_UNKNOWN = 0xFFFF
TOTAL_BYTES_MAX = 2**32 - 1
ELEMENT_OVERHEAD_MAX = 10  # 5 bytes before a string's content, 5 bytes of backlen after it

BEFORE = 0
AFTER = 1
REPLACE = 2

_HEADER_BYTES = HEADER_BYTES
_END = END
_COUNT_UNKNOWN = COUNT_UNKNOWN
_TOTAL_BYTES_MAX = TOTAL_BYTES_MAX
_OVERHEAD_MAX = ELEMENT_OVERHEAD_MAX
_BEFORE = BEFORE
_AFTER = AFTER
_REPLACE = REPLACE
_NOT_AN_INTEGER = 2**64 - 1  # larger than any magnitude of up to 19 digits
_INT64_DIGITS_MAX = 19
_MAGNITUDE_MAX = 2**63 - 1


def new() -> bytearray:
    """An empty listpack."""
    return bytearray((7, 0, 0, 0, 0, 0, 255))


# --- Reading ---------------------------------------------------------------------------------------


def total_bytes(lp: bytearray) -> int:
    """Bytes from the header to the end byte."""
    return memory.load32(lp, 0)


def length(lp: bytearray) -> int:
    """Number of elements. Cost: O(1), or a walk if the header does not know it (L2)."""
    count = memory.load16(lp, 4)
    if count != _COUNT_UNKNOWN:
        return count
    count = 0
    at = first(lp)
    while at:
        count += 1
        at = next_at(lp, at)
    return count


def first(lp: bytearray) -> int:
    """Position of the first element, or 0."""
    return 0 if lp[_HEADER_BYTES] == _END else _HEADER_BYTES


def last(lp: bytearray) -> int:
    """Position of the last element, or 0."""
    return previous_at(lp, memory.load32(lp, 0) - 1)


def next_at(lp: bytearray, at: int) -> int:
    """Position of the element after the one at `at`, or 0."""
    at = skip(lp, at)
    return 0 if lp[at] == _END else at


def skip(lp: bytearray, at: int) -> int:
    """Position right after the element at `at`: the next element or the end byte."""
    lead = lp[at]
    if lead < 0x80:
        return at + 2
    if lead < 0xC0:
        return at + 2 + (lead & 0x3F)
    size = encoded_size(lp, at)
    return at + size + backlen_size(size)


def previous_at(lp: bytearray, at: int) -> int:
    """Position of the element before the one at `at` (or before the end byte), or 0."""
    if at <= _HEADER_BYTES:
        return 0
    size = _read_backlen(lp, at - 1)
    start = at - size - backlen_size(size)
    if start < _HEADER_BYTES:
        raise CorruptData(f"listpack: a backlen of {size} bytes leads into the header", at - 1)
    return start


def seek(lp: bytearray, index: int) -> int:
    """Position of an element by index, or 0; negative indexes count from the end (-1 is the last)."""
    if index >= 0:
        at = first(lp)
        while at and index > 0:
            at = next_at(lp, at)
            index -= 1
        return at
    at = last(lp)
    while at and index < -1:
        at = previous_at(lp, at)
        index += 1
    return at


def encoded_size(lp: bytearray, at: int) -> int:
    """Bytes of an element's encoding and content, without its backlen."""
    lead = lp[at]
    if lead < 0x80:
        return 1
    if lead < 0xC0:
        return 1 + (lead & 0x3F)
    if lead < 0xE0:
        return 2
    if lead < 0xF0:
        return 2 + ((lead & 0x0F) << 8 | lp[at + 1])
    if lead == 0xF0:
        return 5 + memory.load32(lp, at + 1)
    if lead <= 0xF3:
        return lead - 0xEE  # f1, f2, f3 hold 2, 3, 4 bytes
    if lead == 0xF4:
        return 9
    raise CorruptData(f"listpack: 0x{lead:02x} starts no element", at)


def is_int(lp: bytearray, at: int) -> bool:
    """Tell whether an element is stored as an integer."""
    lead = lp[at]
    return lead < 0x80 or 0xC0 <= lead < 0xE0 or 0xF1 <= lead <= 0xF4


def get_int(lp: bytearray, at: int) -> int:
    """The value of an element that is stored as an integer. Raises: CorruptData for a string."""
    lead = lp[at]
    if lead < 0x80:
        return lead
    if 0xC0 <= lead < 0xE0:
        value = (lead & 0x1F) << 8 | lp[at + 1]
        return value - 8192 if value >= 4096 else value
    if lead == 0xF1:
        value = memory.load16(lp, at + 1)
        return value - 65536 if value >= 32768 else value
    if lead == 0xF2:
        value = memory.load16(lp, at + 1) | lp[at + 3] << 16
        return value - 16777216 if value >= 8388608 else value
    if lead == 0xF3:
        value = memory.load32(lp, at + 1)
        return value - 4294967296 if value >= 2147483648 else value
    if lead == 0xF4:
        return memory.distance(memory.load64(lp, at + 1), 0)
    raise CorruptData("listpack: an integer is expected here, not a string", at)


def string_size(lp: bytearray, at: int) -> int:
    """Content bytes of an element that is stored as a string. Raises: CorruptData for an integer."""
    if is_int(lp, at):
        raise CorruptData("listpack: a string is expected here, not an integer", at)
    return encoded_size(lp, at) - _lead_bytes(lp[at])


def string_at(lp: bytearray, at: int) -> int:
    """Position of a string element's content."""
    return at + _lead_bytes(lp[at])


def _lead_bytes(lead: int) -> int:
    """Bytes before a string's content."""
    if lead < 0xC0:
        return 1
    return 2 if lead < 0xF0 else 5


def get_bytes(lp: bytearray, at: int) -> bytes:
    """An element as the string that was stored, even if it is encoded as an integer."""
    lead = lp[at]
    if 0x80 <= lead < 0xC0:
        return memory.cut(lp, at + 1, lead & 0x3F)
    if is_int(lp, at):
        return memory.format_int(get_int(lp, at))
    return memory.cut(lp, string_at(lp, at), string_size(lp, at))


def get(lp: bytearray, at: int) -> int | bytes:
    """An element as it is encoded: an integer or a string."""
    return get_int(lp, at) if is_int(lp, at) else get_bytes(lp, at)


def equals(lp: bytearray, at: int, source: bytearray, start: int, size: int) -> bool:
    """Tell whether an element equals a string, which is given as a piece of another buffer."""
    lead = lp[at]
    if 0x80 <= lead < 0xC0:  # nearly every field name
        return lead & 0x3F == size and memory.equal(lp, at + 1, source, start, size)
    if is_int(lp, at):
        return get_bytes(lp, at) == memory.cut(source, start, size)
    return string_size(lp, at) == size and memory.equal(lp, string_at(lp, at), source, start, size)


# --- Writing one element where there is enough room ---------------------------------------------------


def put_int(lp: bytearray, at: int, value: int) -> int:
    """Write an integer element at `at`; return the position after it."""
    if 0 <= value <= 127:
        memory.store16(lp, at, 0x0100 | value)  # the element and its backlen, 1, at once
        return at + 2
    if -4096 <= value <= 4095:
        lp[at] = 0xC0 | (value >> 8 & 0x1F)
        lp[at + 1] = value & 0xFF
        lp[at + 2] = 2
        return at + 3
    if -32768 <= value <= 32767:
        lp[at] = 0xF1
        memory.store16(lp, at + 1, value & 0xFFFF)
        lp[at + 3] = 3
        return at + 4
    if -8388608 <= value <= 8388607:
        lp[at] = 0xF2
        memory.store16(lp, at + 1, value & 0xFFFF)
        lp[at + 3] = value >> 16 & 0xFF
        lp[at + 4] = 4
        return at + 5
    if -2147483648 <= value <= 2147483647:
        lp[at] = 0xF3
        memory.store32(lp, at + 1, value & 0xFFFFFFFF)
        lp[at + 5] = 5
        return at + 6
    lp[at] = 0xF4
    memory.store64(lp, at + 1, memory.advance(0, value))
    lp[at + 9] = 9
    return at + 10


def int_size(value: int) -> int:
    """The number of bytes that `put_int` writes for a value."""
    if 0 <= value <= 127:
        return 2
    if -4096 <= value <= 4095:
        return 3
    if -32768 <= value <= 32767:
        return 4
    if -8388608 <= value <= 8388607:
        return 5
    return 6 if -2147483648 <= value <= 2147483647 else 10


def put_string(lp: bytearray, at: int, source: bytearray, start: int, size: int) -> int:
    """Write a piece of a buffer as an element, encoded as an integer if it is one (L3).

    Returns the position after the element. `lp` must have room for size + ELEMENT_OVERHEAD_MAX.
    """
    if 0 < size <= _INT64_DIGITS_MAX + 1 and source[start] <= 57:
        magnitude = _magnitude(source, start, size)
        if magnitude != _NOT_AN_INTEGER:
            if source[start] == 45:
                return put_int(lp, at, memory.negate(magnitude))
            return put_int(lp, at, magnitude)
    if size < 64:
        lp[at] = 0x80 | size
        memory.copy(lp, at + 1, source, start, size)
        lp[at + 1 + size] = size + 1
        return at + size + 2
    if size < 4096:
        lp[at] = 0xE0 | size >> 8
        lp[at + 1] = size & 0xFF
        memory.copy(lp, at + 2, source, start, size)
        return _put_backlen(lp, at + 2 + size, size + 2)
    lp[at] = 0xF0
    memory.store32(lp, at + 1, size)
    memory.copy(lp, at + 5, source, start, size)
    return _put_backlen(lp, at + 5 + size, size + 5)


def _magnitude(source: bytearray, start: int, size: int) -> int:
    """The absolute value, if the piece is the canonical form of a 64-bit integer."""
    at = start
    end = start + size
    negative = source[at] == 45
    if negative:
        at += 1
        if at == end or source[at] == 48:
            return _NOT_AN_INTEGER
    elif source[at] == 48:
        return 0 if size == 1 else _NOT_AN_INTEGER
    if end - at > _INT64_DIGITS_MAX:
        return _NOT_AN_INTEGER
    value = 0
    while at < end:
        if not 48 <= source[at] <= 57:
            return _NOT_AN_INTEGER
        value = value * 10 + (source[at] - 48)
        at += 1
    if value > _MAGNITUDE_MAX + (1 if negative else 0):
        return _NOT_AN_INTEGER
    return value


def backlen_size(size: int) -> int:
    """The number of bytes of an element's backlen.

    As in Redis, 16383 takes three bytes although two would do: the bytes must be equal.
    """
    if size <= 127:
        return 1
    if size < 16383:
        return 2
    if size < 2097151:
        return 3
    return 4 if size < 268435455 else 5


def _put_backlen(lp: bytearray, at: int, size: int) -> int:
    """Write a backlen; return the position after it."""
    left = backlen_size(size)
    behind = at + left
    continued = 0
    while left > 0:
        left -= 1
        lp[at] = size >> (7 * left) & 0x7F | continued
        continued = 0x80
        at += 1
    return behind


def _read_backlen(lp: bytearray, at: int) -> int:
    """Read a backlen backwards from its last byte at `at`."""
    size = 0
    shift = 0
    while True:
        bits = lp[at] & 0x7F
        size |= bits << shift
        if lp[at] < 0x80:
            return size
        shift += 7
        at -= 1
        if shift > 28 or at < _HEADER_BYTES:
            raise CorruptData("listpack: a backlen of more than five bytes", at)


# --- Editing -------------------------------------------------------------------------------------------


def append(lp: bytearray, data: bytes) -> int:
    """Add a string at the end and return its position. Cost: O(len(data)), amortised."""
    return insert(lp, memory.load32(lp, 0) - 1, data, _BEFORE)


def append_int(lp: bytearray, value: int) -> int:
    """Add an integer at the end and return its position."""
    at = memory.load32(lp, 0) - 1
    _splice(lp, at, 0, _int_element(value), 1)
    return at


def insert(lp: bytearray, at: int, data: bytes, where: int) -> int:
    """Put a string BEFORE, AFTER or in place of (REPLACE) the element at `at`; return its position.

    With BEFORE, `at` may be the position of the end byte.
    """
    if where == _AFTER:
        at = skip(lp, at)
    elif where not in (_BEFORE, _REPLACE):
        raise ValueError(f"where is BEFORE, AFTER or REPLACE, not {where}")
    replaced = skip(lp, at) - at if where == _REPLACE else 0
    # Checked before anything is allocated: data that does not fit must not be copied.
    check_room(lp, len(data) - replaced)
    element = bytearray(len(data) + _OVERHEAD_MAX)
    end = put_string(element, 0, bytearray(data), 0, len(data))
    del element[end:]
    _splice(lp, at, replaced, element, 0 if where == _REPLACE else 1)
    return at


def replace_int(lp: bytearray, at: int, value: int) -> int:
    """Replace the element at `at` by an integer; return by how many bytes the rest moved."""
    old = skip(lp, at) - at
    if old == int_size(value):
        put_int(lp, at, value)
        return 0
    _splice(lp, at, old, _int_element(value), 0)
    return int_size(value) - old


def delete(lp: bytearray, at: int) -> int:
    """Remove the element at `at`; return the position of the next one, or 0."""
    _splice(lp, at, skip(lp, at) - at, bytearray(), -1)
    return 0 if lp[at] == _END else at


def check_room(lp: bytearray, more: int) -> None:
    """Make sure that the header can express the new size (L1). Raises: TooLarge."""
    if memory.load32(lp, 0) + more > _TOTAL_BYTES_MAX:
        raise TooLarge(f"a listpack cannot exceed {TOTAL_BYTES_MAX} bytes")


def _int_element(value: int) -> bytearray:
    element = bytearray(int_size(value))
    put_int(element, 0, value)
    return element


def _splice(lp: bytearray, at: int, old: int, element: bytearray, added: int) -> None:
    """Replace `old` bytes at `at` by an element, and update the header."""
    check_room(lp, len(element) - old)
    total = memory.load32(lp, 0)
    count = memory.load16(lp, 4)
    if count + added < 0:
        raise CorruptData("listpack: header says 0 elements, there is one", 4)
    lp[at : at + old] = element
    memory.store32(lp, 0, total + len(element) - old)
    if count != _COUNT_UNKNOWN:
        memory.store16(lp, 4, count + added)
    elif added < 0:
        count = length(lp)
        if count < _COUNT_UNKNOWN:
            memory.store16(lp, 4, count)


# --- Untrusted bytes -----------------------------------------------------------------------------------


def validate(data: bytes | bytearray, deep: bool = True) -> bytearray:
    """Check untrusted bytes and return them as a new listpack.

    A shallow check covers the header and the end byte, a deep check also every element (L1 to L4). Encodings
    that are not the shortest are accepted: old versions may have written them. Never reads outside the data.
    Raises: CorruptData.
    """
    size = len(data)
    if size < _HEADER_BYTES + 1:
        raise CorruptData(f"listpack: {size} bytes are too few for a header and an end", 0)
    lp = bytearray(data)
    if memory.load32(lp, 0) != size:
        raise CorruptData(
            f"listpack: header says {memory.load32(lp, 0)} bytes, there are {size}", 0
        )
    if lp[size - 1] != _END:
        raise CorruptData("listpack: the last byte is not 0xff", size - 1)
    if deep:
        _validate_elements(lp)
    return lp


def _validate_elements(lp: bytearray) -> None:
    end = len(lp) - 1
    at = _HEADER_BYTES
    count = 0
    while at < end:
        if lp[at] == _END:
            raise CorruptData("listpack: an end byte before the end", at)
        at = _validate_element(lp, at, end)
        count += 1
    stated = memory.load16(lp, 4)
    if stated not in (_COUNT_UNKNOWN, count):
        raise CorruptData(f"listpack: header says {stated} elements, there are {count}", 4)


def _validate_element(lp: bytearray, at: int, end: int) -> int:
    """Check one element that must end before `end`; return the position after it."""
    lead = lp[at]
    lead_bytes = 5 if lead == 0xF0 else 2 if 0xE0 <= lead < 0xF0 else 1
    if lead_bytes > end - at:
        raise CorruptData("listpack: an element's length is cut off", at)
    size = encoded_size(lp, at)
    if size + backlen_size(size) > end - at:
        raise CorruptData(f"listpack: an element of {size} bytes runs past the end", at)
    behind = at + size + backlen_size(size)
    left = backlen_size(size)
    place = at + size
    continued = 0
    while left > 0:
        left -= 1
        if lp[place] != (size >> (7 * left) & 0x7F | continued):
            raise CorruptData(
                f"listpack: the backlen of an element of {size} bytes is wrong", place
            )
        continued = 0x80
        place += 1
    return behind
