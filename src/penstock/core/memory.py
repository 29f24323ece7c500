"""Bounds-checked reads and writes inside a bytearray.

Every structure of this package is stored in bytearrays. Only these functions exist twice: here in Python, and
in memory.pxd as C that the compiled modules inline. Both refuse to touch a byte outside the buffer
(IndexError) and None in place of a buffer (TypeError). Both read and write little-endian, as Redis does on
disk. The second half handles numbers where C and Python differ: wrapping at 64 bits, and conversion to text.

Callers write `memory.load32(...)`, with the module's name: only this form lets Cython use the C version.

Cost: a load or a store is about 2 ns compiled, a copy about that plus the bytes.
"""

import struct

_MASK64 = (1 << 64) - 1


def load16(buffer: bytearray, at: int) -> int:
    _check(len(buffer), at, 2)
    return int.from_bytes(buffer[at : at + 2], "little")


def load32(buffer: bytearray, at: int) -> int:
    _check(len(buffer), at, 4)
    return int.from_bytes(buffer[at : at + 4], "little")


def load64(buffer: bytearray, at: int) -> int:
    _check(len(buffer), at, 8)
    return int.from_bytes(buffer[at : at + 8], "little")


def store16(buffer: bytearray, at: int, value: int) -> None:
    _check(len(buffer), at, 2)
    buffer[at : at + 2] = value.to_bytes(2, "little")


def store32(buffer: bytearray, at: int, value: int) -> None:
    _check(len(buffer), at, 4)
    buffer[at : at + 4] = value.to_bytes(4, "little")


def store64(buffer: bytearray, at: int, value: int) -> None:
    _check(len(buffer), at, 8)
    buffer[at : at + 8] = value.to_bytes(8, "little")


def store_pair(buffer: bytearray, at: int, first: int, second: int) -> None:
    """Store two 64-bit numbers, one after the other."""
    _check(len(buffer), at, 16)
    buffer[at : at + 16] = first.to_bytes(8, "little") + second.to_bytes(8, "little")


def store_float(buffer: bytearray, at: int, value: float) -> None:
    """Store a 32-bit float, rounded; a number that is too large becomes infinite."""
    _check(len(buffer), at, 4)
    try:
        struct.pack_into("<f", buffer, at, value)
    except OverflowError:
        struct.pack_into("<f", buffer, at, value * float("inf"))


def store_double(buffer: bytearray, at: int, value: float) -> None:
    _check(len(buffer), at, 8)
    struct.pack_into("<d", buffer, at, value)


def span_start(spans: bytearray, index: int) -> int:
    """The start of a piece, in a list of pairs (start, size)."""
    _check(len(spans), index * 16, 16)
    return int.from_bytes(spans[index * 16 : index * 16 + 8], "little")


def span_size(spans: bytearray, index: int) -> int:
    """The size of a piece, in a list of pairs (start, size)."""
    _check(len(spans), index * 16, 16)
    return int.from_bytes(spans[index * 16 + 8 : index * 16 + 16], "little")


def load64_big(key: bytes, at: int) -> int:
    """Read eight bytes of a key, most significant first."""
    _check(len(key), at, 8)
    return int.from_bytes(key[at : at + 8], "big")


def copy(target: bytearray, at: int, source: bytearray, start: int, size: int) -> None:
    """Copy `size` bytes from one buffer to another (never to itself: see `move`)."""
    _check(len(target), at, size)
    _check(len(source), start, size)
    target[at : at + size] = source[start : start + size]


def grow(buffer: bytearray, size: int) -> None:
    """Make a buffer at least `size` bytes long. What the new bytes contain is undefined."""
    missing = size - len(buffer)
    if missing > 0:
        buffer.extend(bytes(missing))


def put(target: bytearray, at: int, data: bytes) -> None:
    """Copy a whole bytes object into a buffer."""
    _check(len(target), at, len(data))
    target[at : at + len(data)] = data


def put_part(target: bytearray, at: int, data: bytes, start: int, size: int) -> None:
    """Copy `size` bytes of a bytes object into a buffer, without making a slice."""
    _check(len(target), at, size)
    _check(len(data), start, size)
    target[at : at + size] = data[start : start + size]


def put_text(target: bytearray, at: int, text: str) -> int:
    """Copy a text into a buffer, in UTF-8, if there is room; return the number of bytes it needs.

    Raises: UnicodeEncodeError for half a surrogate pair.
    """
    _check(len(target), at, 0)
    data = str.encode(text)
    if len(data) <= len(target) - at:
        target[at : at + len(data)] = data
    return len(data)


