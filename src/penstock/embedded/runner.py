"""Runs commands on an engine in this process: one at a time, from any thread, kept on disk if asked for.

Every call is a `Step` and goes through `Runner._in_turn`:

    take the lock        one lock, the turn, around everything that touches the engine
      check              refuse a closed database; reload one whose last command was interrupted
      prepare            refuse a write while the log cannot be written
      perform            run the command, shape its reply
      hand over          give the effects to the log, get the position to wait for
    release the lock
    wait for the disk    until that position is synced, as appendfsync asks for

    Step             run(): everything that happens under the lock
      Call           check, prepare, perform, hand over
        CommandCall  one command
        Request      a call of a function: save, bgrewriteaof, watch
        Retrying     a blocked read that claims runs again
        Transaction  the commands of a pipeline (transaction.py)
      Leaving        a blocked read ends
      Closing        the database is closed

A blocking read waits outside of the lock. The thread that adds an entry runs the waiting read again and hands
its result over.

A signal handler of the program may raise at any moment, for example KeyboardInterrupt. Compiled code runs no
handler between two of its steps, so it is interrupted before a command or after it. In plain Python, and in
the few commands that are not compiled, a command can be interrupted half-way. Then `Engine.unfinished` is
True, and the next call reloads the data from disk before it does anything.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from penstock.core.frame import Frame
from penstock.embedded import arguments, results
from penstock.embedded.collector import Collector
from penstock.embedded.durability import Keeper
from penstock.embedded.lock import inside_a_call, new_turn_lock
from penstock.embedded.thread_waiter import ThreadWaiter
from penstock.engine.execute import TABLE, Engine
from penstock.engine.table import Command, Flags, QuickForm
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, DatabaseClosed, no_such_command
from penstock.reply import NULL_ARRAY

if TYPE_CHECKING:
    from penstock.embedded.serving import Serving

_WRITE = int(Flags.WRITE)
_WORDS = {name: [word.encode() for word in name.split(" ")] for name in TABLE}
_CALLS_KEPT = 4
# A sweep removes up to 4096 expired keys after every 4096 writes, so that keys that no call looks at cannot
# pile up. Where nothing has expired it costs 8 us.
_SWEEP_WRITES = 4096


# --- Steps -----------------------------------------------------------------------------------------


class Step:
    """What one thread does while it holds the lock."""

    __slots__ = ()

    def run(self, runner: Runner) -> int:
        """Do it; return the position of the log to wait for, 0 for none."""
        raise NotImplementedError


class Call(Step):
    """A call of the database. `reply` or `refusal` is its outcome. `writes`: it needs a log that works."""

    __slots__ = ("refusal", "reply", "writes")

    def __init__(self, writes: bool) -> None:
        self.writes = writes
        self.reply: Any = None
        self.refusal: CommandError | None = None

    def run(self, runner: Runner) -> int:
        """Check, prepare, perform, hand over."""
        runner._check_usable()
        keeper = runner._keeper
        if keeper is not None:
            keeper.prepare(self.writes)
        try:
            self.reply = self.perform(runner)
        except CommandError as error:
            self.refusal = error
        if self.writes:
            runner._writes_until_sweep -= 1
            if runner._writes_until_sweep == 0:
                runner._sweep()
        if keeper is None:
            return 0
        position: int = keeper.hand_over()
        return position

    def perform(self, runner: Runner) -> Any:
        """The call itself; returns the reply. Raises: CommandError."""
        raise NotImplementedError


class CommandCall(Call):
    """One command: its words, and the function that shapes its reply. None leaves the reply as it is."""

    __slots__ = ("_collector", "_quick", "command", "frame", "shape")

    def __init__(self) -> None:
        Call.__init__(self, False)
        self.command: Command = TABLE["XADD"]
        self.frame = Frame()
        self.shape: Callable[[Any], Any] | None = None
        self._quick: QuickForm | None = None
        self._collector = Collector()

    def begin(self, command: Command, shape: Callable[[Any], Any] | None) -> None:
        """Become the call of a command, without words so far."""
        self.command = command
        self.writes = bool(command.flags & _WRITE)
        self.shape = shape
        self._quick = None
        self.frame.clear()

    def use_quick_form(self) -> None:
        """Run the command by its quick form if it can; only for those that a Collector understands."""
        self._quick = self.command.quick

    def perform(self, runner: Runner) -> Any:
        """Run the command. A read that blocks is parked, and its ThreadWaiter is the reply."""
        engine = runner._engine
        if self.command.is_newer:
            self.check_known(engine)
        if self._quick is not None and self._run_quick(engine):
            reply = self._collector.reply
            if self._collector.is_shaped:
                return reply
        else:
            reply = engine.execute(self.command, self.frame)
        if type(reply) is Blocked:
            waiter = ThreadWaiter(
                self.command, reply, engine.context.keyspace, self.shape or results.as_it_is
            )
            engine.park(waiter)
            return waiter
        return reply if self.shape is None else self.shape(reply)

    def _run_quick(self, engine: Engine) -> bool:
        """Run the quick form; False if the full form must run."""
        assert self._quick is not None
        self._collector.begin()
        if not self.command.takes(self.frame.count):
            return False
        engine.context.instant.advance()
        return engine.try_quick(self._quick, self.frame, self._collector)

    def check_known(self, engine: Engine) -> None:
        """Refuse a command that the level does not have, with the text of a server of that level."""
        if self.command.is_newer and not engine.context.compat.knows(self.command.since):
            words = [self.frame.piece(at) for at in range(1, self.frame.count)]
            raise no_such_command(self.frame.piece(0), words)


class Request(Call):
    """A call of a function under the lock."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], Any]) -> None:
        Call.__init__(self, False)
        self._function = function

    def perform(self, runner: Runner) -> Any:
        return self._function()


