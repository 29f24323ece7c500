"""SAVE, BGSAVE, BGREWRITEAOF."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError, syntax_error
from penstock.reply import OK, Status
from penstock.server.durability import Durability
from penstock.server.session.session import Session


def durability_of(session: Session) -> Durability:
    """The server's durability. Raises: CommandError if the server has none."""
    durability = session.server.durability
    if durability is None and session.server.turn.commit is not None:
        raise CommandError(
            "this database is embedded: its program saves and rewrites it (save, bgrewriteaof)"
        )
    if durability is None:
        raise CommandError("this database is in memory only: there is nothing to save")
    return durability


def save(session: Session, frame: Frame) -> Status:
    """Write a snapshot while all clients wait."""
    durability_of(session).snapshots.save()
    return OK


def bgsave(session: Session, frame: Frame) -> Status:
    """Write a snapshot in a child process."""
    schedule = frame.count == 2 and frame.is_word(1, b"SCHEDULE")
    if frame.count > 2 or (frame.count == 2 and not schedule):
        raise syntax_error()
    return Status(durability_of(session).snapshots.start(schedule))


def bgrewriteaof(session: Session, frame: Frame) -> Status:
    """Write a new base of the log in a child process."""
    return Status(durability_of(session).rewrites.start())


_ADMIN = Flags.ADMIN | Flags.NO_SCRIPT | Flags.NO_ASYNC_LOADING

COMMANDS = (
    Command(
        "SAVE",
        save,
        1,
        _ADMIN | Flags.NO_MULTI,
        NO_KEYS,
        "Write a snapshot while all clients wait.",
        since="1.0.0",
        complexity="O(n) for all keys",
        group="server",
        in_session=True,
    ),
    Command(
        "BGSAVE",
        bgsave,
        -1,
        _ADMIN,
        NO_KEYS,
        "Write a snapshot in the background.",
        syntax="[SCHEDULE]",
        since="1.0.0",
        group="server",
        in_session=True,
    ),
    Command(
        "BGREWRITEAOF",
        bgrewriteaof,
        1,
        _ADMIN,
        NO_KEYS,
        "Rewrite the log in the background.",
        since="1.0.0",
        group="server",
        in_session=True,
    ),
)
