"""The job of every library in benchmarks/workers.py: it notes its number in a file."""

from __future__ import annotations

import os
import time

URL = os.environ["JOBS_URL"]
_SECONDS = float(os.environ.get("JOB_SECONDS", "0"))
_DONE = os.open(os.environ["JOBS_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def run(number: int) -> None:
    """Do the job. One write to the end of a file is atomic, so all processes may share it."""
    if _SECONDS:
        time.sleep(_SECONDS)
    os.write(_DONE, b"%d\n" % number)
