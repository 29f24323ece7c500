"""Pipelines with the shape of redis-py's: methods queue commands, `execute` runs them together.

with db.pipeline() as pipe:
    pipe.xack("jobs", "workers", entry_id)
    pipe.xadd("results", {"job": entry_id})
    acknowledged, added = pipe.execute()
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from penstock.embedded import results
from penstock.embedded.database import Database
from penstock.embedded.runner import CommandCall, Request
from penstock.embedded.signatures import Key, PerText, Text
from penstock.embedded.transaction import Transaction, numbered, recorded
from penstock.errors import CommandError, DatabaseClosed, PenstockError, WatchError

if TYPE_CHECKING:
    from penstock.server.session.transaction import Watching

P = ParamSpec("P")
_Queue = TypeVar("_Queue", bound="CommandQueue[Any]")


def _queued(
    method: Callable[Concatenate[Database[Text], P], object],
) -> Callable[Concatenate[_Queue, P], _Queue]:
    """A method with the arguments of a Database method. It queues the command and returns the pipeline."""

    @functools.wraps(method)
    def queue(self: _Queue, /, *args: P.args, **options: P.kwargs) -> _Queue:
        return self._queue(recorded(method, *args, **options))

    return queue


class CommandQueue(PerText[Text]):
    """The part of a pipeline that does not wait: the queue, the watched keys, reading the results."""

    __slots__ = (
        "__weakref__",
        "_calls",
        "_database",
        "_is_explicit",
        "_is_transaction",
        "_watching",
    )

    def __init__(self, database: Database[Text], transaction: bool) -> None:
        self._database = database
        self._is_transaction = transaction
        self._calls: list[CommandCall] = []
        self._watching: Watching | None = None
        self._is_explicit = False  # multi() was called

    def __len__(self) -> int:
        return len(self._calls)

    def __bool__(self) -> bool:
        return True

    def multi(self) -> None:
        """End the immediate part after `watch`: queue the commands that follow."""
        if self._is_explicit:
            raise PenstockError("Cannot issue nested calls to MULTI")
        if self._calls:
            raise PenstockError("Commands without an initial WATCH have already been issued")
        self._is_explicit = True

    def _queue(self, call: CommandCall) -> Self:
        if self._watching is not None and not self._is_explicit:
            return self._run_now(call)  # type: ignore[no-any-return] # redis-py returns the result here
        self._calls.append(call)
        return self

    def _run_now(self, call: CommandCall) -> Any:
        """Run a command between watch() and multi()."""
        raise NotImplementedError

    # --- Watching ----------------------------------------------------------------------------------

    def _watching_of(self, names: tuple[Key, ...]) -> Request:
        """The call that watches keys, besides those that are watched already."""
        from penstock.server.session.transaction import Watching  # noqa: PLC0415 - few programs need it

        if self._is_explicit:
            raise PenstockError("Cannot issue a WATCH after a MULTI")
        keys = recorded(Database.exists, *names).frame  # encodes the names as any method does
        context = self._database._engine.context

        def watch() -> None:
            context.instant.advance()
            watching = self._watching or Watching(context)
            for index in range(1, keys.count):
                watching.add(context.keyspace, keys.piece(index))
            self._watching = watching

        return Request(watch)

    def _unwatching(self) -> Request | None:
        """The call that forgets the watched keys."""
        if self._is_explicit:
            raise PenstockError("Cannot issue an UNWATCH after a MULTI")
        return self._clear_watches()

    def _clear_watches(self) -> Request | None:
        watching, self._watching = self._watching, None
        return None if watching is None else Request(watching.forget)

    # --- Executing ---------------------------------------------------------------------------------

    def _transaction_or_none(self) -> Transaction | None:
        """What `execute` has to run; the queue is empty then, so that nothing runs twice.

        Raises: CommandError for a command with the wrong number of words.
        """
        if not self._calls and self._watching is None:
            return None
        is_atomic = self._is_transaction or self._is_explicit
        calls, self._calls = self._calls, []
        return Transaction(calls, is_atomic, self._watching)

    def _read(
        self, transaction: Transaction, replies: list[Any] | None, raise_on_error: bool
    ) -> list[Any]:
        """The results of `execute`, made from the replies of a Transaction."""
        if replies is None:
            raise WatchError("Watched variable changed.")
        if raise_on_error:
            for number, (reply, call) in enumerate(zip(replies, transaction.calls, strict=True), 1):
                if isinstance(reply, CommandError):
                    raise numbered(reply, number, call)
        return results.decoded(replies) if self._database._decode else replies

    def _clear(self) -> Request | None:
        """Drop the queued commands; return the call that forgets the watched keys."""
        self._calls = []
        self._is_explicit = False
        return self._clear_watches()

    def _end_transaction(self) -> Request | None:
        """After `execute`: return the call that forgets the watched keys. Commands queued since then stay."""
        self._is_explicit = False
        return self._clear_watches()

    def __del__(self) -> None:
        if getattr(self, "_watching", None) is None:  # not set if __init__ was interrupted
            return
        forgetting = self._clear_watches()
        if forgetting is not None:
            with suppress(Exception):  # as in redis-py: nobody can handle it
                self._database._outcome(forgetting)

    # --- Commands ----------------------------------------------------------------------------------

    xadd = _queued(Database[Text].xadd)
    xtrim = _queued(Database[Text].xtrim)
    xdel = _queued(Database[Text].xdel)
    xdelex = _queued(Database[Text].xdelex)
    xcfgset = _queued(Database[Text].xcfgset)
    xlen = _queued(Database[Text].xlen)
    xrange = _queued(Database[Text].xrange)
    xrevrange = _queued(Database[Text].xrevrange)
    xread = _queued(Database[Text].xread)
    xreadgroup = _queued(Database[Text].xreadgroup)
    xack = _queued(Database[Text].xack)
    xackdel = _queued(Database[Text].xackdel)
    xnack = _queued(Database[Text].xnack)
    xgroup_create = _queued(Database[Text].xgroup_create)
    xgroup_setid = _queued(Database[Text].xgroup_setid)
    xgroup_destroy = _queued(Database[Text].xgroup_destroy)
    xgroup_createconsumer = _queued(Database[Text].xgroup_createconsumer)
    xgroup_delconsumer = _queued(Database[Text].xgroup_delconsumer)
    xpending = _queued(Database[Text].xpending)
    xpending_range = _queued(Database[Text].xpending_range)
    xclaim = _queued(Database[Text].xclaim)
    xautoclaim = _queued(Database[Text].xautoclaim)
    xinfo_stream = _queued(Database[Text].xinfo_stream)
    xinfo_groups = _queued(Database[Text].xinfo_groups)
    xinfo_consumers = _queued(Database[Text].xinfo_consumers)
    keys = _queued(Database[Text].keys)
    scan = _queued(Database[Text].scan)
    exists = _queued(Database[Text].exists)
    type = _queued(Database[Text].type)
    touch = _queued(Database[Text].touch)
    dbsize = _queued(Database[Text].dbsize)
    delete = _queued(Database[Text].delete)
    unlink = _queued(Database[Text].unlink)
    rename = _queued(Database[Text].rename)
    renamenx = _queued(Database[Text].renamenx)
    flushdb = _queued(Database[Text].flushdb)
    expire = _queued(Database[Text].expire)
    pexpire = _queued(Database[Text].pexpire)
    expireat = _queued(Database[Text].expireat)
    pexpireat = _queued(Database[Text].pexpireat)
    persist = _queued(Database[Text].persist)
    ttl = _queued(Database[Text].ttl)
    pttl = _queued(Database[Text].pttl)
    expiretime = _queued(Database[Text].expiretime)
    pexpiretime = _queued(Database[Text].pexpiretime)


class Pipeline(CommandQueue[Text]):
    """Commands that run together. Each method of Database queues its command and returns the pipeline.

    With `transaction=True` the commands run as between MULTI and EXEC: no other call sees or does anything
    in between, the log has all of them or none, and there is one wait for the disk. With
    `transaction=False` each command is a unit of its own, but no other call runs in between. Either
    way a blocking read does not block, and a refused command does not stop the others.

    After `watch`, commands run at once and return their results until `multi` is called, as in redis-py. A
    type checker sees a Pipeline there: read through the Database instead, which is the same.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Run the queued commands and return their results in order.

        raise_on_error: raise the first refusal, after all commands have run; False returns refusals as
        CommandErrors among the results. Raises: WatchError if a watched key has changed; nothing has run
        then. CommandError for a command with the wrong number of arguments; nothing has run then either.
        """
        try:
            transaction = self._transaction_or_none()
            if transaction is None:
                return []
            replies = self._database._outcome(transaction)
            return self._read(transaction, replies, raise_on_error)
        finally:
            self._forget(self._end_transaction())

    def reset(self) -> None:
        """Drop the queued commands and the watched keys."""
        self._forget(self._clear())

    def _forget(self, forgetting: Request | None) -> None:
        if forgetting is not None:
            with suppress(DatabaseClosed):
                self._database._outcome(forgetting)

    close = reset

    def watch(self, *names: Key) -> bool:
        """Let `execute` raise WatchError if one of these keys changes before it."""
        self._database._outcome(self._watching_of(names))
        return True

    def unwatch(self) -> bool:
        """Forget the watched keys."""
        forgetting = self._unwatching()
        if forgetting is not None:
            self._database._outcome(forgetting)
        return True

    def _run_now(self, call: CommandCall) -> Any:
        return self._database._finished(self._database._outcome(call))
