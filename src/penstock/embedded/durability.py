"""Keeps the data of an embedded database on disk: the log of a server, without a loop or a child process.

With `always`, the thread that changed something syncs the log itself, together with everything that other
threads have handed over by then. With `everysec`, a background thread syncs every second.

The caller's process is never forked. For a rewrite, a background thread reads the old files into an engine of
its own and writes a new base from it. Calls continue meanwhile and share the interpreter with that thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import CommandError, CorruptData, DatabaseClosed
from penstock.persist import backoff
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.sync_thread import SyncThread
from penstock.persist.disk import reason
from penstock.persist.health import LogHealth, lost
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Rewrite, Store

REWRITE_BYTES_MIN = 64 << 20
_SYNC_SECONDS = 1.0


class Keeper:
    """One open directory. Under the lock: prepare, hand_over, read_again. Without it: wait, close."""

    __slots__ = (
        "_listeners",
        "_options",
        "_rewrites",
        "_rewriting",
        "_stopping",
        "_syncing",
        "_timer",
        "commit",
        "health",
        "store",
        "was_served",
    )

    def __init__(self, store: Store, policy: Policy, options: SnapshotOptions) -> None:
        assert store.commit is not None
        self.store = store
        self.commit: Commit = store.commit
        # The next write of the program is the first retry.
        self.health = LogHealth(store, backoff.fresh_bases(at_once=True))
        self._options = options
        self._rewriting: threading.Thread | None = None
        self._stopping = threading.Event()
        self._rewrites = backoff.rewrites()
        # The call that is ending was a blocked read, which another thread has served.
        self.was_served = False
        self._listeners: list[Callable[[], None]] = []
        self._syncing: SyncThread | None = None
        self._timer: threading.Thread | None = None
        if policy is Policy.EVERY_SECOND:
            # The thread must not refer to the keeper: an unreferenced Database is closed.
            self._timer = threading.Thread(
                target=_sync_regularly,
                args=(self.commit, self._stopping),
                name="penstock-sync",
                daemon=True,
            )
            self._timer.start()

    # --- Around a command --------------------------------------------------------------------------

    def hand_over(self) -> int:
        """Give the effects of a call to the log; return the position to wait for, 0 for none.

        After a failure of the disk, reads continue without waiting. Raises: CommandError (MISCONF) if a
        change was made that may never be on disk.
        """
        commit = self.commit
        changed = commit.journal.size > 0 or self.was_served
        self.was_served = False
        released = commit.hand_over()
        if commit.failure is not None:
            if changed:
                raise lost(commit.failure)
            return 0
        if self._rewriting is None and self._is_rewrite_due():
            with suppress(OSError):  # too many rewrites have failed: keep appending
                self._begin_rewrite()
        return 0 if released else commit.position

    def _is_rewrite_due(self) -> bool:
        size = self.commit.file.size
        return size > REWRITE_BYTES_MIN and size > self.store.base_bytes and self._rewrites.is_due()

    def wait(self, position: int) -> None:
        """Wait until a position is on disk. Raises: CommandError (MISCONF) if it may never be."""
        try:
            self.commit.wait_synced(position)
        except OSError as error:
            raise lost(error) from error

    def prepare(self, writes: bool) -> None:
        """Before a command: repair a failed log, if a retry is due.

        Raises: CommandError (MISCONF) for a command that writes while the log cannot be written.
        """
        if self.commit.failure is not None or not self.commit.is_based:
            self.health.mend(self._options, writes)

    def read_again(self) -> None:
        """Under the lock, after a command was interrupted: replace the data in memory by that on disk.

        Everything acknowledged is in the log. The interrupted command is in it as a whole or not at all.
        Raises: DatabaseClosed if the log cannot be read.
        """
        commit = self.commit
        commit.journal.abandon()
        commit.hand_over()
        commit.sync()
        try:
            with commit.standing_still():
                # A failed write may leave a torn end. Nothing is written after it.
                has_failed = commit.failure is not None
                recovery = self.store.recovery(load_truncated=has_failed)
                recovery.with_log()
        except (CorruptData, OSError) as error:
            raise DatabaseClosed(
                f"a call was interrupted half-way, and the log cannot be read again: {error}"
            ) from error
        self.store.engine.replace_broken(recovery.engine)

    # --- For servers of the database ---------------------------------------------------------------

    def listen(self, on_synced: Callable[[], None]) -> None:
        """Under the lock: sync in a background thread, which calls `on_synced` after a sync or a failure."""
        self._listeners.append(on_synced)
        if self._syncing is None:
            self._syncing = SyncThread(self.commit, self._tell)

    def unlisten(self, on_synced: Callable[[], None]) -> None:
        """Stop calling a listener."""
        self._listeners.remove(on_synced)
        if not self._listeners and self._syncing is not None:
            self._syncing.stop()
            self._syncing = None

    def _tell(self) -> None:
        for on_synced in list(self._listeners):
            on_synced()

    # --- Rewriting and saving ----------------------------------------------------------------------

    def begin_rewrite(self) -> bool:
        """Under the lock: start a rewrite in the background; False if one is running.

        Raises: CommandError if too many rewrites have failed.
        """
        if self._rewriting is not None or self.commit.failure is not None:
            return False
        try:
            self._begin_rewrite()
        except OSError as error:
            raise CommandError(f"the log cannot be rewritten: {reason(error)}") from error
        return True

    def _begin_rewrite(self) -> None:
        rewrite = self.store.begin_rewrite(self._options)
        self._rewriting = threading.Thread(
            target=self._rewrite, args=(rewrite,), name="penstock-rewrite", daemon=True
        )
        self._rewriting.start()

    def _rewrite(self, rewrite: Rewrite) -> None:
        try:
            self.commit.sync()  # completes the last of the old files
            if self.commit.failure is None:
                self.store.compact(rewrite, self._options)
                self.commit.do(lambda: self.store.finish_rewrite(rewrite))
                self.commit.sync()
                self._rewrites.note_success()
        except Exception:  # noqa: BLE001 - nobody waits for this thread
            # The log is complete, in one more file. The next rewrite may succeed.
            self._rewrites.note_failure()
            self.store.abandon_rewrite(rewrite)
        finally:
            self._rewriting = None

    def wait_rewritten(self) -> None:
        """Wait until no rewrite is running."""
        thread = self._rewriting
        if thread is not None:
            thread.join()

    def save(self) -> None:
        """Under the lock: write a snapshot. Raises: CommandError."""
        try:
            self.store.save(self._options)
        except OSError as error:
            raise CommandError(f"the snapshot cannot be written: {reason(error)}") from error

    # --- Closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Put everything on disk and release the directory. Raises: CommandError.

        Can be called again after an interrupt.
        """
        self._stopping.set()
        if self._timer is not None:
            self._timer.join()
        self.wait_rewritten()
        try:
            if self.store.commit is not None:
                self._mend_interrupted()
            self.store.close()
        except OSError as error:
            raise lost(error) from error
        finally:
            self.store.release_lock()

    def _mend_interrupted(self) -> None:
        """Repair what an interrupt left before the log is closed."""
        if self.store.engine.unfinished:
            self.read_again()
        self.prepare(writes=False)

    def leave_to_parent(self) -> None:
        """In a forked copy of the process: the directory belongs to the parent."""
        with suppress(OSError):
            self.store.release_lock()


def _sync_regularly(commit: Commit, stopping: threading.Event) -> None:
    while not stopping.wait(_SYNC_SECONDS):
        commit.sync()