def move(buffer: bytearray, at: int, start: int, size: int) -> None:
    """Copy inside one buffer; the two ranges may overlap."""
    _check(len(buffer), at, size)
    _check(len(buffer), start, size)
    buffer[at : at + size] = buffer[start : start + size]


def repeat(buffer: bytearray, at: int, back: int, size: int) -> None:
    """Copy `size` bytes from `back` bytes before; the ranges may overlap, then the copy repeats."""
    _check(len(buffer), at, size)
    _check(len(buffer), at - back, 0)
    if back < 1:
        raise IndexError(back)
    for place in range(at, at + size):
        buffer[place] = buffer[place - back]


def equal(left: bytearray, at: int, right: bytearray, start: int, size: int) -> bool:
    """Tell whether `size` bytes are the same in both buffers."""
    _check(len(left), at, size)
    _check(len(right), start, size)
    return left[at : at + size] == right[start : start + size]


def is_bytes(buffer: bytearray, at: int, size: int, data: bytes) -> bool:
    """Tell whether a piece of the buffer is exactly these bytes."""
    _check(len(buffer), at, size)
    return size == len(data) and buffer[at : at + size] == data


def common_prefix(buffer: bytearray, at: int, size: int, key: bytes, start: int) -> int:
    """Count how many of `size` bytes of the buffer agree with the key from `start` on."""
    _check(len(buffer), at, size)
    _check(len(key), start, 0)
    size = min(size, len(key) - start)
    for i in range(size):
        if buffer[at + i] != key[start + i]:
            return i
    return size


def cut(buffer: bytearray, at: int, size: int) -> bytes:
    """A piece of the buffer as a bytes object."""
    _check(len(buffer), at, size)
    return bytes(buffer[at : at + size])


def distance(left: int, right: int) -> int:
    """`left - right` of two 64-bit numbers, wrapped into a signed 64-bit number."""
    wrapped = (left - right) & _MASK64
    return wrapped - (1 << 64) if wrapped >> 63 else wrapped


def advance(number: int, delta: int) -> int:
    """`number + delta`, wrapped into an unsigned 64-bit number: undoes `distance`."""
    if not -(1 << 63) <= delta < 1 << 63:
        raise OverflowError(f"{delta} is not a signed 64-bit number")
    return (number + delta) & _MASK64


def negate(magnitude: int) -> int:
    """Minus a magnitude of at most 2**63, which C can hold only as unsigned."""
    return -magnitude


def format_pair(ms: int, seq: int) -> bytes:
    """Two numbers with a dash between them: the text of a stream id."""
    return b"%d-%d" % (ms, seq)


def format_behind(prefix: bytes, number: int) -> bytes:
    """A prefix followed by a number in decimal."""
    return prefix + b"%d" % number


def key_pair(ms: int, seq: int) -> bytes:
    """Two numbers as sixteen bytes, most significant first: the key of a stream id."""
    return ms.to_bytes(8, "big") + seq.to_bytes(8, "big")


def format_int(value: int) -> bytes:
    """A signed number in decimal."""
    return b"%d" % value


def _check(length: int, at: int, size: int) -> None:
    if at < 0 or size < 0 or at > length or size > length - at:
        raise IndexError(f"{size} bytes at {at} do not lie inside a buffer of {length}")


def find_byte(buffer: bytearray, start: int, end: int, char: int) -> int:
    """The position of the first such byte in start <= position < end, or -1."""
    _check(len(buffer), start, end - start)
    return buffer.find(char, start, end)


def put_number(target: bytearray, at: int, value: int) -> int:
    """Write a 64-bit number in decimal; return the position after it."""
    text = b"%d" % value
    put(target, at, text)
    return at + len(text)


def put_hex(target: bytearray, at: int, value: int) -> int:
    """Write a 32-bit number as eight hexadecimal digits; return the position after them."""
    put(target, at, b"%08x" % value)
    return at + 8


def digits(value: int) -> int:
    """The number of decimal digits of a number that is not negative."""
    return len(str(value))


