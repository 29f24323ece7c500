"""A log that cannot be written: writes are refused until a fresh base is on disk.

persist/health.py has the rule. This is its part that clients see, for a server and for a served embedded
database (shared_log.py): replies that wait for the failed write become errors, writes are refused with the
reason, reads continue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.persist.aof.commit import Commit
from penstock.persist.disk import reason
from penstock.persist.health import lost
from penstock.server.session.states import DISK_FAILED

if TYPE_CHECKING:
    from penstock.server.server import Server


class DiskFailure:
    """Owns the DISK_FAILED bit of a server's state, and `reason`: why the log could not be written last.

    `has_failed`: the log has failed. Otherwise the bit means that the first base is still being written.
    """

    __slots__ = ("_server", "has_failed", "reason")

    def __init__(self, server: Server) -> None:
        self._server = server
        self.reason = ""
        self.has_failed = False  # as opposed to: the first base is being written

    @property
    def is_on(self) -> bool:
        """Whether writes are refused."""
        return bool(self._server.state & DISK_FAILED)

    def begin(self, commit: Commit) -> bool:
        """Refuse writes, if the log has failed; False if it has not, or if they are refused already."""
        failure = commit.failure
        self.has_failed |= failure is not None
        if failure is None or self.is_on:
            return False
        self.reason = reason(failure)
        self._server.state |= DISK_FAILED
        self._server.turn.refuse_held(lost(failure))
        commit.give_up_unreleased()
        return True

    def wait_for_base(self) -> None:
        """Refuse writes until the base of the log is on disk."""
        if not self.is_on:
            self.reason = "the base of the log is not on disk yet"
            self._server.state |= DISK_FAILED

    def end(self) -> bool:
        """Accept writes again; False if they were not refused."""
        was_on = self.is_on
        self.has_failed = False
        self._server.state &= ~DISK_FAILED
        return was_on
