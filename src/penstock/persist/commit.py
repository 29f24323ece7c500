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
base (`start_afresh`): what is handed over until then is dropped, for the base will have it.

Invariants
  C1  synced <= released <= position with `always`; released <= position with the others.
  C2  one thread at a time writes to the file: the one in sync(), or the owner while the queue is empty and no
      sync runs.
"""

from __future__ import annotations

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

    Owner: hand_over, is_released, change_file, start_afresh. Any thread: sync, wait_synced. Asked:
    position, released, synced, failure, file.
    """

    def __init__(self, journal: Journal, file: File, policy: Policy) -> None:
        self.journal = journal
        self.policy = policy
        self.file = file
        self.position = 0
        self.released = 0
        self.synced = 0
        self.failure: OSError | None = None
        self._written = 0  # the position up to which the file has it
        self._synced_bytes = file.size  # of the file, by us or by those who wrote it before us
        self.clock_s: Callable[[], int] | None = None  # given if times are to be noted
        self._noted_s = 0
        self._queue: list[bytes | Callable[[], None]] = []
        self._queued_bytes = 0
        self._led = False  # one of those who wait is at work for all
        self._busy = False  # sync() has taken something out of the queue and is at work on it
        self._state = (
            threading.Condition()
        )  # guards all of the above; told when something was synced
        self._writing = threading.Lock()  # held by who writes or syncs (C2)
        self.wake: Callable[[], None] = (
            _wake_nobody  # tells whoever calls sync() that there is work
        )

    # --- The owner's side --------------------------------------------------------------------------

    def hand_over(self) -> bool:
        """Take what the journal has gathered; True if all replies computed so far may go out."""
        if self.journal.size == 0:
            return self.released == self.position
        data = self.journal.take()
        if self.failure is not None:
            return self.released == self.position
        if self.policy is Policy.ALWAYS or self._queue or self._busy:
            self._enqueue(data)
            return False
        self.position += 1
        try:
            self._write(data)
        except OSError as error:
            self._fail(error)
            return False
        self._written = self.released = self.position
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
        """Forget a failure: effects go on in a new file. The caller has made sure that they may."""
        with self._writing, self._state:
            self.file.close()
            self.file = file
            self._synced_bytes = file.size
            self._queue.clear()
            self._queued_bytes = 0
            self.failure = None
            self.journal.take()
            self.journal.forget_database()
            self.released = self.synced = self._written = self.position

    def give_up_unreleased(self) -> None:
        """After a failure: those who wait have been told, and reads go on."""
        self.released = self.position

    def _enqueue(self, data: bytes) -> None:
        with self._state:
            while self._queued_bytes > QUEUE_BYTES_MAX and self.failure is None:
                self._state.wait()
            # Together, or sync() could take the number for that of something it has in hand.
            self.position += 1
            self._queue.append(data)
            self._queued_bytes += len(data)
        self.wake()

    # --- Anybody's side ----------------------------------------------------------------------------

    def sync(self) -> None:
        """Write and sync all that was handed over, until there is nothing left."""
        with self._writing:
            while self._sync_once():
                pass

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
                self._led = True
            try:
                with self._writing:
                    self._sync_once()
            finally:
                with self._state:
                    self._led = False
                    self._state.notify_all()

    def _sync_once(self) -> bool:
        """One write and one sync for all that is queued; False if there was nothing to do, or it failed."""
        if self.failure is not None:
            return False
        with self._state:
            # The owner looks without the lock, at the queue first: he must find one of the two.
            self._busy = bool(self._queue)
            queue, self._queue = self._queue, []
            self._queued_bytes = 0
            # What the owner writes himself while this syncs belongs to the next round.
            written = self.position if queue else self._written
        if not queue and written == self.synced:
            return False
        try:
            self._work(queue)
        except OSError as error:
            self._fail(error)
            return False
        with self._state:
            self._written = max(self._written, written)
            self.released = max(self.released, written)
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
        self.file.write(encode_batch(data, self._synced_bytes) + data)

    def _fail(self, error: OSError) -> None:
        with self._state:
            self.failure = error
            self._queue = []
            self._queued_bytes = 0
            self._busy = False
            self._state.notify_all()

    def close(self) -> None:
        """Sync all, vouch for it with an empty batch, and close the file. Raises: OSError."""
        self.hand_over()
        self.sync()
        if self.failure is None and self.file.size:
            self.file.write(encode_batch(b"", self._synced_bytes))
            self.file.sync()
        self.file.close()
        if self.failure is not None:
            raise self.failure


def _wake_nobody() -> None:
    """Whoever waits for something to be synced does it himself."""
