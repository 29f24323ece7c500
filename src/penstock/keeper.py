"""What keeps the data of an embedded database: the same log as a server's, without a loop or a child.

With `always` the thread that has changed something syncs it itself, for all others that have handed over by
then; nobody else is needed. With `everysec` a thread of its own syncs every second.

The caller's process is never forked. A new base is made out of the files that it replaces, by a thread that
reads them into an engine of its own: callers go on meanwhile, at the price of that thread's share of the
interpreter. In a forked copy of the process the database refuses to work: two processes would write one log.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import CommandError, CorruptData, disk_failed, outcome_unknown
from penstock.persist.commit import Commit, Policy
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Rewrite, Store
from penstock.persist.sync_thread import SyncThread

REWRITE_BYTES_MIN = 64 << 20
_SYNC_SECONDS = 1.0
_RETRY_SECONDS = 1.0


class Keeper:
    """One open directory. Under the turn: check_writable, hand_over. Outside of it: wait, close."""

    def __init__(self, store: Store, policy: Policy, options: SnapshotOptions) -> None:
        assert store.commit is not None
        self.store = store
        self.commit: Commit = store.commit
        self._options = options
        self._rewriting: threading.Thread | None = None
        self._stopping = threading.Event()
        self._tried = 0.0
        # The call that ends now was blocked, and another thread's has done its work for it.
        self.was_served = False
        self._listeners: list[Callable[[], None]] = []
        self._syncing: SyncThread | None = None
        self.on_fork: Callable[[], None] = _do_nothing  # called in a forked copy of the process
        self._timer: threading.Thread | None = None
        if policy is Policy.EVERY_SECOND:
            self._timer = threading.Thread(
                target=self._sync_regularly, name="penstock-sync", daemon=True
            )
            self._timer.start()

    # --- Around a command --------------------------------------------------------------------------

    def hand_over(self) -> int:
        """Let what was done go to disk; return the position to wait for, 0 for none.

        After a failure reads go on, and need not wait. Raises: CommandError (MISCONF) if something was done
        that may never be on disk.
        """
        commit = self.commit
        changed = commit.journal.size > 0 or self.was_served
        self.was_served = False
        released = commit.hand_over()
        if commit.failure is not None:
            if changed:
                raise outcome_unknown(commit.failure.strerror or str(commit.failure))
            return 0
        if self._rewriting is None and commit.file.size > max(
            REWRITE_BYTES_MIN, self.store.base_bytes
        ):
            self.begin_rewrite()
        return 0 if released else commit.position

    def wait(self, position: int) -> None:
        """Return when a position is on disk. Raises: CommandError (MISCONF) if it may never be."""
        try:
            self.commit.wait_synced(position)
        except OSError as error:
            raise outcome_unknown(error.strerror or str(error)) from error

    def check_writable(self) -> None:
        """Raises: CommandError (MISCONF) while the log cannot be written; tries to mend that first."""
        failure = self.commit.failure
        if failure is None:
            return
        if time.monotonic() - self._tried >= _RETRY_SECONDS:
            self._tried = time.monotonic()
            try:
                self._start_afresh()
            except OSError as error:
                self.commit.failure = failure = error
            else:
                return
        raise disk_failed(failure.strerror or str(failure))

    def _start_afresh(self) -> None:
        """Write all that is in memory as a fresh base. Nothing can change meanwhile: we have the turn."""
        rewrite = self.store.begin_afresh(self._options)
        self.store.write_base(rewrite.temporary, self._options)
        self.store.finish_rewrite(rewrite)

    # --- For those who serve the database on a socket ----------------------------------------------

    def listen(self, on_synced: Callable[[], None]) -> None:
        """Under the turn: have a thread sync, and be told by it whenever something is on disk, or failed."""
        self._listeners.append(on_synced)
        if self._syncing is None:
            self._syncing = SyncThread(self.commit, self._tell)

    def unlisten(self, on_synced: Callable[[], None]) -> None:
        """Be told no longer."""
        self._listeners.remove(on_synced)
        if not self._listeners and self._syncing is not None:
            self._syncing.stop()
            self._syncing = None

    def _tell(self) -> None:
        for on_synced in list(self._listeners):
            on_synced()

    # --- Rewriting and saving ----------------------------------------------------------------------

    def begin_rewrite(self) -> bool:
        """Under the turn: begin a new base in the background; False if one is being written."""
        if self._rewriting is not None or self.commit.failure is not None:
            return False
        rewrite = self.store.begin_rewrite(self._options)
        self._rewriting = threading.Thread(
            target=self._rewrite, args=(rewrite,), name="penstock-rewrite", daemon=True
        )
        self._rewriting.start()
        return True

    def _rewrite(self, rewrite: Rewrite) -> None:
        try:
            self.commit.sync()  # or the last of the old files would not be all there
            if self.commit.failure is None:
                self.store.compact(rewrite, self._options)
                self.commit.do(lambda: self.store.finish_rewrite(rewrite))
                self.commit.sync()
        except (OSError, CorruptData):
            # The log is as it was, in one more file; the next rewrite may go better.
            self.store.abandon_rewrite(rewrite)
        finally:
            self._rewriting = None

    def wait_rewritten(self) -> None:
        """Return when no rewrite is under way."""
        thread = self._rewriting
        if thread is not None:
            thread.join()

    def save(self) -> None:
        """Under the turn: write a snapshot. Raises: CommandError."""
        try:
            self.store.save(self._options)
        except OSError as error:
            raise CommandError(f"the snapshot cannot be written: {error.strerror}") from error

    # --- The end -----------------------------------------------------------------------------------

    def _sync_regularly(self) -> None:
        while not self._stopping.wait(_SYNC_SECONDS):
            self.commit.sync()

    def close(self) -> None:
        """Put everything on disk and let others have the directory. Raises: CommandError."""
        self._stopping.set()
        if self._timer is not None:
            self._timer.join()
        self.wait_rewritten()
        try:
            self.store.close()
        except OSError as error:
            raise outcome_unknown(error.strerror or str(error)) from error

    def leave_to_parent(self) -> None:
        """This is a forked copy: the directory is the other process's."""
        self.on_fork()
        with suppress(OSError):
            self.store.release_lock()


def _do_nothing() -> None:
    """Nobody wants to know."""


_OPEN: weakref.WeakSet[Keeper] = weakref.WeakSet()


def watch_forks(keeper: Keeper) -> None:
    """Let a keeper know when it finds itself in a forked copy."""
    _OPEN.add(keeper)


def _after_fork() -> None:
    for keeper in list(_OPEN):
        keeper.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
