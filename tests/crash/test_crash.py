"""A power cut at every step of the disk: acknowledged data survives, and no unit survives in part."""

from __future__ import annotations

import errno
import random

import pytest

from penstock.persist.aof.commit import Policy
from penstock.persist.store import Rewrite
from tests.support.campaign import cases
from tests.support.disk.durable_work import LAYOUT, OPTIONS, Work
from tests.support.disk.fake_disk import Crash, FakeDisk, Fault
from tests.support.disk.power_cuts import WORST, PowerCuts


def work_for_a_while(work: Work, turns: int) -> None:
    """Units in groups of any size, with rewrites, snapshots, restarts, and a log that is switched."""
    dice = work.dice
    rewrite: Rewrite | None = None
    for _ in range(turns):
        for _ in range(dice.randint(1, 5)):
            work.do_unit()
            if dice.random() < 0.3:
                work.hand_over()
        work.sync()
        what = dice.choice(["", "rewrite", "finish", "finish", "save", "log", "restart"])
        if what == "finish" and rewrite is not None:
            work.finish_rewrite(rewrite)
            rewrite = None
        elif what == "save":
            work.save()
        elif rewrite is None and work.store.commit is None:
            rewrite = work.begin_new_log()
        elif what == "rewrite" and rewrite is None:
            rewrite = work.begin_rewrite()
        elif what == "log" and rewrite is None:
            work.end_log()
        elif what == "restart" and rewrite is None:
            work.restart()
    if work.store.commit is not None:
        if rewrite is not None:
            work.finish_rewrite(rewrite)
        work.end_log()


def work_until_killed(work: Work) -> None:
    """Raises: Crash."""
    while True:
        work_for_a_while(work, 4)
        work.restart()


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("seed", range(cases(20)))
def test_a_power_cut_at_any_step_loses_nothing_promised(policy: Policy, seed: int) -> None:
    work = Work(FakeDisk(), random.Random(seed), policy)
    cuts = PowerCuts(work, seed)
    work.start()
    work_for_a_while(work, 10)
    cuts.check_all()


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("seed", range(cases(20)))
def test_a_power_cut_loses_nothing_of_what_killed_processes_left(policy: Policy, seed: int) -> None:
    work = Work(FakeDisk(), random.Random(seed), policy)
    cuts = PowerCuts(work, seed)
    work.start()
    for _ in range(4):
        work.disk.crash_at = work.disk.steps + work.dice.randint(3, 40)
        with pytest.raises(Crash):
            work_until_killed(work)
        work.restart_killed()
    cuts.check_all()


def test_a_manifest_that_a_killed_process_did_not_sync_lasts_before_anything_is_promised() -> None:
    """Killed between the rename and the sync of the directory, the next process reads the new manifest."""
    work = Work(FakeDisk(), random.Random(0))
    work.start()
    work.do("INCR n")
    work.sync()
    rewrite = work.begin_rewrite()
    work.disk.fail(Fault("sync_dir", 1, errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        work.sync()
    work.store.abandon_rewrite(rewrite)
    cuts = PowerCuts(work, 0)
    work.restart_killed()
    work.do("INCR n")
    work.sync()
    assert work.promised == work.unit
    work.do("INCR n")
    work.sync()
    cuts.check_all()


def test_the_last_file_of_redis_is_not_appended_to() -> None:
    """It has no batches, so a torn tail written by us could not be told from damage."""
    disk = FakeDisk()
    path = LAYOUT.log_file("appendonly.aof.7.incr.aof")
    data = files_of_redis(Work(disk, random.Random(0)))
    disk.put(path, data)
    disk.put(LAYOUT.manifest, b"file appendonly.aof.7.incr.aof seq 7 type i\n")
    work = Work(disk, random.Random(0))
    cuts = PowerCuts(work, 0)
    work.start()
    work.states[0] = work.states[1]
    work.do(f"SET k {'x' * 3000}")
    work.sync()
    cuts.check_all()
    assert disk.contents()[path] == data


# --- A first start ---------------------------------------------------------------------------------


def files_of_redis(work: Work) -> bytes:
    """A log of a Redis before 7: only commands."""
    words = [["SELECT", "0"], ["XADD", "s", "1-1", "k", "v"], ["RPUSH", "l", "a", "b"]]
    words += [["SELECT", "3"], ["SET", "k", "v"], ["PEXPIREAT", "k", "1800000000000"]]
    work.store.disk.make_dir(LAYOUT.directory)
    return b"".join(
        b"*%d\r\n" % len(line) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in line)
        for line in words
    )


def snapshot_of(data: bytes) -> FakeDisk:
    """A disk with a dump.rdb that holds the data of an old log."""
    disk = FakeDisk()
    disk.put(LAYOUT.old_log, data)
    work = Work(disk, random.Random(0))
    work.recover()
    work.store.save(OPTIONS)
    found = FakeDisk()
    found.put(LAYOUT.snapshot, disk.contents()[LAYOUT.snapshot])
    return found


@pytest.mark.parametrize("kind", ["nothing", "appendonly.aof", "a torn appendonly.aof", "dump.rdb"])
def test_a_power_cut_at_any_step_of_a_first_start(kind: str) -> None:
    """The old data is loaded again: no start is empty, and none is refused."""
    log = files_of_redis(Work(FakeDisk(), random.Random(0)))
    disk = snapshot_of(log) if kind == "dump.rdb" else FakeDisk()
    if "aof" in kind:
        disk.put(LAYOUT.old_log, log + (log[:50] if "torn" in kind else b""))
    work = Work(disk, random.Random(0))
    for seed in range(cases(20)):
        work = Work(disk.after_cut(WORST, work.dice), random.Random(0))
        cuts = PowerCuts(work, seed)
        work.saved = (0,) if kind == "dump.rdb" else work.saved
        work.start()
        work.states[0] = work.states[1]  # the data is the same as before
        work.sync()
        assert bool(work.states[0]) == (kind != "nothing")
        work.do("XADD s * k v")
        work.sync()
        cuts.check_all(go_on_every=1)


def test_a_power_cut_at_any_step_of_the_first_log_of_a_directory_with_a_snapshot() -> None:
    """With appendonly switched on at run time, the snapshot counts until the log has its base."""
    for seed in range(cases(20)):
        work = Work(
            snapshot_of(files_of_redis(Work(FakeDisk(), random.Random(0)))), random.Random(0)
        )
        cuts = PowerCuts(work, seed)
        work.saved = (0,)
        work.recover()
        work.states[0] = work.states[1]
        rewrite = work.begin_new_log()
        work.do("XADD s * k v")
        work.sync()
        work.finish_rewrite(rewrite)
        work.sync()
        assert work.promised == 2
        work.do("XADD s * k v")
        work.sync()
        cuts.check_all(go_on_every=1)
