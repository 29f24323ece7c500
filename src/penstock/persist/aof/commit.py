"""Group commit: one write and one fsync for all effects since the last ones.

    engine's owner   hand_over()   takes the journal's bytes and assigns them the next position
    another thread   sync()        one write and one fsync for everything handed over so far

    position   the number of hand-overs
    released   replies up to this position may go out
    synced     everything up to this position is on disk

    policy     hand_over                  released when
    always     puts the bytes in a queue  they are synced
    everysec   writes them itself         they are written; sync() runs every second
    no         writes them itself         they are written; the system decides when to sync

The owner does not wait for the disk: with `always` it executes the next commands while sync() runs in another
thread, and everything it hands over in that time forms the next group. There are two exceptions. If the queue
exceeds QUEUE_BYTES_MAX, the owner syncs too: a disk that is slower than its producers must slow them down, or
memory would run out. And if one client alone waits, as in the last hand-over, there is nothing else to
execute. Then the owner syncs by itself, if the disk is quick: waking the thread and being woken by it takes
as long as a quick sync. `sync_seconds` is a moving average of how long a sync takes, in either thread. One
slow sync sends the next ones to the thread, until enough quick ones have followed.

A change of files (a rewrite begins or ends) is a job in the same queue. Everything handed over before it goes
into the old file, everything after it into the new one.

After a failed write or sync, the bytes since the last successful sync are in doubt, and a later sync that
succeeds proves nothing. So the first failure is final (`failure`) until `start_afresh` begins a new file,
which gets a fresh base (persist/health.py). Until then everything handed over is dropped, because the base
will contain it. Its position is never released, unless the owner has noticed the failure
(`give_up_unreleased`) and refuses writes itself.

Every exception out of a write or a sync is a failure: OSError, MemoryError, KeyboardInterrupt. An exception
handler is not enough to notice it, because a second signal can interrupt the handler. So each side sets a
mark before it starts and clears it when its numbers agree with the file again. A mark that is still set at
the next start means that the last run did not finish, which is a failure.

A file without its base on disk (after a failure, or when a log is begun while the engine runs) takes effects,
but after a crash they could not be used. Until `base_is_there` nothing counts as synced. Replies released in
that time promise nothing.

Invariants
  C1  synced <= released <= position with `always`; released <= position with the other policies.
  C2  one thread at a time appends to the file: the one that holds `_writing`, or the owner while the queue is
      empty and no sync is working on one.
  C3  a position and its bytes enter the queue together, under `_state`: taking the queue takes everything up
      to `_queued`.
  C4  `_owner_works` and `_sync_works` are False between two calls, or the log has failed.

Both locks are plain locks used with `with`. In compiled code no signal handler runs between acquiring and
releasing one. In plain Python none runs between acquiring it and the body of the `with`.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

from penstock.persist.aof.increment import Increment
from penstock.persist.aof.journal import Journal

QUEUE_BYTES_MAX = 64 << 20
_NEW_SHARE = 0.1  # of the last sync in the moving average


class Policy(Enum):
    """When written bytes are synced (appendfsync)."""

    ALWAYS = "always"
    EVERY_SECOND = "everysec"
    NO = "no"


class Commit:
    """Writes the effects of one journal to disk.

    Owner: hand_over, is_released, change_file, start_afresh. Any thread: sync, wait_synced, base_is_there,
    fail. State: position, released, synced, waiting, served, failure, is_based, file, sync_seconds.
    `quick_seconds`: the owner may sync by itself while `sync_seconds` is below this.
    """

    __slots__ = (
        "_busy",
        "_is_known",
        "_noted_s",
        "_owner_works",
        "_queue",
        "_queued",
        "_queued_bytes",
        "_settled",
        "_state",
        "_sync_works",
        "_was_alone",
        "_writing",
        "_written",
        "clock_s",
        "failure",
        "file",
        "is_based",
        "journal",
        "on_taken",
        "policy",
        "position",
        "quick_seconds",
        "released",
        "served",
        "steady_s",
        "sync_seconds",
        "synced",
        "waiting",
        "wake",
    )

    def __init__(
        self, journal: Journal, file: Increment, policy: Policy, is_based: bool = True
    ) -> None:
        self.journal = journal
        self.policy = policy
        self.file = file
        self.position = 0
        self.released = 0
        self.synced = 0
        self.failure: OSError | None = None
        self.is_based = is_based  # the base of this file is on disk
        self._is_known = False  # the owner has noticed the failure
        self._written = 0  # everything up to this position is in the file
        self._settled = 0  # everything up to this position is synced, with or without a base
        self.clock_s: Callable[[], int] | None = None  # set if timestamps are written (#TS)
        self._noted_s = 0
        self.on_taken: Callable[[bytes], bytes] | None = None  # follows the effects (replication)
        self._queue: list[bytes | Callable[[], None]] = []
        self._queued = 0  # everything up to this position was queued
        self._queued_bytes = 0
        self.waiting = 0  # clients whose replies wait for the queue
        self.served = 0  # clients of the current round, or of the last one
        self.quick_seconds = 0.0
        self.sync_seconds = float("inf")  # unknown before the first sync
        self.steady_s: Callable[[], float] = time.monotonic
        self._was_alone = False  # one client alone waited for the last hand-over
        self._busy = False  # a sync is working on what it took from the queue
        self._owner_works = False  # C4
        self._sync_works = False  # C4
        self._state = threading.Lock()  # guards all of the above
        self._writing = threading.Lock()  # held while the file is written or synced (C2)
        self.wake: Callable[[], None] = wake_nobody  # wakes the thread that syncs

    # --- The owner's side --------------------------------------------------------------------------

    def hand_over(self, clients: int = 0, note: Callable[[], bytes] | None = None) -> bool:
        """Take the bytes of the journal; True if all replies computed so far may go out.

        `clients`: the number of clients that wait for it. `note` makes a line for the log if there are no
        bytes. An error fails the log and is not raised. Only an interrupt is raised.
        """
        if self._owner_works:
            self._note_broken_off()
        if self.journal.size == 0 and note is None:
            return self.released == self.position
        try:
            self._take_over(clients, note)
        except BaseException as error:
            if self._owner_works:  # otherwise nothing was taken yet
                self.fail(error)
                self._owner_works = False
            if not isinstance(error, Exception):
                raise
            return False
        return self.released == self.position

    def _take_over(self, clients: int, note: Callable[[], bytes] | None) -> None:
        """Assign the journal's bytes a position (C3), and queue them for sync() or write them here.

        After a failure they are dropped.
        """
        with self._state:
            self._owner_works = True
            self.position += 1
            data = self._take_journal()
            if note is not None and not data:
                data = note()
            writes = self._must_write()
            is_alone = self._is_alone(clients)
            if self.failure is None and not writes:
                self._queue.append(data)
                self._queued = self.position
                self._queued_bytes += len(data)
                self.waiting += clients
            is_full = self._queued_bytes > QUEUE_BYTES_MAX
            self._owner_works = writes
        if writes:
            self._write(data)
            self._written = self.released = self.position
            self._owner_works = False
        else:
            if self.failure is None:
                if not is_alone:
                    self.wake()
                if is_alone or is_full:
                    self.sync_round()
            if self._is_known or (self.failure is None and not self.is_based):
                self.released = self.position

    def _take_journal(self) -> bytes:
        """The bytes of the journal. `on_taken` sees them, and may add a line for the log."""
        data = self.journal.take()
        return data if self.on_taken is None or not data else data + self.on_taken(data)

    def _must_write(self) -> bool:
        """Tell whether the owner writes to the file itself: no other thread is working on it (C2)."""
        if self.failure is not None or self.policy is Policy.ALWAYS:
            return False
        return not self._queue and not self._busy

    def _is_alone(self, clients: int) -> bool:
        """Tell whether the owner syncs by itself: for one client, on a quick disk, with nothing under way."""
        was_alone, self._was_alone = self._was_alone, clients == 1
        return (
            clients == 1
            and was_alone
            and self.sync_seconds < self.quick_seconds
            and self.policy is Policy.ALWAYS
            and not self._queue
            and not self._busy
        )

    def is_released(self) -> bool:
        """Tell whether all replies computed so far may go out."""
        return self.journal.size == 0 and self.released == self.position

    def change_file(self, job: Callable[[], Increment]) -> None:
        """Write everything from now on to the file that `job` makes. The job runs in the thread that syncs.

        Everything handed over before is synced first. A job that raises fails the log.
        """
        self.hand_over()

        def change() -> None:
            file = job()
            with self._state:
                old, self.file = self.file, file
            old.close()

        self.journal.forget_database()
        self.do(change)

    def do(self, job: Callable[[], None]) -> None:
        """Run a job in the thread that syncs, after everything handed over so far."""
        with self._state:
            self._queue.append(job)
        self.wake()

    def start_afresh(self, file: Increment) -> None:
        """Forget a failure: effects are written to a new file from now on. Its base is not on disk yet.

        `failure` is cleared last. If this is interrupted, the log is still a failed one.
        """
        with self._writing, self._state:
            old, self.file = self.file, file
            old.close()
            self._queue.clear()
            self._queued_bytes = self.waiting = 0
            self.is_based = self._is_known = False
            self._busy = self._owner_works = self._sync_works = False
            if self._take_journal():
                self.position += 1  # the base will have it
            self.journal.forget_database()
            self.released = self._written = self._settled = self.position
            self.failure = None

    def give_up_unreleased(self) -> None:
        """After a failure: the waiting clients have their errors, so release later replies to reads."""
        self._is_known = True
        self.released = self.position

    # --- Any thread's side -------------------------------------------------------------------------

    def sync(self) -> None:
        """Write and sync until nothing is left."""
        with self._writing:
            while self._sync_once():
                pass

    def sync_round(self) -> bool:
        """One write and one sync for everything handed over; False if there was nothing to do."""
        with self._writing:
            return self._sync_once()

    def wait_synced(self, position: int) -> None:
        """Return when a position is on disk; sync it unless another thread does. Raises: OSError.

        The first of several threads syncs for all that have handed over by then. The others wait for the
        lock. They find their position synced, or the first of them syncs the next group.
        """
        while self.synced < position:
            with self._writing:
                if self.synced >= position:
                    return
                if self.failure is not None:
                    raise self.failure
                if not self.is_based:
                    raise _no_base()
                self._sync_once()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Prevent all writes, syncs and changes of the file inside the `with` block."""
        with self._writing:
            yield

    def base_is_there(self) -> None:
        """The base of the file is on disk, so everything synced since counts as synced."""
        with self._state:
            self.is_based = True
            self.synced = self._settled
            self.released = max(self.released, self.synced)

    def fail(self, error: BaseException) -> None:
        """Mark the log as failed. The first failure is kept."""
        with self._state:
            if self.failure is None:
                self.failure = _as_os_error(error)
            self._queue = []
            self._queued_bytes = self.waiting = 0
            self._busy = False

    def _note_broken_off(self) -> None:
        self.fail(OSError(errno.EINTR, "the last write was interrupted"))
        self._owner_works = self._sync_works = False

    def _sync_once(self) -> bool:
        """One write and one sync for the whole queue; False if it was empty or this failed.

        The caller holds `_writing`.
        """
        if self._sync_works:
            self._note_broken_off()
        self._sync_works = True
        try:
            has_worked = self._sync_queue()
        except BaseException as error:
            self.fail(error)
            self._sync_works = False
            if not isinstance(error, Exception):
                raise
            return False
        self._sync_works = False
        return has_worked

    def _sync_queue(self) -> bool:
        with self._state:
            if self.failure is not None:
                return False
            self._busy = bool(self._queue)
            queue, self._queue = self._queue, []
            self._queued_bytes = 0
            served, self.waiting = self.waiting, 0
            # Bytes that the owner itself writes during this sync belong to the next round.
            written = max(self._written, self._queued)
        if not queue and written == self._settled:
            return False
        self.served = served
        began_s = self.steady_s()
        self._work(queue)
        self._note_seconds(self.steady_s() - began_s)
        with self._state:
            self._written = max(self._written, written)
            self.released = max(self.released, written)
            self._settled = written
            if self.is_based:
                self.synced = written
            self._busy = False
        return True

    def _note_seconds(self, seconds: float) -> None:
        """Note how long a sync took. One slow sync counts at once, because the next may be as slow."""
        if seconds >= self.quick_seconds or self.sync_seconds == float("inf"):
            self.sync_seconds = seconds
        else:
            self.sync_seconds += _NEW_SHARE * (seconds - self.sync_seconds)

    def _work(self, queue: list[bytes | Callable[[], None]]) -> None:
        """Write, sync and run jobs, in the order of the queue."""
        data: list[bytes] = []
        for item in queue:
            if isinstance(item, bytes):
                data.append(item)
            else:
                self._write_synced(b"".join(data))
                data = []
                item()
        self._write_synced(b"".join(data))

    def _write_synced(self, data: bytes) -> None:
        if data:
            self._write(data)
        self.file.sync()

    def _write(self, data: bytes) -> None:
        if self.clock_s is not None:
            now_s = self.clock_s()
            if now_s != self._noted_s:
                self._noted_s = now_s
                data = b"#TS:%d\r\n" % now_s + data
        self.file.append(data)

    def close(self) -> None:
        """Sync everything, add an empty batch that records the synced size, and close. Raises: OSError."""
        try:
            self.hand_over()
            self.sync()
            if self.failure is not None:
                raise self.failure
            self.file.append(b"")
            self.file.sync()
        finally:
            self.file.close()
        if not self.is_based:
            raise _no_base()


def _as_os_error(error: BaseException) -> OSError:
    """Any exception as an OSError, whose text goes to clients and into the log file."""
    if isinstance(error, OSError):
        return error
    code = errno.EIO if isinstance(error, Exception) else errno.EINTR
    found = OSError(code, f"{type(error).__name__}: {error}".removesuffix(": "))
    found.__cause__ = error
    return found


def _no_base() -> OSError:
    return OSError(errno.EIO, "the base of the log is not on disk yet")


def wake_nobody() -> None:
    """The default `wake`: there is no sync thread; callers that wait for the disk sync themselves."""
