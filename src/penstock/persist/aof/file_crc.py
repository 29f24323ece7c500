"""The checksum of a whole file of the log, as the manifest records it (`crc`).

    snapshot   the CRC-64 at its end                            16 digits
    batches    the CRC-32 of all batch lines (increment.py)     8 digits

Writing or reading the file yields it, without another pass over its bytes.
"""

from __future__ import annotations

import errno
import zlib

from penstock.persist.aof.batch import HEAD_BYTES_MAX, parse_batch_or_none
from penstock.persist.disk import Disk
from penstock.persist.rdb import format as rdb_format
from penstock.persist.reading import read_all


def of_snapshot(checksum: int) -> str:
    """The `crc` of a snapshot with this checksum at its end."""
    return f"{checksum:016x}"


def of_lines(lines_crc: int) -> str:
    """The `crc` of a file of batches."""
    return f"{lines_crc:08x}"


def is_snapshot(disk: Disk, path: str) -> bool:
    """Tell whether a file begins like a snapshot. Raises: OSError."""
    return rdb_format.is_snapshot(read_all(disk, path, 0, rdb_format.MAGIC_BYTES_MAX))


def of_file(disk: Disk, path: str) -> str:
    """The `crc` of a complete file. Reads only its end, or its batch lines. Raises: OSError."""
    size = disk.size(path)
    if is_snapshot(disk, path):
        end = read_all(disk, path, max(0, size - rdb_format.CHECKSUM_BYTES))
        return of_snapshot(int.from_bytes(end, "little"))
    offset = crc = 0
    while offset < size:
        head = read_all(disk, path, offset, HEAD_BYTES_MAX)
        found = parse_batch_or_none(head, offset)
        if found is None:
            raise OSError(errno.EBADMSG, f"no batch at byte {offset}", path)
        crc = zlib.crc32(head[: found.head_bytes], crc)
        offset += found.head_bytes + found.size
    return of_lines(crc)
