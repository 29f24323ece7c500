"""The machine's time. Its C twin, in wall_clock.pxd, spares a command the making of two Python objects."""

from time import time_ns


def now_us() -> int:
    """Microseconds since 1970."""
    return time_ns() // 1000
