"""A blocked command of a session, and its timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import CommandError
from penstock.server.server import Timer
from penstock.server.session.states import (
    BROKEN,
    DISK_FAILED,
    LOADING,
    PAUSED_ALL,
    PAUSED_WRITES,
    SAVE_FAILED,
)
from penstock.server.stats.tally import Tally

if TYPE_CHECKING:
    from penstock.server.session.session import Session

# Claiming changes data: while clients cannot write, it waits too.
_NO_WRITES = PAUSED_WRITES | PAUSED_ALL | LOADING | DISK_FAILED | SAVE_FAILED | BROKEN
_REFUSED_RETRY_MS = 100


class SessionWaiter(Waiter):
    """Ended by the engine (wake), by its timer (time_out) or by CLIENT UNBLOCK (time_out, fail).

    A second timer runs the command again when entries may have become idle enough (Waiter.retry_ms).
    """

    def __init__(self, session: Session, tally: Tally, blocked: Blocked) -> None:
        super().__init__(tally.command, blocked, session.keyspace)
        self._session = session
        self._tally = tally
        self._timer: Timer | None = None
        self._retry_timer: Timer | None = None

    def park(self, timeout_ms: int) -> None:
        """Start to wait; 0 for no timeout."""
        server = self._session.server
        if timeout_ms:
            self._timer = server.loop.call_later(timeout_ms / 1000, self.time_out)
        server.engine.park(self)
        if self.retry_ms is not None:
            self.keep_waiting(self.retry_ms)

    def keep_waiting(self, retry_ms: int) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()
        loop = self._session.server.loop
        self._retry_timer = loop.call_later(retry_ms / 1000, self._retry)

    def _retry(self) -> None:
        self._retry_timer = None
        server = self._session.server
        if server.state & _NO_WRITES:
            self.keep_waiting(_REFUSED_RETRY_MS)
            return
        server.engine.retry(self)
        server.turn.note_effects()

    def wake(self) -> None:
        # The reply is encoded at once: the entries may be trimmed before the turn ends.
        self._stop_timers()
        if self.error is None:
            self._session.unblock(self.reply)
        else:
            self._tally.failed += 1
            self._session.unblock(self.error)

    def time_out(self) -> None:
        """Reply that there was nothing."""
        self.give_up()
        self._session.unblock(self.on_timeout)

    def fail(self, error: CommandError) -> None:
        """Reply with an error."""
        self.give_up()
        self._session.unblock(error)

    def give_up(self) -> None:
        """Stop waiting, without a reply."""
        self._stop_timers()
        self._session.server.engine.unpark(self)

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._retry_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._retry_timer = None
