"""What waits for replicas: replies (min-replicas-ack), and clients in WAIT and WAITAOF.

With `min-replicas-ack k` a reply to a command on keys leaves when k replicas have the changes of its turn, in
memory or (min-replicas-ack-fsync) on disk. Later replies of the same client wait behind it. All others leave
at once: Sentinel's PING must not wait, nor the reply to the replica that everybody waits for.

If the acks do not come in time, the waiting replies become NOREPLICAS: the outcome of these commands is
unknown. From then on, until the acks have caught up, writes are refused before they run, and reads need not
wait (min-replicas-stale-reads). The same holds with fewer than k replicas online.

Invariants
  AW1  offsets rise from the front of the queue to its end.
  AW2  a client with replies in the queue has `awaiting` > 0, and its later replies go behind them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import CommandError

if TYPE_CHECKING:
    from penstock.server.replication.replicas import Replicas
    from penstock.server.server import Server
    from penstock.server.session.session import Session

Refuse = Callable[["Session", list[bytes], CommandError], None]


def not_enough_replicas() -> CommandError:
    """Redis's error for a write that too few replicas would get."""
    return CommandError("Not enough good replicas to write.", "NOREPLICAS")


@dataclass(slots=True)
class _Held:
    offset: int
    since_ms: int
    session: Session
    pieces: list[bytes]


class HeldReplies:
    """Replies that wait for acks: hold, release, tick."""

    def __init__(self, server: Server, replicas: Replicas) -> None:
        self._server = server
        self._replicas = replicas
        self._held: deque[_Held] = deque()
        self._given_up = -1  # the highest offset whose acks did not come in time
        self.needed = 0  # min-replicas-ack
        self.needs_sync = False
        self.stale_reads = True  # min-replicas-stale-reads
        self.timeout_ms = 1000

    def reached(self) -> int:
        """The offset that enough replicas have; -1 if too few are online."""
        acks = sorted(
            (one.synced if self.needs_sync else one.acked for one in self._replicas.online()),
            reverse=True,
        )
        return acks[self.needed - 1] if len(acks) >= self.needed else -1

    def must_wait(self, offset: int, wrote: bool) -> bool:
        """Tell whether replies wait."""
        if offset == 0 or self.reached() >= offset:
            return False
        return wrote or not self.stale_reads or not self.is_short()

    def is_short(self) -> bool:
        """Tell whether too few replicas are there, or too few have acked in time."""
        return self.needed > 0 and self.reached() <= self._given_up

    def hold(self, session: Session, pieces: list[bytes], offset: int) -> None:
        """Keep replies until enough replicas have this offset."""
        session.awaiting += 1
        if self._held:
            offset = max(offset, self._held[-1].offset)  # AW1
        self._held.append(_Held(offset, self._server.steady_ms(), session, pieces))

    def release(self) -> None:
        """Send the replies that enough replicas have the changes of."""
        if not self._held:
            return
        reached = self.reached()
        while self._held and (not self.needed or self._held[0].offset <= reached):
            held = self._held.popleft()
            held.session.awaiting -= 1
            held.session.deliver(held.pieces)

    def forget(self) -> None:
        """The history has changed: offsets of the old one mean nothing."""
        self._given_up = -1

    def tick(self, refuse: Refuse) -> bool:
        """Turn all waiting replies into errors if the first has waited too long; True if so."""
        if not self._held or self._server.steady_ms() - self._held[0].since_ms < self.timeout_ms:
            return False
        self._given_up = self._held[-1].offset
        self.refuse_all(refuse)
        return True

    def refuse_all(self, refuse: Refuse) -> None:
        """Turn all waiting replies into errors: whether their changes last is unknown."""
        while self._held:
            held = self._held.popleft()
            held.session.awaiting -= 1
            refuse(held.session, held.pieces, not_enough_replicas())


class AckWaiter:
    """A client in WAIT or WAITAOF. `answer` sends its reply. `is_over`: it has timed out, or is gone."""

    def __init__(
        self,
        offset: int,
        replicas: int,
        on_disk: bool,
        answer: Callable[[int], None],
        is_over: Callable[[], bool],
    ) -> None:
        self.offset = offset
        self.replicas = replicas
        self.on_disk = on_disk
        self.answer = answer
        self.is_over = is_over


class AckWaiters:
    """The clients in WAIT and WAITAOF: add, look."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._waiting: list[AckWaiter] = []

    def count(self, offset: int, on_disk: bool) -> int:
        """How many replicas have an offset, in memory or on disk."""
        count = self._replicas.synced_by if on_disk else self._replicas.acked_by
        return count(offset)

    def add(self, waiter: AckWaiter) -> None:
        """Answer a client when enough replicas have its offset."""
        self._waiting = [one for one in self._waiting if not one.is_over()]
        self._waiting.append(waiter)

    def look(self) -> None:
        """A replica has acked: answer those whose replicas are enough."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            count = self.count(waiter.offset, waiter.on_disk)
            if count >= waiter.replicas:
                waiter.answer(count)
            elif not waiter.is_over():
                self._waiting.append(waiter)
