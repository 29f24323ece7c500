"""What keeps a running server's data: the log on its way to disk, snapshots, rewrites, failures.

    SyncThread   writes and syncs what turns hand over; tells the loop when replies may go out
    Child        a forked copy of this process writes a snapshot or a new base while the loop goes on
    tick()       every second's sync, snapshots after so many changes, rewrites after so much growth

A failed write or sync: writes are refused until a child has written a fresh base (persist/health.py).
Automatic rewrites that fail back off in a similar way (persist/backoff.py).

Every interval here is measured by the server's steady clock: the date may be set back.

One child at a time. A rewrite that is asked for while a snapshot is made waits for its end, and the other way
round where the client says so (BGSAVE SCHEDULE).
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from typing import Protocol

from penstock.errors import CommandError, ConfigError
from penstock.persist import backoff
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.sync_thread import SyncThread
from penstock.persist.child import Child, ChildFailed, start_child
from penstock.persist.disk import reason
from penstock.persist.health import LogHealth
from penstock.persist.recovery import Recovered
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Rewrite, Store
from penstock.server.config.settings import Config
from penstock.server.log import LOG
from penstock.server.log_failure import accept_writes, refuse_writes
from penstock.server.log_waiters import LogWaiter, LogWaiters
from penstock.server.server import Server
from penstock.server.session.states import DISK_FAILED, SAVE_FAILED
from penstock.server.stats import process

_SYNC_EVERY_MS = 1000
_SAVE_RETRY_MS = 5000


class Syncer(Protocol):
    """Whoever syncs."""

    def stop(self) -> None:
        """Sync what there is and end."""


class Durability:
    """The durable half of a server. `store.commit` is None without a log."""

    def __init__(
        self,
        server: Server,
        store: Store,
        config: Config,
        loop: asyncio.AbstractEventLoop,
        new_thread: Callable[[Commit, Callable[[], None]], Syncer] = SyncThread,
    ) -> None:
        """`new_thread`: who calls sync() of a commit that is begun, and then what it is given."""
        self.server = server
        self.store = store
        self._config = config
        self._loop = loop
        self._new_thread = new_thread
        self._thread: Syncer | None = None
        self._child: Child | None = None
        self._on_child: Callable[[str | None], None] | None = None
        self._child_started_ms = 0
        self._rewrite: Rewrite | None = None
        self.rewrite_scheduled = False
        self._save_scheduled = False
        self._dirty_at_start = 0  # of the snapshot under way
        self._waiting = LogWaiters()
        self._health = LogHealth(store, backoff.fresh_bases(self._steady_s))
        self._rewrites = backoff.rewrites(self._steady_s)
        self._save_failed_ms = 0
        self._saved_ms = server.steady_ms()
        self._synced_ms = 0
        server.facts.dirty_at_save = server.engine.context.dirty

    def _steady_s(self) -> float:
        return self.server.steady_ms() / 1000

    # --- The log -----------------------------------------------------------------------------------

    def begin_log(self, recovered: Recovered) -> None:
        """Log what is done from now on. Raises: OSError."""
        self.store.begin_log(recovered, self.policy, self.options())
        self._watch_commit()

    def _watch_commit(self) -> None:
        commit = self.store.commit
        assert commit is not None
        self._thread = self._new_thread(commit, self._on_synced)
        self.server.turn.commit = commit
        self.server.turn.on_failure = self._on_failure
        self.server.facts.appendonly = True

    @property
    def policy(self) -> Policy:
        """When what is logged must be on disk."""
        return Policy(self._config.value("appendfsync"))

    def apply_policy(self) -> None:
        """`appendfsync` has changed, or a rewrite has begun or ended."""
        commit = self.store.commit
        if commit is None:
            return
        relaxed = self._rewrite is not None and self._config.value("no-appendfsync-on-rewrite")
        commit.policy = Policy.NO if relaxed else self.policy

    def options(self) -> SnapshotOptions:
        """How snapshots and bases are written now."""
        return SnapshotOptions(
            compress=self._config.value("rdbcompression"),
            checksum=self._config.value("rdbchecksum"),
            preamble=self._config.value("aof-use-rdb-preamble"),
            used_memory=process.resident_bytes(),
        )

    def switch_log(self, on: bool) -> None:
        """CONFIG SET appendonly. Raises: ConfigError if there cannot be a log now."""
        if on == (self.store.commit is not None):
            return
        if self._in_exec:
            raise ConfigError("not within a transaction: its effects would be split")
        if not on:
            self._end_log()
            return
        if self._child is not None:
            raise ConfigError("a snapshot is being written: try again when it is done")
        try:
            self._rewrite = self.store.begin_new_log(self.policy, self.options())
            self._start(self._write_base, self._finish_rewrite)
        except OSError as error:
            self.store.drop_log()
            self._rewrite = None
            raise ConfigError(f"the log cannot be begun: {reason(error)}") from error
        self._watch_commit()

    def _end_log(self) -> None:
        """Keep no log; what was handed over is on disk when this returns."""
        self._kill_child_of(self._finish_rewrite)
        self._stop_thread()
        try:
            self.store.end_log()
        except OSError as error:
            LOG.error("the end of the log is not on disk: %s", reason(error))
        self.server.turn.commit = None
        self.server.turn.release_all()
        self._waiting.answer_all()
        self._rewrite = None
        self.server.facts.appendonly = False
        self._accept_writes()

    def _stop_thread(self) -> None:
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def _on_synced(self) -> None:
        """Called by the thread."""
        self._loop.call_soon_threadsafe(self._after_sync)

    def _after_sync(self) -> None:
        commit = self.store.commit
        if commit is None:
            return
        if commit.failure is None:
            self.server.turn.release()
        else:
            # What was done since the failure is in no log either: its replies must be among those refused.
            self.server.turn.end()
            self._on_failure()
        self._answer_waiting()

    def wait_synced(self, waiter: LogWaiter, may_wait: bool) -> bool:
        """Tell a client when all that was done so far is on disk; False if it is already."""
        commit = self.store.commit
        failed = bool(self.server.state & DISK_FAILED)
        return commit is not None and self._waiting.add(commit, waiter, may_wait, failed)

    def _answer_waiting(self) -> None:
        commit = self.store.commit
        if commit is not None and not self.server.state & DISK_FAILED:
            self._waiting.answer(commit.synced)

    # --- Failures ----------------------------------------------------------------------------------

    def _on_failure(self) -> None:
        """A write or a sync has failed: refuse writes (persist/health.py)."""
        commit = self.store.commit
        if commit is None or commit.failure is None:
            return
        if self._child is None:
            self._rewrite = None  # if it was about to be finished, it never will be
        if not self._health.note_failure():
            return
        LOG.error(
            "the log cannot be written: %s. Writes are refused until a fresh base is on disk; what clients"
            " were waiting for may or may not be in the log",
            self._health.why,
        )
        refuse_writes(self.server, commit)
        self._kill_child_of(self._finish_rewrite)

    def _try_again(self) -> None:
        """Begin a fresh base, in a new file, and see whether the disk takes it."""
        try:
            self._rewrite = self._health.begin_base(self.options())
            self._start(self._write_base, self._finish_rewrite)
        except OSError as error:
            self._rewrite = None
            self._health.note_base_failed(error)
            self.server.facts.disk_error = reason(error)
            LOG.warning("the log still cannot be written: %s", reason(error))

    def _accept_writes(self) -> None:
        self._health.note_base_written()
        if accept_writes(self.server):
            LOG.warning("the log is on disk again: writes are taken")

    # --- Children ----------------------------------------------------------------------------------

    @property
    def is_saving(self) -> bool:
        """Whether a child writes a snapshot."""
        return self._on_child == self._finish_save

    @property
    def is_rewriting(self) -> bool:
        """Whether a child writes a base, or one that is written takes the old one's place."""
        return self._rewrite is not None

    def _start(self, work: Callable[[], None], on_end: Callable[[str | None], None]) -> None:
        """Let a child work. Raises: OSError."""
        began_ns = time.perf_counter_ns()
        self._child = start_child(work)
        self.server.facts.fork_us = (time.perf_counter_ns() - began_ns) // 1000
        self.server.facts.forks += 1
        self._on_child = on_end
        self._child_started_ms = self.server.steady_ms()
        self._loop.add_reader(self._child.pipe, self._on_child_ended)

    def _on_child_ended(self) -> None:
        child, on_end = self._child, self._on_child
        if child is None or on_end is None:
            return
        self._loop.remove_reader(child.pipe)
        self._child = self._on_child = None
        try:
            child.finish()
        except ChildFailed as error:
            on_end(str(error))
        else:
            on_end(None)

    def _kill_child_of(self, on_end: Callable[[str | None], None]) -> None:
        """End the child that works for this, if there is one."""
        if self._child is not None and self._on_child == on_end:
            self._child.kill()
            self._on_child_ended()

    @property
    def _in_exec(self) -> bool:
        """Whether a transaction runs: what it does belongs into one file, and into one snapshot."""
        return not self.server.engine.context.may_block

    # --- Snapshots ---------------------------------------------------------------------------------

    def save(self) -> None:
        """SAVE: write a snapshot while everything waits. Raises: CommandError."""
        if self.is_saving:
            raise CommandError("Background save already in progress")
        try:
            self.store.save(self.options())
        except OSError as error:
            LOG.error("the snapshot cannot be written: %s", reason(error))
            raise CommandError(f"the snapshot cannot be written: {reason(error)}") from error
        self._note_saved(self.server.engine.context.dirty)

    def bgsave(self, schedule: bool) -> str:
        """BGSAVE: let a child write a snapshot; return what to answer. Raises: CommandError."""
        if self.is_saving:
            raise CommandError("Background save already in progress")
        if self._child is not None or self._in_exec:
            if not schedule and not self._in_exec:
                raise CommandError(
                    "Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE"
                    " in order to schedule a BGSAVE whenever possible."
                )
            self._save_scheduled = True
            return "Background saving scheduled"
        self._save_scheduled = False
        dirty = self.server.engine.context.dirty
        options = self.options()
        try:
            self._start(lambda: self.store.save(options), self._finish_save)
        except OSError as error:
            self._finish_save(reason(error))
            raise CommandError(f"no child process: {reason(error)}") from error
        self._dirty_at_start = dirty
        return "Background saving started"

    def _finish_save(self, failure: str | None) -> None:
        facts = self.server.facts
        facts.bgsave_seconds = self.child_seconds
        facts.bgsave_ok = failure is None
        if failure is None:
            self._note_saved(self._dirty_at_start)
            LOG.info("snapshot saved in %d s", facts.bgsave_seconds)
        else:
            LOG.error("the snapshot cannot be written: %s", failure)
            self._save_failed_ms = self.server.steady_ms()
            if self._config.value("save") and self._config.value("stop-writes-on-bgsave-error"):
                self.server.state |= SAVE_FAILED

    def _note_saved(self, dirty: int) -> None:
        facts = self.server.facts
        self._saved_ms = self.server.steady_ms()
        facts.saved_s = self.server.engine.context.now_ms() // 1000
        facts.dirty_at_save = dirty
        facts.bgsave_ok = True
        self.server.state &= ~SAVE_FAILED

    @property
    def child_seconds(self) -> int:
        """How long the child has been at work, or was."""
        return (self.server.steady_ms() - self._child_started_ms) // 1000

    # --- Rewrites ----------------------------------------------------------------------------------

    def bgrewrite(self) -> str:
        """BGREWRITEAOF; return what to answer. Raises: CommandError."""
        if self.is_rewriting:
            raise CommandError("Background append only file rewriting already in progress")
        if self.store.commit is None:
            raise CommandError("there is no log: CONFIG SET appendonly yes begins one")
        if self._child is not None or self._in_exec:
            self.rewrite_scheduled = True
            return "Background append only file rewriting scheduled"
        self.rewrite_scheduled = False
        try:
            # All effects so far must be in the old files, and the child must have seen no others.
            self._rewrite = self.store.begin_rewrite(self.options())
        except OSError as error:
            self._rewrites.note_failure()
            raise CommandError(f"the log cannot be rewritten: {reason(error)}") from error
        try:
            self._start(self._write_base, self._finish_rewrite)
        except OSError as error:
            self._finish_rewrite(reason(error))
            raise CommandError(f"no child process: {reason(error)}") from error
        self.apply_policy()
        return "Background append only file rewriting started"

    def _write_base(self) -> None:
        """In the child."""
        assert self._rewrite is not None
        self.store.write_base(self._rewrite.temporary, self.options())

    def _finish_rewrite(self, failure: str | None) -> None:
        rewrite = self._rewrite
        commit = self.store.commit
        facts = self.server.facts
        facts.rewrite_seconds = self.child_seconds
        if rewrite is None or commit is None:
            self._rewrite = None
            return
        if failure is None and commit.failure is not None:
            failure = reason(commit.failure)
        if failure is not None:
            self._rewrite = None
            if commit.failure is not None:
                pass  # the log has failed meanwhile, and that is noted
            elif commit.is_based:
                self._rewrites.note_failure()
            else:
                self._health.note_base_failed(OSError(errno.EIO, failure))
            self.apply_policy()
            facts.rewrite_ok = False
            LOG.error("the log cannot be rewritten: %s", failure)
            self.store.abandon_rewrite(rewrite)
            return

        def finish() -> None:
            self.store.finish_rewrite(rewrite)
            self._loop.call_soon_threadsafe(self._on_rewritten, rewrite)

        # Until that is done there must be no other rewrite: it would begin with a manifest of the past.
        commit.do(finish)

    def _on_rewritten(self, rewrite: Rewrite) -> None:
        if self._rewrite is not rewrite:
            return  # the log was ended meanwhile
        self._rewrite = None
        self.apply_policy()
        self.server.facts.rewrite_ok = True
        self._rewrites.note_success()
        LOG.info("log rewritten: %d bytes", self.store.base_bytes)
        self._accept_writes()
        self._answer_waiting()

    # --- Regularly ---------------------------------------------------------------------------------

    def tick(self) -> None:
        """Sync, save, rewrite, try again: whatever is due."""
        now_ms = self.server.steady_ms()
        self.server.turn.note_effects()
        commit = self.store.commit
        if commit is not None:
            if commit.policy is Policy.EVERY_SECOND and now_ms - self._synced_ms >= _SYNC_EVERY_MS:
                self._synced_ms = now_ms
                if commit.synced != commit.position:
                    commit.wake()
            # A log that was begun while the server ran may have failed to get its first base.
            if self.server.state & DISK_FAILED or not commit.is_based:
                idle = self._child is None and self._rewrite is None
                if idle and self._health.is_retry_due():
                    self._try_again()
                return
        if self._child is None:
            self._start_what_is_due(now_ms)

    def _start_what_is_due(self, now_ms: int) -> None:
        try:
            if self._rewrite is None and (self.rewrite_scheduled or self._is_rewrite_due()):
                self.bgrewrite()
            elif self._save_scheduled or self._is_save_due(now_ms):
                self.bgsave(schedule=False)
        except CommandError as error:
            LOG.error("%s", error)

    def _is_rewrite_due(self) -> bool:
        """Tell whether the log has grown so much that it should be rewritten, and that may work."""
        return self._rewrites.is_due() and self._has_grown()

    def _has_grown(self) -> bool:
        percentage = self._config.value("auto-aof-rewrite-percentage")
        if self.store.commit is None or not percentage:
            return False
        size = self.store.log_bytes()
        if size < self._config.value("auto-aof-rewrite-min-size"):
            return False
        base = max(1, self.store.base_bytes)
        return bool((size - base) * 100 >= percentage * base)

    def _is_save_due(self, now_ms: int) -> bool:
        facts = self.server.facts
        changes = self.server.engine.context.dirty - facts.dirty_at_save
        if not facts.bgsave_ok and now_ms - self._save_failed_ms < _SAVE_RETRY_MS:
            return False
        return any(
            changes >= wanted and now_ms - self._saved_ms > seconds * 1000
            for seconds, wanted in self._config.value("save")
        )

    # --- The end -----------------------------------------------------------------------------------

    def close(self, save: bool | None) -> bool:
        """Put everything on disk; False if that failed. `save`: what SHUTDOWN was told."""
        self._kill_child_of(self._finish_save)
        self._kill_child_of(self._finish_rewrite)
        good = True
        wanted = bool(self._config.value("save")) if save is None else save
        if wanted:
            try:
                self.save()
            except CommandError:
                good = False
        self._stop_thread()
        self.server.turn.release()
        try:
            self.store.close()
        except OSError as error:
            LOG.error("the end of the log is not on disk: %s", reason(error))
            good = False
        return good
