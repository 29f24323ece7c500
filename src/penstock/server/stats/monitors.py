"""Clients that watch every command go by (MONITOR).

A command is shown once it has run, so that what a transaction did comes before its EXEC. Commands for
administrators are not shown, and of those that carry a password, the password is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.engine.table import Command, Flags
from penstock.reply import Status
from penstock.server.session.states import CLOSING, MONITOR, MONITORED, REPLY_OFF, REPLY_SKIP
from penstock.server.stats.redaction import public_words
from penstock.wire.quoting import quoted

if TYPE_CHECKING:
    from penstock.server.session.session import Session


_SILENT = CLOSING | REPLY_OFF | REPLY_SKIP


class Monitors:
    """Those who watch, in the order in which they began."""

    def __init__(self) -> None:
        self.sessions: dict[Session, None] = {}

    def leave(self, session: Session) -> None:
        """Let one of them watch no longer."""
        session.state &= ~MONITOR
        self.sessions.pop(session, None)
        if not self.sessions:
            session.server.state &= ~MONITORED

    def show(self, session: Session, command: Command, frame: Frame) -> None:
        """Tell them of a command that has run."""
        if command.flags & (Flags.SKIP_MONITOR | Flags.ADMIN):
            return
        us = session.server.engine.context.instant.us
        words = " ".join(map(quoted, public_words(frame)))
        place = f"{session.keyspace.index} {session.info.address}"
        line = Status(f"{us // 1_000_000}.{us % 1_000_000:06d} [{place}] {words}")
        for watcher in self.sessions:
            if not watcher.state & _SILENT:
                watcher.push(line)
