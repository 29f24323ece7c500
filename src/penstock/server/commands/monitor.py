"""MONITOR: shows every command that the server runs."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError
from penstock.reply import NO_REPLY, OK, NoReply, Status
from penstock.server.session.session import Session
from penstock.server.session.states import MONITOR, MONITORED


def monitor(session: Session, frame: Frame) -> Status | NoReply:
    """Send this client every command from now on. A client that monitors already gets no reply."""
    server = session.server
    if not server.engine.context.may_block:
        raise CommandError("MONITOR isn't allowed for DENY BLOCKING client")
    if session.state & MONITOR:
        return NO_REPLY
    session.state |= MONITOR
    server.state |= MONITORED
    server.monitors.sessions[session] = None
    return OK


COMMANDS = (
    Command(
        "MONITOR",
        monitor,
        1,
        Flags.ADMIN | Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show every command that the server runs.",
        complexity="O(1), and as much again for each command of anybody",
        group="server",
        in_session=True,
    ),
)
