"""How much a client may leave unread before it is cut off, by kind of client.

client-output-buffer-limit pubsub 32mb 8mb 60     over 32 MB at once, or over 8 MB for 60 s
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.server.states import STRANGER, SUBSCRIBED

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class OutputLimit:
    """0 stands for no limit."""

    hard_bytes: int
    soft_bytes: int
    soft_seconds: int


class OutputLimits:
    """The limits in force. Redis lets a normal client leave anything unread; we stop at a gigabyte."""

    __slots__ = ("normal", "pubsub", "replica", "stranger")

    def __init__(self) -> None:
        self.normal = OutputLimit(1024 * _MB, 0, 0)
        self.replica = OutputLimit(256 * _MB, 64 * _MB, 60)
        self.pubsub = OutputLimit(32 * _MB, 8 * _MB, 60)
        # Nobody who has not proved who he is may make us keep more than a few refusals. No setting, as in
        # Redis (CVE-2025-21605).
        self.stranger = OutputLimit(1024, 0, 0)

    def of(self, state: int) -> OutputLimit:
        """The limit of a client in this state (see states.py)."""
        if state & STRANGER:
            return self.stranger
        return self.pubsub if state & SUBSCRIBED else self.normal