def short_line(buffer: bytearray, at: int, end: int, kind: int) -> int:
    """Read a line of a type and one to three digits, such as `$16\\r\\n`: number << 3 | bytes of the line.

    -1 for any other line, and for an incomplete one.
    """
    _check(len(buffer), at, end - at)
    for size in (1, 2, 3):
        if at + size + 2 >= end:
            return -1
        if buffer[at + 1 + size] == 13:
            digits = bytes(buffer[at + 1 : at + 1 + size])
            short = buffer[at] == kind and digits.isdigit() and (size == 1 or digits[0] != 48)
            return int(digits) << 3 | (size + 3) if short else -1
    return -1


def note_bulks(
    buffer: bytearray, at: int, end: int, spans: bytearray, first: int, most: int
) -> int:
    """Note the spans of up to `most` bulk strings with short sizes, from the span `first` on.

    Stops at a string that is incomplete or has a long size, and when the spans are full; returns the number
    of strings noted.
    """
    _check(len(buffer), at, end - at)
    _check(len(spans), 16 * first, 0)
    noted = 0
    room = len(spans) // 16 - first
    while noted < most and noted < room:
        line = short_line(buffer, at, end, 36)
        if line < 0 or end - at < (line & 7) + (line >> 3) + 2:
            break
        at += line & 7
        store_pair(spans, 16 * (first + noted), at, line >> 3)
        at += (line >> 3) + 2
        noted += 1
    return noted


def put_bulk(target: bytearray, at: int, source: bytearray, start: int, size: int) -> int:
    """Write `$size`, a line end, the bytes, a line end; return the position after them."""
    text = b"$%d\r\n%b\r\n" % (size, cut(source, start, size))
    put(target, at, text)
    return at + len(text)


def put_head(target: bytearray, at: int, kind: int, number: int) -> int:
    """Write a type, a number that is not negative and a line end; return the position after them."""
    text = b"%c%d\r\n" % (kind, number)
    put(target, at, text)
    return at + len(text)


def put_bulk_bytes(target: bytearray, at: int, data: bytes) -> int:
    """As put_bulk, for a bytes object."""
    text = b"$%d\r\n%b\r\n" % (len(data), data)
    put(target, at, text)
    return at + len(text)


def sizes(spans: bytearray, first: int, until: int) -> int:
    """The sum of the sizes of some spans."""
    _check(len(spans), 0, 0)
    return sum(span_size(spans, index) for index in range(first, until))


def is_short_string(
    node: bytearray, at: int, spans: bytearray, index: int, source: bytearray
) -> bool:
    """Tell whether the listpack element at `at` is a string of up to 63 bytes, and equal to a piece."""
    start, size = span_start(spans, index), span_size(spans, index)
    _check(len(node), at, 1)
    _check(len(source), 0, 0)
    return (
        node[at] & 0xC0 == 0x80
        and node[at] & 0x3F == size
        and equal(node, at + 1, source, start, size)
    )


def put_short_string(
    node: bytearray, at: int, spans: bytearray, index: int, source: bytearray
) -> int:
    """Write a piece as a listpack string; return the position after it.

    Writes nothing and returns 0 for a piece of more than 63 bytes, or one that may be a number.
    """
    start, size = span_start(spans, index), span_size(spans, index)
    _check(len(source), start, size)
    _check(len(node), 0, 0)
    if size > 63 or (size and source[start] <= 57):
        return 0
    _check(len(node), at, size + 2)
    node[at] = 0x80 | size
    copy(node, at + 1, source, start, size)
    node[at + 1 + size] = size + 1
    return at + size + 2


def put_small_numbers(node: bytearray, at: int, first: int, second: int, third: int) -> int:
    """Write three listpack numbers of one byte each, with their backlens; return the position after them.

    Writes nothing and returns 0 if a number is below 0 or above 127.
    """
    _check(len(node), 0, 0)
    if not (0 <= first <= 127 and 0 <= second <= 127 and 0 <= third <= 127):
        return 0
    put(node, at, bytes((first, 1, second, 1, third, 1)))
    return at + 6


