"""Encodes rows as MessagePack blobs, and builds the commands of an exactly-once sink."""

from __future__ import annotations

from collections.abc import Sequence

Row = Sequence[bytes | str]


def text_of(text: bytes | str) -> bytes:
    """Encode a string in the shortest form."""
    data = text.encode() if isinstance(text, str) else text
    size = len(data)
    if size < 32:
        return bytes([0xA0 | size]) + data
    for lead, width in ((0xD9, 1), (0xDA, 2), (0xDB, 4)):
        if size < 256**width:
            return bytes([lead]) + size.to_bytes(width, "big") + data
    raise ValueError("too long for a text")


def array_of(items: Sequence[bytes]) -> bytes:
    """Encode an array of encoded items in the shortest form."""
    count = len(items)
    if count < 16:
        head = bytes([0x90 | count])
    elif count < 2**16:
        head = b"\xdc" + count.to_bytes(2, "big")
    else:
        head = b"\xdd" + count.to_bytes(4, "big")
    return head + b"".join(items)


def blob_of(*rows: Row) -> bytes:
    """A blob of these rows."""
    return array_of([array_of([text_of(text) for text in row]) for row in rows])


def append_batch(batch: int, *keys: str, trim: str = "") -> list[bytes | str | int]:
    """The arguments of PENSTOCK APPENDBATCH: record, stream and staging keys, then options."""
    return ["PENSTOCK", "APPENDBATCH", batch, len(keys), *keys, *trim.split()]
