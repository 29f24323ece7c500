"""Group commit: what waits for what, with threads and a disk controlled by the test."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable

import pytest

from penstock.persist.aof import commit as commit_module
from penstock.persist.aof.batch import encode_batch, parse_batch_or_none
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.increment import Increment
from penstock.persist.aof.journal import Journal
from penstock.persist.aof.sync_thread import SyncThread
from tests.support.disk.fake_disk import FakeDisk, FakeFile, Fault

TIMEOUT = 30


class WatchedFile(FakeFile):
    """A file that calls a function before each sync."""

    syncs = 0
    on_sync: Callable[[], None] = staticmethod(lambda: None)

    def sync(self) -> None:
        self.syncs += 1
        self.on_sync()
        super().sync()


def new_file(disk: FakeDisk, path: str = "/log") -> WatchedFile:
    plain = disk.create(path)
    return WatchedFile(disk, path, plain._inode)


def commit_on(disk: FakeDisk, policy: Policy = Policy.ALWAYS) -> tuple[Commit, WatchedFile]:
    file = new_file(disk)
    return Commit(Journal(), Increment(file), policy), file


def note(commit: Commit, word: str) -> None:
    commit.journal.words(0, [b"SET", word.encode(), b"1"])


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ended(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive(), "it hangs"


def test_always_releases_what_is_synced_and_nothing_else() -> None:
    disk = FakeDisk()
    commit, _ = commit_on(disk)
    assert commit.hand_over(), "nothing was done"
    note(commit, "a")
    assert not commit.is_released()
    assert not commit.hand_over()
    assert (commit.position, commit.released, commit.synced) == (1, 0, 0)
    assert not disk.contents()["/log"]
    commit.sync()
    assert (commit.position, commit.released, commit.synced) == (1, 1, 1)
    assert commit.is_released()
    assert disk.contents()["/log"].startswith(b"#PSCRC:1:")


def test_everysec_releases_what_is_written() -> None:
    commit, file = commit_on(FakeDisk(), Policy.EVERY_SECOND)
    note(commit, "a")
    assert commit.hand_over()
    assert (commit.position, commit.released, commit.synced, file.syncs) == (1, 1, 0, 0)
    commit.sync()
    assert (commit.synced, file.syncs) == (1, 1)
    commit.sync()
    assert file.syncs == 1, "there was nothing to sync"


def test_one_sync_serves_everything_handed_over() -> None:
    """Producers are faster than the disk: the first sync lasts until all of them have handed over."""
    commit, file = commit_on(FakeDisk())
    count = 8
    owner = threading.Lock()
    all_handed = threading.Event()

    def wait_for_all() -> None:
        assert all_handed.wait(TIMEOUT)

    file.on_sync = wait_for_all

    def produce(number: int) -> None:
        with owner:
            note(commit, f"k{number}")
            commit.hand_over()
            position = commit.position
            if position == count:
                all_handed.set()
        commit.wait_synced(position)
        assert commit.synced >= position

    ended(*[in_thread(lambda n=number: produce(n)) for number in range(count)])  # type: ignore[misc]
    assert commit.synced == count
    assert file.syncs <= 2


def test_what_is_handed_over_while_a_sync_runs_waits_for_the_next() -> None:
    commit, file = commit_on(FakeDisk())
    note(commit, "a")
    commit.hand_over()

    def hand_over_more() -> None:
        file.on_sync = lambda: None
        note(commit, "b")
        commit.hand_over()

    seen: list[tuple[int, int]] = []
    file.on_sync = hand_over_more
    commit.wait_synced(1)
    seen.append((commit.synced, file.syncs))
    commit.wait_synced(2)
    seen.append((commit.synced, file.syncs))
    assert seen == [(1, 1), (2, 2)]


def test_an_owner_whose_queue_is_full_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is slower than its producers must slow them down."""
    monkeypatch.setattr(commit_module, "QUEUE_BYTES_MAX", 0)
    disk = FakeDisk()
    commit, file = commit_on(disk)

    def check() -> None:
        assert commit.synced == file.syncs - 1

    file.on_sync = check
    for number, word in enumerate(("first", "second"), 1):
        note(commit, word)
        assert commit.hand_over()
        assert commit.synced == number
        assert word.encode() in disk.contents()["/log"]


def test_what_the_owner_is_still_writing_is_not_taken_for_synced() -> None:
    """Another thread ends a rewrite at that moment: its job is in the queue, the owner's bytes are not."""
    disk = FakeDisk()
    commit, file = commit_on(disk, Policy.EVERY_SECOND)

    class Slow(WatchedFile):
        def write(self, data: bytes) -> None:
            commit.do(lambda: None)
            commit.sync()
            assert commit.synced == 0
            super().write(data)

    commit.file = Increment(Slow(disk, "/log", file._inode))
    note(commit, "a")
    commit.hand_over()
    commit.sync()
    assert commit.synced == 1


def test_a_thread_that_syncs_does_so_whenever_it_is_woken() -> None:
    commit, _ = commit_on(FakeDisk())
    done = threading.Semaphore(0)
    thread = SyncThread(commit, done.release)
    for number in range(1, 20):
        note(commit, f"k{number}")
        commit.hand_over()
        while commit.synced < number:
            assert done.acquire(timeout=TIMEOUT)
    note(commit, "last")
    commit.hand_over()
    thread.stop()
    assert commit.synced == 20


