"""Which thread this is. Its C twin, in thread_ident.pxd, makes no Python number of it."""

from threading import get_ident


def current() -> int:
    """A number that no other living thread has, and that is not 0."""
    return get_ident()
