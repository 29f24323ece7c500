"""Refusing commands that add data while the process occupies more than maxmemory.

What counts is what the system says that the process occupies, which is what a limit is for: Python's
objects, buffers and all. Connections that have not authenticated do not count
(server/net/client_memory.py). Memory that was freed counts until the allocator gives it back; while over
the limit it is asked to.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from penstock.server.session.states import OUT_OF_MEMORY
from penstock.server.stats.process import resident_bytes

if TYPE_CHECKING:
    from penstock.server.server import Server


def check_memory(server: Server) -> None:
    """Set or clear OUT_OF_MEMORY."""
    limit = server.max_memory
    over = resident_bytes() - limit if limit else 0
    if over > 0 and over > server.client_memory.stranger_bytes():
        server.state |= OUT_OF_MEMORY
    else:
        server.state &= ~OUT_OF_MEMORY


def give_memory_back() -> None:
    """Ask the C library to return free memory; where it cannot, nothing happens."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
