"""Pipelines of an embedded database: one unit in memory, in the log and on disk."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import penstock
from penstock.embedded import results
from penstock.embedded.pipeline import Pipeline
from penstock.engine.clock import ManualClock
from penstock.persist import backoff
from tests.crash.test_interrupts import IS_COMPILED, Interrupted
from tests.embedded.test_database import LONG_MS, Door, Worker
from tests.embedded.test_durable import FullDisk, opened
from tests.support.disk.fake_disk import OUTCOMES, FakeDisk

DATA = Path("/data")
JOBS = 6


@pytest.fixture
def db() -> Iterator[penstock.Database]:
    with penstock.open() as db:
        yield db


def with_jobs(db: penstock.Database) -> penstock.Database:
    """Some jobs, all delivered to one consumer."""
    for number in range(1, JOBS + 1):
        db.xadd("jobs", {"n": number}, id=f"{number}-0")
    db.xgroup_create("jobs", "g", "0")
    db.xreadgroup("g", "c", {"jobs": ">"})
    return db


def move(db: penstock.Database, number: int) -> None:
    """Acknowledge a job and add its result."""
    with db.pipeline() as pipe:
        pipe.xack("jobs", "g", f"{number}-0")
        pipe.xadd("done", {"job": number}, id=f"{number}-0")
        assert pipe.execute() == [1, b"%d-0" % number]


def moved(db: penstock.Database) -> int:
    """How many jobs were moved. An acknowledged job has its result, and the other way round."""
    done = db.xlen("done")
    assert db.xpending("jobs", "g")["pending"] == JOBS - done
    return done


# --- In memory -------------------------------------------------------------------------------------


def test_other_threads_see_all_of_a_transaction_or_nothing(db: penstock.Database) -> None:
    stop = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        while not stop.is_set():
            with db.pipeline() as pipe:
                a, b = pipe.xlen("a").xlen("b").execute()
            assert a == b
            seen.add(a)

    lookers = [Worker(look) for _ in range(2)]
    for _ in range(300):
        db.pipeline().xadd("a", {"k": "v"}).xadd("b", {"k": "v"}).execute()
    stop.set()
    for looker in lookers:
        looker.result()


def test_a_blocked_reader_is_served_after_the_last_command() -> None:
    door = Door()
    with penstock.open(clock=door) as db:
        door.open = True
        reader = Worker(lambda: db.xread({"s": "0"}, block=LONG_MS))
        assert door.looks.acquire(timeout=30)
        with db.pipeline() as pipe:
            pipe.xadd("s", {"n": 1}, id="1-0").xdel("s", "1-0").xadd("s", {"n": 2}, id="2-0")
            pipe.execute()
        assert reader.result() == [[b"s", [(b"2-0", {b"n": b"2"})]]]


def test_a_result_is_kept_though_a_later_command_trims_it(db: penstock.Database) -> None:
    db.xadd("s", {"k": "v"}, id="1-0")
    with db.pipeline() as pipe:
        found = pipe.xrange("s").xtrim("s", maxlen=0, approximate=False).execute()
    assert found == [[(b"1-0", {b"k": b"v"})], 1]


def test_text_is_decoded_in_every_result() -> None:
    with penstock.open(decode_responses=True) as db, db.pipeline() as pipe:
        pipe.xadd("s", {"k": "v"}, id="1-0").xrange("s").type("s").xinfo_groups("s")
        assert pipe.execute() == ["1-0", [("1-0", {"k": "v"})], "stream", []]


def test_a_pipeline_of_a_closed_database_is_refused() -> None:
    db = penstock.open()
    pipe = db.pipeline()
    pipe.watch("s")
    pipe.multi()
    pipe.xlen("s")
    db.close()
    with pytest.raises(penstock.DatabaseClosed):
        pipe.execute()
    pipe.reset()


def test_a_dropped_pipeline_watches_nothing() -> None:
    with penstock.open() as db:
        pipe = db.pipeline()
        pipe.watch("s", "t")
        assert db._engine.context.watching == 2
        del pipe
        assert db._engine.context.watching == 0
        with db.pipeline() as pipe:
            pipe.watch("s")
        assert db._engine.context.watching == 0


def test_a_watched_key_that_expires_breaks_the_watch() -> None:
    clock = ManualClock(1000)
    with penstock.open(clock=clock) as db, db.pipeline() as pipe:
        db.xadd("s", {"k": "v"})
        db.pexpire("s", 50)
        pipe.watch("s")
        clock.at_ms += 100
        pipe.multi()
        with pytest.raises(penstock.WatchError, match=r"Watched variable changed\."):
            pipe.xadd("t", {"k": "v"}).execute()
        assert db.exists("t") == 0


def test_an_increment_with_watch_loses_no_update(db: penstock.Database) -> None:
    """The pattern of redis-py's documentation, by several threads."""
    threads, each = 4, 20

    def increment() -> None:
        for _ in range(each):
            while True:
                with db.pipeline() as pipe:
                    pipe.watch("n")
                    last = db.xrevrange("n", count=1)
                    value = int(last[0][1][b"value"]) if last else 0
                    pipe.multi()
                    pipe.xadd("n", {"value": value + 1})
                    try:
                        pipe.execute()
                        break
                    except penstock.WatchError:
                        continue

    for worker in [Worker(increment) for _ in range(threads)]:
        worker.result()
    assert db.xrevrange("n", count=1)[0][1] == {b"value": b"%d" % (threads * each)}


# --- On disk ---------------------------------------------------------------------------------------


def words_of(log: bytes) -> list[bytes]:
    """The first word of every command of a log."""
    lines = log.split(b"\r\n")
    return [lines[at + 2] for at, line in enumerate(lines[:-2]) if line.startswith(b"*")]


