"""Lets one suspect run alone in the process, so that a poison entry takes no healthy neighbour with it.

Lanes enter before they take entries, and leave for each entry that has ended. A lane that has found suspects
asks to be alone: nobody enters from then on, and when all others have ended, it takes one suspect. If that
takes too long, because a long job is running, it lets the others enter again and tries later.
"""

from __future__ import annotations

import threading
import time

from penstock.work.patience import Patience


class Gate:
    """Counts the entries that run in this process."""

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._running = 0
        self._alone = False
        self._stopped = False
        self._changed = threading.Condition()

    def enter(self, count: int, seconds: float) -> bool:
        """Announce `count` entries; False if one runs alone for longer than this."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._alone, seconds):
                return False
            self._running += count
            return True

    def leave(self, count: int) -> None:
        """This many entries have ended, or were not taken."""
        with self._changed:
            self._running -= count
            self._changed.notify_all()

    def alone_in(self) -> float:
        """Seconds until a lane may ask again to be alone."""
        with self._changed:
            return self._patience.begins_in(time.monotonic())

    def be_alone(self) -> bool:
        """Wait until nothing runs, then announce one entry.

        False if that takes too long, if another lane is alone, or if the worker stops.
        """
        with self._changed:
            if self._alone or self._stopped or self._patience.begins_in(time.monotonic()) > 0:
                return False
            self._alone = True
            self._changed.wait_for(
                lambda: self._running == 0 or self._stopped, self._patience.seconds
            )
            if self._running == 0 and not self._stopped:
                self._running = 1
                return True
            self._patience.in_vain(time.monotonic())
            self._alone = False
            self._changed.notify_all()
            return False

    def stop(self) -> None:
        """The worker stops: no suspect is taken any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def share(self) -> None:
        """No longer alone."""
        with self._changed:
            self._alone = False
            self._changed.notify_all()