def _element(node: bytearray, at: int) -> tuple[bytes | int, int] | None:
    """A listpack element and the position behind it; None if there is none that ends inside the node."""
    lead = node[at] if at < len(node) else 0xFF
    if lead > 0xF4:
        return None
    if lead < 0x80:
        head, size = 1, 0
    elif lead < 0xC0:
        head, size = 1, lead & 0x3F
    elif lead < 0xE0:
        head, size = 2, 0
    elif lead < 0xF0:
        head, size = 2, (lead & 0x0F) << 8 | int.from_bytes(node[at + 1 : at + 2], "little")
    elif lead == 0xF0:
        head, size = 5, int.from_bytes(node[at + 1 : at + 5], "little")
    else:
        head, size = 1, 8 if lead == 0xF4 else lead - 0xEF
    content = at + head
    behind = content + size + 1
    for limit in (127, 16382, 2097150, 268435454):
        behind += head + size > limit
    if behind > len(node):
        return None
    if lead < 0x80:
        return lead, behind
    if lead & 0xE0 == 0xC0:
        return ((lead & 0x1F) << 8 | node[at + 1]) - (8192 if lead & 0x10 else 0), behind
    text = bytes(node[content : content + size])
    return (int.from_bytes(text, "little", signed=True) if lead > 0xF0 else text), behind


def plain_entry(node: bytearray, at: int) -> int:
    """Read the head of the entry at `at` in a stream's node if it is plain: live, with the header's names.

    Returns ms << 28 | (seq & 0xFFFFFF) << 4 | bytes of the head. ms and seq are signed distances of up to 32
    and 24 bits. Returns 0 for any other entry, for the end and for damage.
    """
    _check(len(node), at, 0)
    flags = _element(node, at)
    ms = flags and _element(node, flags[1])
    seq = ms and _element(node, ms[1])
    if not (flags and ms and seq) or node[at] != 2:
        return 0
    if isinstance(ms[0], bytes) or isinstance(seq[0], bytes):
        return 0
    if node[flags[1]] == 0xF4 or node[ms[1]] > 0xF2:
        return 0
    return ms[0] << 28 | (seq[0] & 0xFFFFFF) << 4 | (seq[1] - at)


def skip_elements(node: bytearray, at: int, count: int) -> int:
    """The position behind `count` listpack elements; 0 if they do not all end inside the node."""
    _check(len(node), at, 0)
    for _ in range(count):
        found = _element(node, at)
        if found is None:
            return 0
        at = found[1]
    return at


def put_fields(
    target: bytearray, at: int, node: bytearray, names_at: int, place: int, count: int
) -> int:
    """Write `count` names and values, all listpack elements, as bulk strings in turn.

    The names follow each other from `names_at` on, the values from `place` on. If `names_at` is 0, each
    value follows its name. Returns the position after them in the target; 0 if an element is damaged.
    """
    _check(len(target), at, 0)
    _check(len(node), names_at, 0)
    _check(len(node), place, 0)
    for _ in range(count):
        name = _element(node, names_at or place)
        if name is None:
            return 0
        if names_at:
            names_at = name[1]
        else:
            place = name[1]
        value = _element(node, place)
        if value is None:
            return 0
        place = value[1]
        for piece in (name[0], value[0]):
            at = put_bulk_bytes(target, at, piece if isinstance(piece, bytes) else b"%d" % piece)
    return at


def put_bulk_id(target: bytearray, at: int, prefix: bytes, seq: int) -> int:
    """As put_bulk, for a prefix and the digits of a number up to 2**64 - 1."""
    return put_bulk_bytes(target, at, b"%b%d" % (prefix, seq))


def put_id_prefix(prefix: bytearray, ms: int) -> None:
    """Write the digits of an id's milliseconds and the dash; the byte 23 says how many bytes these are."""
    _check(len(prefix), 0, 24)
    put(prefix, 0, b"%d-" % ms)
    prefix[23] = digits(ms) + 1


def put_entry_head(target: bytearray, at: int, prefix: bytearray, seq: int, fields: int) -> int:
    """Write what precedes the fields of an entry: `*2`, its id and `*` twice the number of fields."""
    _check(len(prefix), 0, 24)
    entry_id = b"%b%d" % (cut(prefix, 0, prefix[23]), seq)
    text = b"*2\r\n$%d\r\n%b\r\n*%d\r\n" % (len(entry_id), entry_id, 2 * fields)
    put(target, at, text)
    return at + len(text)


def fold_crc(crc: int, tables: bytearray, buffer: bytearray, start: int, until: int) -> int:
    """Continue a reflected 64-bit CRC over some bytes; persist/rdb/crc64 makes the sixteen tables."""
    _check(len(tables), 0, 32768)
    _check(len(buffer), start, until - start)
    with memoryview(tables) as view, view.cast("Q") as table:
        for byte in buffer[start:until]:
            crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc
