"""Builds values of RDB files byte by byte: ziplists, and streams of all Redis versions."""

from __future__ import annotations

import struct

from tests.support.engine.streams import sid
from tests.support.rdb.whole_files import length, string

NODE = bytes.fromhex("1f000000 0a00 0101 0001 0101 84 74656d70 05 0001 0201 0001 0001 1501 0401 ff")
NODE_KEY = sid("1700000000000-0").key

ZIPLIST_FORMS = [
    (b"\x00", b""),
    (b"\x01a", b"a"),
    (b"\x3f" + b"x" * 63, b"x" * 63),
    (b"\x40\x40" + b"x" * 64, b"x" * 64),
    (b"\x40\x01y", b"y"),
    (b"\x7f\xff" + b"x" * 16383, b"x" * 16383),
    (b"\x80\x00\x00\x40\x00" + b"x" * 16384, b"x" * 16384),
    (b"\x80\x00\x00\x00\x01z", b"z"),
    (b"\xc0\x00\x80", b"-32768"),
    (b"\xd0\x00\x00\x00\x80", b"-2147483648"),
    (b"\xe0" + bytes(7) + b"\x80", b"-9223372036854775808"),
    (b"\xf0\xff\xff\x7f", b"8388607"),
    (b"\xf0\x00\x00\x80", b"-8388608"),
    (b"\xfe\x80", b"-128"),
    *((bytes([0xF1 + n]), b"%d" % n) for n in range(13)),
]


def ziplist_of(*elements: bytes) -> bytes:
    """Build a ziplist from encoded elements, adding the lengths of the previous ones."""
    body = b""
    previous = tail = 0
    for element in elements:
        tail = 10 + len(body)
        head = bytes([previous]) if previous < 254 else b"\xfe" + struct.pack("<I", previous)
        body += head + element
        previous = len(head + element)
    size = 10 + len(body) + 1
    return struct.pack("<IIH", size, tail or 10, len(elements)) + body + b"\xff"


def stream_bytes(
    kind: int = 19,
    nodes: list[tuple[bytes, bytes]] | None = None,
    counters: bytes | None = None,
    groups: bytes = b"\x00",
    producers: bytes | None = None,
) -> bytes:
    """Build a stream; by default with one entry, 1700000000000-0 temp=21, and without producers."""
    rows = [(NODE_KEY, NODE)] if nodes is None else nodes
    data = length(len(rows)) + b"".join(string(k) + string(node) for k, node in rows)
    if counters is None:
        counters = length(len(rows)) + length(1700000000000) + b"\x00"
        if kind >= 19:
            counters += length(1700000000000) + b"\x00" + b"\x00\x00" + length(len(rows))
    if producers is None:
        producers = producers_bytes() if kind >= 26 else b""
    return data + counters + groups + producers


def producers_bytes(
    *producers: tuple[bytes, list[tuple[bytes, str]]],
    duration_s: int = 100,
    size_max: int = 100,
    added: int = 0,
    duplicates: int = 0,
) -> bytes:
    """The producers of a stream: each with its names and the ids of their entries."""
    data = length(duration_s) + length(size_max) + length(len(producers))
    for producer, names in producers:
        data += string(producer) + length(len(names))
        for name, entry_id in names:
            data += string(name) + length(sid(entry_id).ms) + length(sid(entry_id).seq)
    return data + length(added) + length(duplicates)


def group_bytes(
    kind: int,
    pending: list[bytes],
    consumers: list[tuple[bytes, list[bytes]]],
    returned: list[bytes] | None = None,
) -> bytes:
    """One group g that has read everything."""
    data = b"\x01" + string(b"g") + length(1700000000000) + b"\x00"
    if kind >= 19:
        data += length(1)
    data += length(len(pending))
    data += b"".join(row + struct.pack("<q", 1234) + length(3) for row in pending)
    data += length(len(consumers))
    for name, rows in consumers:
        data += string(name) + struct.pack("<q", 5000)
        if kind >= 21:
            data += struct.pack("<q", 4000)
        data += length(len(rows)) + b"".join(rows)
    if kind >= 27:
        data += length(len(returned or [])) + b"".join(returned or [])
    return data
