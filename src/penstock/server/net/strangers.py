"""Connections that have not given the password yet, and the time that they have for it (auth-timeout).

A connection that is accepted while a password is set, or that says RESET, must authenticate within auth-
timeout seconds; otherwise it is closed. Together with the small commands that the parser allows it
(parser.py) and the small output limit (output_limits.py) this bounds what strangers can occupy: memory, and
places among maxclients.

One timer serves all of them: it counts seconds by the event loop's clock, which is monotonic, as long as
there is a stranger. A timer for each connection would take as much memory as its session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.server.log import LOG, VERBOSE
from penstock.server.session.states import STRANGER

if TYPE_CHECKING:
    from penstock.server.server import Server, Timer
    from penstock.server.session.session import Session

AUTH_SECONDS = 30


class Strangers:
    """`since`: every connected session that has not authenticated, and the second in which its time began.

    `seconds`: how long each has; 0 for no limit.
    """

    __slots__ = ("_second", "_server", "_timer", "seconds", "since")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._second = 0
        self._timer: Timer | None = None
        self.seconds = AUTH_SECONDS
        self.since: dict[Session, int] = {}  # those who came first are first

    def add(self, session: Session) -> None:
        """From now on a client must authenticate; its time begins."""
        session.state |= STRANGER
        session.receiver.restrict(True)
        self.since.pop(session, None)
        self.since[session] = self._second
        if self._timer is None:
            self._timer = self._server.loop.call_later(1, self._tick)

    def let_in(self, session: Session) -> None:
        """A client has authenticated, or need not any longer."""
        session.state &= ~STRANGER
        session.receiver.restrict(False)
        self.forget(session)

    def forget(self, session: Session) -> None:
        """A client is gone, or no stranger."""
        self.since.pop(session, None)

    def _tick(self) -> None:
        self._second += 1
        for session, since in list(self.since.items()) if self.seconds else ():
            if self._second - since <= self.seconds:
                break
            # Not a warning: strangers must not be able to fill the log.
            LOG.log(VERBOSE, "client %s is closed: it has not authenticated", session.info.address)
            session.kill()
        self._timer = self._server.loop.call_later(1, self._tick) if self.since else None
