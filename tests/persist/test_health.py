"""The rule for a disk that fails: its states, its errors, and when a fresh base is tried."""

from __future__ import annotations

import errno

import pytest

from penstock.engine.execute import Engine
from penstock.errors import CommandError
from penstock.persist import backoff
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.health import LogHealth, State
from penstock.persist.layout import Layout
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store
from tests.support.disk.fake_disk import FakeDisk, FakeFile, Fault

OPTIONS = SnapshotOptions()


class Bench:
    """A log on a disk that fails on request, and a clock."""

    def __init__(self, at_once: bool = False) -> None:
        self.disk = FakeDisk()
        self.now_s = 0.0
        self.store = Store(self.disk, Layout("/data"), Engine(), DATA_ROWS)
        recovered = self.store.recovery(load_truncated=True).with_log()
        self.store.begin_log(recovered, Policy.ALWAYS, OPTIONS)
        retries = backoff.fresh_bases(lambda: self.now_s, at_once=at_once)
        self.health = LogHealth(self.store, retries)

    @property
    def commit(self) -> Commit:
        assert self.store.commit is not None
        return self.store.commit

    def state(self) -> State:
        return self.health.state

    def fail(self) -> None:
        """Let every operation fail from now on, and let the log meet that."""
        for kind in ("write", "sync", "create", "sync_dir"):
            self.disk.fail(Fault(kind, 0))
        self.commit.fail(OSError(errno.ENOSPC, "No space left on device"))


def test_a_failure_is_new_once() -> None:
    bench = Bench()
    assert not bench.health.note_failure()
    assert bench.state() is State.WORKING
    bench.fail()
    assert bench.health.note_failure()
    assert not bench.health.note_failure()
    assert bench.state() is State.FAILED
    assert bench.health.why == "No space left on device"
    assert str(bench.health.refusal()) == (
        "MISCONF Errors writing to the AOF file: No space left on device"
    )


def test_a_fresh_base_in_three_steps() -> None:
    bench = Bench()
    bench.fail()
    bench.health.note_failure()
    bench.disk.heal()
    rewrite = bench.health.begin_base(OPTIONS)
    assert bench.state() is State.REBUILDING
    bench.store.write_base(rewrite.temporary, OPTIONS)
    bench.store.finish_rewrite(rewrite)
    bench.health.note_base_written()
    assert bench.state() is State.WORKING
    assert bench.commit.failure is None
    assert bench.commit.is_based
    assert bench.health.is_retry_due()


def test_each_failure_of_a_fresh_base_doubles_the_pause() -> None:
    bench = Bench()
    bench.fail()
    bench.health.note_failure()
    for pause_s in (1, 2, 4, 8, 10):
        bench.now_s += pause_s - 0.5
        assert not bench.health.is_retry_due()
        bench.now_s += 0.5
        assert bench.health.is_retry_due()
        bench.health.note_base_failed(OSError(errno.EIO, "Input/output error"))
        assert bench.state() is State.FAILED
        assert bench.health.why == "Input/output error"


def test_a_log_that_fails_while_its_base_is_written_starts_the_next_pause() -> None:
    bench = Bench()
    bench.fail()
    bench.health.note_failure()
    bench.disk.heal()
    bench.now_s = 1.0
    bench.health.begin_base(OPTIONS)
    bench.fail()
    assert not bench.health.note_failure()  # clients know already
    assert bench.state() is State.FAILED
    assert not bench.health.is_retry_due()


def test_the_first_base_of_a_new_log_may_fail_without_refusing_writes() -> None:
    bench = Bench()
    bench.store.end_log()
    bench.store.begin_new_log(Policy.ALWAYS, OPTIONS)
    bench.health.note_base_failed(OSError(errno.ENOSPC, "No space left on device"))
    assert bench.state() is State.WORKING
    assert bench.commit.failure is None
    assert not bench.health.is_retry_due()


# --- Mending in the calling thread -----------------------------------------------------------------


def test_mending_is_retried_at_once_and_then_after_a_pause() -> None:
    bench = Bench(at_once=True)
    bench.fail()
    for _ in range(2):  # the first tries, the second is within the pause
        with pytest.raises(CommandError, match="MISCONF Errors writing to the AOF file"):
            bench.health.mend(OPTIONS, writes=True)
    bench.disk.heal()
    with pytest.raises(CommandError):
        bench.health.mend(OPTIONS, writes=True)
    bench.now_s = 1.0
    bench.health.mend(OPTIONS, writes=True)
    assert bench.state() is State.WORKING
    assert bench.commit.failure is None


def test_a_read_neither_mends_nor_fails() -> None:
    bench = Bench(at_once=True)
    bench.fail()
    bench.disk.heal()
    bench.health.mend(OPTIONS, writes=False)
    assert bench.state() is State.FAILED


def test_after_an_interrupt_a_read_mends_without_a_pause() -> None:
    bench = Bench()
    bench.commit.fail(KeyboardInterrupt())
    bench.health.mend(OPTIONS, writes=False)
    assert bench.state() is State.WORKING
    assert bench.commit.is_based


def test_an_interrupted_mend_is_done_again_by_the_next_call() -> None:
    bench = Bench()
    bench.commit.fail(KeyboardInterrupt())
    bench.disk.crash_at = bench.disk.steps + 8
    with pytest.raises(BaseException, match="temp-rewrite"):
        bench.health.mend(OPTIONS, writes=False)
    assert not bench.commit.is_based
    bench.disk.crash_at = -1
    bench.health.mend(OPTIONS, writes=False)
    assert bench.state() is State.WORKING
    assert bench.commit.is_based


def test_an_interrupt_while_the_old_file_is_closed_leaves_an_open_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log still had the closed file, and the next write of another thread met EBADF."""
    bench = Bench()
    bench.commit.fail(KeyboardInterrupt())
    close = FakeFile.close

    def close_interrupted(file: FakeFile) -> None:
        monkeypatch.undo()
        close(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeFile, "close", close_interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench.health.mend(OPTIONS, writes=False)
    assert bench.commit.failure is not None
    bench.commit.file.append(b"")


def test_an_interrupted_mend_accepts_no_write_of_another_thread() -> None:
    """Until the base is on disk nothing is kept: a write in between was acknowledged at once."""
    bench = Bench()
    bench.commit.fail(KeyboardInterrupt())
    bench.disk.crash_at = bench.disk.steps + 8
    with pytest.raises(BaseException, match="temp-rewrite"):
        bench.health.mend(OPTIONS, writes=False)
    bench.store.journal.words(0, [b"DEL", b"s"])
    assert not bench.commit.hand_over()
