"""Finds the valid keys after a damaged value of a snapshot.

    1  walk over the whole file using only the lengths of its values (RdbReader.extents)
    2  read each value after the damage from its own bytes, and leave out those that are refused

        ... | key a | key b, refused | key c | key d | end, checksum
                      ^ reader.place   ^ step 1 finds where c begins

After a damaged length, bytes in the middle of a value would look like keys. So the keys after the damage are
used only if the walk reaches the END operation, and the file ends or commands begin after its checksum.

Cost: reads the file two more times. Holds the places of the keys after the damage, and one value, in memory.
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

_COMMANDS_BEGIN = b"*#\0"  # zeros are a torn end, which Replay handles


@dataclass(slots=True)
class Outline:
    """The rest of a snapshot after a place: keys, unsupported operations, and its end."""

    extents: list[Extent] = field(default_factory=list)
    operations: list[tuple[int, str]] = field(default_factory=list)
    end: int = 0
    is_vouched: bool = False  # the checksum is valid, so the bytes are as they were written


def outline_or_none(source: Source, path: str, place: int) -> Outline | None:
    """The outline from `place` on; None if the walk does not reach the end of the file."""
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
    """Decode the value of a key from its bytes. Raises: CorruptData with the offset in the file."""
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
    """The name of a value type."""
    if kind in rdb_format.STREAM_TYPES:
        return "a stream"
    if kind in rdb_format.LIST_TYPES:
        return "a list"
    return "a string" if kind == rdb_format.STRING else rdb_format.type_name(kind)


class Slices:
    """Reads slices of a file in ascending order. `source` is at `at`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = 0

    def take(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end` (exclusive). Raises: CorruptData if the file became shorter."""
        self.skip_to(start)
        return bytes(self._read(end - start))

    def skip_to(self, place: int) -> None:
        """Skip forward to a place."""
        while self.at < place:
            self._read(min(PIECE_BYTES, place - self.at))

    def _read(self, size: int) -> bytearray:
        piece = bytearray(size)
        if read_into(self.source, memoryview(piece)) < size:
            raise CorruptData("the file became shorter while it was read", self.at)
        self.at += size
        return piece
