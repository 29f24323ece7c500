"""The log of an embedded database, as far as the clients of its socket are concerned.

Replies wait for the disk as in a server of its own. Snapshots, rewrites and what follows a failure are the
business of the program that has the database open (keeper.py).
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import outcome_unknown
from penstock.persist.store import Store
from penstock.persist.sync_thread import SyncThread
from penstock.server.server import Server
from penstock.server.states import DISK_FAILED


class SharedLog:
    """Lets a server's turns hand over to somebody else's log: begin, end."""

    def __init__(
        self, server: Server, store: Store, post: Callable[[Callable[[], None]], object]
    ) -> None:
        assert store.commit is not None
        self._server = server
        self._commit = store.commit
        self._post = post  # calls on the loop, with the database's lock
        self._thread: SyncThread | None = None

    def begin(self) -> None:
        """From now on replies wait."""
        self._thread = SyncThread(self._commit, self._on_synced)
        self._server.turn.commit = self._commit
        self._server.turn.on_failure = self._on_failure
        self._server.facts.appendonly = True

    def end(self) -> None:
        """No turn hands over any longer; what was handed over is on disk."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def _on_synced(self) -> None:
        """Called by the thread."""
        self._post(self._after_sync)

    def _after_sync(self) -> None:
        if self._commit.failure is not None:
            self._server.turn.end()  # what it has done is in no log either
            self._on_failure()
        else:
            self._server.turn.release()
            self._server.state &= ~DISK_FAILED

    def _on_failure(self) -> None:
        failure = self._commit.failure
        if failure is None or self._server.state & DISK_FAILED:
            return
        why = failure.strerror or str(failure)
        self._server.state |= DISK_FAILED
        self._server.facts.disk_error = why
        self._server.turn.refuse_held(outcome_unknown(why))
        self._commit.give_up_unreleased()
