"""The CPU time of a process, of all its threads."""

from __future__ import annotations

import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """In nanoseconds: Linux has a clock for each process."""
    return time.clock_gettime((~pid << 3) | 2)


def user_and_kernel(pid: int) -> tuple[int, int]:
    """The part in the process itself and the part in the kernel, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])
