"""A thread that syncs what an event loop hands over, so that the loop never waits for the disk."""

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
    """Syncs when it is woken, and calls `on_done` after each round. stop() ends it.

    Clients that wait for a reply before they send the next command would split into two groups: one waits for
    the disk while the other is served, and each group has its own sync. If the disk is the bottleneck, that
    halves the throughput. So a round with fewer clients than the last one is delayed, for at most half of the
    last round's time, until the others have joined it.
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
        self._crowd = 0  # clients that waited for the last round or arrived during it
        self._seconds = 0.0  # the duration of the last round
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self._awake = False
        self._told = commit.synced  # the synced position that the loop knows
        commit.wake = self.wake
        self._thread = threading.Thread(target=self._run, name="penstock-sync", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Start a round: there is something to sync."""
        if not self._awake:
            self._awake = True
            self._calls.put(True)

    def stop(self) -> None:
        """Sync what was handed over, and end."""
        self._calls.put(False)
        self._thread.join()
        self._commit.wake = wake_nobody

    def _run(self) -> None:
        try:
            while self._calls.get():
                self._awake = False  # before the work, so that new work wakes it again
                # Round by round: clients of one round must not wait for the next one.
                while self._sync_round():
                    self._tell()
                # Another thread may have synced everything. The loop must be notified of that too.
                if self._commit.failure is not None or self._commit.synced != self._told:
                    self._tell()
            self._commit.sync()
        except BaseException as error:  # noqa: BLE001 - otherwise all clients would wait forever
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
