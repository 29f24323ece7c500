"""The data directory: locks, file modes, and what happens when parts of it are removed."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import random
import shutil
import stat
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import penstock
from penstock.persist import store as stores
from penstock.persist.disk import SystemDisk, is_lock_held
from penstock.persist.snapshot import write_snapshot
from tests.support.disk.durable_work import Work
from tests.support.disk.fake_disk import FakeDisk
from tests.support.servers.connections import ManualClient
from tests.support.servers.durable_bench import DurableBench, synced
from tests.support.servers.raw_redis import Refusal

TIMEOUT = 60


def log_of(data: Path) -> Path:
    return data / "appendonlydir" / "appendonly.aof.1.incr.aof"


# --- Locks -----------------------------------------------------------------------------------------


def test_removing_the_lock_file_does_not_unlock_the_directory(tmp_path: Path) -> None:
    """A second server started, and acknowledged writes of one of them were lost."""
    with penstock.open(tmp_path / "data") as db:
        db.xadd("s", {"k": "v"})
        (tmp_path / "data" / "penstock.lock").unlink()
        with pytest.raises(penstock.DirectoryInUse):
            penstock.open(tmp_path / "data")
        assert is_lock_held(str(tmp_path / "data" / "penstock.lock"))
    assert not is_lock_held(str(tmp_path / "data" / "penstock.lock"))
    penstock.open(tmp_path / "data").close()


def test_a_file_system_that_cannot_lock_directories_locks_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS only locks files open for writing, so a directory cannot be locked."""
    flock = fcntl.flock

    def refuse_directories(fd: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(9, "Bad file descriptor")
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", refuse_directories)
    path = str(tmp_path / "penstock.lock")
    lock = SystemDisk().lock(path)
    assert lock is not None
    assert SystemDisk().lock(path) is None
    assert is_lock_held(path)
    lock.release()
    assert not is_lock_held(path)


def race(path: str, told: Connection) -> None:
    """In a separate process: try to open the directory, and report the result."""
    try:
        db = penstock.open(path)
    except penstock.DirectoryInUse:
        told.send("in use")
        return
    db.xadd("s", {"k": "v"})
    told.send("open")
    told.recv()
    db.close()


def test_one_of_several_racing_processes_gets_the_directory(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ends = [context.Pipe() for _ in range(4)]
    racers = [
        context.Process(target=race, args=(str(tmp_path / "data"), there)) for _, there in ends
    ]
    for racer in racers:
        racer.start()
    said = [here.recv() if here.poll(TIMEOUT) else "nothing" for here, _ in ends]
    assert sorted(said) == ["in use", "in use", "in use", "open"]
    for (here, _), word in zip(ends, said, strict=True):
        if word == "open":
            here.send("close")
    for racer in racers:
        racer.join(TIMEOUT)
    with penstock.open(tmp_path / "data") as db:
        assert db.xlen("s") == 1


def test_a_garbage_collected_database_releases_its_directory(tmp_path: Path) -> None:
    for policy in ("always", "everysec"):
        abandoned = [penstock.open(tmp_path / "data", appendfsync=policy)]
        abandoned[0].xadd("s", {"k": "v"})
        with pytest.warns(ResourceWarning, match="was not closed"):
            abandoned.clear()
    with penstock.open(tmp_path / "data") as db:
        assert db.xlen("s") == 2


def test_a_forked_copy_is_refused_though_another_thread_was_inside_a_call(tmp_path: Path) -> None:
    """The copy waited for a lock whose owner, a thread, did not exist in it."""
    with penstock.open(tmp_path / "data") as db:
        over = threading.Event()

        def add() -> None:
            while not over.is_set():
                db.xadd("s", {"k": "v"})

        thread = threading.Thread(target=add)
        thread.start()
        try:
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    try:
                        db.xadd("s", {"k": "v"})
                    except penstock.DatabaseClosed:
                        db.close()
                        os._exit(7)
                    os._exit(1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        finally:
            over.set()
            thread.join()


# --- Modes -----------------------------------------------------------------------------------------


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as db:
        db.xadd("s", {"k": "v"})
        db.save()
        paths = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
        modes = {path.name: path.stat().st_mode & 0o777 for path in paths}
    assert set(modes.values()) == {0o600, 0o700}, modes


# --- Names and parts that go missing -----------------------------------------------------------------


@pytest.mark.parametrize("name", ['a"b.aof', "it's.aof", "a b.aof", "a\\b.aof", "ä.aof", "a\tb"])
def test_a_log_with_any_file_name_can_be_opened_again(tmp_path: Path, name: str) -> None:
    """A name with a quote was written into the manifest in an unreadable form."""
    bench = DurableBench(tmp_path, appendfilename=name)
    synced(bench, bench.connect(), "XADD s 1-1 a 1")
    again = bench.restarted()
    assert again.connect().reply("XLEN s") == 1
    again.end()


def test_a_removed_log_directory_is_named_in_the_error_and_made_again(tmp_path: Path) -> None:
    """Every retry failed, with an error that named no file."""
    bench = DurableBench(tmp_path)
    client: ManualClient = bench.connect()
    synced(bench, client, "XADD s 1-1 a 1")
    shutil.rmtree(bench.store.layout.log_dir)
    client.tell("BGREWRITEAOF")
    client.tell("XADD s 1-2 a 1")
    bench.sync()
    told = client.replies()[-1]
    assert isinstance(told, Refusal)
    assert bench.store.layout.log_dir in str(told)
    bench.tick(1000)
    bench.wait_for_child()
    assert synced(bench, client, "XADD s 1-3 a 1") == [b"1-3"]
    ids = [entry[0] for entry in bench.abandon().connect().reply("XRANGE s - +")]
    assert ids == [b"1-1", b"1-2", b"1-3"]


def test_a_start_reports_that_the_log_directory_was_removed(tmp_path: Path) -> None:
    """The database was empty, and nothing said why."""
    data = tmp_path / "data"
    with penstock.open(data) as db:  # a fresh directory: nothing to report
        db.xadd("s", {"k": "v"})
    shutil.rmtree(data / "appendonlydir")
    with pytest.warns(
        RuntimeWarning, match=r"was used before, but has neither a log \(appendonlydir\)"
    ):
        penstock.open(data).close()
    penstock.open(data).close()  # reported once: there is a log now
    shutil.rmtree(data / "appendonlydir")
    (text,) = DurableBench(data).recovered.warnings
    assert "starting without data" in text


def test_a_log_of_very_many_increments_gets_a_new_base_at_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each failed rewrite leaves an increment, and the manifest must stay small enough to be read."""
    monkeypatch.setattr(stores, "INCREMENTS_MAX", 5)
    work = Work(FakeDisk(), random.Random(0))
    work.start()
    for number in range(4):
        work.do(f"XADD s * n {number}")
        work.store.abandon_rewrite(work.begin_rewrite())
        work.sync()
    with pytest.raises(OSError, match="5 rewrites have failed"):
        work.begin_rewrite()
    # The new base has the effects of the last increment too: they must not be replayed once more.
    work.do("XADD s * n 4")
    work.do("RPUSH l a")
    work.sync()
    work.restart()
    assert len(work.store.manifest.increments) == 1
    work.do("XADD s * n 9")
    work.sync()
    work.restart()


def test_a_base_that_cannot_be_read_back_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old files were removed, and the next start was refused."""
    bench = DurableBench(tmp_path)
    client = bench.connect()
    synced(bench, client, "XADD s 1-1 a 1")
    write = write_snapshot

    def write_badly(file, engine, options, is_base):  # type: ignore[no-untyped-def]
        write(file, engine, options, is_base)
        file.write(b"\xff")

    with monkeypatch.context() as patch:
        patch.setattr(stores, "write_snapshot", write_badly)
        client.tell("BGREWRITEAOF")
        bench.sync()
        client.replies()
        bench.wait_for_child()
    assert not bench.durability.rewrites.status.ok
    synced(bench, client, "XADD s 1-2 a 1")
    assert bench.abandon().connect().reply("XLEN s") == 2
