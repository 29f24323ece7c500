"""Connections that have not given the password yet, and the time that they have for it (auth-timeout).

A connection that is accepted while a password is set, or that says RESET, must authenticate within auth-timeout
seconds; otherwise it is closed. Together with the small commands that the parser allows it (parser.py) and the
small output limit (output_limits.py) this bounds what strangers can occupy: memory, and places among maxclients.

The time is the event loop's, which is monotonic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.server.log import LOG, VERBOSE
from penstock.server.states import STRANGER

if TYPE_CHECKING:
    from penstock.server.server import Server, Timer
    from penstock.server.session import Session

AUTH_SECONDS = 30


class Strangers:
    """`timers`: every connected session that has not authenticated, and what will close it.

    `seconds`: how long a new one has; 0 for no limit.
    """

    __slots__ = ("_server", "seconds", "timers")

    def __init__(self, server: Server) -> None:
        self._server = server
        self.seconds = AUTH_SECONDS
        self.timers: dict[Session, Timer | None] = {}

    def add(self, session: Session) -> None:
        """From now on a client must authenticate; its time begins."""
        self._stop_timer(session)
        session.state |= STRANGER
        session.parser.stranger = True
        timer = None
        if self.seconds:
            timer = self._server.loop.call_later(self.seconds, lambda: self._close(session))
        self.timers[session] = timer

    def let_in(self, session: Session) -> None:
        """A client has authenticated, or need not any longer."""
        session.state &= ~STRANGER
        session.parser.stranger = False
        self.forget(session)

    def forget(self, session: Session) -> None:
        """A client is gone, or no stranger."""
        self._stop_timer(session)
        self.timers.pop(session, None)

    def _stop_timer(self, session: Session) -> None:
        timer = self.timers.get(session)
        if timer is not None:
            timer.cancel()

    def _close(self, session: Session) -> None:
        # Not a warning: strangers must not be able to fill the log.
        LOG.log(VERBOSE, "client %s is closed: it has not authenticated", session.info.address)
        session.kill()
