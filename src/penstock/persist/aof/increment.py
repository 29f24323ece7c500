"""An increment: the file that the log is appended to, batch by batch.

A write has three parts: the line of the batch, the bytes on disk, and the numbers kept here. They must agree.
Otherwise later lines are wrong for their offset, and recovery drops their batches. So only this class writes
batches to an increment, and the caller of `append` never writes to the file again after an exception
(commit.py), because the numbers may not include the last bytes.

    size         bytes in the file
    synced       bytes known to be on disk
    lines_crc    CRC-32 of all batch lines so far, in order. Each line holds the checksum of its batch, so
                 this number covers the whole file. A clean stop records it in the manifest.
"""

from __future__ import annotations

import zlib

from penstock.persist.aof.batch import encode_batch
from penstock.persist.disk import File


class Increment:
    """A file of batches open for writing. One thread at a time appends; another may sync."""

    __slots__ = ("_file", "lines_crc", "synced")

    def __init__(self, file: File, lines_crc: int = 0) -> None:
        """`lines_crc`: of the lines already in the file."""
        self._file = file
        self.synced = file.size
        self.lines_crc = lines_crc

    @property
    def size(self) -> int:
        """The length of the file."""
        return self._file.size

    def append(self, data: bytes) -> None:
        """Write one batch. Raises: OSError; then the file must not be written again."""
        line = encode_batch(data, self.synced, self._file.size)
        self._file.write(line + data)
        self.lines_crc = zlib.crc32(line, self.lines_crc)

    def sync(self) -> None:
        """Return when everything appended before this call is on disk. Raises: OSError."""
        size = self._file.size
        if size != self.synced:
            self._file.sync()
            self.synced = size

    def close(self) -> None:
        """Close the file without syncing it."""
        self._file.close()
