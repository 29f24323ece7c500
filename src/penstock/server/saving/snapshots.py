"""Snapshots: SAVE, BGSAVE, save points, and the snapshot at shutdown.

A save point (`save 300 100`) starts a background save after 300 seconds with at least 100 changes. After a
failed background save the next automatic one waits five seconds, and writes are refused if
stop-writes-on-bgsave-error says so.

Intervals are measured by the server's monotonic clock: the system date may be set back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import CommandError
from penstock.persist.disk import reason
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store
from penstock.server.log import LOG
from penstock.server.session.states import SAVE_FAILED
from penstock.server.stats import process

if TYPE_CHECKING:
    from penstock.server.config.settings import Config
    from penstock.server.saving.child import ChildSlot
    from penstock.server.server import Server

_RETRY_MS = 5000


@dataclass(slots=True)
class SnapshotStatus:
    """The snapshot fields of INFO and LASTSAVE."""

    saved_s: int = -1  # -1: no snapshot yet; INFO shows the start time instead
    dirty_at_save: int = 0
    ok: bool = True
    seconds: int = -1


def snapshot_options(config: Config) -> SnapshotOptions:
    """How snapshots and bases are written under the current settings."""
    return SnapshotOptions(
        compress=config.value("rdbcompression"),
        checksum=config.value("rdbchecksum"),
        preamble=config.value("aof-use-rdb-preamble"),
        used_memory=process.resident_bytes(),
        point=None if config.server is None else config.server.replication.point_or_none(),
    )


class Snapshots:
    """Writes snapshots, in this process or in a child. `is_scheduled`: a BGSAVE waits for a child to end."""

    def __init__(self, server: Server, store: Store, config: Config, child: ChildSlot) -> None:
        self._server = server
        self._store = store
        self._config = config
        self._child = child
        self._dirty_at_start = 0  # of the snapshot under way
        self._failed_ms = 0
        self._is_killed = False
        self._saved_ms = server.steady_ms()
        self.is_scheduled = False
        self.status = SnapshotStatus(dirty_at_save=server.engine.context.dirty)

    @property
    def is_running(self) -> bool:
        """Whether a child writes a snapshot."""
        return self._child.works_for(self._finish)

    def save(self) -> None:
        """SAVE: write a snapshot while all clients wait. Raises: CommandError."""
        if self.is_running:
            raise CommandError("Background save already in progress")
        try:
            self._store.save(snapshot_options(self._config))
        except OSError as error:
            LOG.error("cannot write the snapshot: %s", reason(error))
            raise CommandError(f"cannot write the snapshot: {reason(error)}") from error
        self._note_saved(self._server.engine.context.dirty)

    def start(self, schedule: bool) -> str:
        """BGSAVE: write a snapshot in a child, and return the reply. Raises: CommandError."""
        if self.is_running:
            raise CommandError("Background save already in progress")
        # A transaction that runs must not be split between this snapshot and the next.
        in_exec = not self._server.engine.context.may_block
        if self._child.is_busy or in_exec:
            if not schedule and not in_exec:
                raise CommandError(
                    "Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE"
                    " in order to schedule a BGSAVE whenever possible."
                )
            self.is_scheduled = True
            return "Background saving scheduled"
        self.is_scheduled = False
        dirty = self._server.engine.context.dirty
        options = snapshot_options(self._config)
        try:
            self._child.start(lambda: self._store.save(options), self._finish)
        except OSError as error:
            self._finish(reason(error))
            raise CommandError(f"cannot fork: {reason(error)}") from error
        self._dirty_at_start = dirty
        return "Background saving started"

    def kill_child(self) -> None:
        """Stop a snapshot that a child writes. That is no failure."""
        self._is_killed = self.is_running
        self._child.kill(self._finish)
        self._is_killed = False

    def is_due(self, now_ms: int) -> bool:
        """Tell whether a snapshot is scheduled, or a save point is reached."""
        if self.is_scheduled:
            return True
        changes = self._server.engine.context.dirty - self.status.dirty_at_save
        if not self.status.ok and now_ms - self._failed_ms < _RETRY_MS:
            return False
        return any(
            changes >= wanted and now_ms - self._saved_ms > seconds * 1000
            for seconds, wanted in self._config.value("save")
        )

    def _finish(self, failure: str | None) -> None:
        if self._is_killed:
            return
        self.status.seconds = self._child.seconds
        self.status.ok = failure is None
        if failure is None:
            self._note_saved(self._dirty_at_start)
            LOG.info("snapshot saved in %d s", self.status.seconds)
            return
        LOG.error("cannot write the snapshot: %s", failure)
        self._failed_ms = self._server.steady_ms()
        if self._config.value("save") and self._config.value("stop-writes-on-bgsave-error"):
            self._server.state |= SAVE_FAILED

    def _note_saved(self, dirty: int) -> None:
        self._saved_ms = self._server.steady_ms()
        self.status.saved_s = self._server.engine.context.now_ms() // 1000
        self.status.dirty_at_save = dirty
        self.status.ok = True
        self._server.state &= ~SAVE_FAILED
