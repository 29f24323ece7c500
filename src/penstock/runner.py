"""Running commands on an engine in this process: one at a time, from any thread, kept on disk if asked for.

One lock is held while a command runs; a blocking read waits outside of it, and whoever adds the entry runs
the waiting read and hands over its result. With a keeper every call returns when what it did, or saw, is on
disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from penstock import shapes
from penstock.core.frame import Frame
from penstock.engine.execute import TABLE, Engine
from penstock.engine.table import Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, DatabaseClosed, DataError
from penstock.keeper import Keeper
from penstock.reply import NULL_ARRAY
from penstock.thread_waiter import ThreadWaiter
from penstock.turn_lock import TurnLock

if TYPE_CHECKING:
    from penstock.server.shared import Serving

_WAIT_SECONDS_MAX = threading.TIMEOUT_MAX  # about 292 years
_WRITE = int(Flags.WRITE)
_WORDS = {name: [word.encode() for word in name.split(" ")] for name in TABLE}


class Runner:
    """The engine, the lock around it, and what keeps its data: all of a Database but its commands."""

    __slots__ = ("_closed", "_decode", "_engine", "_frame", "_keeper", "_serving", "_turn")

    def __init__(
        self, engine: Engine, decode_responses: bool, keeper: Keeper | None = None
    ) -> None:
        self._turn = TurnLock()
        self._engine = engine
        self._keeper = keeper  # None: nothing is kept
        if keeper is not None:
            keeper.on_fork = self._be_forked
        self._frame = Frame()
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
        from penstock.server import directives, shared  # noqa: PLC0415

        if self._closed:
            raise DatabaseClosed("the database is closed")
        config = directives.default_config()
        config.set_at_start("port", str(port))
        config.set_at_start("bind", host)
        config.set_at_start("unixsocket", unixsocket or "")
        config.set_at_start("requirepass", password or "")
        serving = shared.serve(self._engine, self._turn, config, self._keeper)
        self._serving.append(serving)
        return serving

    def close(self) -> None:
        """End the use of the database; who still waits in a blocking read gets DatabaseClosed.

        What was done is on disk when this returns, and others may open the directory. Raises: CommandError
        (MISCONF) if the disk has failed.
        """
        while self._serving:
            self._serving.pop().close()
        self._turn.acquire()
        try:
            was_closed, self._closed = self._closed, True
            for waiter in self._engine.waiters.all():
                waiter.error = DatabaseClosed("the database was closed while this call waited")
                self._engine.give_up(waiter)
                waiter.wake()
        finally:
            self._turn.release()
        if self._keeper is not None and not was_closed:
            self._keeper.close()

    def _be_forked(self) -> None:
        """This is a copy of the process that has the directory open: two would write one log."""
        self._closed = True

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
        self._turn.acquire()
        try:
            if self._closed:
                raise DatabaseClosed("the database is closed")
            if self._keeper is None:
                raise CommandError("nothing is kept here: this database is in memory only")
            return call(self._keeper)
        finally:
            self._turn.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a penstock.Database cannot be copied or pickled: open another one")

    # --- Running a command -------------------------------------------------------------------------

    def _run(
        self, name: str, pieces: list[Any], shape: Callable[[Any], Any] = shapes.as_it_is
    ) -> Any:
        """Run a command given by its words and bring the reply into shape."""
        command = TABLE[name]
        self._turn.acquire()
        try:
            self._begin(_WORDS[name])
            if self._keeper is not None and command.flags & _WRITE:
                self._keeper.check_writable()
            for piece in pieces:
                self._put(piece)
            reply = self._engine.execute(command, self._frame)
            if isinstance(reply, Blocked):
                waiter = ThreadWaiter(command, reply, self._engine.context.keyspace, shape)
                reply = self._wait(waiter, reply.timeout_ms)
                if self._keeper is not None:
                    self._keeper.was_served = waiter.served.is_set()
            else:
                reply = shape(reply)
        finally:
            self._end()
        return shapes.decoded(reply) if self._decode else reply

    def _end(self) -> None:
        """Give the turn back, and return when what was done, or seen, is on disk."""
        keeper = self._keeper
        if keeper is None:
            self._turn.release()
            return
        try:
            position = keeper.hand_over()
        finally:
            self._turn.release()
        if position:
            keeper.wait(position)

    def _begin(self, words: list[bytes]) -> None:
        if self._closed:
            raise DatabaseClosed("the database is closed")
        self._frame.clear()
        for word in words:
            self._frame.add(word)

    def _put(self, value: Any) -> None:
        """Add one argument as redis-py would encode it. Raises: DataError for what it would refuse."""
        kind = type(value)
        if kind is str:
            self._frame.add_text(value)
        elif kind is bytes:
            self._frame.add(value)
        elif isinstance(value, bool) or not isinstance(
            value, (str, bytes, bytearray, memoryview, int, float)
        ):
            raise DataError(
                f"Invalid input of type: '{kind.__name__}'. "
                "Convert to a bytes, string, int or float first."
            )
        elif isinstance(value, (int, float)):
            self._frame.add_text(repr(value))
        elif isinstance(value, str):
            self._frame.add(value.encode())
        else:
            self._frame.add(bytes(value))

    def _wait(self, waiter: ThreadWaiter, timeout_ms: int) -> Any:
        """Sleep until the read is served or its time is over. The lock is open meanwhile."""
        if self._keeper is not None:
            self._keeper.hand_over()
        self._engine.park(waiter)
        self._turn.release()
        try:
            waiter.served.wait(min(timeout_ms / 1000, _WAIT_SECONDS_MAX) if timeout_ms else None)
        finally:
            interrupt = self._take_turn_back()
            self._engine.give_up(waiter)
        if interrupt is not None:
            raise interrupt
        if waiter.error is not None:
            raise waiter.error
        return waiter.reply if waiter.served.is_set() else shapes.served(NULL_ARRAY)

    def _take_turn_back(self) -> BaseException | None:
        """Have the turn again, come what may: the caller will release it. Returns what came."""
        interrupt: BaseException | None = None
        while True:
            try:
                self._turn.acquire()
            except BaseException as error:  # noqa: BLE001 - raised by the caller, once it has the turn
                interrupt = error
            else:
                return interrupt
