"""Keeps a running server's data on disk: the log, the periodic work, and the end.

    SyncThread         writes and syncs the effects of each turn, then lets the loop send the replies
    saving/child       a forked child writes a snapshot or a base while the loop continues
    saving/snapshots   SAVE, BGSAVE, save points
    saving/rewrites    BGREWRITEAOF, automatic rewrites, fresh bases
    disk_failure       writes are refused while the log cannot be written

One child runs at a time. A rewrite that is requested during a snapshot waits for its end; a snapshot that is
requested during a rewrite waits if the client asks for that (BGSAVE SCHEDULE).

Intervals are measured by the server's monotonic clock: the system date may be set back.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Protocol

from penstock.errors import CommandError, ConfigError
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.sync_thread import SyncThread
from penstock.persist.disk import reason
from penstock.persist.recovery import Recovered
from penstock.persist.store import Store
from penstock.server.config.settings import Config
from penstock.server.log import LOG
from penstock.server.log_waiters import LogWaiter, LogWaiters
from penstock.server.saving.child import ChildSlot
from penstock.server.saving.rewrites import Rewrites
from penstock.server.saving.snapshots import Snapshots, snapshot_options
from penstock.server.server import Server

_SYNC_EVERY_MS = 1000
QUICK_SYNC_SECONDS = (
    0.001  # the loop itself syncs for one client alone if a sync takes less than this
)


class Syncer(Protocol):
    """The thread that syncs the log, or a test's stand-in."""

    def stop(self) -> None:
        """Sync everything that was handed over, and end."""


