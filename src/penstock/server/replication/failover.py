"""FAILOVER: hands the role of the primary over to a replica, without losing a write.

    1  writes are paused, and so are expiry and PING: the stream stands still
    2  the target acks everything; its log must have a base, or it would refuse writes after step 3
    3  this server becomes its replica, and its PSYNC carries the word FAILOVER: the target becomes a primary

With a timeout and FORCE, step 3 begins when the time is over even if step 2 has not ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import CommandError
from penstock.server.log import LOG
from penstock.server.replication.feed import GETACK

if TYPE_CHECKING:
    from penstock.server.replication.replication import Replication

_ASK_EVERY_MS = 1000


class Failover:
    """One at a time: begin, abort, look, note_taken_over, tick. `state` is what INFO shows."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._server = replication.server
        self.state = "no-failover"
        self._target: tuple[str, int] | None = None
        self._deadline_ms: int | None = None
        self._force = False
        self._asked_ms = 0

    @property
    def is_on(self) -> bool:
        """Whether a failover is under way."""
        return self.state != "no-failover"

    def begin(self, target: tuple[str, int] | None, timeout_ms: int | None, force: bool) -> None:
        """Start. Raises: CommandError."""
        replication = self._replication
        if self.is_on:
            raise CommandError("FAILOVER already in progress.")
        if not replication.is_primary:
            raise CommandError("FAILOVER is not valid when server is a replica.")
        replicas = replication.replicas.all()
        if not replicas:
            raise CommandError("FAILOVER requires connected replicas.")
        if target is not None:
            found = [one for one in replicas if one.address == target]
            if not found:
                raise CommandError("FAILOVER target HOST and PORT is not a replica.")
            if not found[0].is_online:
                raise CommandError("FAILOVER target replica is not online.")
            replicas = found
        if all(one.lacks_base for one in replicas):
            raise CommandError(
                "FAILOVER must wait: the replica has just got a snapshot and writes its log."
            )
        self._target = target
        self._force = force
        now_ms = self._server.steady_ms()
        self._deadline_ms = None if timeout_ms is None else now_ms + timeout_ms
        self.state = "waiting-for-sync"
        LOG.info("failover: writes are paused")
        self._server.pause.hold_writes("failover")
        self._ask()

    def abort(self) -> None:
        """Give up. Raises: CommandError if none is under way."""
        if not self.is_on:
            raise CommandError("No failover in progress.")
        was_following = self.state == "failover-in-progress"
        self._end("aborted")
        if was_following:
            self._replication.become_primary()

    def look(self) -> None:
        """A replica has acked."""
        if self.state != "waiting-for-sync" or not self._server.engine.context.may_block:
            return
        self._replication.feed.hand_over()  # keys that have expired since
        # Every byte counts, or the target would branch off earlier than this server ends. An ack does not
        # cover the GETACK that asked for it.
        offset = self._replication.feed.history.offset - len(GETACK)
        for replica in self._replication.replicas.online():
            if replica.lacks_base or self._target not in (None, replica.address):
                continue
            if replica.acked >= offset:
                self._hand_over(replica.address)
                return

    def note_taken_over(self) -> None:
        """The target is the primary now.

        The failover ends at once: the new primary may hand the role back before the next periodic work.
        """
        if self.state == "failover-in-progress":
            self._end("done")

    def tick(self) -> None:
        """Every run of the periodic work: ask again, and watch the time."""
        if self.state != "waiting-for-sync":
            return
        if self._deadline_ms is not None and self._server.steady_ms() >= self._deadline_ms:
            if self._force and self._target is not None:
                self._hand_over(self._target)
            else:
                self._end("timed out")
            return
        if self._server.steady_ms() - self._asked_ms >= _ASK_EVERY_MS:
            self._ask()

    def _ask(self) -> None:
        """Ask for acks. Each question moves the offset that must be acked, so there are few."""
        self._asked_ms = self._server.steady_ms()
        self._replication.feed.say(GETACK)

    def _hand_over(self, target: tuple[str, int]) -> None:
        self.state = "failover-in-progress"
        LOG.info("failover: %s:%d takes over", *target)
        self._replication.follow(*target, fails_over=True)

    def _end(self, how: str) -> None:
        LOG.info("failover: %s", how)
        self.state = "no-failover"
        self._target = None
        self._server.pause.release_writes("failover")
