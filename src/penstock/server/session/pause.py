"""CLIENT PAUSE: for a time no commands run, or no writes; commands that arrive meanwhile are kept.

A client waits from its first command that is held back. When the pause ends, the clients continue in the
order in which they were stopped. A second pause never shortens or weakens the first.

A failover and a stop that waits for replicas hold writes back too. CLIENT UNPAUSE and the end of a client's
pause do not end that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.server.session.states import PAUSED_ALL, PAUSED_WRITES

if TYPE_CHECKING:
    from penstock.server.server import Server, Timer
    from penstock.server.session.session import Session


class Pause:
    """`sessions`: the stopped clients. `until_ms`: when a client's pause ends; 0 if there is none."""

    __slots__ = ("_holders", "_server", "_timer", "sessions", "until_ms")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._timer: Timer | None = None
        self.sessions: dict[Session, None] = {}
        self.until_ms = 0
        self._holders: set[str] = set()

    def begin(self, until_ms: int, writes_only: bool) -> None:
        """Hold commands back until a time."""
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
        """Let all clients continue."""
        self._stop_timer()
        self.until_ms = 0
        self._server.state &= ~(PAUSED_ALL | PAUSED_WRITES)
        if self._holders:
            self._server.state |= PAUSED_WRITES
        stopped, self.sessions = self.sessions, {}
        for session in stopped:
            session.resume()

    def hold_writes(self, why: str) -> None:
        """Hold writes back until release_writes."""
        self._holders.add(why)
        if not self._server.state & PAUSED_ALL:
            self._server.state |= PAUSED_WRITES

    def release_writes(self, why: str) -> None:
        """Let the clients continue, unless one has paused them or another reason holds them back."""
        self._holders.discard(why)
        if not self.until_ms and not self._holders:
            self.end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
