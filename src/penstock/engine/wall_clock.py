"""The machine's clocks. Their C twins, in wall_clock.pxd, spare a command the making of Python objects."""

from time import monotonic_ns, time_ns


def now_us() -> int:
    """Microseconds since 1970."""
    return time_ns() // 1000


def steady_us() -> int:
    """Microseconds since some moment; never steps back, whatever is done to the date."""
    return monotonic_ns() // 1000
