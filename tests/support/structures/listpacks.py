"""Values at the limits of every listpack encoding, and functions that build listpacks."""

from __future__ import annotations

from penstock.core import listpack

# The smallest and largest value of each of the six integer encodings, and the next one beyond.
EDGE_INTEGERS = sorted(
    {0, 1, -1}
    | {2**bits + step for bits in (7, 12, 15, 23, 31) for step in (-1, 0, 1)}
    | {-(2**bits) + step for bits in (7, 12, 15, 23, 31) for step in (-1, 0, 1)}
    | {2**63 - 2, 2**63 - 1, -(2**63) + 1, -(2**63)}
)

# Texts that look like numbers, but are not the canonical form of a 64-bit integer.
NOT_INTEGERS = [
    b"",
    b"-",
    b"+",
    b"-0",
    b"00",
    b"01",
    b"-01",
    b"007",
    b"+1",
    b" 1",
    b"1 ",
    b"1\0",
    b"\0",
    b"1.0",
    b"1e3",
    b"0x1",
    b"--1",
    b"1-",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"9999999999999999999",
    b"-9999999999999999999",
    b"10000000000000000000",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-10000000000000000000",
    b"1234567890123456789a",
    b"/1",
    b":1",
    "\N{FULLWIDTH DIGIT ONE}".encode(),
]

# The lengths at which the encoding of a string, or the size of its backlen, changes.
EDGE_STRING_SIZES = [0, 1, 62, 63, 64, 65, 125, 126, 127, 4095, 4096]
EDGE_STRING_SIZES += [16376, 16377, 16378, 16379, 2097145, 2097146, 2097147]


def pack(*elements: int | bytes) -> bytearray:
    """A listpack of these elements."""
    lp = listpack.new()
    for element in elements:
        if isinstance(element, int):
            listpack.append_int(lp, element)
        else:
            listpack.append(lp, element)
    return lp


def craft(count: int, body: bytes) -> bytes:
    """A header, these bytes and an end byte: for listpacks that no sequence of edits produces."""
    total = listpack.HEADER_BYTES + len(body) + 1
    return total.to_bytes(4, "little") + count.to_bytes(2, "little") + body + b"\xff"
