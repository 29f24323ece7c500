"""Connections that have not authenticated ("strangers"), and their deadline (auth-timeout).

If a password is set, a new connection, or one after RESET, is closed unless it authenticates within
auth-timeout seconds. Together with the small limits for its commands (parser.py) and its replies
(output_limits.py), this bounds the memory and the share of maxclients that strangers can use.

One timer serves all strangers: it counts seconds on the event loop's monotonic clock while there are any. A
timer per connection would take as much memory as its session.
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
    """The strangers of a server.

    since     their sessions, each with the second in which its time started; oldest first
    seconds   the time that each has; 0 for no limit
    """

    __slots__ = ("_second", "_server", "_timer", "seconds", "since")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._second = 0
        self._timer: Timer | None = None
        self.seconds = AUTH_SECONDS
        self.since: dict[Session, int] = {}

    def add(self, session: Session) -> None:
        """Require a client to authenticate; its time starts now."""
        session.state |= STRANGER
        session.receiver.restrict(True)
        self.since.pop(session, None)
        self.since[session] = self._second
        if self._timer is None:
            self._timer = self._server.loop.call_later(1, self._tick)

    def let_in(self, session: Session) -> None:
        """A client has authenticated, or no password is set any more."""
        session.state &= ~STRANGER
        session.receiver.restrict(False)
        self.forget(session)

    def forget(self, session: Session) -> None:
        """Remove a client that is gone or no stranger any more."""
        self.since.pop(session, None)

    def _tick(self) -> None:
        self._second += 1
        for session, since in list(self.since.items()) if self.seconds else ():
            if self._second - since <= self.seconds:
                break
            # Not a warning: strangers could fill the log with those.
            LOG.log(VERBOSE, "client %s is closed: it has not authenticated", session.info.address)
            session.kill()
        self._timer = self._server.loop.call_later(1, self._tick) if self.since else None
