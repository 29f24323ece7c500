"""What keeps the data of an embedded database: the same log as a server's, without a loop or a child.

With `always` the thread that has changed something syncs it itself, for all others that have handed over by
then; nobody else is needed. With `everysec` a thread of its own syncs every second.

The caller's process is never forked. A new base is made out of the files that it replaces, by a thread that
reads them into an engine of its own: callers go on meanwhile, at the price of that thread's share of the
interpreter. In a forked copy of the process the database refuses to work: two processes would write one log.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import (
    CommandError,
    CorruptData,
    DatabaseClosed,
    disk_failed,
    outcome_unknown,
)
from penstock.persist import backoff
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.sync_thread import SyncThread
from penstock.persist.disk import reason
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Rewrite, Store

REWRITE_BYTES_MIN = 64 << 20
_SYNC_SECONDS = 1.0


class Keeper:
    """One open directory. Under the turn: prepare, hand_over, read_again. Outside of it: wait, close."""

    def __init__(self, store: Store, policy: Policy, options: SnapshotOptions) -> None:
        assert store.commit is not None
        self.store = store
        self.commit: Commit = store.commit
        self._options = options
        self._rewriting: threading.Thread | None = None
        self._stopping = threading.Event()
        self._fresh_bases = backoff.fresh_bases()
        self._rewrites = backoff.rewrites()
        # The call that ends now was blocked, and another thread's has done its work for it.
        self.was_served = False
        self._listeners: list[Callable[[], None]] = []
        self._syncing: SyncThread | None = None
        self._timer: threading.Thread | None = None
        if policy is Policy.EVERY_SECOND:
            # It must not keep the keeper: a Database that nobody has any more is closed.
            self._timer = threading.Thread(
                target=_sync_regularly,
                args=(self.commit, self._stopping),
                name="penstock-sync",
                daemon=True,
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
                raise outcome_unknown(reason(commit.failure))
            return 0
        if self._rewriting is None and self._is_rewrite_due():
            with suppress(OSError):  # too many have failed: the log goes on
                self._begin_rewrite()
        return 0 if released else commit.position

    def _is_rewrite_due(self) -> bool:
        has_grown = self.commit.file.size > max(REWRITE_BYTES_MIN, self.store.base_bytes)
        return has_grown and self._rewrites.is_due()

    def wait(self, position: int) -> None:
        """Return when a position is on disk. Raises: CommandError (MISCONF) if it may never be."""
        try:
            self.commit.wait_synced(position)
        except OSError as error:
            raise outcome_unknown(reason(error)) from error

    def prepare(self, writes: bool) -> None:
        """Before a command: mend a log that has failed, if that may work now.

        Raises: CommandError (MISCONF) for a command that writes while the log cannot be written.
        """
        failure = self.commit.failure
        if failure is None:
            if self.commit.is_based:
                return
            failure = OSError(errno.EINTR, "a fresh base of the log was interrupted")
        # An interrupt says nothing against the disk, so the log is mended at once, for readers too.
        if failure.errno == errno.EINTR or (writes and self._fresh_bases.is_due()):
            try:
                self._start_afresh()
            except OSError as error:
                self._fresh_bases.note_failure()
                self.commit.fail(error)
            else:
                self._fresh_bases.note_success()
                return
        if writes:
            raise disk_failed(reason(failure))

    def read_again(self) -> None:
        """Under the turn, after a command was broken off: have what is on disk in the place of what is in
        memory.

        Everything that was acknowledged is in the log; the command that was broken off is in it as a whole or
        not at all. Raises: DatabaseClosed if the log cannot be read.
        """
        commit = self.commit
        commit.journal.abandon()
        commit.hand_over()
        commit.sync()
        try:
            with commit.standing_still():
                # The end of a file whose write has failed may be torn. It is not written any more.
                has_failed = commit.failure is not None
                recovery = self.store.recovery(load_truncated=has_failed)
                recovery.with_log()
        except (CorruptData, OSError) as error:
            raise DatabaseClosed(
                f"a call was interrupted half-way, and the log cannot be read again: {error}"
            ) from error
        self.store.engine.replace_broken(recovery.engine)

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
        """Under the turn: begin a new base in the background; False if one is being written.

        Raises: CommandError if too many have failed.
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
            self.commit.sync()  # or the last of the old files would not be all there
            if self.commit.failure is None:
                self.store.compact(rewrite, self._options)
                self.commit.do(lambda: self.store.finish_rewrite(rewrite))
                self.commit.sync()
                self._rewrites.note_success()
        except Exception:  # noqa: BLE001 - nobody waits for this thread
            # The log is as it was, in one more file; the next rewrite may go better.
            self._rewrites.note_failure()
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
            raise CommandError(f"the snapshot cannot be written: {reason(error)}") from error

    # --- The end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Put everything on disk and let others have the directory. Raises: CommandError.

        One that was interrupted may be called again.
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
            raise outcome_unknown(reason(error)) from error
        finally:
            self.store.release_lock()

    def _mend_interrupted(self) -> None:
        """An interrupt before the end is no reason to leave a log that has failed."""
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
