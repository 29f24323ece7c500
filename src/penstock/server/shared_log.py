"""Connects a server to the log of an embedded database that is served on a socket.

Replies wait for the disk as in a stand-alone server. The embedding program handles snapshots, rewrites and
the recovery from disk failures (embedded/durability.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.errors import CommandError
from penstock.persist.aof.commit import Commit
from penstock.persist.health import LogHealth
from penstock.server.server import Server

RETRY_SECONDS = 1.0  # how often the owner is asked; its LogHealth decides whether a retry is due


class LogOwner(Protocol):
    """The embedded database's side: embedded.durability.Keeper."""

    commit: Commit
    health: LogHealth

    def listen(self, on_synced: Callable[[], None]) -> None:
        """Call a function after each sync, successful or not."""

    def unlisten(self, on_synced: Callable[[], None]) -> None:
        """Stop calling it."""

    def prepare(self, writes: bool) -> None:
        """Recover from a failure if possible. Raises: CommandError if writes are needed and impossible."""

    def read_again(self) -> None:
        """Reload the data from disk, after a command failed halfway."""


class SharedLog:
    """Lets a server's turns use a log that another object owns: begin, end."""

    def __init__(
        self, server: Server, owner: LogOwner, post: Callable[[Callable[[], None]], object]
    ) -> None:
        self._server = server
        self._owner = owner
        self._commit = owner.commit
        self._post = post  # calls a function on the loop, with the database's lock held
        self._begun = False

    def begin(self) -> None:
        """From now on replies wait for the log."""
        self._begun = True
        self._owner.listen(self._on_synced)
        self._server.turn.commit = self._commit
        self._server.turn.on_failure = self._on_failure

    def end(self) -> None:
        """Stop using the log; everything handed over is on disk when this returns."""
        self._begun = False
        self._commit.sync()
        self._owner.unlisten(self._on_synced)

    def _on_synced(self) -> None:
        """In the sync thread."""
        self._post(self._after_sync)

    def _after_sync(self) -> None:
        if self._commit.failure is not None:
            self._server.turn.end()  # its changes are in no log either
            self._on_failure()
        else:
            self._server.turn.release()
            if self._commit.is_based:
                self._server.disk_failure.end()

    def _on_failure(self) -> None:
        self._owner.health.note_failure()
        if self._server.disk_failure.begin(self._commit):
            self._server.loop.call_later(RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        """Check whether the disk works again: the program itself may never write."""
        if not self._begun:
            return
        try:
            self._owner.prepare(writes=True)
        except CommandError:
            self._server.loop.call_later(RETRY_SECONDS, self._try_again)
        else:
            self._server.disk_failure.end()
