"""Every disk operation of a sync is interrupted once: by an error, by a kill, by a power cut.

A primary may write the snapshot to a file, and then sends that. A replica receives a snapshot into a file,
and loads that. A server that was a primary keeps its own changes before that.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.engine.clock import ManualClock
from penstock.engine.execute import TABLE, Engine
from penstock.persist.layout import Layout
from penstock.persist.replication_point import ReplicationPoint
from penstock.persist.snapshot import SnapshotOptions, write_rdb
from penstock.persist.store import Store
from penstock.server.replication.full_sync import TEMP_NAME
from penstock.server.replication.sync_file import (
    TEMP_PREFIX,
    Loading,
    SyncFile,
    file_for_or_none,
    remove_leftovers,
)
from tests.support.disk.durable_work import VERSION, Work
from tests.support.disk.fake_disk import OUTCOMES, Crash, FakeDisk, Fault
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import START_MS
from tests.support.servers.connections import ManualClient
from tests.support.servers.durable_bench import DurableBench

KEPT = Layout("/data/dropped-0123abcd-7")
KINDS = ["make_dir", "create", "write", "sync", "link", "rename", "remove", "sync_dir"]
MARK = b"m" * 40


# --- The log of a former primary ---------------------------------------------------------------------


def worked() -> Work:
    """A log with a base and two increments."""
    work = Work(FakeDisk(), random.Random(5))
    work.start()
    for _ in range(40):
        work.do_unit()
    work.sync()
    work.finish_rewrite(work.begin_rewrite())
    for _ in range(10):
        work.do_unit()
    work.sync()
    return work


def keep(work: Work) -> None:
    work.store.keep_log(KEPT.directory.rpartition("/")[2])


def state_of(disk: FakeDisk, layout: Layout) -> list[str]:
    """The data that a server on a directory starts with."""
    engine = Engine(ManualClock(START_MS), VERSION)
    engine.limits.entries_max = 4
    recovery = Store(disk, layout, engine, TABLE.values()).recovery(load_truncated=False)
    recovery.with_log()
    return engine_state(recovery.engine)


def test_a_kept_log_is_a_whole_data_directory() -> None:
    work = worked()
    keep(work)
    assert state_of(work.disk, KEPT) == work.states[-1]
    keep(work)  # it is there already
    work.store.begin_afresh(work.options)
    assert state_of(work.disk, KEPT) == work.states[-1]


def test_a_power_cut_at_each_step_leaves_the_data_and_a_whole_copy_or_none() -> None:
    work = worked()
    first = work.disk.steps
    keep(work)
    last = work.disk.steps
    assert last - first > 8
    dice = random.Random(6)
    whole = 0
    for step in range(first, last):
        work = worked()
        work.disk.crash_at = step
        with pytest.raises(Crash):
            keep(work)
        for how in OUTCOMES:
            left = work.disk.after_cut(how, dice)
            assert state_of(left, work.store.layout) == work.states[-1]
            if left.exists(KEPT.manifest):
                whole += 1
                assert state_of(left, KEPT) == work.states[-1]
    assert whole


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_at_each_operation_leaves_the_data_and_the_next_attempt_succeeds(
    kind: str,
) -> None:
    failed = 0
    for number in range(10):
        work = worked()
        before = work.disk.contents()
        work.disk.fail(Fault(kind, number, errno.ENOSPC, once=True))
        try:
            keep(work)
        except OSError:
            failed += 1
        work.disk.heal()
        after = work.disk.contents()
        assert {path: after[path] for path in before} == before
        keep(work)
        assert state_of(work.disk, KEPT) == work.states[-1]
    assert failed or kind == "remove"


# --- The last changes of a former primary ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["create", "write", "sync"])
def test_if_the_last_changes_cannot_be_written_a_snapshot_replaces_nothing(
    tmp_path: Path, kind: str
) -> None:
    async def run() -> None:
        bench = DurableBench(tmp_path)
        replication = bench.server.replication
        replication.feed.begin()
        client = bench.connect()
        client.tell("SET own 1")
        bench.sync()
        client.replies()
        history = replication.feed.history
        before = (history.id, history.offset)
        bench.disk.faulty = {kind}
        bench.disk.faulty_name = "dropped-"
        bench.fail()
        point = ReplicationPoint("ab" * 20, 100)
        with pytest.raises(OSError, match="No space"):
            replication.replace_data(bench.engine.spare(), point, set())
        assert (history.id, history.offset) == before
        assert client.reply("GET own") == b"1"
        assert list(tmp_path.glob("dropped-*")) == []
        bench.heal()
        replication.replace_data(bench.engine.spare(), point, set())
        [kept] = tmp_path.glob("dropped-*")
        assert b"own" in kept.read_bytes()
        client.tell("GET own")
        bench.wait_for_child()
        assert client.replies() == [None]
        assert (history.id, history.offset) == ("ab" * 20, 100)

    asyncio.run(run())


# --- The snapshot of a primary -----------------------------------------------------------------------


def ask_for_snapshot(bench: DurableBench) -> ManualClient:
    """A replica that gets a snapshot through a file."""
    replica = bench.connect()
    replica.tell("PSYNC ? -1")
    bench.wait_for_child()
    bench.loop.run()
    return replica


@pytest.mark.parametrize("kind", ["create", "write", "size", "read", "readinto", "remove"])
def test_an_error_at_each_operation_of_a_primary_costs_the_replica_its_link_at_most(
    tmp_path: Path, kind: str
) -> None:
    async def run() -> None:
        bench = DurableBench(tmp_path, appendonly="no", repl_diskless_sync="no")
        client = bench.connect()
        assert client.reply("SET k v") == "OK"
        file = tmp_path / TEMP_NAME
        bench.disk.faulty, bench.disk.faulty_name = {kind}, TEMP_NAME
        bench.fail(errno.EIO)
        replica = ask_for_snapshot(bench)
        assert replica.closed == (kind != "remove")
        assert file.exists() == (kind == "remove")
        assert client.reply("GET k") == b"v"
        bench.heal()
        again = ask_for_snapshot(bench)
        assert not again.closed
        assert not file.exists()
        for served in [again] if replica.closed else [again, replica]:
            head, _, rest = served.heard().partition(b"\r\n$")
            size, _, snapshot = rest.partition(b"\r\n")
            assert head.startswith(b"+FULLRESYNC")
            assert snapshot[: int(size)].startswith(b"REDIS")
            assert len(snapshot) >= int(size)

    asyncio.run(run())


# --- The snapshot of a replica -----------------------------------------------------------------------


def sized(disk: FakeDisk) -> SyncFile:
    made = file_for_or_none(disk, "/data", b"$100")
    assert made is not None
    return made


def marked(disk: FakeDisk) -> SyncFile:
    made = file_for_or_none(disk, "/data", b"$EOF:" + MARK)
    assert made is not None
    return made


def fill(file: SyncFile) -> None:
    """More writes than the test lets succeed."""
    for _ in range(5):
        file.take(b"x" * (20 if file.size else 60))


@pytest.mark.parametrize("size", [1, 7, 39, 40, 41, 1000])
def test_a_snapshot_is_written_whole_however_it_is_cut(size: int) -> None:
    data = bytes(range(100))
    for begin, sent in ((sized, data), (marked, data + MARK)):
        disk = FakeDisk()
        file = begin(disk)
        rests = [file.take(sent[at : at + size]) for at in range(0, len(sent), size)]
        assert rests == [None] * (len(rests) - 1) + [b""]
        assert file.received == len(sent)
        file.close()
        assert disk.contents() == {file.path: data}
        file.drop()
        assert disk.contents() == {}


def test_what_follows_a_snapshot_is_given_back() -> None:
    file = sized(FakeDisk())
    assert file.take(b"x" * 60) is None
    assert file.take(b"x" * 40 + b"*1\r\n$4\r\nPING\r\n") == b"*1\r\n$4\r\nPING\r\n"


@pytest.mark.parametrize("begin", [sized, marked])
@pytest.mark.parametrize("kind", ["create", "write"])
def test_a_full_disk_leaves_no_part_of_a_snapshot(
    begin: Callable[[FakeDisk], SyncFile], kind: str
) -> None:
    for number in range(4):
        disk = FakeDisk()
        disk.put("/data/dump.rdb", b"old")
        if kind == "create":
            disk.fail(Fault("create", 0))
            with pytest.raises(OSError, match="No space"):
                begin(disk)
        else:
            file = begin(disk)
            disk.fail(Fault("write", number, part=0.5))
            with pytest.raises(OSError, match="No space"):
                fill(file)
            file.drop()
        assert disk.contents() == {"/data/dump.rdb": b"old"}


def test_a_killed_process_leaves_a_file_that_the_next_one_removes() -> None:
    disk = FakeDisk()
    disk.put("/data/dump.rdb", b"old")
    marked(disk).take(b"x" * 100)
    found = disk.after_kill()
    remove_leftovers(found, "/data")
    assert found.contents() == {"/data/dump.rdb": b"old"}


@pytest.mark.parametrize("kind", ["read", "readinto", "remove"])
def test_an_error_while_a_snapshot_is_loaded_is_reported_and_the_next_attempt_succeeds(
    tmp_path: Path, kind: str
) -> None:
    bench = DurableBench(tmp_path, appendonly="no")
    assert bench.connect().reply("SET k v") == "OK"
    snapshot = bytearray()
    write_rdb(snapshot.extend, bench.engine, SnapshotOptions(), is_base=False)
    bench.disk.faulty, bench.disk.faulty_name = {kind}, TEMP_PREFIX

    async def load() -> Loading:
        made = file_for_or_none(bench.disk, str(tmp_path), b"$%d" % len(snapshot))
        assert made is not None
        assert made.take(bytes(snapshot)) == b""
        made.close()
        loaded = asyncio.Event()
        loading = Loading(bench.disk, made.path, bench.engine.spare(), skip_foreign=False)
        loading.start(loaded.set)
        await loaded.wait()
        made.drop()
        return loading

    bench.fail(errno.EIO)
    loading = asyncio.run(load())
    assert not loading.is_unsupported
    assert (loading.failure is None) == (kind == "remove")
    assert len(list(tmp_path.glob(f"{TEMP_PREFIX}*"))) == (kind == "remove")
    bench.heal()
    loading = asyncio.run(load())
    assert (loading.failure, loading.keys) == (None, 1)
    remove_leftovers(bench.disk, str(tmp_path))
    assert not list(tmp_path.glob(f"{TEMP_PREFIX}*"))
