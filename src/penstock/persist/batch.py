"""Batches: what is written to an increment at once, with a line before it that vouches for it.

    #PSCRC:1:57:8c1f33a0:1042\\r\\n          version, bytes that follow, their CRC-32, what was synced before
    *5\\r\\n$4\\r\\nXADD\\r\\n...               57 bytes: whole commands

To Redis a line that begins with # is an annotation, which it skips, so it reads these files as they are. To
us it tells damage from a torn tail, which the commands alone cannot: a flipped bit inside of a value would
still be a command.

`synced` is how many bytes of this file were known to be on disk when the batch was written. Up to the largest
such number nothing can be torn: what is wrong there is damage. Behind it a power cut may have left anything,
in any order, and none of it was ever promised to anybody: from the first batch there that is not whole, the
rest of the file goes.

A file begins with the line of an empty batch, synced before the manifest names it: so a file of ours is known
as such even when a power cut has left nothing else of it in one piece.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

HEAD = b"#PSCRC:"
HEAD_BYTES_MAX = 80
_VERSION = 1
_LINE = re.compile(rb"#PSCRC:(\d{1,6}):(\d{1,18}):([0-9a-f]{8}):(\d{1,18})\r\n")
_NEXT = re.compile(rb"#PSCRC:\d{1,6}:\d{1,18}:[0-9a-f]{8}:\d{1,18}\r\n")


class Batch:
    """One line, read. `head_bytes`: how long it is itself."""

    __slots__ = ("crc", "head_bytes", "size", "synced")

    def __init__(self, head_bytes: int, size: int, crc: int, synced: int) -> None:
        self.head_bytes = head_bytes
        self.size = size
        self.crc = crc
        self.synced = synced


def encode_batch(data: bytes, synced: int) -> bytes:
    """The line that goes before some commands."""
    return b"%s%d:%d:%08x:%d\r\n" % (HEAD, _VERSION, len(data), zlib.crc32(data), synced)


def parse_batch_or_none(line: bytes) -> Batch | None:
    """Read a line; None if it is none of ours, or of a version to come."""
    found = _LINE.match(line)
    if found is None or int(found[1]) != _VERSION:
        return None
    return Batch(found.end(), int(found[2]), int(found[3], 16), int(found[4]))


def is_newer(line: bytes) -> bool:
    """Tell whether a line vouches for a batch in a way that only later versions understand."""
    found = _LINE.match(line)
    return found is not None and int(found[1]) > _VERSION


def synced_after(data: bytes, start: int, offset: int = 0) -> int:
    """The largest `synced` that a whole batch behind a place claims; 0 if there is none.

    `offset`: where the data begin in their file. A batch that claims more than what is before itself is
    none of ours: it stands inside of a value.
    """
    most = 0
    for found in _NEXT.finditer(data, start):
        batch = parse_batch_or_none(data[found.start() : found.end()])
        if batch is None or not most < batch.synced <= offset + found.start():
            continue
        until = found.end() + batch.size
        if until <= len(data) and zlib.crc32(data[found.end() : until]) == batch.crc:
            most = batch.synced
    return most


def whole_batches(data: bytes, start: int) -> Iterator[int]:
    """Where batches begin, from a place of a file on, whose checksums are right.

    One that claims more to be synced than there was before it is no batch but somebody's value. Those that
    lie within another are values too.
    """
    view = memoryview(data)
    found = _NEXT.search(data, start)
    while found is not None:
        batch = parse_batch_or_none(found[0])
        after = found.end()
        if batch is not None and batch.synced <= found.start():
            until = after + batch.size
            if until <= len(data) and zlib.crc32(view[after:until]) == batch.crc:
                yield found.start()
                after = until
        found = _NEXT.search(data, after)
