"""maxmemory: refuses commands that add data while the process uses more memory.

The resident memory of the process counts: Python's objects, buffers, everything. Connections that have not
authenticated do not count (server/net/client_memory.py). Freed memory counts until the allocator returns it
to the system; above the limit penstock makes it do so.
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
    """Let the C library return free memory to the system, if it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
