"""Limits of unread replies, per client class (client-output-buffer-limit).

client-output-buffer-limit pubsub 32mb 8mb 60     disconnect above 32 MB, or above 8 MB for 60 s
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.server.session.states import REPLICA, STRANGER, SUBSCRIBED

if TYPE_CHECKING:
    from penstock.server.session.session import Session

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class OutputLimit:
    """The limits of one class; 0 for no limit."""

    hard_bytes: int
    soft_bytes: int
    soft_seconds: int


class OutputLimits:
    """The limits in force. Redis has no limit for normal clients; penstock's default is a gigabyte."""

    __slots__ = ("normal", "pubsub", "replica", "stranger")

    def __init__(self) -> None:
        self.normal = OutputLimit(1024 * _MB, 0, 0)
        self.replica = OutputLimit(256 * _MB, 64 * _MB, 60)
        self.pubsub = OutputLimit(32 * _MB, 8 * _MB, 60)
        # A client that has not authenticated may only leave a few errors unread. Not a setting, as in Redis
        # (CVE-2025-21605).
        self.stranger = OutputLimit(1024, 0, 0)

    def of(self, state: int) -> OutputLimit:
        """The limit of a client in this state (session/states.py)."""
        if state & STRANGER:
            return self.stranger
        if state & REPLICA:
            return self.replica
        return self.pubsub if state & SUBSCRIBED else self.normal

    def is_exceeded(self, session: Session, unread: int) -> bool:
        """Tell whether a client with this many unread bytes must be disconnected now."""
        limit = self.of(session.state)
        if session.state & REPLICA and unread <= session.server.replication.feed.backlog_bytes:
            unread = 0  # a replica may get the whole backlog at once
        if 0 < limit.hard_bytes < unread:
            return True
        if not 0 < limit.soft_bytes < unread:
            session.over_soft_since_ms = 0
            return False
        now_ms = session.server.steady_ms()
        if session.over_soft_since_ms:
            return now_ms - session.over_soft_since_ms > limit.soft_seconds * 1000
        session.over_soft_since_ms = now_ms
        # If the client is sent nothing more, no other code checks it again.
        session.server.loop.call_later(limit.soft_seconds + 1, lambda: _look_again(session))
        return False


def _look_again(session: Session) -> None:
    session.server.engine.context.instant.advance()
    session.check_output_limit()
