"""The machine's clocks. The C versions, in wall_clock.pxd, make no Python objects."""

from time import monotonic_ns, time_ns


def now_us() -> int:
    """Microseconds since 1970."""
    return time_ns() // 1000


def steady_us() -> int:
    """Microseconds since some moment; never goes back, even if the date does."""
    return monotonic_ns() // 1000
