"""The embedded database for asyncio: results, blocking reads, cancellation, and a loop that never waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import penstock
import penstock.aio
from penstock.aio import AsyncDatabase
from tests.embedded.test_database import SlowClock
from tests.embedded.test_durable import FullDisk, opened

SECONDS_MAX = 30.0
LONG_MS = 60_000

Scene = Callable[[AsyncDatabase], Coroutine[Any, Any, None]]


def play(scene: Scene, path: Path | None) -> None:
    """Run a scene with a database in memory or in a directory."""

    async def run() -> None:
        async with asyncio.timeout(SECONDS_MAX), penstock.aio.open(path) as db:
            await scene(db)

    asyncio.run(run())


@pytest.fixture(params=["memory", "directory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "data" if request.param == "directory" else None


async def blocked(db: AsyncDatabase, count: int = 1) -> None:
    """Wait until `count` reads are blocked."""
    while db._database._engine.waiters.count != count:
        await asyncio.sleep(0)


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- Results ---------------------------------------------------------------------------------------


def test_methods_return_what_those_of_a_database_return(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        assert await db.xadd("s", {"k": "v"}, id="1-0") == b"1-0"
        assert await db.xrange("s") == [(b"1-0", {b"k": b"v"})]
        assert await db.xgroup_create("s", "g", "0") is True
        found: Any = await db.xreadgroup("g", "c", {"s": ">"}, block=0)
        assert found == [[b"s", [(b"1-0", {b"k": b"v"})]]]
        assert await db.xack("s", "g", "1-0") == 1
        assert await db.type("s") == b"stream"
        assert [key async for key in db.scan_iter()] == [b"s"]
        with pytest.raises(penstock.CommandError, match="NOGROUP"):
            await db.xreadgroup("other", "c", {"s": ">"})
        with pytest.raises(penstock.DataError):
            await db.xadd("s", {})

    play(scene, path)


def test_text_is_decoded() -> None:
    async def run() -> None:
        async with penstock.aio.open(decode_responses=True) as db:
            reader = asyncio.create_task(db.xread({"s": "0"}, block=0))
            await asyncio.sleep(0)
            assert await db.xadd("s", {"k": "v"}, id="1-0") == "1-0"
            found: Any = await reader
            assert found == [["s", [("1-0", {"k": "v"})]]]

    asyncio.run(run())


def test_what_was_awaited_is_on_disk(tmp_path: Path) -> None:
    async def scene(db: AsyncDatabase) -> None:
        await asyncio.gather(*(db.xadd("s", {"n": n}) for n in range(100)))
        assert await db.save() is True

    play(scene, tmp_path)
    with penstock.open(tmp_path) as db:
        assert db.xlen("s") == 100


def test_open_can_be_awaited(tmp_path: Path) -> None:
    async def run() -> None:
        db = await penstock.aio.open(tmp_path)
        with pytest.raises(penstock.DirectoryInUse):
            await penstock.aio.open(tmp_path)
        await db.close()
        await db.close()

    asyncio.run(run())


def test_a_database_on_a_socket(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        with await db.serve(port=0) as serving:
            assert serving.port
            reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
            writer.write(b"XADD s 1-0 k v\r\n")
            assert await reader.readline() == b"$3\r\n"
            writer.close()
        assert await db.xlen("s") == 1

    play(scene, path)


# --- Blocking reads --------------------------------------------------------------------------------


def test_many_reads_wait_without_threads(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        before = threading.active_count()
        reads = [
            asyncio.create_task(db.xread({f"s{n}": "$"}, block=LONG_MS * (n % 2)))
            for n in range(200)
        ]
        await blocked(db, len(reads))
        assert threading.active_count() - before <= 8
        for n in range(200):
            await db.xadd(f"s{n}", {"n": n}, id="1-0")
        found: Any = await asyncio.gather(*reads)
        assert found == [[[b"s%d" % n, [(b"1-0", {b"n": b"%d" % n})]]] for n in range(200)]

    play(scene, path)


def test_a_read_that_waits_in_vain_is_empty(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        assert await db.xread({"s": "$"}, block=1) == []
        assert db._database._engine.waiters.count == 0

    play(scene, path)


def test_a_thread_serves_a_task(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        read = asyncio.create_task(db.xread({"s": "0"}, block=0))
        await blocked(db)
        await asyncio.to_thread(db._database.xadd, "s", {"k": "v"}, "1-0")
        found: Any = await read
        assert found == [[b"s", [(b"1-0", {b"k": b"v"})]]]

    play(scene, path)


def test_closing_wakes_blocked_reads(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        read = asyncio.create_task(db.xread({"s": "$"}, block=0))
        await blocked(db)
        await db.close()
        with pytest.raises(penstock.DatabaseClosed):
            await read
        with pytest.raises(penstock.DatabaseClosed):
            await db.xlen("s")
        with pytest.raises(penstock.DatabaseClosed):
            await db.save()

    play(scene, path)


# --- Cancellation ----------------------------------------------------------------------------------


def test_a_cancelled_read_leaves_its_queue_at_once(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        await db.xgroup_create("s", "g", mkstream=True)
        read = asyncio.create_task(db.xreadgroup("g", "gone", {"s": ">"}, block=0))
        await blocked(db)
        await cancelled(read)
        assert db._database._engine.waiters.count == 0
        await db.xadd("s", {"k": "v"}, id="1-0")
        assert (await db.xpending("s", "g"))["pending"] == 0
        assert await db.xreadgroup("g", "here", {"s": ">"})

    play(scene, path)


def test_an_entry_that_was_delivered_to_a_cancelled_read_stays_pending(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        await db.xgroup_create("s", "g", mkstream=True)
        read = asyncio.create_task(db.xreadgroup("g", "c", {"s": ">"}, block=0))
        await blocked(db)
        db._database.xadd("s", {"k": "v"}, id="1-0")  # serves the read; its task has not run since
        await cancelled(read)
        assert (await db.xpending("s", "g"))["pending"] == 1
        found: Any = await db.xreadgroup("g", "c", {"s": "0"})
        assert found == [[b"s", [(b"1-0", {b"k": b"v"})]]]

    play(scene, path)


def test_a_read_that_is_cancelled_before_it_blocks_does_not_wait_for_ever(tmp_path: Path) -> None:
    """Its thread is still in the call when the task is cancelled."""

    async def run() -> None:
        clock = SlowClock()
        async with penstock.aio.open(tmp_path, clock=clock) as db:
            await db.xgroup_create("s", "g", mkstream=True)
            clock.is_slow = True
            read = asyncio.create_task(db.xreadgroup("g", "gone", {"s": ">"}, block=0))
            await asyncio.to_thread(clock.entered.wait, SECONDS_MAX)
            read.cancel()
            await asyncio.sleep(0)
            assert not read.done()  # its thread cannot be stopped
            clock.is_slow = False
            clock.leave.set()
            with pytest.raises(asyncio.CancelledError):
                await read
            assert db._database._engine.waiters.count == 0
            await db.xadd("s", {"k": "v"}, id="1-0")
            assert (await db.xpending("s", "g"))["pending"] == 0

    asyncio.run(run())


def test_a_timeout_of_the_caller_cancels_a_read(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await db.xread({"s": "$"}, block=0)
        await blocked(db, 0)

    play(scene, path)


# --- The loop never waits --------------------------------------------------------------------------


def test_the_loop_runs_while_a_call_waits_for_the_disk(tmp_path: Path) -> None:
    class SlowDisk(FullDisk):
        """A disk whose syncs wait for the test."""

        def __init__(self) -> None:
            super().__init__()
            self.is_slow = False
            self.syncing = threading.Event()
            self.go_on = threading.Event()

        def check(self) -> None:
            if self.is_slow:
                self.syncing.set()
                assert self.go_on.wait(SECONDS_MAX)
            super().check()

    async def run() -> None:
        disk = SlowDisk()
        db = AsyncDatabase(opened(disk, tmp_path))
        disk.is_slow = True
        waiting: Awaitable[bytes] = asyncio.create_task(db.xadd("s", {"k": "v"}, id="1-0"))
        while not disk.syncing.is_set():
            await asyncio.sleep(0)  # the loop runs, or this would never end
        disk.is_slow = False
        disk.go_on.set()
        assert await waiting == b"1-0"
        await db.close()

    asyncio.run(run())


# --- Pipelines -------------------------------------------------------------------------------------


def test_a_pipeline_runs_as_one_unit(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        await db.xadd("jobs", {"n": 1}, id="1-0")
        await db.xgroup_create("jobs", "g", "0")
        await db.xreadgroup("g", "c", {"jobs": ">"})
        async with db.pipeline() as pipe:
            pipe.xack("jobs", "g", "1-0").xadd("done", {"job": "1-0"}, id="1-0")
            assert len(pipe) == 2
            assert await pipe.execute() == [1, b"1-0"]
            assert await pipe.execute() == []
        with pytest.raises(penstock.CommandError, match="Command # 1"):
            await db.pipeline().xadd("done", {"k": "v"}, id="1-0").execute()
        assert len(await db.pipeline().rename("a", "b").xlen("done").execute(False)) == 2

    play(scene, path)


def test_a_watched_key(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        async with db.pipeline() as pipe:
            await pipe.watch("s")
            assert await pipe.xlen("s") == 0  # type: ignore[misc] # at once, see Pipeline
            await db.xadd("s", {"k": "v"})
            pipe.multi()
            pipe.xadd("t", {"k": "v"})
            with pytest.raises(penstock.WatchError):
                await pipe.execute()
            await pipe.watch("s")
            assert await pipe.unwatch() is True
            assert await pipe.xlen("s").xlen("t").execute() == [1, 0]
        assert db._database._engine.context.watching == 0

    play(scene, path)


def test_a_pipeline_takes_commands_while_it_executes(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        pipeline = db.pipeline()
        pipeline.xadd("s", {"n": 1})
        running = asyncio.create_task(pipeline.execute())
        await asyncio.sleep(0)
        pipeline.xadd("s", {"n": 2})
        assert len(await running) == 1
        assert len(await pipeline.execute()) == 1
        assert await db.xlen("s") == 2

    play(scene, path)


def test_two_executes_at_once_run_each_command_once(path: Path | None) -> None:
    async def scene(db: AsyncDatabase) -> None:
        pipeline = db.pipeline()
        pipeline.xadd("s", {"n": 1})
        await asyncio.gather(pipeline.execute(), pipeline.execute())
        assert await db.xlen("s") == 1

    play(scene, path)
