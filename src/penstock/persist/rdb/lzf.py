# cython: wraparound=False
"""LZF: the fast compression of Redis's snapshots.

    abcabcabcabcx  ->  02 a b c | e0 00 02 | 00 x           13 bytes in 9
                       \\ 3 literals           \\ 1 literal
                                   \\ 9 bytes, from 3 back

    000LLLLL               L + 1 bytes follow as they are
    LLLooooo oooooooo      L + 2 bytes from o + 1 bytes back; L is 1 to 6
    111ooooo LLLLLLLL oooooooo      as before, L + 9 bytes

A repetition may overlap the bytes that it writes, as above. One pass finds repetitions: a table remembers for
each hash of three bytes their last position. Positions in the table keep rising from call to call, so the
table need not be cleared: positions below the one at which a call started belong to earlier calls.

The choice of repetitions differs from Redis's. The format leaves it free, and every reader reads both.

Invariants
  Z1  decompress writes exactly the promised bytes, or raises: it reads nothing outside of its input, and
      copies only bytes that it has written.
  Z2  a promise of more than 88 times the input is refused before anything is allocated: three bytes expand
      to at most 264.

Cost: compressing takes 3 to 8 ns per byte, more if less is repeated; decompressing 0.3 to 1 (compiled).
"""

from __future__ import annotations

from penstock.core import memory
from penstock.errors import CorruptData
from penstock.persist.rdb import lzf_bytes

RATIO_MAX = 88

_RATIO_MAX = RATIO_MAX
_LITERALS_MAX = 32
_DISTANCE_MAX = 8192
_MATCH_MAX = 264
_HASH_BITS = 13
_HASH_SHIFT = 32 - _HASH_BITS
_HASH_FACTOR = 0x9E3779B1
_MASK32 = 0xFFFFFFFF
_BASE_MAX = 1 << 30  # positions and a string of up to 1 GiB fit 32 bits


def decompress(source: bytearray, start: int, size: int, promised: int) -> bytearray:
    """Decompress `size` bytes of a buffer to `promised` bytes. Raises: CorruptData (Z1, Z2)."""
    if start < 0 or size < 0 or start > len(source) - size:
        raise IndexError(f"{size} bytes at {start}, in a buffer of {len(source)}")
    if promised < 0 or promised > size * _RATIO_MAX:
        raise CorruptData(f"LZF: {size} bytes cannot stand for {promised}", 0)
    target = bytearray(promised)
    if lzf_bytes.expand(source, start, size, target) == promised:
        return target
    at = start
    end = start + size
    out = 0
    while at < end:
        control = source[at]
        at += 1
        if control < _LITERALS_MAX:
            control += 1
            if control > end - at or control > promised - out:
                raise CorruptData(f"LZF: {control} literal bytes do not fit", at - 1 - start)
            memory.copy(target, out, source, at, control)
            at += control
            out += control
            continue
        length = (control >> 5) + 2
        if length == 9 and at < end:
            length += source[at]
            at += 1
        if at >= end:
            raise CorruptData("LZF: the input ends inside of a repetition", at - start)
        back = ((control & 0x1F) << 8 | source[at]) + 1
        at += 1
        if back > out or length > promised - out:
            raise CorruptData(
                f"LZF: {length} bytes from {back} back, at {out} of {promised}", at - start
            )
        memory.repeat(target, out, back, length)
        out += length
    if out != promised:
        raise CorruptData(f"LZF: {out} bytes instead of {promised}", size)
    return target


class Compressor:
    """The table of positions, kept from one call to the next."""

    __slots__ = ("_base", "_table")

    def __init__(self) -> None:
        self._table = bytearray(4 << _HASH_BITS)
        self._base = 1

    def compress(
        self, source: bytearray, start: int, size: int, target: bytearray, room: int
    ) -> int:
        """Compress a piece of one buffer to the start of another; 0 if the result exceeds `room`.

        The caller chooses `room`: Redis wants to save at least four bytes.
        """
        if start < 0 or size < 0 or start > len(source) - size:
            raise IndexError(f"{size} bytes at {start}, in a buffer of {len(source)}")
        if size >= _BASE_MAX:
            return 0
        if self._base > _BASE_MAX:
            self._table = bytearray(len(self._table))
            self._base = 1
        out = self._compress(source, start, size, target, min(room, len(target)))
        self._base += size
        return out

    def _compress(
        self, source: bytearray, start: int, size: int, target: bytearray, room: int
    ) -> int:
        table = self._table
        base = self._base
        shift = base - start  # from a position in the source to a number in the table
        end = start + size
        at = start
        pending = start  # literals from here on are not written yet
        out = 0
        while at < end - 3:
            word = memory.load32(source, at) & 0xFFFFFF
            slot = (word * _HASH_FACTOR & _MASK32) >> _HASH_SHIFT << 2
            seen = memory.load32(table, slot)
            memory.store32(table, slot, at + shift)
            # Compared before checking that the position belongs to this call: that check is unpredictable,
            # but three bytes nearly always differ (random fields: 6.5 ns per byte become 5.6).
            place = max(seen - shift, start)
            back = at - place
            if (
                memory.load32(source, place) & 0xFFFFFF != word
                or seen < base
                or back > _DISTANCE_MAX
            ):
                at += 1
                continue
            length = 3
            most = min(end - at, _MATCH_MAX)
            while length < most and source[place + length] == source[at + length]:
                length += 1
            if out + _literal_bytes(at - pending) + 3 > room:
                return 0
            out = _put_literals(source, pending, at, target, out)
            out = _put_match(target, out, back - 1, length - 2)
            at += length
            pending = at
            if at < end - 3:
                # The position before: fields of one width repeat where the last repetition ended.
                word = memory.load32(source, at - 1) & 0xFFFFFF
                slot = (word * _HASH_FACTOR & _MASK32) >> _HASH_SHIFT << 2
                memory.store32(table, slot, at - 1 + shift)
        if out + _literal_bytes(end - pending) > room:
            return 0
        return _put_literals(source, pending, end, target, out)


def _literal_bytes(count: int) -> int:
    """The size of this many bytes as literals."""
    return count + (count + 31 >> 5)


def _put_literals(source: bytearray, at: int, until: int, target: bytearray, out: int) -> int:
    """Write literal bytes; return the position after them."""
    while at < until:
        run = min(until - at, _LITERALS_MAX)
        target[out] = run - 1
        memory.copy(target, out + 1, source, at, run)
        at += run
        out += run + 1
    return out


def _put_match(target: bytearray, out: int, back: int, length: int) -> int:
    """Write a repetition, both numbers in their stored form; return the position after it."""
    if length < 7:
        target[out] = length << 5 | back >> 8
    else:
        target[out] = 0xE0 | back >> 8
        out += 1
        target[out] = length - 7
    target[out + 1] = back & 0xFF
    return out + 2
