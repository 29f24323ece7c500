"""A consumer of a group."""

from __future__ import annotations

from penstock.core.groups.pending_list import PendingList
from penstock.core.groups.records import NEVER_MS

_NEVER_MS = NEVER_MS


class Consumer:
    """A reader in a group, known by name."""

    __slots__ = ("active_ms", "name", "number", "pending", "seen_ms")

    def __init__(self, name: bytes, number: int, now_ms: int) -> None:
        self.name = name
        self.number = number
        self.seen_ms = now_ms  # its last request
        self.active_ms = _NEVER_MS  # its last request that returned something
        self.pending = PendingList()
