"""Clients that watch every command go by (MONITOR).

A command is shown once it has run, so that what a transaction did comes before its EXEC. Commands for
administrators are not shown, and of those that carry a password, the password is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.engine.table import Command, Flags
from penstock.reply import Status
from penstock.server.redaction import public_words
from penstock.server.states import MONITOR, MONITORED

if TYPE_CHECKING:
    from penstock.server.session import Session

_NAMED = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 7: "\\a", 8: "\\b"}


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
            watcher.say(line)


def quoted(word: bytes) -> str:
    """A word in double quotes, everything unprintable escaped, as Redis shows it."""
    shown = []
    for char in word:
        if char in (ord('"'), ord("\\")):
            shown.append("\\" + chr(char))
        elif char in _NAMED:
            shown.append(_NAMED[char])
        elif 32 <= char < 127:
            shown.append(chr(char))
        else:
            shown.append(f"\\x{char:02x}")
    return '"' + "".join(shown) + '"'
