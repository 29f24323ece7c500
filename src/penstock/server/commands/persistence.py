"""SAVE, BGSAVE, BGREWRITEAOF, WAITAOF."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at, int_between, timeout_at
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, syntax_error
from penstock.reply import NO_REPLY, OK, NoReply, Status
from penstock.server.durability import Durability
from penstock.server.session.session import Session
from penstock.server.session.waiter import SessionWaiter

_REPLICAS = 0


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


class _Wait:
    """A client in WAITAOF: it gets its reply after the sync, or at its timeout."""

    def __init__(self, session: Session, replicas: int) -> None:
        self._session = session
        self._replicas = replicas
        self.waiter: SessionWaiter | None = None

    def synced(self) -> None:
        """See LogWaiter."""
        waiter = self.waiter
        if waiter is None or waiter is not self._session.waiter:
            return  # its timeout was earlier
        waiter.on_timeout = [1, _REPLICAS]
        if self._replicas <= _REPLICAS:
            waiter.time_out()


def waitaof(session: Session, frame: Frame) -> list[Any] | NoReply:
    """Wait until the client's changes are on disk, here and on replicas, of which there are none."""
    error = CommandError("value is out of range, must be between 0 and 1")
    local = int_between(frame, 1, 0, 1, error)
    replicas = int_at(frame, 2)
    if replicas < 0:
        raise CommandError("value is out of range, must be positive")
    timeout_ms = timeout_at(frame, 3)
    durability = session.server.durability
    logged = durability is not None and durability.store.commit is not None
    if local and not logged:
        raise CommandError(
            "WAITAOF cannot be used when numlocal is set but appendonly is disabled."
        )
    wait = _Wait(session, replicas)
    may_block = session.server.engine.context.may_block
    waits = durability is not None and logged and durability.wait_synced(wait, may_block)
    reached = [int(logged and not waits), _REPLICAS]
    if not may_block or (not (waits and local) and replicas <= _REPLICAS):
        return reached
    tally = session.server.tallies.by_name["WAITAOF"]
    session.block(tally, Blocked(frame.copy(), [], timeout_ms, on_timeout=reached))
    wait.waiter = session.waiter
    return NO_REPLY


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
    Command(
        "WAITAOF",
        waitaof,
        4,
        Flags.BLOCKING | Flags.CONNECTION,
        NO_KEYS,
        "Wait until the client's changes are on disk.",
        syntax="numlocal numreplicas timeout",
        since="7.2.0",
        group="generic",
        in_session=True,
    ),
)
