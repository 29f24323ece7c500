"""A thread that syncs what an event loop hands over, so that the loop never waits for a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from penstock.persist.commit import Commit, wake_nobody


class SyncThread:
    """Syncs whenever it is woken, and tells when it is done. stop() ends it."""

    def __init__(self, commit: Commit, on_done: Callable[[], None]) -> None:
        self._commit = commit
        self._on_done = on_done
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self._awake = False
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
        while self._calls.get():
            self._awake = False  # before the work: what comes meanwhile wakes again
            # Who waits for this round must not wait for what came meanwhile.
            while self._commit.sync_round():
                self._on_done()
            if self._commit.failure is not None:
                self._on_done()
        self._commit.sync()
