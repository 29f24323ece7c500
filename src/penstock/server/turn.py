"""The order of a turn, which is one round of the event loop:

    1  every socket that has something is read, and its commands are run; blocked readers whose keys were
       touched are served within the command that touched them, in the order in which they blocked
    2  clients that were freed run what they had sent meanwhile
    3  what the turn has changed is handed to the journal, in one write
    4  the replies go out

The first session that has something to say schedules the end of the turn, which the loop runs after all
sockets that were ready. With a journal that must be on disk first, step 4 waits for it; that is why no reply
leaves a session but through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.server.session import Session


class Turn:
    """The sessions with something to send, and those that may go on."""

    __slots__ = ("_call_soon", "_due", "_freed", "_scheduled")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._due: list[Session] = []
        self._freed: list[Session] = []
        self._scheduled = False

    def add(self, session: Session) -> None:
        """Send what a session has to say at the end of this turn."""
        if not session.due:
            session.due = True
            self._due.append(session)
            self._schedule()

    def free(self, session: Session) -> None:
        """Let a session that was blocked go on with what it has sent meanwhile."""
        self._freed.append(session)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self.end)

    def end(self) -> None:
        """Finish the turn: steps 2 to 4."""
        while self._freed:
            freed, self._freed = self._freed, []
            for session in freed:
                if session.link is not None:
                    session.link.go_on()
        self._scheduled = False
        due, self._due = self._due, []
        for session in due:
            session.due = False
            session.flush()
