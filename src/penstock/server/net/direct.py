"""Sends bytes to a socket without the event loop.

Like core/memory.py, this is not compiled: compiled modules use the function of direct.pxd.
docs/decisions/0009-direct-send.md says why replies are sent in this way.
"""

from __future__ import annotations

import os


def send(fd: int, buffer: bytearray, size: int) -> int:
    """Send the first `size` bytes of a buffer, as far as the socket takes them now; return how many it took.

    Returns 0 for an error too: the event loop meets the same error and closes the connection.
    """
    if not 0 <= size <= len(buffer):
        raise IndexError(f"{size} bytes of a buffer of {len(buffer)}")
    try:
        with memoryview(buffer) as view, view[:size] as part:
            return os.write(fd, part)
    except OSError:
        return 0
