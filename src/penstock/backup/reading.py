"""Reads a backup from start to end with the reader that a server uses, to prove that it can be restored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from penstock.backup.note import BackupFailed
from penstock.core.stream import Stream
from penstock.errors import CorruptData
from penstock.persist.disk import Disk, Source, reason
from penstock.persist.rdb.reader import RdbReader


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup holds. `server`: the name and version of the program that wrote it."""

    size: int
    sha256: str
    keys: int
    streams: int
    entries: int
    server: str


class _Hashed:
    """A source that also computes a checksum of everything that is read."""

    def __init__(self, source: Source, on_bytes: Callable[[int], None]) -> None:
        self._source = source
        self._on_bytes = on_bytes
        self._sum = hashlib.sha256()

    def readinto(self, buffer: memoryview, /) -> int | None:
        """See Source."""
        count = self._source.readinto(buffer)
        if count:
            self._sum.update(buffer[:count])
            self._on_bytes(count)
        return count

    def close(self) -> None:
        """See Source."""
        self._source.close()

    def hexdigest(self) -> str:
        """The checksum so far."""
        return self._sum.hexdigest()


def read_contents(disk: Disk, path: str, on_bytes: Callable[[int], None]) -> Contents:
    """Read and check a snapshot. Raises: BackupFailed if it is damaged or cannot be read."""
    try:
        size = disk.size(path)
        source = _Hashed(disk.read(path), on_bytes)
    except OSError as error:
        raise BackupFailed(reason(error)) from None
    try:
        reader = RdbReader(source, path)
        keys = streams = entries = 0
        for item in reader.items():
            keys += 1
            if isinstance(item.value, Stream):
                streams += 1
                entries += item.value.length
        if reader.offset != size:
            raise reader.corrupt("more bytes follow its end")
        rest = memoryview(bytearray(1))
        if source.readinto(rest):  # the reader stops at the end of the data
            raise reader.corrupt("more bytes follow its end")
    except CorruptData as error:
        raise BackupFailed(f"the snapshot cannot be used: {error}") from None
    except OSError as error:
        raise BackupFailed(reason(error)) from None
    finally:
        source.close()
    version = reader.aux.get(b"valkey-ver") or reader.aux.get(b"redis-ver", b"")
    return Contents(
        size, source.hexdigest(), keys, streams, entries, version.decode("ascii", "replace")
    )
