"""Running commands on an engine in this process: one at a time, from any thread, kept on disk if asked for.

One lock, the turn, is held while a command runs. A blocking read waits outside of it: the thread that adds
the entry runs the waiting read and hands over its result. With a keeper every call returns when what it did,
or saw, is on disk.

A signal handler of the program may raise at any moment: a KeyboardInterrupt. Compiled code runs no handler
between two of its steps, so there a call is interrupted before the command or after it. In plain Python, and
in the few commands that are not compiled, it can be interrupted half-way. Then `Engine.unfinished` says so,
and the next call reads the data again from disk before it does anything.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from penstock.core.frame import Frame
from penstock.embedded import results
from penstock.embedded.durability import Keeper
from penstock.embedded.lock import inside_a_call, new_turn_lock
from penstock.embedded.thread_waiter import ThreadWaiter
from penstock.engine.execute import TABLE, Engine
from penstock.engine.table import Command, Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, DatabaseClosed, DataError
from penstock.reply import NULL_ARRAY

if TYPE_CHECKING:
    from penstock.embedded.serving import Serving

_WRITE = int(Flags.WRITE)
_WORDS = {name: [word.encode() for word in name.split(" ")] for name in TABLE}


class Runner:
    """The engine, the lock around it, and what keeps its data: all of a Database but its commands."""

    __slots__ = ("_closed", "_decode", "_engine", "_frames", "_keeper", "_serving", "_turn")

    def __init__(
        self, engine: Engine, decode_responses: bool, keeper: Keeper | None = None
    ) -> None:
        self._turn = new_turn_lock()
        self._engine = engine
        self._keeper = keeper  # None: nothing is kept
        # Those that no call uses now. Never empty while one thread calls: emptying a list frees its memory.
        self._frames: list[Frame] = [Frame() for _ in range(4)]
        self._decode = decode_responses
        self._closed = False
        self._serving: list[Serving] = []

    def serve(
        self,
        port: int = 6379,
        host: str = "127.0.0.1",
        unixsocket: str | None = None,
        password: str | None = None,
    ) -> Serving:
        """Put the database on a socket, for any client of Redis, while this program goes on using it.

        port: 0 for any that is free; the result's `port` is it. The result's close(), or the end of its
        `with`, ends the serving; so does close() of the database. Raises: ConfigError.
        """
        # Here, for most programs that embed a database need no event loop.
        from penstock.embedded import serving  # noqa: PLC0415
        from penstock.server.config import directives  # noqa: PLC0415

        if self._closed:
            raise DatabaseClosed("the database is closed")
        config = directives.default_config()
        config.set_at_start("port", str(port))
        config.set_at_start("bind", host)
        config.set_at_start("unixsocket", unixsocket or "")
        config.set_at_start("requirepass", password or "")
        served = serving.serve(self._engine, self._turn, config, self._keeper, self)
        self._serving.append(served)
        return served

    def close(self) -> None:
        """End the use of the database; who still waits in a blocking read gets DatabaseClosed.

        What was done is on disk when this returns, and others may open the directory. Raises: CommandError
        (MISCONF) if the disk has failed.
        """
        if self._keeper is not None and self._keeper.is_forked:
            self._closed = True  # the turn may be held by a thread that only the parent has
            return
        while self._serving:
            self._serving.pop().close()
        self._in_turn(self._refuse_all)
        if self._keeper is not None:
            self._keeper.close()

    def _refuse_all(self) -> None:
        """Under the turn: take no calls any more, and wake those that wait."""
        self._closed = True
        for waiter in self._engine.waiters.all():
            waiter.error = DatabaseClosed("the database was closed while this call waited")
            waiter.wake()
            self._engine.unpark(waiter)

    def __del__(self) -> None:
        """A database that nobody has any more: let others have its directory."""
        if self._closed or self._keeper is None or sys.is_finalizing():
            return
        self.close()
        warnings.warn("a penstock.Database was not closed", ResourceWarning, stacklevel=2)

    def save(self) -> bool:
        """Write a snapshot (dump.rdb) while other callers wait. Raises: CommandError."""
        self._kept(lambda keeper: keeper.save())
        return True

    def bgrewriteaof(self) -> bool:
        """Begin to rewrite the log in the background; False if that is under way. Raises: CommandError."""
        begun: bool = self._kept(lambda keeper: keeper.begin_rewrite())
        return begun

    def _kept(self, call: Callable[[Keeper], Any]) -> Any:
        """Ask the keeper for something, under the turn."""
        if self._keeper is not None and self._keeper.is_forked:
            raise DatabaseClosed("the database is closed")
        return self._in_turn(lambda: call(self._checked_keeper()))

    def _checked_keeper(self) -> Keeper:
        self._check_usable()
        if self._keeper is None:
            raise CommandError("nothing is kept here: this database is in memory only")
        return self._keeper

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a penstock.Database cannot be copied or pickled: open another one")

    # --- Running a command -------------------------------------------------------------------------

    def _run(
        self, name: str, pieces: list[Any], shape: Callable[[Any], Any] = results.as_it_is
    ) -> Any:
        """Run a command given by its words and bring the reply into shape."""
        frame = self._new_frame()
        for word in _WORDS[name]:
            frame.add(word)
        for piece in pieces:
            put(frame, piece)
        reply = self._perform(TABLE[name], frame, shape)
        if type(reply) is ThreadWaiter:
            reply = self._wait(reply)
        return results.decoded(reply) if self._decode else reply

    def _new_frame(self) -> Frame:
        """A frame for the words of one call, filled outside of the turn."""
        if self._closed or (self._keeper is not None and self._keeper.is_forked):
            raise DatabaseClosed("the database is closed")
        if not self._frames:
            return Frame()
        frame: Frame = self._frames.pop()
        frame.clear()
        return frame

    def _perform(self, command: Command, frame: Frame, shape: Callable[[Any], Any] | None) -> Any:
        """Run a command under the turn, and return when what it did, or saw, is on disk.

        Every call goes through here. Returns the reply in its shape, or the ThreadWaiter of a read that
        blocks.
        """
        if self._turn.is_mine():
            raise inside_a_call()
        keeper = self._keeper
        position = 0
        reply: Any = None
        refusal: CommandError | None = None
        try:
            self._turn.acquire()
            self._check_usable()
            if keeper is not None:
                keeper.prepare(bool(command.flags & _WRITE))
            try:
                reply = self._engine.execute(command, frame)
                if type(reply) is Blocked:
                    reply = ThreadWaiter(
                        command, reply, self._engine.context.keyspace, shape or results.as_it_is
                    )
                    self._engine.park(reply)
                elif shape is not None:
                    reply = shape(reply)
            except CommandError as error:
                refusal = error
            if keeper is not None:
                position = keeper.hand_over()
        finally:
            try:  # noqa: SIM105 - a call of `suppress` could be interrupted itself
                self._turn.release()
            except RuntimeError:
                pass  # an interrupt came before the turn was ours
        self._frames.append(frame)
        if position and keeper is not None:
            keeper.wait(position)
        if refusal is not None:
            raise refusal
        return reply

    def _in_turn(self, call: Callable[[], Any]) -> Any:
        """Call something under the turn."""
        if self._turn.is_mine():
            raise inside_a_call()
        try:
            self._turn.acquire()
            return call()
        finally:
            try:  # noqa: SIM105 - a call of `suppress` could be interrupted itself
                self._turn.release()
            except RuntimeError:
                pass  # an interrupt came before the turn was ours

    def _check_usable(self) -> None:
        """Under the turn: refuse a closed database, and mend one whose last command was broken off."""
        if self._closed:
            raise DatabaseClosed("the database is closed")
        if self._engine.unfinished:
            self._mend()

    def _mend(self) -> None:
        """A command was broken off, so memory may hold half of it.

        What is on disk is read again. Without a directory there is nothing to read, and the database goes on.
        """
        if self._keeper is not None:
            self._keeper.read_again()
        else:
            self._engine.forget_broken()

    def _wait(self, waiter: ThreadWaiter) -> Any:
        """Sleep, outside of the turn, until the read is served or its time is over; return its reply."""
        try:
            waiter.sleep()
        finally:
            interrupt = self._leave_queue(waiter)
        if interrupt is not None:
            raise interrupt
        if waiter.error is not None:
            raise waiter.error
        return waiter.reply if waiter.is_served else results.served(NULL_ARRAY)

    def _leave_queue(self, waiter: ThreadWaiter) -> BaseException | None:
        """Wait no longer, whatever happens: else a later entry would go to a reader that has left.

        Returns the exception of a signal handler that came meanwhile.
        """
        interrupt: BaseException | None = None
        while True:
            try:
                position = self._in_turn(lambda: self._unpark(waiter))
                if position and self._keeper is not None:
                    self._keeper.wait(position)
            except BaseException as error:
                if waiter.done:
                    raise
                interrupt = error
            else:
                return interrupt

    def _unpark(self, waiter: ThreadWaiter) -> int:
        """Under the turn: take a waiter out of its queues; return the position to wait for."""
        self._engine.unpark(waiter)
        keeper = self._keeper
        if keeper is None or self._engine.unfinished:
            return 0
        keeper.was_served = waiter.is_served
        position: int = keeper.hand_over()
        return position


def put(frame: Frame, value: Any) -> None:
    """Add one argument as redis-py would encode it. Raises: DataError for what it would refuse."""
    kind = type(value)
    if kind is str:
        frame.add_text(value)
    elif kind is bytes:
        frame.add(value)
    elif isinstance(value, bool) or not isinstance(
        value, (str, bytes, bytearray, memoryview, int, float)
    ):
        raise DataError(
            f"Invalid input of type: '{kind.__name__}'. "
            "Convert to a bytes, string, int or float first."
        )
    elif isinstance(value, (int, float)):
        frame.add_text(repr(value))
    elif isinstance(value, str):
        frame.add(value.encode())
    else:
        frame.add(bytes(value))