def log_of(disk: FakeDisk) -> bytes:
    return disk.contents()["/data/appendonlydir/appendonly.aof.1.incr.aof"]


@pytest.mark.parametrize("is_transaction", [True, False])
def test_the_log_has_one_unit_for_a_transaction(is_transaction: bool) -> None:
    disk = FakeDisk()
    with opened(disk, DATA) as db:
        db.pipeline(is_transaction).xadd("a", {"k": "v"}).xlen("a").xadd("b", {"k": "v"}).execute()
    expected = [b"XADD", b"XADD"]
    if is_transaction:
        expected = [b"MULTI", *expected, b"EXEC"]
    found = [word for word in words_of(log_of(disk)) if word != b"SELECT"]
    assert found == expected


@pytest.mark.parametrize("is_transaction", [True, False])
def test_a_pipeline_waits_for_the_disk_once(is_transaction: bool) -> None:
    disk = FakeDisk()
    with opened(disk, DATA) as db:
        before = sum(" sync " in f" {step} " for step in disk.log)
        pipe = db.pipeline(is_transaction)
        for _ in range(20):
            pipe.xadd("s", {"k": "v"})
        pipe.execute()
        assert sum(" sync " in f" {step} " for step in disk.log) - before == 1


def test_a_power_cut_leaves_all_of_a_transaction_or_nothing() -> None:
    """At every step of the disk, with everything that a cut may leave."""
    disk = FakeDisk()
    db = with_jobs(opened(disk, DATA))
    promised = running = 0
    photographs: list[tuple[FakeDisk, int, int]] = []
    disk.on_step = lambda: photographs.append((disk.after_kill(), promised, running))
    for number in range(1, JOBS + 1):
        running = number
        move(db, number)
        promised = number
    disk.on_step = None
    photographs.append((disk.after_kill(), promised, running))
    db.close()
    dice = random.Random(1)
    seen = set()
    for photograph, at_least, at_most in photographs:
        for outcome in OUTCOMES:
            with opened(photograph.after_cut(outcome, dice), DATA) as again:
                count = moved(again)
            assert at_least <= count <= at_most
            seen.add(count - at_least)
    assert seen == {0, 1}  # some cuts left the transaction that was running, some did not


def test_a_transaction_on_a_full_disk_is_refused_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "fresh_bases", lambda **_: backoff.Backoff(0.0, 0.0))
    disk = FullDisk()
    db = with_jobs(opened(disk, tmp_path))
    disk.full = True
    with pytest.raises(penstock.CommandError, match=r"MISCONF .*unknown"):
        move(db, 1)
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        move(db, 2)
    assert moved(db) == 1  # in memory: whether the first is there after a restart is unknown
    disk.full = False
    move(db, 3)
    db.close()
    with penstock.open(tmp_path) as db:
        assert db.xrange("done")[-1][0] == b"3-0"
        moved(db)


def test_a_transaction_that_is_broken_off_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that cannot be made, in the middle: the data is loaded again from the log."""
    disk = FakeDisk()
    db = with_jobs(opened(disk, DATA))

    def too_much(_reply: object) -> None:
        raise MemoryError("too much")

    pipe = db.pipeline()
    pipe.xack("jobs", "g", "1-0")
    monkeypatch.setattr(results, "entries", too_much)
    pipe.xrange("jobs")
    pipe.xadd("done", {"job": 1})
    monkeypatch.undo()
    with pytest.raises(MemoryError):
        pipe.execute()
    assert moved(db) == 0
    move(db, 1)
    assert moved(db) == 1
    db.close()


@pytest.mark.skipif(IS_COMPILED, reason="compiled code runs no signal handler inside a transaction")
def test_an_interrupt_at_any_moment_leaves_all_of_a_transaction_or_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backoff, "fresh_bases", lambda **_: backoff.Backoff(0.0, 0.0))
    with with_jobs(opened(FakeDisk(), DATA)) as db, Interrupted(-1) as whole:
        move(db, 1)
    assert whole.moments > 200
    for at in range(0, whole.moments, whole.moments // 40):
        disk = FakeDisk()
        db = with_jobs(opened(disk, DATA))
        with suppress(KeyboardInterrupt), Interrupted(at):
            move(db, 1)
        count = moved(db)
        assert count in (0, 1)
        move(db, 2)
        with opened(disk.after_kill(), DATA) as again:
            assert moved(again) == count + 1, at
        db.close()


# --- Shape -----------------------------------------------------------------------------------------


def test_a_pipeline_has_every_command_of_a_database(db: penstock.Database) -> None:
    own = {"pipeline", "serve", "close", "save", "bgrewriteaof", "scan_iter"}
    public = {name for name in dir(db) if not name.startswith("_")}
    assert public - own <= {name for name in dir(Pipeline) if not name.startswith("_")}


def test_a_long_command_is_shortened_in_an_error(db: penstock.Database) -> None:
    with pytest.raises(penstock.CommandError) as refused:
        db.pipeline().xadd("s", {"k" * 40: "v" * 80}, id="0-0").execute()
    assert str(refused.value) == (
        f"Command # 1 (XADD s 0-0 {'k' * 40}...) of pipeline caused error:"
        " The ID specified in XADD must be greater than 0-0"
    )
    assert refused.value.code == "ERR"


def test_words_are_taken_when_a_command_is_queued(db: penstock.Database) -> None:
    fields = {"k": "before"}
    pipe = db.pipeline().xadd("s", fields, id="1-0")
    fields["k"] = "after"
    pipe.execute()
    assert db.xrange("s") == [(b"1-0", {b"k": b"before"})]
