"""The sound keys behind a damaged value of a snapshot.

    1  walk over the whole file by the shape of its values alone (RdbReader.extents)
    2  read each value behind the damage from its own bytes, and leave out those that are refused

        ... | key a | key b, refused | key c | key d | end, checksum
                      ^ reader.place   ^ step 1 finds where c begins

A damaged length leads a walk astray: bytes in the middle of a value would look like keys. So nothing behind
the damage is believed unless the walk comes to the operation that ends a file, and behind its checksum the
file ends or commands begin.

Cost: two more readings of the file. In memory are the places of the keys behind the damage, and one value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.errors import CorruptData
from penstock.persist.disk import Source
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb import value as rdb_value
from penstock.persist.rdb.input import RdbInput
from penstock.persist.rdb.reader import Extent, RdbReader
from penstock.persist.rdb.value import Value, ValueLimits
from penstock.persist.reading import PIECE_BYTES, read_into

_COMMANDS_BEGIN = b"*#\0"  # zeros: a torn end, which Replay judges


@dataclass(slots=True)
class Outline:
    """What lies behind a place of a snapshot: keys, operations that we cannot keep, and where it ends."""

    extents: list[Extent] = field(default_factory=list)
    operations: list[tuple[int, str]] = field(default_factory=list)
    end: int = 0
    is_vouched: bool = False  # the checksum is right: the bytes are those that were written


def outline_or_none(source: Source, path: str, place: int) -> Outline | None:
    """The outline from a place on; None if the shape of the file does not lead to its end."""
    outline = Outline()
    reader = RdbReader(source, path, skip_foreign=True)
    try:
        outline.extents = [extent for extent in reader.extents() if extent.place >= place]
    except CorruptData:
        return None
    outline.operations = [found for found in reader.skipped if found[0] >= place]
    outline.end = reader.offset
    outline.is_vouched = reader.vouched
    behind = bytearray(reader.rest()[:1])
    if not behind:
        behind = bytearray(1)
        behind = behind[: read_into(source, memoryview(behind))]
    return outline if not behind or behind[0] in _COMMANDS_BEGIN else None


def value_of(raw: bytes, extent: Extent, limits: ValueLimits) -> Value:
    """The value of a key, from its own bytes. Raises: CorruptData, with the place in the file."""
    refusal = rdb_value.refusal_or_none(extent.kind)
    if refusal is not None:
        raise CorruptData(refusal, extent.place)
    source = RdbInput(None, payload=raw)
    try:
        value = rdb_value.read_value(source, extent.kind, limits, deep=True)
    except CorruptData as error:
        raise CorruptData(error.what, extent.start + error.offset) from None
    if source.at != source.end:
        raise CorruptData("the value ends before its bytes do", extent.start + source.at)
    return value


def kind_name(kind: int) -> str:
    """What people call a value of a type."""
    if kind in rdb_format.STREAM_TYPES:
        return "a stream"
    if kind in rdb_format.LIST_TYPES:
        return "a list"
    return "a string" if kind == rdb_format.STRING else rdb_format.type_name(kind)


class Slices:
    """Pieces of a file, in the order in which they lie there. `source` is at `at`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = 0

    def take(self, start: int, end: int) -> bytes:
        """The bytes from `start` to before `end`. Raises: CorruptData if the file has become shorter."""
        self.skip_to(start)
        return bytes(self._read(end - start))

    def skip_to(self, place: int) -> None:
        """Go on at a place behind what was read."""
        while self.at < place:
            self._read(min(PIECE_BYTES, place - self.at))

    def _read(self, size: int) -> bytearray:
        piece = bytearray(size)
        if read_into(self.source, memoryview(piece)) < size:
            raise CorruptData("the file became shorter while it was read", self.at)
        self.at += size
        return piece
