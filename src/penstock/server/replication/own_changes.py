"""Keeps what only this server may have, before a snapshot of another primary replaces its data.

    dropped-1f0a93bc-1043.aof   the changes that it took as a primary, from this offset on; from the backlog
    dropped-1f0a93bc-2210/      its whole log, as a data directory; if the backlog does not have all of them

After a restart a former primary does not know which of its changes have reached other servers: it may have
been killed. All its data counts as its own until a replica has acked everything that it started with, or
until a primary continues its history. The log says which role it had (persist/replication_point.py).

If the changes cannot be kept, the data stays, and the link tries again later.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.persist.replication_point import ReplicationPoint
from penstock.server.log import LOG

if TYPE_CHECKING:
    from penstock.server.replication.replication import Replication

_ALL = -1


class OwnChanges:
    """What a primary has changed: begin_after_restart, begin, begin_unknown, note_ack, end; keep."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._since: int | None = 0  # changes after this offset are its own; None: there are none
        self._unknown_until = 0  # with _ALL: the offset that a replica must ack

    def begin_after_restart(self, recovered: ReplicationPoint | None, is_primary: bool) -> None:
        """The data is loaded. That of a replica is at its primary; that of a primary may be nowhere else."""
        offset = 0 if recovered is None else recovered.offset
        if recovered is not None and not recovered.of_primary and not is_primary:
            self.end()
        elif self._replication.has_keys():
            self.begin_unknown(offset)
        else:
            self.begin(offset)

    def begin(self, offset: int) -> None:
        """Changes from now on are its own."""
        self._since = offset
        self._replication.feed.has_own_changes = True

    def begin_unknown(self, offset: int) -> None:
        """All data up to an offset may be its own."""
        self._since = _ALL
        self._unknown_until = offset
        self._replication.feed.has_own_changes = True

    def note_ack(self, offset: int) -> None:
        """A replica has everything up to an offset."""
        if self._since == _ALL and offset >= self._unknown_until:
            self._since = self._unknown_until

    def end(self) -> None:
        """The primary has everything that is here."""
        self._since = None
        self._replication.feed.has_own_changes = False

    def keep(self) -> None:
        """Write what may be nowhere else to files. Raises: OSError; then nothing has changed."""
        since = self._since
        feed = self._replication.feed
        backlog = feed.backlog
        if since is None:
            return
        if since != _ALL and backlog is not None:
            if feed.history.offset <= since:
                return
            if backlog.first <= since + 1:
                self._keep_tail(since + 1)
                return
        if not self._replication.has_keys() or self._keep_log():
            return
        if backlog is not None and backlog.size:
            self._keep_tail(max(since + 1, backlog.first))
        LOG.warning(
            "this server has data that may be nowhere else, and no log that could be kept: it is lost"
        )

    def _name(self, offset: int) -> str:
        return f"dropped-{self._replication.feed.history.id[:8]}-{offset}"

    def _keep_tail(self, first: int) -> None:
        """Write the backlog from an offset on to a file. Raises: OSError."""
        backlog = self._replication.feed.backlog
        durability = self._replication.server.durability
        assert backlog is not None
        assert durability is not None
        disk, directory = durability.store.disk, durability.store.layout.directory
        path = f"{directory}/{self._name(first)}.aof"
        file = disk.create(path)
        try:
            try:
                file.write(backlog.since(first))
                file.sync()
            finally:
                file.close()
            disk.sync_dir(directory)
        except OSError:
            with suppress(OSError):
                disk.remove(path)
            raise
        LOG.warning(
            "the changes that this server has taken as a primary, from offset %d on, may be nowhere else."
            " They are kept in %s; penstock inspect shows them",
            *(first, path),
        )

    def _keep_log(self) -> bool:
        """Keep the whole log beside the new one; False if there is none. Raises: OSError."""
        durability = self._replication.server.durability
        assert durability is not None
        name = self._name(self._replication.feed.history.offset)
        path = durability.keep_log(name)
        if path is None:
            return False
        LOG.warning(
            "some changes of this server may be nowhere else. All data that it had is kept in %s: a data"
            " directory for penstock check, penstock inspect and penstock serve --dir. Remove it when nothing"
            " in it is needed",
            path,
        )
        return True
