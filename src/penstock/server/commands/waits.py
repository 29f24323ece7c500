"""WAIT, WAITAOF: wait until the changes so far are on replicas, or on disk."""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at, int_between, timeout_at
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError
from penstock.reply import NO_REPLY, NoReply
from penstock.server.replication.ack_waits import AckWaiter
from penstock.server.replication.feed import GETACK
from penstock.server.session.session import Session
from penstock.server.session.waiter import SessionWaiter


def wait(session: Session, frame: Frame) -> int | NoReply:
    """Wait until replicas have applied all changes so far; reply with the number of those that have."""
    replicas = int_at(frame, 1)
    timeout_ms = timeout_at(frame, 2)
    _refuse_on_replica(session, "WAIT")
    server = session.server
    replication = server.replication
    if server.engine.context.may_block:
        replication.feed.hand_over()
    offset = replication.feed.effects_offset
    count = replication.waiters.count(offset, on_disk=False)
    if count >= replicas or not server.engine.context.may_block:
        return count
    waiting = _Wait(session, offset, replicas, on_disk=False)
    waiting.block(frame, "WAIT", timeout_ms, count)
    return NO_REPLY


def waitaof(session: Session, frame: Frame) -> list[Any] | NoReply:
    """Wait until all changes so far are on disk, here and on replicas."""
    error = CommandError("value is out of range, must be between 0 and 1")
    local = int_between(frame, 1, 0, 1, error)
    replicas = int_at(frame, 2)
    if replicas < 0:
        raise CommandError("value is out of range, must be positive")
    timeout_ms = timeout_at(frame, 3)
    _refuse_on_replica(session, "WAITAOF")
    server = session.server
    durability = server.durability
    logged = durability is not None and durability.store.commit is not None
    if local and not logged:
        raise CommandError(
            "WAITAOF cannot be used when numlocal is set but appendonly is disabled."
        )
    may_block = server.engine.context.may_block
    if may_block:
        server.replication.feed.hand_over()
    offset = server.replication.feed.effects_offset
    waiting = _Wait(session, offset, replicas, on_disk=True)
    waiting.needs_local = bool(local)
    waits = durability is not None and logged and durability.wait_synced(waiting, may_block)
    waiting.has_local = bool(logged and not waits)
    count = server.replication.waiters.count(offset, on_disk=True)
    if not may_block or (count >= replicas and not (waits and local)):
        return [int(waiting.has_local), count]
    waiting.block(frame, "WAITAOF", timeout_ms, count)
    return NO_REPLY


def _refuse_on_replica(session: Session, name: str) -> None:
    if not session.server.replication.is_primary:
        raise CommandError(
            f"{name} cannot be used with replica instances. Please also note that"
            " writes to replicas are just local and are not propagated."
        )


class _Wait:
    """A client in WAIT or WAITAOF: it gets its reply when enough have its changes, or at its timeout."""

    def __init__(self, session: Session, offset: int, replicas: int, on_disk: bool) -> None:
        self._session = session
        self._replicas = replicas
        self._offset = offset
        self._on_disk = on_disk
        self._count = 0
        self._waiter: SessionWaiter | None = None
        self.needs_local = False
        self.has_local = False

    def block(self, frame: Frame, name: str, timeout_ms: int, count: int) -> None:
        """Begin to wait."""
        session = self._session
        self._count = count
        tally = session.server.tallies.by_name[name]
        session.block(tally, Blocked(frame.copy(), [], timeout_ms, on_timeout=self._reply()))
        self._waiter = session.waiter
        replication = session.server.replication
        if self._replicas > count:
            waiter = AckWaiter(
                self._offset, self._replicas, self._on_disk, self._acked, self._is_over
            )
            replication.waiters.add(waiter)
            replication.feed.say(GETACK)

    def _is_over(self) -> bool:
        return self._waiter is None or self._waiter is not self._session.waiter

    def synced(self) -> None:
        """The changes are on the disk of this server; see LogWaiter."""
        self.has_local = True
        self._look()

    def _acked(self, count: int) -> None:
        self._count = count
        self._look()

    def _look(self) -> None:
        waiter = self._waiter
        if waiter is None or self._is_over():
            return
        self._count = max(
            self._count,
            self._session.server.replication.waiters.count(self._offset, self._on_disk),
        )
        waiter.on_timeout = self._reply()
        if self._count >= self._replicas and (self.has_local or not self.needs_local):
            waiter.time_out()

    def _reply(self) -> int | list[int]:
        return [int(self.has_local), self._count] if self._on_disk else self._count


COMMANDS = (
    Command(
        "WAIT",
        wait,
        3,
        Flags.NO_SCRIPT | Flags.CONNECTION,
        NO_KEYS,
        "Wait until replicas have the changes so far.",
        syntax="numreplicas timeout",
        since="3.0.0",
        group="generic",
        in_session=True,
    ),
    Command(
        "WAITAOF",
        waitaof,
        4,
        Flags.BLOCKING | Flags.CONNECTION,
        NO_KEYS,
        "Wait until the changes so far are on disk, here and on replicas.",
        syntax="numlocal numreplicas timeout",
        since="7.2.0",
        group="generic",
        in_session=True,
    ),
)
