"""What the operating system says of this process: its memory and the time it was given."""

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
    """The memory that this process occupies now; where the system does not tell, the most it ever did."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    """The most memory that this process has ever occupied."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT


def system_bytes() -> int:
    """The memory of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> tuple[float, float]:
    """(in the system, in the program)."""
    usage = resource.getrusage(who)
    return usage.ru_stime, usage.ru_utime


def children_cpu_seconds() -> tuple[float, float]:
    """As cpu_seconds, of processes that this one has started and seen end."""
    return cpu_seconds(resource.RUSAGE_CHILDREN)
