"""The embedded database for asyncio: the methods of Database, awaitable.

    async with penstock.aio.open("data") as db:
        await db.xadd("orders", {"sku": "A1"})
        await db.xreadgroup("workers", "w1", {"orders": ">"}, block=0)

The event loop never waits for the disk or for an entry:

    in memory         a call runs in the loop's thread: it takes microseconds
    with a directory  a call runs in a thread of a small pool, which also waits for the disk. Calls that are
                      awaited together share a sync
    blocking reads    wait without a thread: the call that adds an entry wakes the task

Cancelling a task while it waits in a blocking read removes the read from its queue. If an entry had already
been delivered to the read when it was cancelled, that entry stays pending for the consumer of the group, as
after a lost connection: read it with id "0" or claim it with xautoclaim. Cancelling any other call does not
undo it: the call runs to its end, and its outcome is unknown to the caller.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from penstock.embedded import results
from penstock.embedded.database import Database
from penstock.embedded.opening import open as open_database
from penstock.embedded.pipeline import CommandQueue
from penstock.embedded.runner import Call, CommandCall, Request, Retrying
from penstock.embedded.signatures import Encodable, Key, Text
from penstock.embedded.thread_waiter import ThreadWaiter
from penstock.embedded.transaction import recorded
from penstock.engine.table import Flags
from penstock.errors import DatabaseClosed, PenstockError

__all__ = ["AsyncDatabase", "AsyncPipeline", "open"]

P = ParamSpec("P")
R = TypeVar("R")

_THREADS = 8  # calls that can wait for the disk at the same time; they share a sync


def _awaitable(
    method: Callable[Concatenate[Database[Text], P], R],
) -> Callable[Concatenate[AsyncDatabase[Text], P], Coroutine[Any, Any, R]]:
    """An awaitable method with the same arguments and result as a method of Database."""

    @functools.wraps(method)
    async def call(self: AsyncDatabase[Text], /, *args: P.args, **options: P.kwargs) -> R:
        found: R = await self._run(recorded(method, *args, **options))
        return found

    return call


def _in_thread(
    method: Callable[Concatenate[Database[Text], P], R],
) -> Callable[Concatenate[AsyncDatabase[Text], P], Coroutine[Any, Any, R]]:
    """A method that runs in a thread of the pool, even if the database is in memory."""

    @functools.wraps(method)
    async def call(self: AsyncDatabase[Text], /, *args: P.args, **options: P.kwargs) -> R:
        work = functools.partial(method, self._database, *args, **options)
        return await asyncio.wrap_future(self._submit(work))

    return call


class AsyncDatabase(Generic[Text]):
    """A Database whose methods are awaited. Use it from one event loop."""

    def __init__(self, database: Database[Text]) -> None:
        self._database: Database[Text] = database
        self._threads = ThreadPoolExecutor(_THREADS, "penstock-aio")
        self._is_in_memory = database._keeper is None
        self._is_closed = False
        self._uncancelled: set[asyncio.Task[None]] = set()

    def pipeline(self, transaction: bool = True) -> AsyncPipeline[Text]:
        """Queue commands and run them together: `await pipe.xack(...).xadd(...).execute()`."""
        return AsyncPipeline(self, transaction)

    async def close(self) -> None:
        """Close the database. Blocked reads raise DatabaseClosed. Raises: CommandError."""
        if self._is_closed:
            return
        closing = self._submit(self._database.close)
        self._is_closed = True
        try:
            await asyncio.wrap_future(closing)
        finally:
            self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def scan_iter(
        self,
        match: Encodable | None = None,
        count: int | None = None,
        _type: str | None = None,
    ) -> AsyncIterator[Text]:
        """Iterate over the keys with SCAN. A key may come twice if the database changes meanwhile."""
        cursor, found = await self.scan(0, match, count, _type)
        for key in found:
            yield key
        while cursor:
            cursor, found = await self.scan(cursor, match, count, _type)
            for key in found:
                yield key

    # --- Running -----------------------------------------------------------------------------------

    async def _run(self, call: CommandCall) -> Any:
        """Run a command; wait if it is a read that blocks."""
        if self._is_in_memory:
            reply = self._database._outcome(call)
        else:
            reply = await self._begin(call)
        if type(reply) is ThreadWaiter:
            reply = await self._wait(reply)
        return results.decoded(reply) if self._database._decode else reply

    async def _begin(self, call: CommandCall) -> Any:
        """Run a command in the pool; return its reply, or the waiter of a read that blocks."""
        running = self._submit(functools.partial(self._database._outcome, call))
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if call.command.flags & Flags.BLOCKING and not running.cancelled():
                await self._until_over(self._drop(running))
            raise

    async def _drop(self, running: Future[Any]) -> None:
        """The task of a read was cancelled while the read ran: it must not stay in a queue."""
        with suppress(PenstockError):  # nobody reads the outcome
            reply = await asyncio.wrap_future(running)
            if type(reply) is ThreadWaiter:
                await self._leave_queue(reply)

    async def _outcome(self, call: Call) -> Any:
        """Run a call that does not block; return its reply."""
        if self._is_in_memory:
            return self._database._outcome(call)
        return await asyncio.wrap_future(
            self._submit(functools.partial(self._database._outcome, call))
        )

    def _submit(self, work: Callable[[], R]) -> Future[R]:
        """Run something in a thread of the pool."""
        if self._is_closed:
            raise DatabaseClosed("the database is closed")
        return self._threads.submit(work)

    async def _until_over(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for something that is not to be cancelled with the task that waits."""
        task = asyncio.create_task(work)
        self._uncancelled.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._uncancelled.discard)
        await asyncio.shield(task)

    async def _wait(self, waiter: ThreadWaiter) -> Any:
        """Sleep until a read is served or its time is over; return its reply."""
        loop = asyncio.get_running_loop()
        news = asyncio.Event()
        waiter.tell(lambda: _wake(loop, news))
        try:
            while not waiter.is_over():
                if waiter.is_due():
                    await self._outcome(Retrying(waiter))
                with suppress(TimeoutError):
                    async with asyncio.timeout(waiter.seconds_left_or_none()):
                        await news.wait()
                news.clear()
        except BaseException:  # cancelled, or the disk refuses another attempt
            with suppress(PenstockError):  # nobody reads the outcome
                await self._until_over(self._leave_queue(waiter))
            raise
        await self._until_over(self._leave_queue(waiter))
        return self._database._waited_for(waiter)

    async def _leave_queue(self, waiter: ThreadWaiter) -> None:
        """Stop waiting; with a directory, wait until what was read is on disk."""
        if waiter.done and waiter.error is not None:
            return  # nothing was read, so there is nothing to wait for; the database may be closed
        if self._is_in_memory:
            interrupt = self._database._leave_queue(waiter)
        else:
            leaving = functools.partial(self._database._leave_queue, waiter)
            interrupt = await asyncio.wrap_future(self._submit(leaving))
        if interrupt is not None:
            raise interrupt

    # --- Commands ----------------------------------------------------------------------------------

    xadd = _awaitable(Database[Text].xadd)
    xtrim = _awaitable(Database[Text].xtrim)
    xdel = _awaitable(Database[Text].xdel)
    xdelex = _awaitable(Database[Text].xdelex)
    xcfgset = _awaitable(Database[Text].xcfgset)
    xlen = _awaitable(Database[Text].xlen)
    xrange = _awaitable(Database[Text].xrange)
    xrevrange = _awaitable(Database[Text].xrevrange)
    xread = _awaitable(Database[Text].xread)
    xreadgroup = _awaitable(Database[Text].xreadgroup)
    xack = _awaitable(Database[Text].xack)
    xackdel = _awaitable(Database[Text].xackdel)
    xnack = _awaitable(Database[Text].xnack)
    xgroup_create = _awaitable(Database[Text].xgroup_create)
    xgroup_setid = _awaitable(Database[Text].xgroup_setid)
    xgroup_destroy = _awaitable(Database[Text].xgroup_destroy)
    xgroup_createconsumer = _awaitable(Database[Text].xgroup_createconsumer)
    xgroup_delconsumer = _awaitable(Database[Text].xgroup_delconsumer)
    xpending = _awaitable(Database[Text].xpending)
    xpending_range = _awaitable(Database[Text].xpending_range)
    xclaim = _awaitable(Database[Text].xclaim)
    xautoclaim = _awaitable(Database[Text].xautoclaim)
    xinfo_stream = _awaitable(Database[Text].xinfo_stream)
    xinfo_groups = _awaitable(Database[Text].xinfo_groups)
    xinfo_consumers = _awaitable(Database[Text].xinfo_consumers)
    keys = _awaitable(Database[Text].keys)
    scan = _awaitable(Database[Text].scan)
    exists = _awaitable(Database[Text].exists)
    type = _awaitable(Database[Text].type)
    touch = _awaitable(Database[Text].touch)
    dbsize = _awaitable(Database[Text].dbsize)
    delete = _awaitable(Database[Text].delete)
    unlink = _awaitable(Database[Text].unlink)
    rename = _awaitable(Database[Text].rename)
    renamenx = _awaitable(Database[Text].renamenx)
    flushdb = _awaitable(Database[Text].flushdb)
    expire = _awaitable(Database[Text].expire)
    pexpire = _awaitable(Database[Text].pexpire)
    expireat = _awaitable(Database[Text].expireat)
    pexpireat = _awaitable(Database[Text].pexpireat)
    persist = _awaitable(Database[Text].persist)
    ttl = _awaitable(Database[Text].ttl)
    pttl = _awaitable(Database[Text].pttl)
    expiretime = _awaitable(Database[Text].expiretime)
    pexpiretime = _awaitable(Database[Text].pexpiretime)
    save = _in_thread(Database[Text].save)
    bgrewriteaof = _in_thread(Database[Text].bgrewriteaof)
    serve = _in_thread(Database[Text].serve)


