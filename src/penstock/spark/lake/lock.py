"""One at a time: whoever writes to a lake on this machine holds a lock on a directory of it.

The system gives a lock back when its process ends, however it ends, and nothing is left in the lake. Storage
that other machines reach too (`hdfs://`, `s3a://`) has no such lock: nobody is kept out there.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(directory: str, refusal: Exception) -> Iterator[None]:
    """Keep others out meanwhile. Raises: `refusal`, if another has it."""
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
