"""Batches: each write to an increment, preceded by a line with its length and checksum.

    #PSCRC:1:57:8c1f33a0:1042:5c206372\\r\\n   version, bytes, their CRC-32, synced, own CRC-32
    *5\\r\\n$4\\r\\nXADD\\r\\n...                 57 bytes: whole commands

Redis skips lines that begin with #, so it can read these files. For us the line separates damage from a
torn tail. Commands alone cannot: a value with a flipped bit is still a valid command.

`synced` is the number of bytes of this file known to be on disk when the batch was written. In a damaged
file it shows how many bytes were durable.

Only the end of a file can be torn. An incomplete batch with a complete one anywhere after it is damage, and
the file is refused. With `always` this is certain, because a batch is written after the previous one was
synced. With `everysec`, a power cut could leave such a file if the system wrote the blocks out of order. That
file is refused too: the operator has to decide (penstock check --repair), because the later batches may
hold acknowledged writes.

The last number is the CRC-32 of the line's offset in the file, a colon, and the line up to there. The offset
itself is not written. So a line is valid only at the offset where it was written. It is not valid in a copied
block, nor inside a value, unless the client that sent the value knew its exact offset. A valid line is
trusted for the length of its batch, even if the batch is damaged.

A file begins with the line of an empty batch, which is synced before the manifest lists the file. So a file
of ours can be recognised even if a power cut destroyed everything else in it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from penstock.core import memory

HEAD = b"#PSCRC:"
HEAD_BYTES_MAX = 80
_VERSION = 1
_TAIL = rb":(\d{1,18}):([0-9a-f]{8}):(\d{1,18}):([0-9a-f]{8})\r\n"
_LINE = re.compile(HEAD + b"%d" % _VERSION + _TAIL)
_ANY_VERSION = re.compile(HEAD + rb"(\d{1,6}):")
_DAMAGED = re.compile(rb"#[^\n]*\d" + _TAIL)
_OWN_BYTES = 10  # eight digits, CR LF
_FIRST = b"%b%d:" % (HEAD, _VERSION)
_COLON = 58


class Batch:
    """A parsed line. `head_bytes`: the length of the line itself."""

    __slots__ = ("crc", "head_bytes", "size", "synced")

    def __init__(self, head_bytes: int, size: int, crc: int, synced: int) -> None:
        self.head_bytes = head_bytes
        self.size = size
        self.crc = crc
        self.synced = synced


def encode_batch(data: bytes, synced: int, offset: int) -> bytes:
    """The line to write at `offset`, before `data`.

    Every write makes one, so it is put together in one buffer: the offset, which only the checksum needs,
    and the line behind it.
    """
    text = bytearray(2 * HEAD_BYTES_MAX)
    start = memory.put_number(text, 0, offset) + 1
    text[start - 1] = _COLON
    memory.put(text, start, _FIRST)
    at = memory.put_number(text, start + len(_FIRST), len(data)) + 1
    text[at - 1] = _COLON
    at = memory.put_hex(text, at, zlib.crc32(data)) + 1
    text[at - 1] = _COLON
    at = memory.put_number(text, at, synced) + 1
    text[at - 1] = _COLON
    at = memory.put_hex(text, at, zlib.crc32(memory.cut(text, 0, at)))
    memory.put(text, at, b"\r\n")
    return memory.cut(text, start, at + 2 - start)


def _own_crc(line: bytes, offset: int) -> int:
    """The checksum of a line up to the colon before that checksum."""
    return zlib.crc32(b"%d:%s" % (offset, line))


def parse_batch_or_none(line: bytes, offset: int) -> Batch | None:
    """Parse a line; None if it is not ours, was written at another offset, or has a later version."""
    found = _LINE.match(line)
    if found is None or int(found[4], 16) != _own_crc(found[0][:-_OWN_BYTES], offset):
        return None
    return Batch(found.end(), int(found[1]), int(found[2], 16), int(found[3]))


def is_newer(line: bytes) -> bool:
    """Tell whether a line was written by a later version of penstock."""
    found = _ANY_VERSION.match(line)
    return found is not None and int(found[1]) > _VERSION


def is_damaged(line: bytes) -> bool:
    """Tell whether an annotation is a damaged line of a batch: it ends like one but begins differently."""
    return not line.startswith(HEAD) and _DAMAGED.match(line) is not None


def behind_damage(data: bytes, place: int, offset: int = 0) -> int:
    """Where to look for batches after a damaged one: at its end, if its line is valid, else one byte on.

    Values inside the damaged batch are skipped, because they may look like batches. The result may be past
    the end of the data.
    """
    damaged = parse_batch_or_none(data[place : place + HEAD_BYTES_MAX], offset + place)
    return place + 1 if damaged is None else place + damaged.head_bytes + damaged.size


def count_whole(data: bytes, start: int, offset: int = 0) -> int:
    """The number of batches from `start` on with a valid checksum. `offset`: of the data in its file."""
    return sum(1 for _ in _whole(data, start, offset))


def whole_batches(data: bytes, start: int) -> Iterator[int]:
    """The places of the batches from `start` on with a valid checksum."""
    return (place for place, _ in _whole(data, start, 0))


def _whole(data: bytes, start: int, offset: int) -> Iterator[tuple[int, Batch]]:
    """Batches with valid checksums, and their places in the data.

    A line whose `synced` is beyond its own place is part of a value, and so is one inside another batch.
    """
    view = memoryview(data)
    found = _LINE.search(data, start)
    while found is not None:
        place, after = found.span()
        batch = parse_batch_or_none(found[0], offset + place)
        if batch is not None and batch.synced <= offset + place:
            until = after + batch.size
            if until <= len(data) and zlib.crc32(view[after:until]) == batch.crc:
                yield place, batch
                after = until
        found = _LINE.search(data, after)