class Retrying(Call):
    """Run a blocked read again: entries may have become idle enough to claim."""

    __slots__ = ("_waiter",)

    def __init__(self, waiter: ThreadWaiter) -> None:
        Call.__init__(self, True)
        self._waiter = waiter

    def run(self, runner: Runner) -> int:
        """As any call, unless the read was served or the database was closed in the meantime."""
        return 0 if self._waiter.is_served else Call.run(self, runner)

    def perform(self, runner: Runner) -> Any:
        """Run the read, after those that blocked before it."""
        return runner._engine.retry(self._waiter)


class Leaving(Step):
    """A blocked read was served, its time is over, or its caller gave up: remove it from its queues."""

    __slots__ = ("_waiter",)

    def __init__(self, waiter: ThreadWaiter) -> None:
        self._waiter = waiter

    def run(self, runner: Runner) -> int:
        engine = runner._engine
        engine.unpark(self._waiter)
        keeper = runner._keeper
        if keeper is None or engine.unfinished:
            return 0
        keeper.was_served = self._waiter.is_served
        position: int = keeper.hand_over()
        return position


class Closing(Step):
    """Refuse all calls from now on, and wake the blocked readers."""

    __slots__ = ()

    def run(self, runner: Runner) -> int:
        runner._closed = True
        for waiter in runner._engine.waiters.all():
            waiter.error = DatabaseClosed("the database was closed while this call waited")
            waiter.wake()
            runner._engine.unpark(waiter)
        return 0


# --- The runner ------------------------------------------------------------------------------------


