"""An embedded database in a directory: recovery, exclusive use, failing disks."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock
from penstock.embedded import durability
from penstock.embedded.database import Database
from penstock.embedded.durability import Keeper
from penstock.engine.execute import Engine
from penstock.persist import backoff
from penstock.persist.aof.commit import Policy
from penstock.persist.disk import Disk, File, SystemDisk
from penstock.persist.layout import Layout
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store

POLICIES = [policy.value for policy in Policy]


class FullFile:
    """A file whose writes fail while its disk is full."""

    def __init__(self, file: File, disk: FullDisk) -> None:
        self._file = file
        self._disk = disk

    @property
    def size(self) -> int:
        return self._file.size

    def write(self, data: bytes) -> None:
        self._disk.check()
        self._file.write(data)

    def sync(self) -> None:
        self._disk.check()
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class FullDisk(SystemDisk):
    """A real disk that reports no space while `full` is set."""

    def __init__(self) -> None:
        self.full = False

    def check(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def create(self, path: str) -> File:
        self.check()
        return FullFile(super().create(path), self)

    def append_to(self, path: str) -> File:
        return FullFile(super().append_to(path), self)


def opened(disk: Disk, path: Path, policy: Policy = Policy.ALWAYS) -> Database:
    """As penstock.open, on a given disk."""
    return opened_with_parts(disk, path, policy)[0]


def opened_with_parts(
    disk: Disk, path: Path, policy: Policy = Policy.ALWAYS
) -> tuple[Database, Engine, Keeper]:
    engine = Engine()
    store = Store(disk, Layout(str(path)), engine, DATA_ROWS)
    store.lock()
    recovery = store.recovery(load_truncated=True)
    recovered = recovery.with_log()
    engine.adopt(recovery.engine)
    store.begin_log(recovered, policy, SnapshotOptions())
    keeper = Keeper(store, policy, SnapshotOptions())
    return Database(engine, False, keeper), engine, keeper


@pytest.fixture(autouse=True)
def retries_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "fresh_bases", lambda **_: backoff.Backoff(0.0, 0.0))


# --- Recovery --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_changes_are_there_after_reopening(tmp_path: Path, policy: str) -> None:
    with penstock.open(tmp_path / "data", appendfsync=policy) as db:
        ids = [db.xadd("s", {"n": n}) for n in range(20)]
        db.xgroup_create("s", "g", "0")
        db.xreadgroup("g", "c", {"s": ">"}, count=5)
        db.xack("s", "g", ids[0])
    with penstock.open(tmp_path / "data") as db:
        assert [found for found, _ in db.xrange("s")] == ids
        assert [row["message_id"] for row in db.xpending_range("s", "g", "-", "+", 9)] == ids[1:5]


def left_by_a_kill(path: Path) -> None:
    """Leave a directory with one entry, as a process that was killed does."""
    child = os.fork()
    if child == 0:
        db = penstock.open(path)
        db.xadd("s", {"a": "b"}, id="1-1")
        os._exit(0)
    os.waitpid(child, 0)


def test_acknowledged_changes_are_there_without_a_close(tmp_path: Path) -> None:
    left_by_a_kill(tmp_path / "data")
    with penstock.open(tmp_path / "data") as db:
        assert db.xrange("s") == [(b"1-1", {b"a": b"b"})]


def test_threads_share_a_database(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as db:
        threads = [
            threading.Thread(target=lambda: [db.xadd("s", {"a": "b"}) for _ in range(20)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with penstock.open(tmp_path / "data") as db:
        assert db.xlen("s") == 160


def test_a_rewrite_in_the_background_keeps_everything(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as db:
        for n in range(50):
            db.xadd("s", {"n": n}, id=f"{n + 1}-1")
        assert db.bgrewriteaof()
        db.xadd("s", {"n": 50}, id="51-1")
        db.save()
    names = sorted(path.name for path in (tmp_path / "data" / "appendonlydir").iterdir())
    assert "appendonly.aof.2.base.rdb" in names
    assert "appendonly.aof.1.incr.aof" not in names
    with penstock.open(tmp_path / "data") as db:
        assert db.xlen("s") == 51


@pytest.mark.parametrize("policy", POLICIES)
def test_a_log_that_has_grown_is_rewritten(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "REWRITE_BYTES_MIN", 10_000)
    with penstock.open(tmp_path / "data", appendfsync=policy) as db:
        for _ in range(200):
            db.xadd("s", {"a": "x" * 1000}, maxlen=1, approximate=False)
    names = {path.name for path in (tmp_path / "data" / "appendonlydir").iterdir()}
    assert "appendonly.aof.1.base.rdb" not in names
    with penstock.open(tmp_path / "data") as db:
        assert db.xlen("s") == 1


def test_a_torn_tail_is_cut_off_and_reported(tmp_path: Path) -> None:
    left_by_a_kill(tmp_path / "data")
    log = tmp_path / "data" / "appendonlydir" / "appendonly.aof.1.incr.aof"
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + b"#PSCRC:1:99")
    kept = log.with_name(f"cut-{log.name}-{size}")
    with pytest.warns(RuntimeWarning, match=f"was torn at byte {size}.*kept in {kept}"):
        db = penstock.open(tmp_path / "data")
    assert kept.read_bytes() == b"#PSCRC:1:99"
    assert db.xlen("s") == 1
    db.close()


# --- Exclusive use ---------------------------------------------------------------------------------


def test_a_directory_has_one_user(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data"), pytest.raises(penstock.DirectoryInUse, match="in use"):
        penstock.open(tmp_path / "data")
    penstock.open(tmp_path / "data").close()


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(penstock.ConfigError, match="always, everysec, no"):
        penstock.open("data", appendfsync="never")


def test_an_increment_that_was_emptied_is_refused(tmp_path: Path) -> None:
    left_by_a_kill(tmp_path / "data")
    (tmp_path / "data" / "appendonlydir" / "appendonly.aof.1.incr.aof").write_bytes(b"")
    with pytest.raises(penstock.CorruptData, match=r"it is empty.*penstock check"):
        penstock.open(tmp_path / "data")
    penstock.open(tmp_path / "other").close()


# --- A disk that fails -----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", list(Policy))
def test_with_a_full_disk_writes_are_refused_and_reads_continue(
    tmp_path: Path, policy: Policy
) -> None:
    disk = FullDisk()
    db = opened(disk, tmp_path, policy)
    db.xadd("s", {"a": "b"}, id="1-1")
    disk.full = True
    if policy is Policy.ALWAYS:
        with pytest.raises(penstock.CommandError, match=r"MISCONF .*unknown"):
            db.xadd("s", {"a": "b"}, id="2-1")
    else:
        with pytest.raises(penstock.CommandError, match="MISCONF"):
            db.xadd("s", {"a": "b"}, id="2-1")
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        db.xadd("s", {"a": "b"}, id="3-1")
    assert db.xlen("s") in (1, 2)
    disk.full = False
    db.xadd("s", {"a": "b"}, id="4-1")
    db.close()
    with penstock.open(tmp_path) as db:
        assert (b"1-1", {b"a": b"b"}) in db.xrange("s")
        assert (b"4-1", {b"a": b"b"}) in db.xrange("s")


def test_a_blocked_reader_gets_no_entry_that_may_never_be_on_disk(tmp_path: Path) -> None:
    disk = FullDisk()
    db, engine, _ = opened_with_parts(disk, tmp_path)
    db.xgroup_create("s", "g", "0", mkstream=True)
    found: list[Any] = []

    def read() -> None:
        try:
            found.append(db.xreadgroup("g", "c", {"s": ">"}, block=10_000))
        except penstock.CommandError as error:
            found.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    while not engine.waiters.count:
        pass
    disk.full = True
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        db.xadd("s", {"a": "b"})
    reader.join()
    assert str(found[0]).startswith("MISCONF")
    disk.full = False
    db.xadd("s", {"a": "b"})
    db.close()


def test_a_write_that_ends_after_another_thread_saw_the_failure_is_not_acknowledged(
    tmp_path: Path,
) -> None:
    disk = FullDisk()
    db, _, keeper = opened_with_parts(disk, tmp_path)
    disk.full = True
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        db.xadd("s", {"a": "b"})
    # A write of another thread that was prepared just before the failure.
    keeper.commit.journal.words(0, [b"SET", b"k", b"v"])
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        keeper.hand_over()
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        db.close()  # not everything in memory is on disk


# --- On a socket -----------------------------------------------------------------------------------


def test_a_durable_database_is_served_twice_and_kept(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as db:
        with db.serve(port=0) as first, db.serve(port=0) as second:
            for serving in (first, second, first):
                with redis.Redis(port=serving.port or 0, socket_timeout=20) as client:
                    assert client.xadd("s", {"a": "b"})
        assert db.xadd("s", {"a": "b"})
        with db.serve(port=0) as third, redis.Redis(port=third.port or 0) as client:
            assert client.xlen("s") == 4
    with penstock.open(tmp_path / "data") as db:
        assert db.xlen("s") == 4


def test_a_program_that_only_serves_recovers_from_a_full_disk(tmp_path: Path) -> None:
    disk = FullDisk()
    db = opened(disk, tmp_path)
    with db.serve(port=0) as serving, redis.Redis(port=serving.port or 0) as client:
        client.xadd("s", {"a": "b"})
        disk.full = True
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            client.xadd("s", {"a": "b"})
        assert client.xlen("s") >= 1
        disk.full = False
        for _ in range(2000):
            try:
                client.xadd("s", {"a": "b"})
                break
            except redis.ResponseError:
                threading.Event().wait(0.01)
        else:
            pytest.fail("writes were never accepted again")
    db.close()
