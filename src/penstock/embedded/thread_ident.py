"""The id of the current thread. The C version in thread_ident.pxd creates no Python int."""

from threading import get_ident


def current() -> int:
    """A number that is not 0 and that no other running thread has."""
    return get_ident()