def _wake(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """From any thread: let the task of a blocked read continue."""
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(news.set)


class AsyncPipeline(CommandQueue[Text]):
    """As Pipeline. Methods queue commands and are not awaited; execute, watch, unwatch and reset are."""

    __slots__ = ("_async_database",)

    def __init__(self, database: AsyncDatabase[Text], transaction: bool) -> None:
        super().__init__(database._database, transaction)
        self._async_database = database

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.reset()

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Run the queued commands and return their results in order. See Pipeline.execute."""
        try:
            transaction = self._transaction_or_none()
            if transaction is None:
                return []
            replies = await self._async_database._outcome(transaction)
            return self._read(transaction, replies, raise_on_error)
        finally:
            await self._forget(self._end_transaction())

    async def reset(self) -> None:
        """Drop the queued commands and the watched keys."""
        await self._forget(self._clear())

    async def _forget(self, forgetting: Request | None) -> None:
        if forgetting is not None:
            with suppress(DatabaseClosed):
                await self._async_database._outcome(forgetting)

    async def watch(self, *names: Key) -> bool:
        """Let `execute` raise WatchError if one of these keys changes before it."""
        await self._async_database._outcome(self._watching_of(names))
        return True

    async def unwatch(self) -> bool:
        """Forget the watched keys."""
        forgetting = self._unwatching()
        if forgetting is not None:
            await self._async_database._outcome(forgetting)
        return True

    def _run_now(self, call: CommandCall) -> Any:
        return self._async_database._run(call)


class Opening(Generic[Text]):
    """The result of `open`: await it, or use it with `async with`."""

    def __init__(self, opening: Callable[[], Database[Text]]) -> None:
        self._opening = opening
        self._opened: AsyncDatabase[Text] | None = None

    def __await__(self) -> Generator[Any, None, AsyncDatabase[Text]]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncDatabase[Text]:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> AsyncDatabase[Text]:
        return AsyncDatabase(await asyncio.to_thread(self._opening))


def _opened(opening: Callable[P, Database[Text]]) -> Callable[P, Opening[Text]]:
    """A function with the arguments of penstock.open that opens an AsyncDatabase."""

    @functools.wraps(opening)
    def begin(*args: P.args, **options: P.kwargs) -> Opening[Text]:
        return Opening(functools.partial(opening, *args, **options))

    return begin


open = _opened(open_database)  # noqa: A001 - as penstock.open
