"""Reads a file from start to end in pieces."""

from __future__ import annotations

from penstock.persist.disk import Disk, Source

PIECE_BYTES = 1 << 20


def read_into(source: Source, view: memoryview) -> int:
    """Fill a buffer, with several reads if they are short; return the number of bytes read."""
    filled = 0
    while filled < len(view):
        count = source.readinto(view[filled:])
        if not count:
            break
        filled += count
    return filled


def read_all(disk: Disk, path: str, offset: int = 0, size_max: int | None = None) -> bytes:
    """The bytes of a file from `offset` on, at most `size_max`. The caller knows that they fit in memory."""
    size = max(0, disk.size(path) - offset)
    buffer = bytearray(size if size_max is None else min(size, size_max))
    source = disk.read(path, offset)
    try:
        return bytes(buffer[: read_into(source, memoryview(buffer))])
    finally:
        source.close()


class Joined:
    """A source whose first bytes were read before and are returned again."""

    def __init__(self, first: bytes, source: Source) -> None:
        self._first = first
        self._source = source

    def readinto(self, buffer: memoryview, /) -> int | None:
        """See Source."""
        if not self._first:
            return self._source.readinto(buffer)
        count = min(len(buffer), len(self._first))
        buffer[:count] = self._first[:count]
        self._first = self._first[count:]
        return count

    def close(self) -> None:
        """See Source."""
        self._source.close()
