"""One thread hands over while another syncs: a position is released only when its bytes are on disk."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.increment import Increment
from penstock.persist.aof.journal import Journal

HAND_OVERS = 20_000


class CountingFile:
    """Counts the effects written and those synced."""

    def __init__(self) -> None:
        self.size = 0
        self.written = 0
        self.synced = 0
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        # In this order, like a real file: bytes first, then the size.
        self.written += data.count(b"XADD")
        self.size += len(data)

    def sync(self) -> None:
        self.synced = self.written

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """Make the interpreter switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("changes_file", [False, True])
@pytest.mark.parametrize("policy", [Policy.ALWAYS, Policy.EVERY_SECOND])
def test_nothing_is_released_before_it_is_on_disk(policy: Policy, changes_file: bool) -> None:
    files = [CountingFile()]
    journal = Journal()
    commit = Commit(journal, Increment(files[0]), policy)
    over = threading.Event()

    def sync_on() -> None:
        while not over.is_set():
            commit.sync()

    def new_file() -> Increment:
        files.append(CountingFile())
        return Increment(files[-1])

    thread = threading.Thread(target=sync_on)
    thread.start()
    try:
        for number in range(1, HAND_OVERS + 1):
            journal.words(0, [b"XADD", b"s"])
            commit.hand_over()
            released, synced = commit.released, commit.synced
            assert sum(file.synced for file in files) >= synced
            if policy is Policy.ALWAYS:
                assert released == synced or released <= sum(file.synced for file in files)
            else:
                assert released <= sum(file.written for file in files)
            if changes_file and number % 50 == 0:
                commit.change_file(new_file)
    finally:
        over.set()
        thread.join()
    commit.sync()
    assert commit.failure is None
    assert commit.synced == commit.position == HAND_OVERS
    assert sum(file.synced for file in files) == HAND_OVERS
