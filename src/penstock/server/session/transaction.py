"""Transactions: the commands queued between MULTI and EXEC, and the watched keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.engine.context import Context
from penstock.engine.keyspace import Keyspace, Watch
from penstock.engine.table import Flags
from penstock.server.session.states import IN_MULTI
from penstock.server.stats.tally import Tally

if TYPE_CHECKING:
    from penstock.server.session.session import Session

_PAUSED_WITH_WRITES = Flags.WRITE | Flags.PAUSED_WITH_WRITES


class Transaction:
    """The queued commands.

    broken         a command was refused, so EXEC runs none
    writes         a command writes, so EXEC is refused where writes are
    is_paused      a command writes or publishes, so a pause of writes holds EXEC back
    denies_oom     a command needs memory, so EXEC is refused above maxmemory
    queued_bytes   the size of their arguments
    """

    __slots__ = ("broken", "commands", "denies_oom", "is_paused", "queued_bytes", "writes")

    def __init__(self) -> None:
        self.commands: list[tuple[Tally, Frame]] = []
        self.broken = False
        self.writes = False
        self.is_paused = False
        self.denies_oom = False
        self.queued_bytes = 0

    def queue(self, tally: Tally, frame: Frame) -> None:
        """Queue a command with a copy of its arguments."""
        copied = frame.copy()
        self.commands.append((tally, copied))
        self.queued_bytes += copied.end
        flags = tally.command.flags
        self.writes = self.writes or bool(flags & Flags.WRITE)
        self.is_paused = self.is_paused or bool(flags & _PAUSED_WITH_WRITES)
        self.denies_oom = self.denies_oom or bool(flags & Flags.DENY_OOM)


class Watching:
    """The keys that one client watches."""

    __slots__ = ("_context", "_keys", "_watch")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._watch = Watch()
        self._keys: dict[tuple[int, bytes], tuple[Keyspace, bool]] = {}

    @property
    def broken(self) -> bool:
        """Whether one of the keys has changed or expired since it was watched.

        An expired key is not removed here: the next access removes it and logs that.
        """
        if self._watch.broken:
            return True
        return any(
            not was_overdue and self._is_overdue(keyspace, key)
            for (_, key), (keyspace, was_overdue) in self._keys.items()
        )

    def _is_overdue(self, keyspace: Keyspace, key: bytes) -> bool:
        when_ms = keyspace.expiry_or_none(key)
        return when_ms is not None and when_ms < self._context.now_ms()

    @property
    def count(self) -> int:
        """The number of watched keys."""
        return len(self._keys)

    def add(self, keyspace: Keyspace, key: bytes) -> None:
        """Watch one more key."""
        if (keyspace.index, key) not in self._keys:
            self._keys[keyspace.index, key] = (keyspace, self._is_overdue(keyspace, key))
            keyspace.watch(key, self._watch)
            self._context.watching += 1

    def forget(self) -> None:
        """Stop watching all keys."""
        for (_, key), (keyspace, _) in self._keys.items():
            keyspace.unwatch(key, self._watch)
            self._context.watching -= 1
        self._keys = {}


def leave(session: Session) -> None:
    """Leave the transaction, and stop watching keys."""
    session.transaction = None
    session.state &= ~IN_MULTI
    forget_watches(session)


def forget_watches(session: Session) -> None:
    """Stop watching keys."""
    if session.watching is not None:
        session.watching.forget()
        session.watching = None
