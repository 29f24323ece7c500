"""Locks a directory of a lake, so that one process on this machine writes to it at a time.

The system releases the lock when the process ends, however it ends, and no file is left in the lake. There is
no lock on `hdfs://` and `s3a://`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(directory: str, refusal: Exception) -> Iterator[None]:
    """Hold the lock. Raises: `refusal`, if another process has it."""
    path = directory.removeprefix("file:")
    if "://" in path:
        yield
        return
    Path(path).mkdir(parents=True, exist_ok=True)
    place = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refusal from None
        yield
    finally:
        os.close(place)
