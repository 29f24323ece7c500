"""A thread that syncs what an event loop hands over, so that the loop never waits for a disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from penstock.persist.aof.commit import Commit, wake_nobody

JOIN_SHARE = 0.5
JOIN_STEP_SECONDS = 0.00005
JOIN_SECONDS_MAX = 0.005


class SyncThread:
    """Syncs whenever it is woken, and tells when it is done. stop() ends it.

    Clients that wait for their replies before they ask again would fall into two halves, one waiting for the
    disk while the other is served, each with a sync of its own: where the disk is the limit, that is half of
    what it could do. So a round that fewer wait for than were there lately is put off for a moment, half as
    long as the last one took at most: the others are on their way, and share it.
    """

    def __init__(
        self,
        commit: Commit,
        on_done: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._commit = commit
        self._on_done = on_done
        self._clock = clock
        self._sleep = sleep
        self._crowd = 0  # how many waited for the last round, or came during it
        self._seconds = 0.0  # that it took
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self._awake = False
        self._told = commit.synced  # when the loop was told last
        commit.wake = self.wake
        self._thread = threading.Thread(target=self._run, name="penstock-sync", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to sync."""
        if not self._awake:
            self._awake = True
            self._calls.put(True)

    def stop(self) -> None:
        """Sync what there is and end."""
        self._calls.put(False)
        self._thread.join()
        self._commit.wake = wake_nobody

    def _run(self) -> None:
        try:
            while self._calls.get():
                self._awake = False  # before the work: what comes meanwhile wakes again
                # Who waits for this round must not wait for what came meanwhile.
                while self._sync_round():
                    self._tell()
                # Another thread that waited for the disk may have synced it all. The loop has to hear of it.
                if self._commit.failure is not None or self._commit.synced != self._told:
                    self._tell()
            self._commit.sync()
        except BaseException as error:  # noqa: BLE001 - nobody else would hear of it, and all clients would wait
            self._commit.fail(error)
            self._on_done()

    def _tell(self) -> None:
        self._told = self._commit.synced
        self._on_done()

    def _sync_round(self) -> bool:
        commit = self._commit
        self._let_others_join()
        began = self._clock()
        if not commit.sync_round():
            return False
        self._seconds = self._clock() - began
        self._crowd = commit.served + commit.waiting
        return True

    def _let_others_join(self) -> None:
        until = self._clock() + min(self._seconds * JOIN_SHARE, JOIN_SECONDS_MAX)
        while 0 < self._commit.waiting < self._crowd and self._clock() < until:
            self._sleep(JOIN_STEP_SECONDS)
