"""The disk of this machine with something done around each sync of a file: timed, or delayed."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.persist.disk import File, SystemDisk

Sync = Callable[[], None]


class WatchedFile:
    """A file. `around` gets the real sync as a function, and must call it."""

    __slots__ = ("_around", "_file")

    def __init__(self, file: File, around: Callable[[Sync], None]) -> None:
        self._file = file
        self._around = around

    @property
    def size(self) -> int:
        """See File."""
        return self._file.size

    def write(self, data: bytes) -> None:
        """See File."""
        self._file.write(data)

    def sync(self) -> None:
        """See File."""
        self._around(self._file.sync)

    def close(self) -> None:
        """See File."""
        self._file.close()


class WatchedDisk(SystemDisk):
    """A disk. For each sync of a file, `around` gets the real sync as a function, and must call it."""

    def __init__(self, around: Callable[[Sync], None]) -> None:
        self._around = around

    def create(self, path: str) -> File:
        """See Disk."""
        return WatchedFile(super().create(path), self._around)

    def append_to(self, path: str) -> File:
        """See Disk."""
        return WatchedFile(super().append_to(path), self._around)


def timed_disk(note: Callable[[float], None]) -> WatchedDisk:
    """A disk that calls `note` with the seconds of each sync. A sync that fails is not noted."""

    def around(sync: Sync) -> None:
        began = time.monotonic()
        sync()
        note(time.monotonic() - began)

    return WatchedDisk(around)


def slow_disk(delay_s: float) -> WatchedDisk:
    """A disk whose syncs take longer, to measure and test a server on it."""

    def around(sync: Sync) -> None:
        time.sleep(delay_s)
        sync()

    return WatchedDisk(around)