class Durability:
    """The log of a server, its `snapshots`, `rewrites` and `child`. Without a log `store.commit` is None."""

    def __init__(
        self,
        server: Server,
        store: Store,
        config: Config,
        loop: asyncio.AbstractEventLoop,
        new_thread: Callable[[Commit, Callable[[], None]], Syncer] = SyncThread,
    ) -> None:
        """`new_thread` starts a thread that syncs a commit and calls a function after each sync."""
        self.server = server
        self.store = store
        self.child = ChildSlot(server, loop)
        self.snapshots = Snapshots(server, store, config, self.child)
        self.rewrites = Rewrites(server, store, config, self.child, loop)
        self.rewrites.on_base = self._on_base
        self._config = config
        self._loop = loop
        self._new_thread = new_thread
        self.quick_seconds = QUICK_SYNC_SECONDS  # of the next log; see Commit
        self._thread: Syncer | None = None
        self._waiting = LogWaiters()
        self._synced_ms = 0

    # --- The log -----------------------------------------------------------------------------------

    def begin_log(self, recovered: Recovered) -> None:
        """Log all changes from now on. Raises: OSError."""
        policy = self.rewrites.configured_policy
        self.store.begin_log(recovered, policy, snapshot_options(self._config))
        self._watch_commit()

    def switch_log(self, on: bool) -> None:
        """CONFIG SET appendonly. Raises: ConfigError if a log cannot be started now."""
        if on == (self.store.commit is not None):
            return
        if not self.server.engine.context.may_block:
            raise ConfigError("not within a transaction: its effects would be split")
        if not on:
            self._end_log()
            return
        if self.child.is_busy:
            raise ConfigError("a snapshot is being written: try again when it is done")
        try:
            self.rewrites.start_first()
        except OSError as error:
            self.server.replication.use_log(None)  # it still records effects, for the stream
            raise ConfigError(f"cannot start the log: {reason(error)}") from error
        self._watch_commit()

    def _watch_commit(self) -> None:
        commit = self.store.commit
        assert commit is not None
        self._thread = self._new_thread(commit, self._on_synced)
        commit.quick_seconds = self.quick_seconds
        self.server.replication.use_log(commit)
        self.server.turn.commit = commit
        self.server.turn.on_failure = self._on_failure

    def _end_log(self) -> None:
        """Switch the log off; everything handed over is on disk when this returns."""
        self.rewrites.kill_child()
        self._stop_thread()
        try:
            self.store.end_log()
        except OSError as error:
            LOG.error("the end of the log is not on disk: %s", reason(error))
        self.server.turn.commit = None
        self.server.replication.use_log(None)
        self.server.turn.release_all()
        self._waiting.answer_all()
        self.rewrites.forget_current()
        self._accept_writes()

    def start_over(self) -> None:
        """All data was replaced: write a fresh base. Until it is on disk, the old log counts."""
        commit = self.store.commit
        self.snapshots.kill_child()
        if commit is None:
            return
        self.rewrites.kill_child()
        self.rewrites.forget_current()
        why = self.rewrites.start_fresh()
        if why is not None:
            commit.fail(OSError(errno.EIO, why))
            self._on_failure()

    def keep_log(self, name: str) -> str | None:
        """Keep the log as it is now in a directory of its own; return its path, None without a log.

        Raises: OSError.
        """
        commit = self.store.commit
        if commit is None or not commit.is_based:
            return None
        self.rewrites.kill_child()
        commit.sync()  # the thread that syncs has nothing to do then, so no file changes
        return self.store.keep_log(name)

    @property
    def has_base(self) -> bool:
        """Whether changes can be kept: there is no log, or its base is on disk."""
        return self.store.commit is None or self.store.commit.is_based

    def wait_for_base(self) -> None:
        """This server becomes a primary: refuse writes while its log could not keep them."""
        if not self.has_base:
            self.server.disk_failure.wait_for_base()

    def _stop_thread(self) -> None:
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    # --- After a sync ------------------------------------------------------------------------------

    def _on_synced(self) -> None:
        """In the sync thread."""
        self._loop.call_soon_threadsafe(self._after_sync)

    def _after_sync(self) -> None:
        commit = self.store.commit
        if commit is None:
            return
        if commit.failure is None:
            self.server.turn.release()
            self.server.replication.after_sync()
            self.rewrites.go_on()
        else:
            # Changes since the failure are in no log either: their replies must be refused with the others.
            self.server.turn.end()
            self._on_failure()
        self._answer_waiting()

    def wait_synced(self, waiter: LogWaiter, may_wait: bool) -> bool:
        """Call the waiter when all changes so far are on disk; False if they are already."""
        commit = self.store.commit
        failed = self.server.disk_failure.is_on
        return commit is not None and self._waiting.add(commit, waiter, may_wait, failed)

    def _answer_waiting(self) -> None:
        commit = self.store.commit
        if commit is not None and not self.server.disk_failure.is_on:
            self._waiting.answer(commit.synced)

    # --- Failures (see persist/health.py) --------------------------------------------------------------

    def _on_failure(self) -> None:
        commit = self.store.commit
        if commit is None or commit.failure is None:
            return
        if not self.child.is_busy:
            self.rewrites.forget_current()
        self.rewrites.health.note_failure()
        if self.server.disk_failure.begin(commit):
            LOG.error(
                "cannot write the log: %s. Writes are refused until a fresh base is on disk. Changes whose"
                " clients were waiting may or may not be in the log",
                self.server.disk_failure.reason,
            )
            self.rewrites.kill_child()

    def _try_fresh_base(self) -> None:
        failure = self.rewrites.start_fresh()
        if failure is not None:
            self.server.disk_failure.reason = failure
            LOG.warning("still cannot write the log: %s", failure)

    def _on_base(self) -> None:
        self._accept_writes()
        self._answer_waiting()

    def _accept_writes(self) -> None:
        self.rewrites.health.note_base_written()
        if self.server.disk_failure.end():
            LOG.warning("the log is on disk again: writes are accepted")

    # --- Periodic work -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due: sync, retry after a failure, save, rewrite."""
        now_ms = self.server.steady_ms()
        self.server.turn.note_effects()
        commit = self.store.commit
        if commit is not None:
            if commit.policy is Policy.EVERY_SECOND and now_ms - self._synced_ms >= _SYNC_EVERY_MS:
                self._synced_ms = now_ms
                if commit.synced != commit.position:
                    commit.wake()
            # A log that was switched on while the server ran may have failed to get its first base.
            if self.server.disk_failure.is_on or not commit.is_based:
                if self.rewrites.is_fresh_due:
                    self._try_fresh_base()
                return
        if not self.child.is_busy:
            self._start_due(now_ms)

    def _start_due(self, now_ms: int) -> None:
        try:
            if self.rewrites.is_due():
                self.rewrites.start()
            elif self.snapshots.is_due(now_ms):
                self.snapshots.start(schedule=False)
        except CommandError as error:
            LOG.error("%s", error)

    # --- The end -----------------------------------------------------------------------------------

    def save_at_end(self, save: bool | None) -> bool:
        """Write the last snapshot, if one is due; False if that failed. `save`: the argument of SHUTDOWN."""
        self.snapshots.kill_child()
        self.rewrites.kill_child()
        if bool(self._config.value("save")) if save is None else save:
            try:
                self.snapshots.save()
            except CommandError:
                return False
        return True

    def close(self, save: bool | None) -> bool:
        """Write everything to disk; False if that failed. `save`: the argument of SHUTDOWN, if any."""
        good = self.save_at_end(save)
        self._stop_thread()
        self.server.turn.release()
        try:
            self.store.close()
        except OSError as error:
            LOG.error("the end of the log is not on disk: %s", reason(error))
            good = False
        return good
