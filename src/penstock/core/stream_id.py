"""Stream ids: 128 bits, `ms-seq`, a time and a number within that millisecond.

    1700000000000-3      ms  = 1700000000000  (since 1970)     seq = 3
    key                  00 00 01 8b cf e5 68 00 | 00 00 00 00 00 00 00 03

The key is big-endian: comparing keys as bytes compares ids, and the rax sorts by it.

Accepted texts:

    5-1    complete            5     incomplete: the caller chooses the missing seq
    -  +   smallest, largest   5-*   seq chosen by the server (XADD only)
    (5-1   exclusive: the id after it (start of a range) or before it (end of a range)

`*`, `$` and `>` are not ids: the commands that accept them handle them.

Invariants
  I1  both halves are in 0 .. 2**64-1; next() of the largest id and previous() of 0-0 raise an error.
  I2  a < b as ids exactly when a.key < b.key as bytes.

Redis reads the halves with strtoull: it accepts a leading blank, a plus sign, leading zeros and, in the seq,
minus zero, and it stops at a NUL. This module does the same, so that an entry stored under such a text is
found by the same text. Plain digits, the usual case, take a fast path.

Cost: parse and format about 30 ns compiled.
"""

from __future__ import annotations

from penstock.core import memory, spans
from penstock.errors import InvalidID, NoIDAbove, NoIDBelow, shown

MAX64 = 2**64 - 1
_MAX64 = MAX64
TEXT_BYTES_MAX = 127  # the size of Redis's buffer; longer texts are not ids
_TEXT_BYTES_MAX = TEXT_BYTES_MAX
_BLANKS = b" \t\n\v\f\r"


class StreamID:
    """One id: an immutable, ordered value.

    Text: parse, parse_range_start, parse_range_end (functions below), str(), text.
    Neighbours: next, previous. As a key: key, from_key.
    """

    __slots__ = ("ms", "seq")

    def __init__(self, ms: int, seq: int) -> None:
        if not (0 <= ms <= MAX64 and 0 <= seq <= MAX64):
            raise OverflowError(f"{ms}-{seq} is not a pair of 64-bit numbers")
        self.ms = ms
        self.seq = seq

    @property
    def key(self) -> bytes:
        """The sixteen bytes that the rax sorts by."""
        return memory.key_pair(self.ms, self.seq)

    @property
    def text(self) -> bytes:
        """`ms-seq` in bytes."""
        return memory.format_pair(self.ms, self.seq)

    def next(self) -> StreamID:
        """The smallest id above this one. Raises: OverflowError above the largest."""
        if self.seq != _MAX64:
            return make(self.ms, self.seq + 1)
        if self.ms != _MAX64:
            return make(self.ms + 1, 0)
        raise OverflowError("there is no stream id above the largest")

    def previous(self) -> StreamID:
        """The largest id below this one. Raises: OverflowError below 0-0."""
        if self.seq != 0:
            return make(self.ms, self.seq - 1)
        if self.ms != 0:
            return make(self.ms - 1, _MAX64)
        raise OverflowError("there is no stream id below 0-0")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamID):
            return NotImplemented
        return self.ms == other.ms and self.seq == other.seq

    def __lt__(self, other: StreamID) -> bool:
        return compare(self.ms, self.seq, other.ms, other.seq) < 0

    def __le__(self, other: StreamID) -> bool:
        return compare(self.ms, self.seq, other.ms, other.seq) <= 0

    def __gt__(self, other: StreamID) -> bool:
        return compare(self.ms, self.seq, other.ms, other.seq) > 0

    def __ge__(self, other: StreamID) -> bool:
        return compare(self.ms, self.seq, other.ms, other.seq) >= 0

    def __hash__(self) -> int:
        return hash((self.ms, self.seq))

    def __str__(self) -> str:
        return f"{self.ms}-{self.seq}"

    def __repr__(self) -> str:
        return f"StreamID({self.ms}, {self.seq})"

    def __reduce__(self) -> tuple[type[StreamID], tuple[int, int]]:
        return StreamID, (self.ms, self.seq)


def make(ms: int, seq: int) -> StreamID:
    """An id from two numbers that are known to be in range; for hot paths."""
    made = StreamID.__new__(StreamID)
    made.ms = ms
    made.seq = seq
    return made


