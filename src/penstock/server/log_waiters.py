"""Clients that wait until what was done is on disk (WAITAOF)."""

from __future__ import annotations

from typing import Protocol

from penstock.persist.aof.commit import Commit


class LogWaiter(Protocol):
    """A client that waits for the disk."""

    def synced(self) -> None:
        """It is there."""


class LogWaiters:
    """Those who wait, by the number of what they wait for: add, answer, answer_all."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, LogWaiter]] = []

    def add(self, commit: Commit, waiter: LogWaiter, may_wait: bool, failed: bool) -> bool:
        """Tell a client when all that was done so far is on disk; False if it is already.

        `failed`: whatever the log says, nothing counts before there is a fresh base.
        """
        if not may_wait:  # within a transaction, which must stay in one piece
            return failed or bool(commit.journal.size) or commit.synced < commit.position
        commit.hand_over()
        if commit.synced >= commit.position and not failed:
            return False
        self._waiting.append((commit.position, waiter))
        commit.wake()  # or it would be for the next second, or for nobody, to sync
        return True

    def answer(self, synced: int) -> None:
        """Answer all whose number is not above this one."""
        waiting, self._waiting = self._waiting, []
        for position, waiter in waiting:
            if position <= synced:
                waiter.synced()
            else:
                self._waiting.append((position, waiter))

    def answer_all(self) -> None:
        """There is no log to wait for any longer."""
        waiting, self._waiting = self._waiting, []
        for _, waiter in waiting:
            waiter.synced()
