"""The job of every library in benchmarks/workers.py: it notes its number in a file.

A number is a counter. With JOBS_RATE it is the time of the send in microseconds, jobs are sent at that rate,
and the job notes how long it has waited.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

URL = os.environ["JOBS_URL"]
_SECONDS = float(os.environ.get("JOB_SECONDS", "0"))
_RATE = float(os.environ.get("JOBS_RATE", "0"))
_DONE = os.open(os.environ["JOBS_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _now() -> int:
    return time.time_ns() // 1000


def numbers(count: int) -> Iterator[int]:
    """The numbers of the jobs to send."""
    if not _RATE:
        yield from range(count)
        return
    begin = time.monotonic()
    for sent in range(count):
        time.sleep(max(0.0, begin + sent / _RATE - time.monotonic()))
        yield _now()


def run(number: int) -> None:
    """Do the job. One write to the end of a file is atomic, so all processes may share it."""
    if _SECONDS:
        time.sleep(_SECONDS)
    os.write(_DONE, b"%d\n" % (_now() - number if _RATE else number))
