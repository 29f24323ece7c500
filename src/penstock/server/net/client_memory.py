"""What the buffers of clients occupy, and which clients go when that is too much (maxmemory-clients).

A client's memory is its input that makes no command yet, its queued commands, its replies that are not sent,
and what a connection takes in any case. Clients with large buffers are noted when these change; of all others
the cron looks at a part in every round, so that every client is looked at once a second.

    maxmemory-clients 100mb     at most so much for all clients together
    maxmemory-clients 5%        of maxmemory; no limit while maxmemory is 0

Over the limit, the clients that occupy most are disconnected, largest first, until the rest fits. CLIENT NO-
EVICT spares a client, but what it occupies counts.

`maxmemory` is about data. Connections that have not authenticated are not counted for it: their buffers are
small (parser.py), their time is short (strangers.py), and nobody without the password may make the server
refuse writes. What authenticated clients occupy counts, as in Redis.

Invariants
  M1  `total` is the sum of `counted_bytes` over all sessions of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.server.log import LOG

if TYPE_CHECKING:
    from penstock.server.server import Server
    from penstock.server.session.session import Session

CONNECTION_BYTES = 4 * 1024  # with empty buffers; benchmarks/fairness.py measures it
LIMIT_BYTES_MIN = 128 * 1024  # as in Redis: below it nobody could connect and set it right
_LOOKED_AT_MIN = 50


class ClientBytes(NamedTuple):
    """One client's, by what they are for."""

    kept: int
    kept_room: int
    words: int
    queued: int
    reply_room: int
    aside: int
    unsent: int

    @property
    def total(self) -> int:
        """All of them, with the connection itself."""
        buffers = self.kept_room + self.words + self.queued + self.reply_room
        return CONNECTION_BYTES + buffers + self.aside + self.unsent


def client_bytes(session: Session) -> ClientBytes:
    """What one client occupies now. Cost: O(1)."""
    kept, room = session.receiver.kept_bytes()
    unsent = 0 if session.link is None else session.link.unsent_bytes()
    waiting = session.postponed if session.waiter is None else session.waiter.frame
    return ClientBytes(
        kept=kept,
        kept_room=room,
        words=0 if waiting is None else waiting.end,
        queued=0 if session.transaction is None else session.transaction.queued_bytes,
        reply_room=len(session.output.buffer),
        aside=session.replies.aside_bytes + session.replies.taken_bytes,
        unsent=unsent,
    )


class ClientMemory:
    """Of all clients of a server. `setting`: bytes, or a negative percentage of maxmemory; 0 for no limit."""

    __slots__ = ("_is_over", "_round", "_scheduled", "_server", "evicted", "setting", "total")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._round: list[Session] = []  # of whom the cron has yet to look at
        self._scheduled = False
        self._is_over = False  # and nobody is left who could go: said once
        self.setting = 0
        self.total = 0
        self.evicted = 0

    @property
    def limit(self) -> int:
        """In bytes; 0 for none."""
        setting = self.setting
        if setting < 0:
            setting = self._server.max_memory * -setting // 100
        return max(setting, LIMIT_BYTES_MIN) if setting else 0

    def note(self, session: Session) -> None:
        """A client's buffers have changed much; an eviction that it calls for follows this turn."""
        if session.id not in self._server.sessions:
            return
        self._count(session)
        if self.setting and 0 < self.limit <= self.total and not self._scheduled:
            self._scheduled = True
            self._server.loop.call_soon(self._evict_soon)

    def _count(self, session: Session) -> None:
        size = client_bytes(session).total
        self.total += size - session.counted_bytes
        session.counted_bytes = size

    def forget(self, session: Session) -> None:
        """A client is gone."""
        self.total -= session.counted_bytes
        session.counted_bytes = 0

    def recount(self) -> int:
        """The bytes of all clients, each looked at now. Cost: O(clients)."""
        for session in self._server.sessions.values():
            self._count(session)
        return self.total

    def stranger_bytes(self) -> int:
        """Of connections that have not authenticated. Cost: O(such connections)."""
        return sum(session.counted_bytes for session in self._server.strangers.since)

    def look(self) -> None:
        """The cron's part: look at some of the clients, and evict if need be."""
        if not self.setting:
            return
        sessions = self._server.sessions
        for _ in range(max(_LOOKED_AT_MIN, len(sessions) // self._server.hz)):
            if not self._round:
                self._round = list(sessions.values())
                if not self._round:
                    break
            session = self._round.pop()
            if session.id in sessions:
                self._count(session)
        self.evict()

    def _evict_soon(self) -> None:
        self._scheduled = False
        self.evict()

    def evict(self) -> None:
        """Disconnect the largest clients until the others are below the limit."""
        limit = self.limit
        if not 0 < limit <= self.total:
            self._is_over = False
            return
        self.recount()
        evictable = [one for one in self._server.sessions.values() if not one.info.no_evict]
        evictable.sort(key=lambda one: one.counted_bytes)
        while self.total >= limit and evictable:
            self._evict(evictable.pop(), limit)
        if self.total >= limit and not self._is_over:
            self._is_over = True
            LOG.warning("clients that may not be evicted occupy more than maxmemory-clients")

    def _evict(self, session: Session, limit: int) -> None:
        LOG.info(
            "client %s is evicted: it occupies %d bytes, all clients %d, maxmemory-clients is %d",
            session.info.address,
            session.counted_bytes,
            self.total,
            limit,
        )
        self.evicted += 1
        session.kill()
