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
    NO_REPLICAS,
    PAUSED_ALL,
    PAUSED_WRITES,
    SAVE_FAILED,
)
from penstock.server.stats.tally import Tally
from penstock.wire.encoder import Encoder

if TYPE_CHECKING:
    from penstock.server.session.session import Session

# Claiming changes data: while clients cannot write, it waits too.
_NO_WRITES = PAUSED_WRITES | PAUSED_ALL | LOADING | DISK_FAILED | SAVE_FAILED | BROKEN | NO_REPLICAS
_REFUSED_RETRY_MS = 100
_RESP2 = 2
_RESP3 = 3


class SessionWaiter(Waiter):
    """Ended by the engine (wake, wake_all), by its timer (time_out) or by CLIENT UNBLOCK (time_out, fail).

    Readers that get the same reply are served at once, but it is encoded once and given to a few of them in
    each turn (turn.py). Until then such a reader is done, and its session still looks blocked.

    A second timer runs the command again when entries may have become idle enough (Waiter.retry_ms).
    """

    def __init__(self, session: Session, tally: Tally, blocked: Blocked) -> None:
        super().__init__(tally.command, blocked, session.keyspace)
        self._session = session
        self._tally = tally
        self.reply_form = _RESP3 if session.output.resp3 else _RESP2
        self._timer: Timer | None = None
        self._retry_timer: Timer | None = None

    @property
    def keyed(self) -> int:
        """What its reply follows from (Session.keyed)."""
        return self._tally.keyed

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

    def wake_all(self, alike: list[SessionWaiter]) -> None:
        """See Waiter. The reply is encoded at once, as in wake."""
        encoder = Encoder()
        encoder.resp3 = self.reply_form == _RESP3
        if self.error is None:
            encoder.put(self.reply)
        self._session.server.turn.hand_out(alike, encoder.take(), self.error)

    def get_reply(self, reply: bytes, error: Exception | None) -> None:
        """Take the encoded reply, or the error, that all in its line get."""
        if self._session.waiter is not self:
            return  # its client is gone
        if error is None:
            self._stop_timers()
            self._session.unblock_encoded(reply)
        else:
            self.error = error
            self.wake()

    def time_out(self) -> None:
        """Reply that there was nothing, unless its reply is already on its way."""
        if self.done:
            return
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
