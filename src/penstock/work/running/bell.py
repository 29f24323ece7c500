"""Waits for new entries of one stream, so that its lane can wait for other things at the same time.

A lane waits for an entry, for a time, for a settlement and for the end of its worker. Only the first needs
the server: a thread blocks in XREAD, with a connection of its own. It is never interrupted. If the lane is
woken by something else, XREAD goes on, and its reply is news for a later wait. XREAD gives nothing to this
worker, so a reply that nobody reads loses nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from penstock.work.backend import Backend

BLOCK_MS = 5000  # well below the time after which a reply counts as lost
SECONDS_MAX = 5.0


class Bell:
    """Wakes one lane."""

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._changed = threading.Condition()
        self._after: Mapping[str, str] | None = None  # what to wait for, as the lane knows it now
        self._rings = False
        self._error: Exception | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._listen, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def ring(self) -> None:
        """End the wait that runs, or the next one."""
        with self._changed:
            self._rings = True
            self._changed.notify_all()

    def end(self) -> None:
        """End the thread when its XREAD returns."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait(self, after: Mapping[str, str] | None, seconds: float) -> bool:
        """Wait until `ring`, until a stream has an entry behind an id, or for a time; False for the last.

        It waits for SECONDS_MAX at most: a dead letter may have been redriven, or a stream deleted and begun
        again with lower ids. Raises: what the backend raises.
        """
        with self._changed:
            if after is not None and not self._rings:
                self._after = after
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._rings, min(seconds, SECONDS_MAX))
            rang, self._rings = self._rings, False
            error, self._error = self._error, None
        if error is not None:
            raise error
        return rang

    def _listen(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._after is not None or self._ended)
                after = self._after
                if self._ended or after is None:
                    return
            error: Exception | None = None
            found = False
            try:
                found = self._backend.wait(after, BLOCK_MS)
            except Exception as failure:  # noqa: BLE001 - it belongs to the lane
                error = failure
            if found or error is not None:
                with self._changed:
                    self._after, self._error, self._rings = None, error, True
                    self._changed.notify_all()
