"""The disk of this machine, with the durations of its syncs."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.persist.disk import File, SystemDisk


class TimedFile:
    """A file whose syncs are timed."""

    __slots__ = ("_file", "_note")

    def __init__(self, file: File, note: Callable[[float], None]) -> None:
        self._file = file
        self._note = note

    @property
    def size(self) -> int:
        """See File."""
        return self._file.size

    def write(self, data: bytes) -> None:
        """See File."""
        self._file.write(data)

    def sync(self) -> None:
        """See File. A sync that fails is not counted."""
        began = time.monotonic()
        self._file.sync()
        self._note(time.monotonic() - began)

    def close(self) -> None:
        """See File."""
        self._file.close()


class TimedDisk(SystemDisk):
    """Calls `note` with the seconds of each sync of a file."""

    def __init__(self, note: Callable[[float], None]) -> None:
        self._note = note

    def create(self, path: str) -> File:
        """See Disk."""
        return TimedFile(super().create(path), self._note)

    def append_to(self, path: str) -> File:
        """See Disk."""
        return TimedFile(super().append_to(path), self._note)
