"""What happens when the disk fails: which commands are refused, with which error, and when writes resume.

An embedded database, its socket and a server all follow this rule.

    WORKING ----- a write or a sync fails -----> FAILED ----- a fresh base begins -----> REBUILDING
       ^                                            ^                                      |    |
       |                                            +------------- it fails ---------------+    |
       +--------------------------------- it is on disk ----------------------------------------+

    state        writes                     reads      the log file
    WORKING      accepted                   answered   is written
    FAILED       refused (disk_failed)      answered   is never written again
    REBUILDING   refused (disk_failed)      answered   a new one is written; its base is not on disk yet

Calls that were waiting for the disk when it failed get `outcome_unknown`: their bytes may or may not be in
the file, and no later sync can tell (persist/aof/commit.py). Their effects stay in memory, so they are in the
fresh base, which holds everything in memory. Writes resume when that base is on disk, not before.

A fresh base that fails is retried after a pause (persist/backoff.py). An interrupt, such as a
KeyboardInterrupt during a write, says nothing about the disk: then the next call retries without a pause.

A log that a running server begins (CONFIG SET appendonly yes) has no base at first, but nothing was lost:
the state is WORKING. If its first base fails, only the pause applies.
"""

from __future__ import annotations

import errno
from enum import Enum

from penstock.errors import CommandError, disk_failed, outcome_unknown
from penstock.persist.aof.commit import Commit
from penstock.persist.backoff import Backoff
from penstock.persist.disk import reason
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Rewrite, Store


class State(Enum):
    """Whether the log can be trusted."""

    WORKING = "working"
    FAILED = "failed"
    REBUILDING = "rebuilding"


class LogHealth:
    """The state of one store's log.

    Transitions: note_failure, begin_base, note_base_failed, note_base_written. `mend` does them all in the
    calling thread. Every method is called by the engine's owner.
    """

    def __init__(self, store: Store, retries: Backoff) -> None:
        """`retries`: counts the failure of the log, then each failure of a fresh base."""
        self.state = State.WORKING
        self.why = ""  # the reason of the last failure
        self._store = store
        self._retries = retries

    def is_retry_due(self) -> bool:
        """Tell whether the pause before the next fresh base is over."""
        return self._retries.is_due()

    def refusal(self) -> CommandError:
        """The error for a write while the log cannot be written: nothing was changed."""
        return disk_failed(self.why)

    def note_failure(self) -> bool:
        """Check the log after a write or a sync; True if it worked until now and has failed."""
        commit = self._store.commit
        if commit is None or commit.failure is None:
            return False
        before, self.state = self.state, State.FAILED
        if before is State.FAILED:
            return False
        self.why = reason(commit.failure)
        self._retries.note_failure()
        return before is State.WORKING

    def begin_base(self, options: SnapshotOptions) -> Rewrite:
        """Start a new log file. The caller writes its base. Raises: OSError."""
        rewrite = self._store.begin_afresh(options)
        if self.state is State.FAILED:
            self.state = State.REBUILDING
        return rewrite

    def note_base_failed(self, error: OSError) -> None:
        """The fresh base could not be begun or written."""
        self._retries.note_failure()
        if self.state is State.WORKING:
            return  # the first base of a new log
        self.state = State.FAILED
        self.why = reason(error)
        if self._store.commit is not None:
            self._store.commit.fail(error)

    def note_base_written(self) -> None:
        """The fresh base is on disk, or the log was ended."""
        self.state = State.WORKING
        self._retries.note_success()

    def mend(self, options: SnapshotOptions, writes: bool) -> None:
        """Write a fresh base if one is due. Nothing may change in memory meanwhile.

        Raises: CommandError (MISCONF) if `writes` and the log still cannot be written.
        """
        self.note_failure()
        if self._was_interrupted() or (writes and self.is_retry_due()):
            try:
                rewrite = self.begin_base(options)
                self._store.write_base(rewrite.temporary, options)
                self._store.finish_rewrite(rewrite)
            except OSError as error:
                self.note_base_failed(error)
            except BaseException as error:
                # Without its base the log keeps nothing. It must not accept another thread's writes.
                self._commit.fail(error)
                raise
            else:
                self.note_base_written()
                return
        if writes:
            raise self.refusal()

    def _was_interrupted(self) -> bool:
        """Tell whether a write, or the last `mend`, ended in an interrupt: then there is no base either."""
        failure = self._commit.failure
        return failure is None or failure.errno == errno.EINTR

    @property
    def _commit(self) -> Commit:
        assert self._store.commit is not None
        return self._store.commit


def lost(failure: OSError) -> CommandError:
    """The error for a call whose effects were not on disk when the log failed."""
    return outcome_unknown(reason(failure))
