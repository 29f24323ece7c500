"""Batches: what is written to an increment at once, with a line before it that vouches for it.

    #PSCRC:1:57:8c1f33a0:1042:5c206372\\r\\n   version, bytes, their CRC-32, synced, own CRC-32
    *5\\r\\n$4\\r\\nXADD\\r\\n...                 57 bytes: whole commands

To Redis a line that begins with # is an annotation, which it skips, so it reads these files as they are. To
us it tells damage from a torn tail, which the commands alone cannot: a flipped bit inside of a value would
still be a command.

`synced` is how many bytes of this file were known to be on disk when the batch was written. It tells people
how much of a damaged file had been promised.

Only the end of a file can be torn. A batch that is not whole, with a whole one somewhere after it, is
damage, and the file is refused. With `always` that is certain: a batch is written after the one before it
was synced. With `everysec` a power cut could leave such a file, if the system wrote the blocks in another
order. Then too a person has to decide (penstock check --repair), because those batches may hold what
somebody was promised.

The last number is the CRC-32 of the place of the line in its file, a colon, and the line up to there. The
place itself is not written. So a line counts only where it was written: not where a block was copied to, and
not inside of a value, unless whoever sent it knew the very byte at which it would come to stand. Such a line
is believed: how long its batch is, even where the batch is damaged.

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
_TAIL = rb":(\d{1,18}):([0-9a-f]{8}):(\d{1,18}):([0-9a-f]{8})\r\n"
_LINE = re.compile(HEAD + b"%d" % _VERSION + _TAIL)
_ANY_VERSION = re.compile(HEAD + rb"(\d{1,6}):")
_DAMAGED = re.compile(rb"#[^\n]*\d" + _TAIL)
_OWN_BYTES = 10  # eight digits, CR LF


class Batch:
    """One line, read. `head_bytes`: how long it is itself."""

    __slots__ = ("crc", "head_bytes", "size", "synced")

    def __init__(self, head_bytes: int, size: int, crc: int, synced: int) -> None:
        self.head_bytes = head_bytes
        self.size = size
        self.crc = crc
        self.synced = synced


def encode_batch(data: bytes, synced: int, offset: int) -> bytes:
    """The line that goes before some commands, at a place of its file."""
    line = b"%s%d:%d:%08x:%d:" % (HEAD, _VERSION, len(data), zlib.crc32(data), synced)
    return line + b"%08x\r\n" % _own_crc(line, offset)


def _own_crc(line: bytes, offset: int) -> int:
    """Of a line up to the colon before its own checksum."""
    return zlib.crc32(b"%d:%s" % (offset, line))


def parse_batch_or_none(line: bytes, offset: int) -> Batch | None:
    """Read a line; None if it is none of ours, not written at that place, or of a version to come."""
    found = _LINE.match(line)
    if found is None or int(found[4], 16) != _own_crc(found[0][:-_OWN_BYTES], offset):
        return None
    return Batch(found.end(), int(found[1]), int(found[2], 16), int(found[3]))


def is_newer(line: bytes) -> bool:
    """Tell whether a line vouches for a batch in a way that only later versions understand."""
    found = _ANY_VERSION.match(line)
    return found is not None and int(found[1]) > _VERSION


def is_damaged(line: bytes) -> bool:
    """Tell whether an annotation was a batch's line once: it ends like one, but does not begin like one."""
    return not line.startswith(HEAD) and _DAMAGED.match(line) is not None


def behind_damage(data: bytes, place: int, offset: int = 0) -> int:
    """Where to look for batches behind a place where one is wrong: if its line is right, where it ends.

    The values inside of it are somebody's, and may look like batches. The result may be behind the data.
    """
    damaged = parse_batch_or_none(data[place : place + HEAD_BYTES_MAX], offset + place)
    return place + 1 if damaged is None else place + damaged.head_bytes + damaged.size


def count_whole(data: bytes, start: int, offset: int = 0) -> int:
    """How many batches behind a place have a right checksum. `offset`: where the data begin in their file."""
    return sum(1 for _ in _whole(data, start, offset))


def whole_batches(data: bytes, start: int) -> Iterator[int]:
    """Where batches begin, from a place of a file on, whose checksums are right."""
    return (place for place, _ in _whole(data, start, 0))


def _whole(data: bytes, start: int, offset: int) -> Iterator[tuple[int, Batch]]:
    """Batches whose checksums are right, and where they are in the data.

    One that claims more to be synced than there was before it is no batch but somebody's value. Those that
    lie within another are values too.
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
