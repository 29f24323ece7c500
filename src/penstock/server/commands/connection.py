"""A client about its connection: PING, ECHO, SELECT, QUIT."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError
from penstock.reply import OK, Status
from penstock.server.session import Session
from penstock.server.states import CLOSING

_PONG = Status("PONG")


def ping(session: Session, frame: Frame) -> Status | bytes:
    """Answer."""
    return _PONG if frame.count == 1 else frame.piece(1)


def select(session: Session, frame: Frame) -> Status:
    """Choose the database that the commands that follow work on."""
    databases = session.server.engine.context.databases
    index = int_at(frame, 1)
    if not 0 <= index < len(databases):
        raise CommandError("DB index is out of range")
    session.keyspace = databases[index]
    return OK


def quit(session: Session, frame: Frame) -> Status:
    """Say goodbye."""
    session.state |= CLOSING
    return OK


COMMANDS = (
    Command("PING", ping, -1, Flags.FAST, NO_KEYS, "Ask for an answer.", in_session=True),
    Command("SELECT", select, 2, Flags.FAST, NO_KEYS, "Choose a database.", in_session=True),
    Command("QUIT", quit, -1, Flags.FAST | Flags.NO_AUTH, NO_KEYS, "Say goodbye.", in_session=True),
)
