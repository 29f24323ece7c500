"""A blocked command of a session, and its timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import CommandError
from penstock.server.server import Timer
from penstock.server.stats.tally import Tally

if TYPE_CHECKING:
    from penstock.server.session.session import Session


class SessionWaiter(Waiter):
    """Ended by the engine (wake), by its timer (time_out) or by CLIENT UNBLOCK (time_out, fail)."""

    def __init__(self, session: Session, tally: Tally, blocked: Blocked) -> None:
        super().__init__(tally.command, blocked, session.keyspace)
        self._session = session
        self._tally = tally
        self._timer: Timer | None = None

    def park(self, timeout_ms: int) -> None:
        """Start to wait; 0 for no timeout."""
        server = self._session.server
        if timeout_ms:
            self._timer = server.loop.call_later(timeout_ms / 1000, self.time_out)
        server.engine.park(self)

    def wake(self) -> None:
        # The reply is encoded at once: the entries may be trimmed before the turn ends.
        self._stop_timer()
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
        self._stop_timer()
        self._session.server.engine.unpark(self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
