"""Clients in MONITOR, which are sent every command.

A command is shown after it has run, so the commands of a transaction come before its EXEC. Commands for
administrators are not shown, and passwords are hidden.
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
    """The monitoring clients, in the order in which they started."""

    def __init__(self) -> None:
        self.sessions: dict[Session, None] = {}

    def leave(self, session: Session) -> None:
        """Remove a client."""
        session.state &= ~MONITOR
        self.sessions.pop(session, None)
        if not self.sessions:
            session.server.state &= ~MONITORED

    def show(self, session: Session, command: Command, frame: Frame) -> None:
        """Send a command that has run to all of them."""
        if command.flags & (Flags.SKIP_MONITOR | Flags.ADMIN):
            return
        us = session.server.engine.context.instant.us
        words = " ".join(map(quoted, public_words(frame)))
        place = f"{session.keyspace.index} {session.info.address}"
        line = Status(f"{us // 1_000_000}.{us % 1_000_000:06d} [{place}] {words}")
        for watcher in self.sessions:
            if not watcher.state & _SILENT:
                watcher.push(line)
