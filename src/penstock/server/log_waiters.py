"""Clients that wait until their changes are on disk (WAITAOF)."""

from __future__ import annotations

from typing import Protocol

from penstock.persist.aof.commit import Commit


class LogWaiter(Protocol):
    """A client that waits for a sync."""

    def synced(self) -> None:
        """The changes are on disk."""


class LogWaiters:
    """The waiting clients, each with the log position that it waits for: add, answer, answer_all."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, LogWaiter]] = []

    def add(self, commit: Commit, waiter: LogWaiter, may_wait: bool, failed: bool) -> bool:
        """Call the waiter when all changes so far are on disk; False if they are already.

        `failed`: the log has failed, so nothing is on disk until there is a fresh base.
        """
        if not may_wait:  # within a transaction, which must not be split
            return failed or bool(commit.journal.size) or commit.synced < commit.position
        commit.hand_over()
        if commit.synced >= commit.position and not failed:
            return False
        self._waiting.append((commit.position, waiter))
        commit.wake()  # otherwise the sync would come within a second, or never
        return True

    def answer(self, synced: int) -> None:
        """Call all waiters up to this log position."""
        waiting, self._waiting = self._waiting, []
        for position, waiter in waiting:
            if position <= synced:
                waiter.synced()
            else:
                self._waiting.append((position, waiter))

    def answer_all(self) -> None:
        """Call all waiters: there is no log to wait for."""
        waiting, self._waiting = self._waiting, []
        for _, waiter in waiting:
            waiter.synced()
