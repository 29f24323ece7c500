"""Reads that claim idle entries: they wake without a new entry, in threads, tasks and clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock
import penstock.aio
from penstock.aio import AsyncDatabase
from penstock.core.frame import Frame
from penstock.embedded import results
from penstock.embedded.thread_waiter import ThreadWaiter
from penstock.engine.execute import TABLE, Engine
from penstock.engine.waiters import Blocked
from tests.embedded.test_database import Worker
from tests.embedded.test_durable import FullDisk, opened_with_parts
from tests.embedded.test_fork import in_fork
from tests.embedded.test_lock import (
    Interrupt,
    interrupt_when,
    interrupting,  # noqa: F401 - a fixture
    wait_until,
)

SECONDS_MAX = 30.0
LONG_MS = 60_000
SHORT_MS = 30
JOBS = 60

CLAIMED = (b"1-0", {b"k": b"v"})


@pytest.fixture(params=["memory", "directory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "data" if request.param == "directory" else None


def lose_an_entry(db: Any) -> None:
    """An entry is delivered to a consumer that never acknowledges it."""
    db.xadd("s", {"k": "v"}, id="1-0")
    db.xgroup_create("s", "g", "0")
    db.xreadgroup("g", "lost", {"s": ">"})


def claim(db: Any, idle_ms: int = SHORT_MS, block: int = 0, consumer: str = "c") -> Any:
    return db.xreadgroup("g", consumer, {"s": ">"}, block=block, claim_min_idle_time=idle_ms)


def check_claimed(found: Any, deliveries: int = 1) -> None:
    """The entry, its idle time and how often it was delivered before."""
    ((key, [(*entry, idle_ms, delivered)]),) = found
    assert (key, tuple(entry)) == (b"s", CLAIMED)
    assert idle_ms >= SHORT_MS
    assert delivered == deliveries


def steadily(condition: Callable[[], bool]) -> Callable[[], bool]:
    """A condition that holds when it is asked many times: until then a thread may still be on its way."""
    found: list[bool] = []

    def holds() -> bool:
        found.append(condition())
        return len(found) > 100 and all(found[-100:])

    return holds


def waiting(db: penstock.Database[Any], count: int = 1) -> Callable[[], bool]:
    return lambda: db._engine.waiters.count == count


# --- The waiter ------------------------------------------------------------------------------------


def a_waiter(retry_ms: int, timeout_ms: int = 0) -> ThreadWaiter:
    blocked = Blocked(Frame(), [b"s"], timeout_ms)
    blocked.retry_ms = retry_ms
    keyspace = Engine().context.keyspace
    return ThreadWaiter(TABLE["XREADGROUP"], blocked, keyspace, results.as_it_is)


def test_a_reader_sleeps_until_its_read_has_to_run_again() -> None:
    assert a_waiter(1).sleep()
    assert not a_waiter(LONG_MS, timeout_ms=1).sleep()


def sleep_and_look(waiter: ThreadWaiter) -> tuple[bool, bool]:
    return waiter.sleep(), waiter.is_served


def test_a_reader_sleeps_on_if_another_thread_sets_a_later_time() -> None:
    retry_ms = SHORT_MS
    while True:
        waiter = a_waiter(retry_ms)
        due = time.monotonic() + retry_ms / 1000
        reader = Worker(partial(sleep_and_look, waiter))
        waiter.keep_waiting(LONG_MS)
        if time.monotonic() < due:
            break
        retry_ms *= 2  # on a busy machine the reader may have woken before
        waiter.wake()
        reader.result()
    wait_until(lambda: time.monotonic() > due)
    waiter.wake()
    assert reader.result() == (False, True)


def test_a_reader_wakes_if_another_thread_sets_an_earlier_time() -> None:
    waiter = a_waiter(LONG_MS)
    reader = Worker(waiter.sleep)
    waiter.keep_waiting(LONG_MS // 2)
    waiter.keep_waiting(1)
    assert reader.result() is True


def test_a_reader_that_was_woken_to_look_is_still_served() -> None:
    waiter = a_waiter(LONG_MS)
    waiter.keep_waiting(LONG_MS // 2)  # opens the gate
    waiter.wake()
    assert not waiter.sleep()
    assert waiter.is_served


# --- Threads ---------------------------------------------------------------------------------------


def test_a_blocked_read_claims_an_entry_when_it_is_idle_enough(path: Path | None) -> None:
    with penstock.open(path) as db:
        lose_an_entry(db)
        check_claimed(claim(db))
        assert db.xpending_range("s", "g", "-", "+", 9)[0]["consumer"] == b"c"
        assert waiting(db, 0)()
    if path is not None:
        with penstock.open(path) as db:
            (row,) = db.xpending_range("s", "g", "-", "+", 9)
            assert (row["consumer"], row["times_delivered"]) == (b"c", 2)


def test_a_read_that_claims_decodes_its_result() -> None:
    with penstock.open(decode_responses=True) as db:
        lose_an_entry(db)
        ((key, [entry]),) = claim(db)
        assert (key, entry[:2]) == ("s", ("1-0", {"k": "v"}))


def test_an_entry_that_becomes_pending_while_a_read_waits_is_claimed(path: Path | None) -> None:
    with penstock.open(path) as db:
        db.xgroup_create("s", "g", mkstream=True)
        first = Worker(lambda: db.xreadgroup("g", "lost", {"s": ">"}, block=0))
        wait_until(waiting(db))
        reader = Worker(lambda: claim(db))
        wait_until(waiting(db, 2))
        db.xadd("s", {"k": "v"}, id="1-0")  # for the one that blocked first
        assert first.result() == [[b"s", [CLAIMED]]]
        check_claimed(reader.result())


def test_blocked_reads_claim_one_after_another(path: Path | None) -> None:
    with penstock.open(path) as db:
        lose_an_entry(db)
        readers = [Worker(partial(claim, db, consumer=name)) for name in "abc"]
        found = [reader.result() for reader in readers]
        assert sorted(rows[0][1][0][3] for rows in found) == [1, 2, 3]


def test_a_read_claims_although_the_one_before_it_has_left() -> None:
    """Both wait for the same entries, so the engine asks only the first whether there are any."""
    with penstock.open() as db:
        lose_an_entry(db)
        first = Worker(lambda: claim(db, block=SHORT_MS, idle_ms=5 * SHORT_MS, consumer="first"))
        wait_until(lambda: waiting(db)() or not first.is_alive())
        second = Worker(lambda: claim(db, idle_ms=5 * SHORT_MS, consumer="second"))
        # On a slow machine the entry may be idle before the first reads.
        check_claimed(second.result(), deliveries=2 if first.result() else 1)


def test_a_read_that_waits_for_idle_entries_times_out(path: Path | None) -> None:
    with penstock.open(path) as db:
        lose_an_entry(db)
        assert claim(db, LONG_MS, block=SHORT_MS) == []
        assert waiting(db, 0)()


def test_closing_wakes_a_read_that_waits_for_idle_entries(path: Path | None) -> None:
    db = penstock.open(path)
    lose_an_entry(db)
    db.xclaim("s", "g", "lost", 0, ["1-0"], idle=0)
    readers = [Worker(partial(claim, db, ms)) for ms in (LONG_MS, LONG_MS, 2**40)]
    wait_until(waiting(db, 3))
    db.close()
    for reader in readers:
        with pytest.raises(penstock.DatabaseClosed, match="while this call waited"):
            reader.result()


def test_closing_races_with_reads_that_run_again(path: Path | None) -> None:
    for _ in range(10):
        db = penstock.open(path)
        db.flushdb()
        lose_an_entry(db)
        readers = [Worker(partial(claim, db, LONG_MS)) for _ in range(3)]
        wait_until(waiting(db, 3))
        for waiter in db._engine.waiters.all():
            waiter.keep_waiting(1)
        db.close()
        for reader in readers:
            with pytest.raises(penstock.DatabaseClosed):
                reader.result()


@pytest.mark.usefixtures("interrupting")
def test_an_interrupted_read_claims_nothing_afterwards(path: Path | None) -> None:
    with penstock.open(path) as db:
        lose_an_entry(db)
        interrupter = interrupt_when(steadily(waiting(db)))
        with pytest.raises(Interrupt):
            claim(db, LONG_MS, consumer="interrupted")
        interrupter.result()
        assert waiting(db, 0)()
        check_claimed(claim(db))


def test_a_blocked_read_does_not_claim_while_the_log_cannot_be_written(tmp_path: Path) -> None:
    disk = FullDisk()
    db, engine, _ = opened_with_parts(disk, tmp_path)
    lose_an_entry(db)
    reader = Worker(lambda: claim(db, LONG_MS))
    wait_until(steadily(waiting(db)))
    disk.full = True
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        db.xadd("other", {"a": "b"})
    (waiter,) = engine.waiters.all()
    waiter.keep_waiting(1)
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        reader.result()
    assert engine.waiters.count == 0
    assert db.xpending_range("s", "g", "-", "+", 9)[0]["consumer"] == b"lost"
    disk.full = False
    with suppress(penstock.CommandError):  # the next attempt to write may not be due yet
        db.close()


def test_a_read_whose_first_attempt_is_lost_does_not_wait_for_ever(tmp_path: Path) -> None:
    """Its new consumer cannot be written. A later entry must not go to a reader that has left."""
    disk = FullDisk()
    db, engine, _ = opened_with_parts(disk, tmp_path)
    lose_an_entry(db)
    disk.full = True
    with pytest.raises(penstock.CommandError, match="MISCONF"):
        claim(db)
    assert engine.waiters.count == 0
    disk.full = False
    with suppress(penstock.CommandError):
        db.close()


def test_a_fork_does_not_disturb_a_read_that_waits(path: Path | None) -> None:
    with penstock.open(path) as db:
        lose_an_entry(db)
        reader = Worker(lambda: claim(db, 5 * SHORT_MS))
        wait_until(lambda: waiting(db)() or not reader.is_alive())

        def refused() -> None:
            with pytest.raises(penstock.DatabaseClosed):
                claim(db)

        in_fork(refused)
        check_claimed(reader.result())


def test_jobs_of_workers_that_fail_are_done_by_others(path: Path | None) -> None:
    """Every job fails at its first attempt. Workers, some in threads and some clients, do all of them."""
    with penstock.open(path) as db, db.serve(port=0) as serving:
        db.xgroup_create("s", "g", mkstream=True)

        def work(name: str, client: Any) -> None:
            while client.xlen("s"):
                found = client.xreadgroup(
                    "g", name, {"s": ">"}, count=2, block=200, claim_min_idle_time=SHORT_MS
                )
                for _, entries in found:
                    for entry_id, _, _, delivered in entries:
                        if delivered:
                            client.xackdel("s", "g", entry_id)

        for n in range(JOBS):
            db.xadd("s", {"job": n})
        clients = [redis.Redis(port=serving.port or 0) for _ in range(2)]
        workers = [
            Worker(partial(work, f"w{n}", client)) for n, client in enumerate([db, db, *clients])
        ]
        for worker in workers:
            worker.result()
        for client in clients:
            client.close()
        assert db.xpending("s", "g")["pending"] == 0


# --- Tasks -----------------------------------------------------------------------------------------

Scene = Callable[[AsyncDatabase], Coroutine[Any, Any, None]]


def play(scene: Scene, path: Path | None) -> None:
    """Run a scene with a database that has lost an entry."""

    async def run() -> None:
        async with asyncio.timeout(SECONDS_MAX), penstock.aio.open(path) as db:
            await asyncio.to_thread(lose_an_entry, db._database)
            await scene(db)

    asyncio.run(run())


async def blocked(db: AsyncDatabase, count: int = 1) -> None:
    while not waiting(db._database, count)():
        await asyncio.sleep(0)


def test_a_task_claims_an_entry_when_it_is_idle_enough(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        check_claimed(await claim(db))
        assert waiting(db._database, 0)()

    play(scene, path)


def test_tasks_claim_one_after_another(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        found = await asyncio.gather(*(claim(db, consumer=name) for name in "abc"))
        assert sorted(rows[0][1][0][3] for rows in found) == [1, 2, 3]

    play(scene, path)


def test_a_task_waits_on_if_another_reader_delays_what_it_waits_for(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        read = asyncio.create_task(claim(db, 4 * SHORT_MS))
        while not (waiting(db._database)() or read.done()):
            await asyncio.sleep(0)
        await db.xclaim("s", "g", "lost", 0, ["1-0"], justid=True)  # idle from now on
        await db.xgroup_create("s", "other", "$")
        check_claimed(await read)

    play(scene, path)


def test_a_task_times_out(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        assert await claim(db, LONG_MS, block=SHORT_MS) == []
        assert waiting(db._database, 0)()

    play(scene, path)


def test_a_cancelled_task_claims_nothing_afterwards(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        for idle_ms in (LONG_MS, 2**40):
            read = asyncio.create_task(claim(db, idle_ms, consumer="cancelled"))
            await blocked(db)
            read.cancel()
            with pytest.raises(asyncio.CancelledError):
                await read
            assert waiting(db._database, 0)()
        check_claimed(await claim(db))

    play(scene, path)


def test_a_task_that_is_cancelled_at_any_moment_leaves_its_queue(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        for attempt in range(40):
            read = asyncio.create_task(claim(db, 2, consumer="cancelled"))
            await asyncio.sleep(attempt / 10_000)
            read.cancel()
            await asyncio.wait([read])
            assert waiting(db._database, 0)()

    play(scene, path)


def test_closing_wakes_a_task(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        reads = [asyncio.create_task(claim(db, ms)) for ms in (LONG_MS, 2**40)]
        await blocked(db, 2)
        await db.close()
        for read in reads:
            with pytest.raises(penstock.DatabaseClosed):
                await read

    play(scene, path)


# --- Clients of a served database ------------------------------------------------------------------


def test_a_client_claims_an_entry_when_it_is_idle_enough(path: Path | None) -> None:
    with (
        penstock.open(path) as db,
        db.serve(port=0) as serving,
        redis.Redis(port=serving.port or 0) as client,
    ):
        lose_an_entry(db)
        check_claimed(claim(client))
        assert db.xpending_range("s", "g", "-", "+", 9)[0]["consumer"] == b"c"


def test_a_client_claims_although_the_program_that_waited_before_it_has_left() -> None:
    with (
        penstock.open() as db,
        db.serve(port=0) as serving,
        redis.Redis(port=serving.port or 0) as client,
    ):
        lose_an_entry(db)
        first = Worker(lambda: claim(db, block=4 * SHORT_MS, idle_ms=9 * SHORT_MS, consumer="p"))
        wait_until(lambda: waiting(db)() or not first.is_alive())
        second = Worker(lambda: claim(client, idle_ms=9 * SHORT_MS))
        check_claimed(second.result(), deliveries=2 if first.result() else 1)


def test_a_returned_entry_goes_to_a_blocked_read_at_once(path: Path | None) -> None:
    with penstock.open(path, compat_version="8.8") as db:
        lose_an_entry(db)
        reader = Worker(lambda: claim(db, LONG_MS))
        wait_until(waiting(db))
        assert db.xnack("s", "g", "FAIL", "1-0") == 1
        ((_, [entry]),) = reader.result()
        assert entry[:2] == CLAIMED
