"""A session: one client as the server sees it, without its socket.

Bytes come in through `feed`, which runs every command that they complete. Replies gather in `output` and
leave by `flush` at the end of the turn. A command takes the short way (run) as long as nothing is special
about the client or the server (`state` is 0 on both) and it works on data; all others are looked at first
(run_checked): may this client do this, here, now?

    state      why the short way is closed: not authenticated, in a transaction, subscribed, blocked, ...
    keyspace   the database that the client has selected
    waiter     the blocked command, if one waits
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.table import Flags
from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import CommandError, PenstockError, ProtocolError, wrong_arity
from penstock.server.server import OUT_OF_MEMORY, Server, Timer
from penstock.server.tally import Tally
from penstock.wire.encoder import Output
from penstock.wire.parser import Parser

STRANGER = 1  # has not given the password yet
IN_MULTI = 2
SUBSCRIBED = 4
BLOCKED = 8
CLOSING = 16  # reads no more commands; goes when the replies are out
REPLY_OFF = 32
REPLY_SKIP = 64  # no reply to the next command
MONITOR = 128

_STOPPED = BLOCKED | CLOSING
_SPILL_BYTES = (
    1 << 20
)  # replies are put aside in pieces of this size, so that one buffer need not grow


class SessionWaiter(Waiter):
    """A blocked command of a session."""

    def __init__(self, session: Session, tally: Tally, blocked: Blocked) -> None:
        super().__init__(tally.command, blocked, session.keyspace)
        self._session = session
        self.timer: Timer | None = None

    def wake(self) -> None:
        # Encoded now: a moment later the entries may be trimmed.
        if self.error is None:
            self._session.output.put(self.reply)
        elif isinstance(self.error, PenstockError):
            self._session.refuse(self.error)
        self._session.unblock()

    def time_out(self) -> None:
        """The time is over: say so, and go on."""
        self._session.server.engine.give_up(self)
        self._session.output.put(self.on_timeout)
        self._session.unblock()


class Session:
    """One client. `write` takes bytes to its socket, `hang_up` closes it once they are out."""

    __slots__ = (
        "due",
        "frame",
        "go_on",
        "hang_up",
        "held",
        "held_bytes",
        "id",
        "keyspace",
        "output",
        "parser",
        "server",
        "state",
        "waiter",
        "write",
    )

    def __init__(self, server: Server) -> None:
        self.server = server
        self.write: Callable[[bytes], None] | None = None
        self.hang_up: Callable[[], None] | None = None
        self.go_on: Callable[[], None] | None = None
        self.id = server.next_id
        server.next_id += 1
        self.keyspace = server.engine.context.databases[0]
        self.frame = Frame()
        self.parser = Parser(server.wire_limits)
        self.output = Output()
        self.due = False
        self.held: list[bytes] = []
        self.held_bytes = 0
        self.state = 0
        self.waiter: SessionWaiter | None = None
        if server.password is not None:
            self.state = STRANGER
            self.parser.stranger = True

    def open(
        self,
        write: Callable[[bytes], None],
        hang_up: Callable[[], None],
        go_on: Callable[[], None],
    ) -> None:
        """The client is there: this is how to send, to close, and to have kept input run."""
        self.write = write
        self.hang_up = hang_up
        self.go_on = go_on
        self.server.sessions[self.id] = self

    # --- In ----------------------------------------------------------------------------------------

    def feed(self, buffer: bytearray, end: int) -> None:
        """Run the commands in a buffer, up to the first that is incomplete or has to wait."""
        self.server.engine.context.instant.advance()
        try:
            while not self.state & _STOPPED and self.parser.next(self.frame, buffer, end):
                self.run(self.frame)
                if self.output.size > _SPILL_BYTES:
                    self._spill()
        except ProtocolError as error:
            self.refuse(error)
            self.state |= CLOSING
        if self.output.size or self.state & CLOSING:
            self.server.turn.add(self)

    def run(self, frame: Frame) -> None:
        """Run one command and write its reply."""
        server = self.server
        engine = server.engine
        context = engine.context
        started_us = context.instant.us
        try:
            tally = server.tallies.find(frame)
        except CommandError as error:
            self.reject(error, None)
            return
        context.keyspace = self.keyspace
        if self.state or server.state or tally.command.in_session:
            self._run_checked(tally, frame)
        elif tally.command.takes(frame.count):
            self._run_data(tally, frame)
        else:
            self.reject(wrong_arity(tally.command.name), tally)
            return
        context.instant.advance()
        us = context.instant.us - started_us
        tally.count(us)
        if us >= server.slow_us:
            pass

    def _run_data(self, tally: Tally, frame: Frame) -> None:
        try:
            reply = self.server.engine.execute_now(tally.command, frame)
            if type(reply) is Blocked:
                self._block(tally, reply)
            else:
                self.output.put(reply)
        except CommandError as error:
            tally.failed += 1
            self.refuse(error)

    def _run_checked(self, tally: Tally, frame: Frame) -> None:
        """Run a command if this client may use it now."""
        command = tally.command
        if not command.takes(frame.count):
            self.reject(wrong_arity(command.name), tally)
        elif self.state & STRANGER and not command.flags & Flags.NO_AUTH:
            self.reject(CommandError("Authentication required.", "NOAUTH"), tally)
        elif self.server.state & OUT_OF_MEMORY and command.flags & Flags.DENY_OOM:
            self.reject(
                CommandError("command not allowed when used memory > 'maxmemory'.", "OOM"), tally
            )
        elif command.in_session:
            self._run_in_session(tally, frame)
        else:
            self._run_data(tally, frame)

    def _run_in_session(self, tally: Tally, frame: Frame) -> None:
        try:
            self.output.put(tally.command.run(self, frame))
        except CommandError as error:
            tally.failed += 1
            self.refuse(error)

    # --- Out ---------------------------------------------------------------------------------------

    def refuse(self, error: PenstockError) -> None:
        """Write an error and count it."""
        self.output.put_error(error)
        self.server.count_error(getattr(error, "wire_text", "ERR"))

    def reject(self, error: CommandError, tally: Tally | None) -> None:
        """Refuse a command before it ran."""
        if tally is not None:
            tally.rejected += 1
        self.refuse(error)

    def say(self, reply: Any) -> None:
        """Write something that is no answer to a running command."""
        self.output.put(reply)
        self.server.turn.add(self)

    def _spill(self) -> None:
        """Put what is written aside; a client that asks for more than it may have is cut off."""
        self.held.append(self.output.take())
        self.held_bytes += len(self.held[-1])
        if self.held_bytes > self.server.output_bytes_max:
            self.state |= CLOSING

    def flush(self) -> None:
        """Send what has gathered."""
        write = self.write
        if write is None:
            return
        if self.held:
            for piece in self.held:
                write(piece)
            self.held = []
            self.held_bytes = 0
        if self.output.size:
            write(self.output.take())
        if self.state & CLOSING and self.hang_up is not None:
            self.hang_up()

    # --- Waiting -----------------------------------------------------------------------------------

    def _block(self, tally: Tally, blocked: Blocked) -> None:
        waiter = SessionWaiter(self, tally, blocked)
        self.waiter = waiter
        self.state |= BLOCKED
        if blocked.timeout_ms:
            waiter.timer = self.server.loop.call_later(blocked.timeout_ms / 1000, waiter.time_out)
        self.server.engine.park(waiter)

    def unblock(self) -> None:
        """The blocked command has its reply: go on with what came behind it."""
        waiter = self.waiter
        if waiter is not None and waiter.timer is not None:
            waiter.timer.cancel()
        self.waiter = None
        self.state &= ~BLOCKED
        self.server.turn.add(self)
        self.server.turn.free(self)

    def end(self) -> None:
        """The client is gone: leave no trace."""
        self.state |= CLOSING
        if self.waiter is not None:
            self.server.engine.give_up(self.waiter)
            if self.waiter.timer is not None:
                self.waiter.timer.cancel()
            self.waiter = None
        self.write = None
        self.server.sessions.pop(self.id, None)