SMALLEST = StreamID(0, 0)
LARGEST = StreamID(MAX64, MAX64)


def compare(left_ms: int, left_seq: int, right_ms: int, right_seq: int) -> int:
    """-1, 0 or 1 as the left id is below, equal to or above the right one."""
    if left_ms != right_ms:
        return -1 if left_ms < right_ms else 1
    if left_seq != right_seq:
        return -1 if left_seq < right_seq else 1
    return 0


def from_key(key: bytes) -> StreamID:
    """The id of a sixteen-byte key."""
    if len(key) != 16:
        raise ValueError(f"a stream id's key has 16 bytes, not {len(key)}")
    return make(memory.load64_big(key, 0), memory.load64_big(key, 8))


def parse(text: bytes, missing_seq: int = 0) -> StreamID:
    """Parse an id; `-` and `+` are not ids here. Raises: InvalidID."""
    return parse_span(bytearray(text), 0, len(text), missing_seq)


def parse_span(buffer: bytearray, start: int, size: int, missing_seq: int) -> StreamID:
    """As `parse`, for a text inside a buffer."""
    key = spans.id_key(buffer, start, size, missing_seq)
    return from_key(key) if key else _parse_odd(memory.cut(buffer, start, size), missing_seq)


def parse_key(buffer: bytearray, start: int, size: int) -> bytes:
    """As `parse_span`, for the key of an id in a rax."""
    key = spans.id_key(buffer, start, size, 0)
    return key if key else _parse_odd(memory.cut(buffer, start, size), 0).key


def _parse_odd(text: bytes, missing_seq: int) -> StreamID:
    """The slow path: everything that strtoull accepts and the fast path does not."""
    if len(text) > _TEXT_BYTES_MAX:
        raise InvalidID(f"a stream id has at most {_TEXT_BYTES_MAX} bytes, not {len(text)}")
    text = text.split(b"\0", 1)[0]
    ms_text, dash, seq_text = text.partition(b"-")
    ms = _parse_half(ms_text)
    return StreamID(ms, _parse_half(seq_text) if dash else missing_seq)


def _parse_half(text: bytes) -> int:
    """One half as Redis reads it: a plain number, else the result of strtoull."""
    digits = text.lstrip(_BLANKS)
    sign = digits[:1]
    if sign in (b"+", b"-"):
        digits = digits[1:]
    if not digits or digits.strip(b"0123456789"):
        raise InvalidID(f"not a stream id: '{shown(text)}'")
    value = int(digits)
    if value > _MAX64:
        raise InvalidID(f"not a stream id: '{shown(text)}'")
    if sign != b"-":
        return value
    # Redis refuses a plain negative number. Other forms (-0, -01) reach strtoull, which wraps them around.
    if text == b"-%d" % value and 0 < value <= 2**63:
        raise InvalidID(f"not a stream id: '{shown(text)}'")
    return (_MAX64 + 1 - value) & _MAX64


def parse_range_start(text: bytes) -> StreamID:
    """The first id of a range: `-`, `+`, an id, or `(` and an excluded id. Raises: InvalidID, NoIDAbove."""
    if text[:1] == b"(" and len(text) > 1:
        edge = parse(text[1:], 0)
        if edge == LARGEST:
            raise NoIDAbove("no id is above the largest")
        return edge.next()
    return parse_edge(text, 0)


def parse_range_end(text: bytes) -> StreamID:
    """The last id of a range: `-`, `+`, an id, or `(` and an excluded id. Raises: InvalidID, NoIDBelow."""
    if text[:1] == b"(" and len(text) > 1:
        edge = parse(text[1:], MAX64)
        if edge == SMALLEST:
            raise NoIDBelow("no id is below 0-0")
        return edge.previous()
    return parse_edge(text, MAX64)


def parse_edge(text: bytes, missing_seq: int) -> StreamID:
    """An id, or `-` for the smallest and `+` for the largest. Raises: InvalidID."""
    if len(text) <= _TEXT_BYTES_MAX:
        word = text.split(b"\0", 1)[0]
        if word == b"-":
            return SMALLEST
        if word == b"+":
            return LARGEST
    return parse(text, missing_seq)
