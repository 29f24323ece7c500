"""The log of an embedded database, as far as the clients of its socket are concerned.

Replies wait for the disk as in a server of its own. Snapshots, rewrites and what follows a failure are the
business of the program that has the database open (embedded/durability.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.errors import CommandError
from penstock.persist.aof.commit import Commit
from penstock.server.server import Server

RETRY_SECONDS = 1.0


class LogOwner(Protocol):
    """Who has the database open: embedded.durability.Keeper."""

    commit: Commit

    def listen(self, on_synced: Callable[[], None]) -> None:
        """Call whenever something is on disk, or the disk has failed."""

    def unlisten(self, on_synced: Callable[[], None]) -> None:
        """Call no longer."""

    def prepare(self, writes: bool) -> None:
        """Mend what can be mended. Raises: CommandError if something is to be written and cannot be."""

    def read_again(self) -> None:
        """Have what is on disk in memory, after a command was broken off."""


class SharedLog:
    """Lets a server's turns hand over to somebody else's log: begin, end."""

    def __init__(
        self, server: Server, owner: LogOwner, post: Callable[[Callable[[], None]], object]
    ) -> None:
        self._server = server
        self._owner = owner
        self._commit = owner.commit
        self._post = post  # calls on the loop, with the database's lock
        self._begun = False

    def begin(self) -> None:
        """From now on replies wait."""
        self._begun = True
        self._owner.listen(self._on_synced)
        self._server.turn.commit = self._commit
        self._server.turn.on_failure = self._on_failure

    def end(self) -> None:
        """No turn hands over any longer; what was handed over is on disk."""
        self._begun = False
        self._commit.sync()
        self._owner.unlisten(self._on_synced)

    def _on_synced(self) -> None:
        """Called by the thread."""
        self._post(self._after_sync)

    def _after_sync(self) -> None:
        if self._commit.failure is not None:
            self._server.turn.end()  # what it has done is in no log either
            self._on_failure()
        else:
            self._server.turn.release()
            self._server.disk_failure.end()

    def _on_failure(self) -> None:
        if self._server.disk_failure.begin(self._commit):
            self._server.loop.call_later(RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        """The program may never write itself: somebody must see whether the disk is well again."""
        if not self._begun:
            return
        try:
            self._owner.prepare(writes=True)
        except CommandError:
            self._server.loop.call_later(RETRY_SECONDS, self._try_again)
        else:
            self._server.disk_failure.end()