def test_the_loop_is_told_of_syncs_by_other_threads() -> None:
    """A client of db.serve() waited forever, because a thread of the program had synced its write."""
    commit, _ = commit_on(FakeDisk())
    told: list[int] = []
    thread = SyncThread(commit, lambda: told.append(commit.synced))
    wake, commit.wake = commit.wake, lambda: None
    note(commit, "a")
    commit.hand_over()
    commit.wait_synced(1)
    wake()
    thread.stop()
    assert told == [1]


def test_clients_that_arrive_soon_share_a_sync() -> None:
    commit, file = commit_on(FakeDisk())
    seconds = [0.0]
    done = threading.Semaphore(0)

    def sync_slowly() -> None:
        seconds[0] += 0.01

    def come(clients: int) -> None:
        note(commit, "k")
        commit.hand_over(clients)

    def sleep(step: float) -> None:
        seconds[0] += step
        if commit.waiting == 1:  # one of the two released clients; the other one arrives now
            come(1)

    file.on_sync = sync_slowly
    thread = SyncThread(commit, done.release, lambda: seconds[0], sleep)
    for first, served in ((2, 2), (1, 2), (2, 2), (1, 2)):
        come(first)
        assert done.acquire(timeout=TIMEOUT)
        assert commit.served == served
    assert file.syncs == 4
    thread.stop()


def test_a_sync_is_not_delayed_for_long() -> None:
    commit, file = commit_on(FakeDisk())
    seconds = [0.0]
    done = threading.Semaphore(0)

    def tick(step: float = 0.01) -> None:
        seconds[0] += step

    file.on_sync = tick
    thread = SyncThread(commit, done.release, lambda: seconds[0], tick)
    for clients in (50, 1, 1):
        note(commit, "k")
        commit.hand_over(clients)
        assert done.acquire(timeout=TIMEOUT)
        assert commit.served == clients
    assert thread._crowd == 1, "it is not waited for again"
    thread.stop()


@pytest.mark.parametrize("policy", list(Policy))
def test_a_change_of_file_divides_what_was_handed_over(policy: Policy) -> None:
    disk = FakeDisk()
    commit, old = commit_on(disk, policy)
    note(commit, "before")
    commit.hand_over()
    note(commit, "gathered")
    commit.change_file(lambda: Increment(new_file(disk, "/new")))
    note(commit, "after")
    assert not commit.hand_over(), "it is behind the change, which is not made yet"
    commit.sync()
    assert old.closed
    found = disk.contents()
    assert b"before" in found["/log"]
    assert b"gathered" in found["/log"]
    assert b"after" not in found["/log"]
    assert b"SELECT" in found["/new"].partition(b"after")[0], "a new file knows no database"
    assert commit.released == commit.position == commit.synced


def test_the_second_batch_says_how_much_was_synced_before_it() -> None:
    disk = FakeDisk()
    commit, file = commit_on(disk)
    for word in ("a", "b"):
        note(commit, word)
        commit.hand_over()
        size = file.size
        commit.sync()
    second = parse_batch_or_none(disk.contents()["/log"][size:], size)
    assert second is not None
    assert second.synced == size


def test_close_ends_the_file_with_an_empty_batch() -> None:
    disk = FakeDisk()
    commit, file = commit_on(disk)
    note(commit, "a")
    commit.close()
    data = disk.contents()["/log"]
    last = data.rindex(b"#PSCRC")
    assert data[last:] == encode_batch(b"", last, last)
    assert file.closed


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_every_waiting_thread_gets_the_failure(kind: str) -> None:
    disk = FakeDisk()
    commit, _ = commit_on(disk)
    disk.fail(Fault(kind, 0, errno.ENOSPC, part=0.5))
    note(commit, "a")
    commit.hand_over()
    heard: list[OSError] = []

    def wait() -> None:
        try:
            commit.wait_synced(1)
        except OSError as error:
            heard.append(error)

    ended(*[in_thread(wait) for _ in range(4)])
    assert [error.errno for error in heard] == [errno.ENOSPC] * 4
    disk.heal()
    commit.sync()
    assert commit.synced == 0, "a sync that succeeds later proves nothing"
    with pytest.raises(OSError, match=r"Input/output|No space"):
        commit.close()


def test_reads_are_released_once_the_owner_knows_of_the_failure() -> None:
    disk = FakeDisk()
    commit, _ = commit_on(disk)
    disk.fail(Fault("sync", 0, errno.EIO))
    note(commit, "a")
    commit.hand_over()
    commit.sync()
    assert not commit.hand_over()
    commit.give_up_unreleased()
    assert commit.hand_over()
    note(commit, "an expired key")
    assert commit.hand_over(), "nobody was promised anything"
    with pytest.raises(OSError, match=r"Input/output|No space"):
        commit.wait_synced(commit.position)


def test_a_fresh_file_promises_nothing_before_its_base_is_on_disk() -> None:
    disk = FakeDisk()
    commit, _ = commit_on(disk)
    disk.fail(Fault("sync", 0, errno.EIO))
    note(commit, "a")
    commit.hand_over()
    commit.sync()
    disk.heal()
    commit.give_up_unreleased()
    note(commit, "dropped")
    commit.start_afresh(Increment(new_file(disk, "/new")))
    note(commit, "b")
    commit.hand_over()
    commit.sync()
    assert commit.synced == 0
    commit.base_is_there()
    assert commit.synced == commit.position == 3
    assert b"dropped" not in disk.contents()["/new"]
    assert b"SELECT" in disk.contents()["/new"]
