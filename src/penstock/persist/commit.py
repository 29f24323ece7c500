"""Group commit: what was done since the last time, written and synced at once for all who wait for it.

    engine's owner   hand_over()   takes what the journal has gathered, gives it the next number (position)
    another thread   sync()        one write and one fsync for all that was handed over so far

    position   how many times something was handed over
    released   up to this one, replies may go out
    synced     up to this one, it is on disk

    policy     hand_over                         released when
    always     puts it into a queue              it is synced
    everysec   writes it itself                  it is written; sync() is called every second
    no         writes it itself                  it is written; the system syncs when it likes

The owner never waits for the disk: with `always` he goes on executing while sync() runs elsewhere, and all
that he hands over meanwhile is the next group. Only when more than QUEUE_BYTES_MAX wait does he wait too: a
disk that is slower than its producers must slow them down, or memory would run out.

Changing to another file (a rewrite begins or ends) is a job in the same queue: what was handed over before it
goes into the old file, what comes behind it into the new one.

After a failed write or sync nothing is known of what was not synced before, and a later sync that succeeds
would prove nothing. So the first failure is final (`failure`) until somebody begins a new file on a fresh
base (`start_afresh`): what is handed over until then is dropped, for the base will have it. And nobody may
believe that it is on disk: it has a position that is never released, unless the owner has taken note of the
failure (`give_up_unreleased`) and refuses writes himself.

A file whose base is not on disk yet (after a failure, or when a log is begun while the engine works) takes
effects, but they would be of no use after a crash. Until `base_is_there` nothing is `synced`; what is
released then was promised by nobody.

Invariants
  C1  synced <= released <= position with `always`; released <= position with the others.
  C2  one thread at a time writes to the file: the one in sync(), or the owner while the queue is empty and no
      sync runs.
  C3  a position and what it stands for enter the queue in one moment, under the lock: whoever takes the queue
      takes all up to `position`.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from enum import Enum

from penstock.persist.batch import encode_batch
from penstock.persist.disk import File
from penstock.persist.journal import Journal

QUEUE_BYTES_MAX = 64 << 20


class Policy(Enum):
    """When what was written is synced (appendfsync)."""

    ALWAYS = "always"
    EVERY_SECOND = "everysec"
    NO = "no"


class Commit:
    """What one journal's effects go through on their way to disk.

    Owner: hand_over, is_released, change_file, start_afresh. Any thread: sync, wait_synced, base_is_there.
    Asked: position, released, synced, waiting, served, failure, is_based, file.
    """

    def __init__(self, journal: Journal, file: File, policy: Policy, is_based: bool = True) -> None:
        self.journal = journal
        self.policy = policy
        self.file = file
        self.position = 0
        self.released = 0
        self.synced = 0
        self.failure: OSError | None = None
        self.is_based = is_based  # the base that the file goes with is on disk
        self._is_known = False  # the owner has taken note of the failure
        self._written = 0  # the position up to which the file has it
        self._settled = 0  # the position up to which the file has it on disk, whatever its base
        self._synced_bytes = file.size  # of the file, by us or by those who wrote it before us
        self.clock_s: Callable[[], int] | None = None  # given if times are to be noted
        self._noted_s = 0
        self._queue: list[bytes | Callable[[], None]] = []
        self._queued = 0  # the position up to which the queue has had it
        self._queued_bytes = 0
        self.waiting = 0  # clients whose replies wait for what is queued
        self.served = 0  # those of the round under way, or of the last one
        self._led = False  # one of those who wait is at work for all
        self._busy = False  # sync() has taken something out of the queue and is at work on it
        self._state = (
            threading.Condition()
        )  # guards all of the above; told when something was synced
        self._writing = threading.Lock()  # held by who writes or syncs (C2)
        self.wake: Callable[[], None] = wake_nobody  # tells whoever calls sync() that there is work

    # --- The owner's side --------------------------------------------------------------------------

    def hand_over(self, clients: int = 0) -> bool:
        """Take what the journal has gathered; True if all replies computed so far may go out.

        `clients`: how many will wait for it.
        """
        if self.journal.size == 0:
            return self.released == self.position
        data = self.journal.take()
        if self._enqueued(data, clients):
            if self._is_known or not self.is_based:
                self.released = self.position
            return self.released == self.position
        try:
            self._write(data)
        except OSError as error:
            self._fail(error)
            return False
        self._written = self.released = self.position
        return True

    def _enqueued(self, data: bytes, clients: int) -> bool:
        """Give data their position (C3), and leave them to sync(); False if the owner is to write them.

        With a failure they are dropped.
        """
        with self._state:
            while self._queued_bytes > QUEUE_BYTES_MAX and self.failure is None:
                self._state.wait()
            self.position += 1
            if self.failure is not None:
                return True
            if self.policy is not Policy.ALWAYS and not self._queue and not self._busy:
                return False
            self._queue.append(data)
            self._queued = self.position
            self._queued_bytes += len(data)
            self.waiting += clients
        self.wake()
        return True

    def is_released(self) -> bool:
        """Tell whether all replies computed so far may go out."""
        return self.journal.size == 0 and self.released == self.position

    def change_file(self, job: Callable[[], File]) -> None:
        """Let what is handed over from now on go into the file that `job` makes, in whoever syncs.

        What was handed over before is synced first. A job that raises OSError is a failure like another.
        """
        self.hand_over()

        def change() -> None:
            file = job()
            with self._state:
                old, self.file = self.file, file
                self._synced_bytes = file.size
            old.close()

        self.journal.forget_database()
        with self._state:
            self._queue.append(change)
        self.wake()

    def do(self, job: Callable[[], None]) -> None:
        """Run a job in whoever syncs, behind all that was handed over."""
        with self._state:
            self._queue.append(job)
        self.wake()

    def start_afresh(self, file: File) -> None:
        """Forget a failure: effects go on in a new file, of which the base is still to be written."""
        with self._writing, self._state:
            self.file.close()
            self.file = file
            self._synced_bytes = file.size
            self._queue.clear()
            self._queued_bytes = self.waiting = 0
            self.failure = None
            self.is_based = self._is_known = False
            if self.journal.take():
                self.position += 1  # the base will have it
            self.journal.forget_database()
            self.released = self._written = self._settled = self.position

    def give_up_unreleased(self) -> None:
        """After a failure: those who wait have been told, and reads go on."""
        self._is_known = True
        self.released = self.position

    # --- Anybody's side ----------------------------------------------------------------------------

    def sync(self) -> None:
        """Write and sync all that was handed over, until there is nothing left."""
        with self._writing:
            while self._sync_once():
                pass

    def sync_round(self) -> bool:
        """One write and one sync for all that was handed over; False if there was nothing to do."""
        with self._writing:
            return self._sync_once()

    def wait_synced(self, position: int) -> None:
        """Return when a position is on disk, syncing it if nobody else does. Raises: OSError.

        Of several threads one works for all that have handed over by then; the others sleep meanwhile, and
        those that handed over too late for it find the next one among them.
        """
        while True:
            with self._state:
                while self._led and self.synced < position and self.failure is None:
                    self._state.wait()
                if self.synced >= position:
                    return
                if self.failure is not None:
                    raise self.failure
                if not self.is_based:
                    raise _no_base()
                self._led = True
            try:
                with self._writing:
                    self._sync_once()
            finally:
                with self._state:
                    self._led = False
                    self._state.notify_all()

    def base_is_there(self) -> None:
        """The base that the file goes with is on disk: so is all that was synced since."""
        with self._state:
            self.is_based = True
            self.synced = self._settled
            self.released = max(self.released, self.synced)
            self._state.notify_all()

    def _sync_once(self) -> bool:
        """One write and one sync for all that is queued; False if there was nothing to do, or it failed."""
        if self.failure is not None:
            return False
        with self._state:
            self._busy = bool(self._queue)
            queue, self._queue = self._queue, []
            self._queued_bytes = 0
            served, self.waiting = self.waiting, 0
            # What the owner writes himself while this syncs belongs to the next round.
            written = max(self._written, self._queued)
        if not queue and written == self._settled:
            return False
        self.served = served
        try:
            self._work(queue)
        except OSError as error:
            self._fail(error)
            return False
        with self._state:
            self._written = max(self._written, written)
            self.released = max(self.released, written)
            self._settled = written
            if self.is_based:
                self.synced = written
            self._busy = False
            self._state.notify_all()
        return True

    def _work(self, queue: list[bytes | Callable[[], None]]) -> None:
        """Write, sync, and do jobs, in their order."""
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
        size = self.file.size
        if size != self._synced_bytes:
            self.file.sync()
            self._synced_bytes = size

    def _write(self, data: bytes) -> None:
        if self.clock_s is not None:
            now_s = self.clock_s()
            if now_s != self._noted_s:
                self._noted_s = now_s
                data = b"#TS:%d\r\n" % now_s + data
        self.file.write(encode_batch(data, self._synced_bytes, self.file.size) + data)

    def _fail(self, error: OSError) -> None:
        with self._state:
            self.failure = error
            self._queue = []
            self._queued_bytes = self.waiting = 0
            self._busy = False
            self._state.notify_all()

    def close(self) -> None:
        """Sync all, vouch for it with an empty batch, and close the file. Raises: OSError."""
        try:
            self.hand_over()
            self.sync()
            if self.failure is not None:
                raise self.failure
            self.file.write(encode_batch(b"", self._synced_bytes, self.file.size))
            self.file.sync()
        finally:
            self.file.close()
        if not self.is_based:
            raise _no_base()


def _no_base() -> OSError:
    return OSError(errno.EIO, "the base of the log is not on disk yet")


def wake_nobody() -> None:
    """Whoever waits for something to be synced does it himself."""
