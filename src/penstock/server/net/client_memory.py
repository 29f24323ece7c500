"""Measures the memory of client buffers, and disconnects clients if it is too much (maxmemory-clients).

A client's memory is its unparsed input, its queued commands, its unsent replies and a fixed cost per
connection, which is larger with TLS. Clients with large buffers are counted when these change. Of the other
clients, the cron counts some in every run, so that each is counted once a second.

    maxmemory-clients 100mb     limit for all clients together
    maxmemory-clients 5%        of maxmemory; no limit while maxmemory is 0

Above the limit, the largest clients are disconnected until the rest fits. CLIENT NO-EVICT exempts a client
from that, but its memory still counts.

Connections that have not authenticated do not count for `maxmemory`: their buffers are small (parser.py),
they are closed soon (strangers.py), and a client without the password must not make the server refuse writes.
The memory of authenticated clients counts, as in Redis.

Invariants
  M1  `total` is the sum of `counted_bytes` over all sessions of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.server.log import LOG
from penstock.server.net.tls import BUFFER_BYTES
from penstock.server.session.states import REPLICA

if TYPE_CHECKING:
    from penstock.server.server import Server
    from penstock.server.session.session import Session

CONNECTION_BYTES = 4 * 1024  # with empty buffers; benchmarks/fairness.py measures it
LIMIT_BYTES_MIN = 128 * 1024  # as in Redis: with a lower limit no client could connect to raise it
_LOOKED_AT_MIN = 50


class ClientBytes(NamedTuple):
    """The memory of one client, by purpose."""

    kept: int
    kept_room: int
    words: int
    queued: int
    reply_room: int
    aside: int
    unsent: int
    tls: int

    @property
    def total(self) -> int:
        """The sum, with the fixed cost of a connection."""
        buffers = self.kept_room + self.words + self.queued + self.reply_room
        return CONNECTION_BYTES + buffers + self.aside + self.unsent + self.tls


def client_bytes(session: Session) -> ClientBytes:
    """The current memory of one client. Cost: O(1)."""
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
        tls=BUFFER_BYTES if session.info.is_tls else 0,
    )


class ClientMemory:
    """The memory of all clients. `setting`: bytes, or a negative percentage of maxmemory; 0 for no limit."""

    __slots__ = ("_is_over", "_round", "_scheduled", "_server", "evicted", "setting", "total")

    def __init__(self, server: Server) -> None:
        self._server = server
        self._round: list[Session] = []  # clients that the cron has yet to count
        self._scheduled = False
        self._is_over = False  # and no client can be evicted: logged once
        self.setting = 0
        self.total = 0
        self.evicted = 0

    @property
    def limit(self) -> int:
        """The limit in bytes; 0 for none."""
        setting = self.setting
        if setting < 0:
            setting = self._server.max_memory * -setting // 100
        return max(setting, LIMIT_BYTES_MIN) if setting else 0

    def note(self, session: Session) -> None:
        """Count a client whose buffers have changed much; evictions follow at the end of the turn."""
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
        """Remove a client that is gone."""
        self.total -= session.counted_bytes
        session.counted_bytes = 0

    def recount(self) -> int:
        """The bytes of all clients, each looked at now. Cost: O(clients)."""
        for session in self._server.sessions.values():
            self._count(session)
        return self.total

    def stranger_bytes(self) -> int:
        """The memory of connections that have not authenticated. Cost: O(such connections)."""
        return sum(session.counted_bytes for session in self._server.strangers.since)

    def look(self) -> None:
        """Called by the cron: count some of the clients, and evict if necessary."""
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
        sessions = self._server.sessions.values()
        evictable = [one for one in sessions if not (one.info.no_evict or one.state & REPLICA)]
        evictable.sort(key=lambda one: one.counted_bytes)
        while self.total >= limit and evictable:
            self._evict(evictable.pop(), limit)
        if self.total >= limit and not self._is_over:
            self._is_over = True
            LOG.warning("clients with NO-EVICT use more memory than maxmemory-clients")

    def _evict(self, session: Session, limit: int) -> None:
        LOG.info(
            "client %s is evicted: it uses %d bytes, all clients use %d, maxmemory-clients is %d",
            session.info.address,
            session.counted_bytes,
            self.total,
            limit,
        )
        self.evicted += 1
        session.kill()
