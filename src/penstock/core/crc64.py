"""The checksum of snapshots: CRC-64 with Jones's polynomial, bit-reflected, as Redis computes it.

    update(0, b"123456789")  ->  e9c6d914c4b8d9ca          nothing is inverted at either end

A CRC is the rest of a division of polynomials, and dividing is shifting. The rest after one more byte depends
on that byte and on the eight bits that it pushes out: a table of 256 answers. Eight tables, the k-th telling
what a byte does that k more bytes follow, take eight bytes at a time ("slicing by 8"):

    crc ^ eight bytes  =  b0 b1 b2 b3 b4 b5 b6 b7        (little-endian)
    next crc           =  T7[b0] ^ T6[b1] ^ ... ^ T0[b7]

The eight loads do not wait for each other; that is where the speed comes from. The tables lie in one bytearray
of 16 KiB, table k from byte 2048 k on, and are made at import: 2,304 steps, under a millisecond.

Cost: about 0.7 ns a byte compiled.
"""

from __future__ import annotations

from penstock.core import memory

_POLYNOMIAL = 0x95AC9329AC4BC9B5  # 0xad93d23594c935a9, the lowest power in the highest bit
_TABLE_BYTES = 2048


def _make_tables() -> bytearray:
    first = [0]
    rest = _POLYNOMIAL  # what the single bit 0x80 leaves
    single = {0x80: rest}
    for shift in range(6, -1, -1):
        rest = rest >> 1 ^ (_POLYNOMIAL if rest & 1 else 0)
        single[1 << shift] = rest
    for byte in range(1, 256):
        low = byte & -byte
        first.append(single[low] ^ first[byte ^ low])
    tables = [first]
    for _ in range(7):
        tables.append([rest >> 8 ^ first[rest & 0xFF] for rest in tables[-1]])
    return bytearray(b"".join(rest.to_bytes(8, "little") for table in tables for rest in table))


_TABLES = _make_tables()


def update(crc: int, buffer: bytearray, start: int, until: int) -> int:
    """The checksum `crc` continued over the bytes from `start` up to `until`."""
    if start < 0 or until > len(buffer):
        raise IndexError(f"bytes {start} to {until}, in a buffer of {len(buffer)}")
    tables = _TABLES
    at = start
    while until - at >= 8:
        crc = crc ^ memory.load64(buffer, at)
        crc = (
            memory.load64(tables, 14336 + ((crc & 0xFF) << 3))
            ^ memory.load64(tables, 12288 + ((crc >> 8 & 0xFF) << 3))
            ^ memory.load64(tables, 10240 + ((crc >> 16 & 0xFF) << 3))
            ^ memory.load64(tables, 8192 + ((crc >> 24 & 0xFF) << 3))
            ^ memory.load64(tables, 6144 + ((crc >> 32 & 0xFF) << 3))
            ^ memory.load64(tables, 4096 + ((crc >> 40 & 0xFF) << 3))
            ^ memory.load64(tables, _TABLE_BYTES + ((crc >> 48 & 0xFF) << 3))
            ^ memory.load64(tables, (crc >> 56) << 3)
        )
        at += 8
    while at < until:
        crc = crc >> 8 ^ memory.load64(tables, ((crc ^ buffer[at]) & 0xFF) << 3)
        at += 1
    return crc
