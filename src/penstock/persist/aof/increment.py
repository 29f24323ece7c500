"""An increment: the file of the log that is being written, batch by batch.

A write has three parts: the line that vouches for the batch, the bytes on disk, and the numbers kept here.
All three must agree, or later lines vouch for the wrong place and recovery drops what they vouch for. So
this is the only place that writes batches, and the caller of `append` treats any exception as the end of the
file (commit.py): the numbers may be behind the bytes.

    size         bytes in the file
    synced       bytes known to be on disk
    lines_crc    CRC-32 of all batch lines so far, in order. Each line holds the checksum of its batch, so
                 this number stands for the whole file. A clean stop notes it in the manifest.
"""

from __future__ import annotations

import zlib

from penstock.persist.aof.batch import encode_batch
from penstock.persist.disk import File


class Increment:
    """A file of batches that is open for writing. One thread appends at a time; another may sync."""

    __slots__ = ("_file", "lines_crc", "synced")

    def __init__(self, file: File, lines_crc: int = 0) -> None:
        """`lines_crc`: of the lines that the file has already."""
        self._file = file
        self.synced = file.size
        self.lines_crc = lines_crc

    @property
    def size(self) -> int:
        """How long the file is."""
        return self._file.size

    def append(self, data: bytes) -> None:
        """Write one batch. Raises: OSError; then the file must not be written again."""
        line = encode_batch(data, self.synced, self._file.size)
        self._file.write(line + data)
        self.lines_crc = zlib.crc32(line, self.lines_crc)

    def sync(self) -> None:
        """Return when everything that was appended before this call is on disk. Raises: OSError."""
        size = self._file.size
        if size != self.synced:
            self._file.sync()
            self.synced = size

    def close(self) -> None:
        """Close the file without syncing it."""
        self._file.close()
