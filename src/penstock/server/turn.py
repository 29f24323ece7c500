"""One turn: an iteration of the event loop, in this order.

    1  every readable socket is read and its commands run; a command that adds data also serves the readers
       blocked on its key, in the order in which they blocked
    2  readers that share a reply get it, a few hundred in each turn; clients that were unblocked run the
       commands they sent meanwhile
    3  the changes of the turn are handed over to the log in one batch
    4  the replies are sent as soon as the changes are as durable as the fsync policy requires, and as many
       replicas have them as min-replicas-ack requires

The first session with a reply schedules the end of the turn, which the loop runs after all readable sockets.
With `appendfsync always` step 4 waits for a sync in another thread, and the loop continues with the next
turns. Their replies, to reads as well, wait behind it: a reply may show a change of an earlier turn, and a
crash must not undo a change that a client has seen. Therefore all replies are sent from here.

Invariants
  TU1  held replies are sent in the order of their turns.
  TU2  replies are held only while the log has changes that are not durable yet.
  TU3  one turn hands out a shared reply to at most SHARED_CLIENTS_MAX readers: sending it to one takes 8 us,
       and other clients must not wait until ten thousand have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from penstock.persist.aof.commit import Commit
from penstock.server.session.states import KEYED_WRITE, MONITOR, SUBSCRIBED
from penstock.wire.reply_walk import refuse_all

if TYPE_CHECKING:
    from penstock.errors import PenstockError
    from penstock.server.replication.ack_waits import HeldReplies
    from penstock.server.replication.feed import Feed
    from penstock.server.session.session import Session
    from penstock.server.session.waiter import SessionWaiter

SHARED_CLIENTS_MAX = 256
SHARED_BYTES_MAX = 1 << 20

_MESSAGES = tuple(
    b"*%d\r\n$%d\r\n%b\r\n" % (4 if kind == b"pmessage" else 3, len(kind), kind)
    for kind in (
        *(b"message", b"pmessage", b"smessage"),
        *(b"subscribe", b"psubscribe", b"ssubscribe"),
        *(b"unsubscribe", b"punsubscribe", b"sunsubscribe"),
    )
)
_MONITOR_LINES = (b"+1", b"+2")  # they start with the time


def _push_heads(session: Session) -> tuple[bytes, ...]:
    """First bytes of messages that the client did not ask for, in protocols that do not mark pushes."""
    if session.state & MONITOR:
        return _MONITOR_LINES
    return _MESSAGES if session.state & SUBSCRIBED else ()


_Taken = tuple["Session", list[bytes], int, bool]
"""Replies of a session, the offset of the stream that replicas must have, and whether it has written."""


class Turn:
    """Collects sessions with replies and unblocked sessions, and holds replies that wait for the disk.

    `commit` takes the changes; None without a log. `on_failure` is called when the log has failed. `feed` is
    the replication stream; None without replicas. `replicas` holds the replies that wait for acks.
    """

    __slots__ = (
        "_call_soon",
        "_due",
        "_freed",
        "_held",
        "_scheduled",
        "_shared",
        "commit",
        "feed",
        "on_failure",
        "replicas",
    )

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._due: list[Session] = []
        self._freed: list[Session] = []
        # Served readers, and the reply or error that they have in common.
        self._shared: deque[tuple[deque[SessionWaiter], bytes, Exception | None]] = deque()
        self._held: deque[tuple[int, list[_Taken]]] = deque()
        self._scheduled = False
        self.commit: Commit | None = None
        self.on_failure: Callable[[], None] | None = None
        self.feed: Feed | None = None
        self.replicas: HeldReplies | None = None

    def add(self, session: Session) -> None:
        """Send the replies of a session at the end of this turn."""
        if not session.due:
            session.due = True
            self._due.append(session)
            self._schedule()

    def free(self, session: Session) -> None:
        """Run the commands that an unblocked session has sent meanwhile."""
        self._freed.append(session)
        self._schedule()

    def hand_out(self, waiters: list[SessionWaiter], reply: bytes, error: Exception | None) -> None:
        """Give served readers the reply or error that they have in common, over as many turns as needed."""
        self._shared.append((deque(waiters), reply, error))
        self._schedule()

    def note_effects(self) -> None:
        """Log changes that no reply belongs to."""
        if self.has_effects():
            self._schedule()

    def has_effects(self) -> bool:
        """Tell whether changes were not handed over yet."""
        if self.commit is not None:
            return bool(self.commit.journal.size)
        return self.feed is not None and self.feed.has_effects()

    def wake_up(self) -> None:
        """End this turn, even if nobody waits for a reply."""
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self.end)

    def end(self) -> None:
        """Finish the turn: steps 2 to 4."""
        if self._shared:
            self._hand_out_some()
        while self._freed:
            freed, self._freed = self._freed, []
            for session in freed:
                if session.link is not None:
                    session.link.resume()
        self._scheduled = False
        if self._shared:
            self._schedule()
        due, self._due = self._due, []
        commit = self.commit
        is_safe = commit is None or self._hand_over(commit, len(due))
        if self.feed is not None:
            self.feed.end_turn()
        if commit is not None and not is_safe:
            self._hold(commit, due)
            if commit.failure is not None:
                self._report_failure()
            return
        if self.replicas is not None:
            self._send_or_hold(due)
            return
        for session in due:
            session.due = False
            session.flush()

    def end_all(self) -> None:
        """End turns until all shared replies are handed out."""
        self.end()
        while self._shared:
            self.end()

    def _hand_out_some(self) -> None:
        left = SHARED_CLIENTS_MAX
        while self._shared and left > 0:
            waiters, reply, error = self._shared[0]
            most = min(left, max(1, SHARED_BYTES_MAX // max(1, len(reply))))
            while waiters and most > 0:
                waiters.popleft().get_reply(reply, error)
                most -= 1
                left -= 1
            if waiters:
                break
            self._shared.popleft()

    def _hand_over(self, commit: Commit, clients: int) -> bool:
        """Step 3; True if the replies may be sent at once."""
        safe = commit.hand_over(clients)
        if self._held:
            self.release()
        return safe and not self._held and commit.failure is None

    def _report_failure(self) -> None:
        """The changes of this turn are in no log: the first report refuses all held replies."""
        if self.on_failure is not None:
            self.on_failure()
        self.release_all()  # replies of later turns: reads continue

    def _hold(self, commit: Commit, due: list[Session]) -> None:
        group = [self._take(session) for session in due]
        if group:
            self._held.append((commit.position, group))

    def _take(self, session: Session) -> _Taken:
        """Take the replies of a session. Offset 0: they need no replica."""
        session.due = False
        keyed, session.keyed = session.keyed, 0
        offset = self.feed.effects_offset if keyed and self.feed is not None else 0
        return session, session.take_replies(), offset, bool(keyed & KEYED_WRITE)

    def _send_or_hold(self, due: list[Session]) -> None:
        """Send the replies, or let them wait until enough replicas have the changes."""
        for session in due:
            self._deliver(*self._take(session))

    def _deliver(self, session: Session, pieces: list[bytes], offset: int, wrote: bool) -> None:
        """Send replies that are on disk, unless they wait for replicas."""
        replicas = self.replicas
        if replicas is not None and (session.awaiting or replicas.must_wait(offset, wrote)):
            replicas.hold(session, pieces, offset)
        else:
            session.deliver(pieces)

    def release(self) -> None:
        """Send the replies of all turns that are durable by now."""
        if self.commit is None:
            return
        released = self.commit.released
        while self._held and self._held[0][0] <= released:
            _, group = self._held.popleft()
            for taken in group:
                self._deliver(*taken)

    def release_all(self) -> None:
        """Send all held replies: there is no log to wait for."""
        while self._held:
            _, group = self._held.popleft()
            for taken in group:
                self._deliver(*taken)

    def refuse_held(self, error: PenstockError) -> None:
        """Replace all held replies by an error: their changes may never be on disk."""
        while self._held:
            _, group = self._held.popleft()
            for session, pieces, _, _ in group:
                self.refuse(session, pieces, error)

    def refuse_unacked(self, sessions: Iterable[Session], error: PenstockError) -> None:
        """The role changes: replace the replies whose changes too few replicas have by an error.

        These are replies that wait for the disk, and those of this turn. They keep their place and their
        order. The reply of the running command stays: it is the one that changes the role.
        """
        replicas = self.replicas
        if replicas is None or self.feed is None:
            return
        for _, group in self._held:
            for at, (session, pieces, offset, wrote) in enumerate(group):
                if replicas.must_wait(offset, wrote):
                    refused = refuse_all(b"".join(pieces), error, _push_heads(session))
                    group[at] = (session, session.replies.exchange(pieces, refused), 0, False)
        for session in sessions:
            wrote = bool(session.keyed & KEYED_WRITE)
            if session.keyed and replicas.must_wait(self.feed.effects_offset, wrote):
                session.keyed = 0
                session.replies.refuse_finished(error, _push_heads(session))

    def refuse(self, session: Session, pieces: list[bytes], error: PenstockError) -> None:
        """Send an error instead of each reply."""
        refused = refuse_all(b"".join(pieces), error, _push_heads(session))
        session.deliver(session.replies.exchange(pieces, refused))