class Runner:
    """The engine, the lock around it and the keeper of its data: all of a Database except its commands."""

    __slots__ = (
        "__weakref__",
        "_calls",
        "_closed",
        "_decode",
        "_engine",
        "_forked",
        "_keeper",
        "_serving",
        "_turn",
        "_writes_until_sweep",
    )

    def __init__(
        self, engine: Engine, decode_responses: bool, keeper: Keeper | None = None
    ) -> None:
        self._turn = new_turn_lock()
        self._engine = engine
        self._keeper = keeper  # None: nothing is kept on disk
        # For reuse. One thread never empties the list: emptying would free its memory.
        self._calls: list[CommandCall] = [CommandCall() for _ in range(_CALLS_KEPT)]
        self._decode = decode_responses
        self._closed = False
        self._forked = False  # this process is a forked copy of the one that opened the database
        self._serving: list[Serving] = []
        self._writes_until_sweep = _SWEEP_WRITES
        _OPEN.add(self)

    def serve(
        self,
        port: int = 6379,
        host: str = "127.0.0.1",
        unixsocket: str | None = None,
        password: str | None = None,
    ) -> Serving:
        """Put the database on a socket for Redis clients while this program keeps using it.

        port: 0 picks a free one; the result's `port` tells which. The result's close(), the end of its
        `with` block or close() of the database ends the serving. Raises: ConfigError.
        """
        # Imported here because most programs that embed a database need no event loop.
        from penstock.embedded import serving  # noqa: PLC0415
        from penstock.server.config import directives  # noqa: PLC0415

        if self._closed:
            raise self._closed_error()
        config = directives.default_config()
        config.set_at_start("port", str(port))
        config.set_at_start("bind", host)
        config.set_at_start("unixsocket", unixsocket or "")
        config.set_at_start("requirepass", password or "")
        served = serving.serve(self._engine, self._turn, config, self._keeper, self)
        self._serving.append(served)
        return served

    def close(self) -> None:
        """Close the database. Blocked reads raise DatabaseClosed.

        When this returns, everything is on disk and others may open the directory. Raises: CommandError
        (MISCONF) if the disk has failed.
        """
        if self._forked:
            return  # the files are the parent's, and one of its threads may have held the lock
        while self._serving:
            self._serving.pop().close()
        self._in_turn(Closing())
        if self._keeper is not None:
            self._keeper.close()

    def __del__(self) -> None:
        """Close a database that is no longer referenced, so that others can open its directory."""
        if self._closed or self._keeper is None or sys.is_finalizing():
            return
        self.close()
        warnings.warn("a penstock.Database was not closed", ResourceWarning, stacklevel=2)

    def save(self) -> bool:
        """Write a snapshot (dump.rdb) while other callers wait. Raises: CommandError."""
        self._outcome(Request(lambda: self._existing_keeper().save()))
        return True

    def bgrewriteaof(self) -> bool:
        """Start a rewrite of the log in the background; False if one is running. Raises: CommandError."""
        begun: bool = self._outcome(Request(lambda: self._existing_keeper().begin_rewrite()))
        return begun

    def _existing_keeper(self) -> Keeper:
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

    def _run(self, name: str, pieces: list[Any], shape: Callable[[Any], Any] | None = None) -> Any:
        """Run a command given by its words and shape the reply."""
        call = self._new_call(TABLE[name], shape)
        for word in _WORDS[name]:
            call.frame.add(word)
        for piece in pieces:
            arguments.put(call.frame, piece)
        return self._finished(self._perform(call))

    def _finished(self, reply: Any) -> Any:
        """Wait if the reply is that of a blocked read, and decode it if asked for."""
        if type(reply) is ThreadWaiter:
            reply = self._wait(reply)
        return results.decoded(reply) if self._decode else reply

    def _new_call(self, command: Command, shape: Callable[[Any], Any] | None) -> CommandCall:
        """A call without words. The caller adds them before it takes the lock."""
        if self._closed:
            raise self._closed_error()
        try:
            call = self._calls.pop()
        except IndexError:
            call = CommandCall()
        call.begin(command, shape)
        return call

    def _perform(self, call: CommandCall) -> Any:
        """Run a command. Returns its shaped reply, or the ThreadWaiter of a read that blocks."""
        self._attempt(call)
        reply, refusal = call.reply, call.refusal
        call.reply = call.refusal = None
        self._calls.append(call)
        if refusal is not None:
            raise refusal
        return reply

    def _outcome(self, call: Call) -> Any:
        """Run a call that is not for reuse; return its reply or raise its refusal."""
        self._attempt(call)
        if call.refusal is not None:
            raise call.refusal
        return call.reply

    def _attempt(self, call: Call) -> None:
        """Run a call. If the wait for the disk fails or is interrupted, a blocked read leaves its queue."""
        try:
            self._in_turn(call)
        except BaseException:
            if type(call.reply) is ThreadWaiter:
                self._leave_queue(call.reply)
            raise

    def _in_turn(self, step: Step) -> None:
        """Used by every call: run a step under the lock, then wait until its position is on disk."""
        if self._forked:
            raise self._closed_error()
        if self._turn.is_mine():
            raise inside_a_call()
        position = 0
        try:
            self._turn.acquire()
            position = step.run(self)
        finally:
            try:  # noqa: SIM105 - a call of `suppress` could be interrupted itself
                self._turn.release()
            except RuntimeError:
                pass  # an interrupt came before this thread had the lock
        if position:
            self._keeper.wait(position)  # type: ignore[union-attr] # without a keeper it is 0

    def _check_usable(self) -> None:
        """Under the lock: refuse a closed database, and repair one whose last command was interrupted."""
        if self._closed:
            raise self._closed_error()
        if self._engine.unfinished:
            self._repair()

    def _repair(self) -> None:
        """An interrupted command may have done half of its work: reload the data from disk.

        Without a directory there is nothing to reload, and the database continues with what it has.
        """
        if self._keeper is not None:
            self._keeper.read_again()
        else:
            self._engine.forget_broken()

    def _sweep(self) -> None:
        """Under the lock: remove expired keys that nobody looks at."""
        self._writes_until_sweep = _SWEEP_WRITES
        self._engine.expire_due(_SWEEP_WRITES)

    def _closed_error(self) -> DatabaseClosed:
        if self._forked:
            return DatabaseClosed(
                "this database was opened before a fork and belongs to the parent process: open one in"
                " the child process, or let both processes use a server (Database.serve)"
            )
        return DatabaseClosed("the database is closed")

    # --- Blocking reads ----------------------------------------------------------------------------

    def _wait(self, waiter: ThreadWaiter) -> Any:
        """Sleep without the lock until the read is served or its time is over; return its reply."""
        try:
            while waiter.sleep():
                self._in_turn(Retrying(waiter))
        finally:
            interrupt = self._leave_queue(waiter)
        if interrupt is not None:
            raise interrupt
        return self._waited_for(waiter)

    def _waited_for(self, waiter: ThreadWaiter) -> Any:
        """The reply of a read that waits no longer."""
        if waiter.error is not None:
            raise waiter.error
        return waiter.reply if waiter.is_served else results.served(NULL_ARRAY)

    def _leave_queue(self, waiter: ThreadWaiter) -> BaseException | None:
        """Stop waiting, whatever happens: otherwise a later entry would go to a reader that has left.

        Returns the exception of a signal handler that interrupted this.
        """
        interrupt: BaseException | None = None
        while True:
            try:
                self._in_turn(Leaving(waiter))
            except BaseException as error:
                if waiter.done or self._forked:
                    raise
                interrupt = error
            else:
                return interrupt

    # --- Forks -------------------------------------------------------------------------------------

    def _leave_to_parent(self) -> None:
        """In a forked copy of the process: refuse to work. Two processes would write one log."""
        self._forked = self._closed = True
        for serving in self._serving:
            serving.leave_to_parent()
        if self._keeper is not None:
            self._keeper.leave_to_parent()


_OPEN: weakref.WeakSet[Runner] = weakref.WeakSet()


def _after_fork() -> None:
    for runner in list(_OPEN):
        runner._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
