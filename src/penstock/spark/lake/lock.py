"""Locks a directory of a lake, so that one process on this machine writes to it at a time.

The system releases the lock when the process ends, however it ends, and no file is left in the lake. There is
no lock on `hdfs://` and `s3a://`.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.spark.lake.local_files import is_local, local_path

# `is_held` takes the lock for a moment, so a single refusal does not mean that another process writes.
TRIES = 5
TRY_SECONDS = 0.05


@contextmanager
def held(directory: str, refusal: Exception) -> Iterator[None]:
    """Hold the lock. Raises: `refusal`, if another process has it."""
    if not is_local(directory):
        yield
        return
    path = local_path(directory)
    path.mkdir(parents=True, exist_ok=True)
    place = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for tried in range(TRIES):
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if tried == TRIES - 1:
                    raise refusal from None
                time.sleep(TRY_SECONDS)
        yield
    finally:
        os.close(place)


def is_held(directory: str) -> bool:
    """Whether a process holds the lock of a local directory."""
    try:
        place = os.open(local_path(directory), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(place, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(place)
    return False
