"""CLIENT PAUSE: for a while no commands run, or none that write; what comes meanwhile is kept.

A client whose first command was held back waits, and all that it sends behind it. When the pause ends they
go on in the order in which they were stopped. A second pause never makes the first one shorter or milder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.server.session.states import PAUSED_ALL, PAUSED_WRITES

if TYPE_CHECKING:
    from penstock.server.server import Server, Timer
    from penstock.server.session.session import Session


class Pause:
    """`sessions`: whom it has stopped. `until_ms`: when it ends, 0 if none is on."""

    __slots__ = ("_server", "_timer", "sessions", "until_ms")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._timer: Timer | None = None
        self.sessions: dict[Session, None] = {}
        self.until_ms = 0

    def begin(self, until_ms: int, writes_only: bool) -> None:
        """Hold commands back until then."""
        server = self._server
        now_ms = server.steady_ms()
        self.until_ms = max(self.until_ms, until_ms)
        if self.until_ms <= now_ms:
            self.end()
            return
        if not writes_only:
            server.state = server.state & ~PAUSED_WRITES | PAUSED_ALL
        elif not server.state & PAUSED_ALL:
            server.state |= PAUSED_WRITES
        self._stop_timer()
        self._timer = server.loop.call_later((self.until_ms - now_ms) / 1000, self.end)

    def end(self) -> None:
        """Let everyone go on."""
        self._stop_timer()
        self.until_ms = 0
        self._server.state &= ~(PAUSED_ALL | PAUSED_WRITES)
        stopped, self.sessions = self.sessions, {}
        for session in stopped:
            session.resume()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
