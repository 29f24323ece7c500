"""Memory, CPU time and disk of this process, from the operating system."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Linux counts the peak in KiB, macOS in bytes.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


def resident_bytes() -> int:
    """The current resident memory; if the system does not report it, the peak."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    """The peak resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT


def system_bytes() -> int:
    """The physical memory of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES


def disk_bytes(path: str) -> tuple[int, int]:
    """The free space and the size of the file system of a path; 0 if it cannot be asked."""
    try:
        found = os.statvfs(path)
    except OSError:
        return 0, 0
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> tuple[float, float]:
    """System and user CPU time."""
    usage = resource.getrusage(who)
    return usage.ru_stime, usage.ru_utime


def children_cpu_seconds() -> tuple[float, float]:
    """System and user CPU time of child processes that have ended."""
    return cpu_seconds(resource.RUSAGE_CHILDREN)
