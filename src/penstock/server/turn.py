"""The order of a turn, which is one round of the event loop:

    1  every socket that has something is read, and its commands are run; blocked readers whose keys were
       touched are served within the command that touched them, in the order in which they blocked
    2  clients that were freed run what they had sent meanwhile
    3  what the turn has changed is handed over to the log, in one piece
    4  the replies go out, as soon as what they tell of is as safe as the fsync policy says

The first session that has something to say schedules the end of the turn, which the loop runs after all
sockets that were ready. With `appendfsync always` step 4 waits for a sync in another thread, and the loop
goes on with the next turns. Replies of those, to reads as well, queue up behind: what a reply shows was
changed by an earlier turn, and a crash must not be able to undo it. That is why no reply leaves a session
but through here.

Invariants
  T1  held replies leave in the order of their turns; none overtakes another.
  T2  nothing is held unless the log says that something is not safe yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.persist.aof.commit import Commit
from penstock.server.session.states import MONITOR, SUBSCRIBED
from penstock.wire.reply_walk import refuse_all

if TYPE_CHECKING:
    from penstock.errors import PenstockError
    from penstock.server.session.session import Session


_MESSAGES = tuple(
    b"*%d\r\n$%d\r\n%b\r\n" % (4 if kind == b"pmessage" else 3, len(kind), kind)
    for kind in (
        *(b"message", b"pmessage", b"smessage"),
        *(b"subscribe", b"psubscribe", b"ssubscribe"),
        *(b"unsubscribe", b"punsubscribe", b"sunsubscribe"),
    )
)
_MONITOR_LINES = (b"+1", b"+2")  # they begin with the time


def _spared(session: Session) -> tuple[bytes, ...]:
    """How that begins which a session is sent without having asked, if it is not marked as a push."""
    if session.state & MONITOR:
        return _MONITOR_LINES
    return _MESSAGES if session.state & SUBSCRIBED else ()


class Turn:
    """The sessions with something to send, those that may go on, and the replies that wait for the disk.

    `commit`: where effects go, None without a log. `on_failure`: called when it has failed.
    """

    __slots__ = ("_call_soon", "_due", "_freed", "_held", "_scheduled", "commit", "on_failure")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._due: list[Session] = []
        self._freed: list[Session] = []
        self._held: deque[tuple[int, list[tuple[Session, list[bytes]]]]] = deque()
        self._scheduled = False
        self.commit: Commit | None = None
        self.on_failure: Callable[[], None] | None = None

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

    def note_effects(self) -> None:
        """Something may have changed that nobody is told of: it is to be logged all the same."""
        if self.commit is not None and self.commit.journal.size:
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
                    session.link.resume()
        self._scheduled = False
        due, self._due = self._due, []
        commit = self.commit
        if commit is not None and not self._hand_over(commit, len(due)):
            self._hold(commit, due)
            if commit.failure is not None:
                self._tell_failure()
            return
        for session in due:
            session.due = False
            session.flush()

    def _hand_over(self, commit: Commit, clients: int) -> bool:
        """Step 3; True if the replies may go out at once."""
        safe = commit.hand_over(clients)
        if self._held:
            self.release()
        return safe and not self._held and commit.failure is None

    def _tell_failure(self) -> None:
        """What this turn did is in no log. Whoever hears of that first refuses all that is held."""
        if self.on_failure is not None:
            self.on_failure()
        self.release_all()  # of later turns: reads go on

    def _hold(self, commit: Commit, due: list[Session]) -> None:
        group: list[tuple[Session, list[bytes]]] = []
        for session in due:
            session.due = False
            group.append((session, session.take_replies()))
        if group:
            self._held.append((commit.position, group))

    def release(self) -> None:
        """Send the replies of all turns that are safe by now."""
        if self.commit is None:
            return
        released = self.commit.released
        while self._held and self._held[0][0] <= released:
            _, group = self._held.popleft()
            for session, pieces in group:
                session.deliver(pieces)

    def release_all(self) -> None:
        """Send all replies that are held: there is no log to wait for any longer."""
        while self._held:
            _, group = self._held.popleft()
            for session, pieces in group:
                session.deliver(pieces)

    def refuse_held(self, error: PenstockError) -> None:
        """Answer everything that is held with an error: what it told of may never be on disk."""
        while self._held:
            _, group = self._held.popleft()
            for session, pieces in group:
                refused = refuse_all(b"".join(pieces), error, _spared(session))
                session.deliver(session.replies.exchange(pieces, refused))
