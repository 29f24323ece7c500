"""A session: one client as the server sees it, without its socket.

Bytes come in through `feed`, which runs every command that they complete. Replies gather in `output` and
leave by `flush` at the end of the turn. A command takes the short way as long as nothing is special about
the client or the server (`state` is 0 on both) and it works on data; all others are looked at first: may
this client do this, here, now?

    state         why the short way is closed: not authenticated, in a transaction, subscribed, blocked, ...
    keyspace      the database that the client has selected
    waiter        the blocked command, if one waits
    transaction   what was queued since MULTI
    watching      what WATCH was asked to watch
"""

from __future__ import annotations

from typing import Any, Protocol

from penstock.core.frame import Frame
from penstock.engine.table import Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, PenstockError, ProtocolError, wrong_arity
from penstock.reply import NoReply, Push
from penstock.server.client_info import ClientInfo
from penstock.server.gate import refusal_or_none
from penstock.server.server import Server
from penstock.server.session_waiter import SessionWaiter
from penstock.server.states import (
    BLOCKED,
    CLOSING,
    MONITORED,
    PAUSED_ALL,
    PAUSED_WRITES,
    REPLY_OFF,
    REPLY_SKIP,
    REPLY_SKIP_NEXT,
    STRANGER,
    SUBSCRIBED,
)
from penstock.server.tally import Tally
from penstock.server.transaction import Transaction, Watching
from penstock.wire.encoder import Output
from penstock.wire.parser import Parser

_STOPPED = BLOCKED | CLOSING
_SILENT = REPLY_OFF | REPLY_SKIP
_SPILL_BYTES = (
    1 << 20
)  # replies are put aside in pieces of this size, so that one buffer need not grow


class Link(Protocol):
    """The socket's side of a session."""

    def write(self, data: bytes) -> None:
        """Send, sooner or later."""

    def close(self) -> None:
        """Close once everything is sent."""

    def abort(self) -> None:
        """Close at once."""

    def go_on(self) -> None:
        """Feed the session what it had to leave unread."""

    def unsent_bytes(self) -> int:
        """How much the client has not taken yet."""


class Session:
    """One client.

    In: feed, run. Out: say, push, refuse, reject, flush. Waiting: block, unblock, postpone. End: close,
    end.
    """

    __slots__ = (
        "channels",
        "due",
        "frame",
        "held",
        "held_bytes",
        "id",
        "info",
        "keyspace",
        "link",
        "output",
        "over_soft_since_ms",
        "parser",
        "patterns",
        "postponed",
        "server",
        "state",
        "transaction",
        "waiter",
        "watching",
    )

    def __init__(self, server: Server) -> None:
        self.server = server
        self.id = server.next_id
        server.next_id += 1
        self.info = ClientInfo(server.engine.context.now_ms())
        self.link: Link | None = None
        self.keyspace = server.engine.context.databases[0]
        self.frame = Frame()
        self.parser = Parser(server.wire_limits)
        self.output = Output()
        self.due = False
        self.held: list[bytes] = []
        self.held_bytes = 0
        self.over_soft_since_ms = 0
        self.state = 0
        self.waiter: SessionWaiter | None = None
        self.postponed: Frame | None = None
        self.transaction: Transaction | None = None
        self.watching: Watching | None = None
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        if server.password is not None:
            self.state = STRANGER
            self.parser.stranger = True

    def open(self, link: Link) -> None:
        """The client is there."""
        self.link = link
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
        if self.output.size or self.held or self.state & CLOSING:
            self.server.turn.add(self)

    def run(self, frame: Frame) -> None:
        """Run one command and write its reply."""
        server = self.server
        context = server.engine.context
        started_us = context.instant.us
        try:
            tally = server.tallies.find(frame)
        except CommandError as error:
            self.reject(error, None)
            return
        context.keyspace = self.keyspace
        if self.state or server.state or tally.command.in_session:
            if not self._run_checked(tally, frame):
                return
        elif tally.command.takes(frame.count):
            self._run_data(tally, frame)
        else:
            self.reject(wrong_arity(tally.command.name), tally)
            return
        context.instant.advance()
        us = context.instant.us - started_us
        tally.count(us)
        if us >= server.slow_us and not tally.command.flags & Flags.SKIP_SLOWLOG:
            server.slow_log.note(self, frame, us)

    def _run_data(self, tally: Tally, frame: Frame) -> None:
        try:
            reply = self.server.engine.execute_now(tally.command, frame)
            if type(reply) is Blocked:
                self.block(tally, reply)
            else:
                self.output.put(reply)
        except CommandError as error:
            tally.failed += 1
            self.refuse(error)

    def _run_checked(self, tally: Tally, frame: Frame) -> bool:
        """Run a command if this client may use it now; False if it did not run."""
        mark = self.output.size
        ran = self._try(tally, frame)
        if self.state & _SILENT:
            self.output.cut_back(mark)
        if self.state & (REPLY_SKIP | REPLY_SKIP_NEXT):
            skip_next = self.state & REPLY_SKIP_NEXT
            self.state &= ~(REPLY_SKIP | REPLY_SKIP_NEXT)
            if skip_next:
                self.state |= REPLY_SKIP
        return ran

    def _try(self, tally: Tally, frame: Frame) -> bool:
        server = self.server
        command = tally.command
        refusal = refusal_or_none(self, command, frame)
        if refusal is not None:
            self.reject(refusal, tally)
            return False
        paused = server.state & (PAUSED_ALL | PAUSED_WRITES)
        if paused and self.must_wait_for_pause(command, frame):
            self.postpone(frame)
            return False
        transaction = self.transaction
        if transaction is not None and not command.flags & Flags.NOT_QUEUED:
            transaction.queue(tally, frame)
            self.output.put_raw(b"+QUEUED\r\n")
            return False
        if server.state & MONITORED and not command.flags & Flags.SKIP_MONITOR:
            server.monitors.show(self, frame)
        if command.in_session:
            self._run_in_session(tally, frame)
        else:
            self._run_data(tally, frame)
        return True

    def _run_in_session(self, tally: Tally, frame: Frame) -> None:
        try:
            reply = tally.command.run(self, frame)
            if type(reply) is not NoReply:
                self.output.put(reply)
        except CommandError as error:
            tally.failed += 1
            self.refuse(error)

    # --- Out ---------------------------------------------------------------------------------------

    def refuse(self, error: PenstockError) -> None:
        """Write an error and count it."""
        self.output.put_error(error)
        self.server.count_error(getattr(error, "wire_text", "ERR"))

    def reject(self, error: CommandError, tally: Tally | None) -> None:
        """Refuse a command before it ran; the transaction that it was meant for cannot run either."""
        if tally is not None:
            tally.rejected += 1
        if self.transaction is not None:
            self.transaction.broken = True
        self.refuse(error)

    def say(self, reply: Any) -> None:
        """Write something that is no answer to a running command."""
        self.output.put(reply)
        self.server.turn.add(self)

    def message(self, channel: bytes, text: bytes) -> None:
        """A message on a channel that the client has subscribed to."""
        self.say(Push([b"message", channel, text]))

    def pattern_message(self, pattern: bytes, channel: bytes, text: bytes) -> None:
        """A message on a channel that one of the client's patterns matches."""
        self.say(Push([b"pmessage", pattern, channel, text]))

    def _spill(self) -> None:
        """Put what is written aside; a client that asks for more than it may have is cut off."""
        self.held.append(self.output.take())
        self.held_bytes += len(self.held[-1])
        self.check_output_limit()

    def flush(self) -> None:
        """Send what has gathered."""
        link = self.link
        if link is None:
            return
        if self.held:
            for piece in self.held:
                link.write(piece)
            self.server.bytes_out += self.held_bytes
            self.held = []
            self.held_bytes = 0
        if self.output.size:
            self.server.bytes_out += self.output.size
            link.write(self.output.take())
        if self.state & CLOSING:
            link.close()

    def check_output_limit(self) -> None:
        """Cut the client off if it has left too much unread."""
        if self.link is None:
            return
        limits = self.server.output_limits
        limit = limits.pubsub if self.state & SUBSCRIBED else limits.normal
        unread = self.held_bytes + self.output.size + self.link.unsent_bytes()
        if 0 < limit.hard_bytes < unread:
            self._cut_off()
        elif 0 < limit.soft_bytes < unread:
            now_ms = self.server.engine.context.now_ms()
            if not self.over_soft_since_ms:
                self.over_soft_since_ms = now_ms
            elif now_ms - self.over_soft_since_ms > limit.soft_seconds * 1000:
                self._cut_off()
        else:
            self.over_soft_since_ms = 0

    def _cut_off(self) -> None:
        self.state |= CLOSING
        self.held = []
        self.held_bytes = 0
        self.output.clear()
        if self.link is not None:
            self.link.abort()

    # --- Waiting -----------------------------------------------------------------------------------

    def block(self, tally: Tally, blocked: Blocked) -> None:
        """Let a command wait, and all that the client sends behind it."""
        self.waiter = SessionWaiter(self, tally, blocked)
        self.state |= BLOCKED
        self.waiter.park(blocked.timeout_ms)

    def unblock(self) -> None:
        """The waiting command has its reply: go on with what came behind it."""
        self.waiter = None
        self.state &= ~BLOCKED
        self.server.turn.add(self)
        self.server.turn.free(self)

    def must_wait_for_pause(self, command: Any, frame: Frame) -> bool:
        """Tell whether CLIENT PAUSE holds this command back."""
        if self.server.state & PAUSED_ALL:
            return not command.flags & Flags.NOT_PAUSED
        writes = command.flags & Flags.WRITE
        if command.name == "EXEC" and self.transaction is not None:
            writes = self.transaction.writes
        return bool(writes)

    def postpone(self, frame: Frame) -> None:
        """Keep a command until the pause is over."""
        self.postponed = frame.copy()
        self.state |= BLOCKED

    def resume(self) -> None:
        """The pause is over: run the command that was kept, and go on."""
        frame = self.postponed
        if frame is not None:
            self.postponed = None
            self.state &= ~BLOCKED
            self.run(frame)
            self.server.turn.add(self)
            self.server.turn.free(self)

    # --- End ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection once the replies are out."""
        self.state |= CLOSING
        self.server.turn.add(self)

    def end(self) -> None:
        """The client is gone: leave no trace."""
        self.state |= CLOSING
        self.link = None
        self.postponed = None
        if self.waiter is not None:
            self.waiter.give_up()
            self.waiter = None
        if self.watching is not None:
            self.watching.forget()
            self.watching = None
        channels = self.server.engine.context.channels
        for name in self.channels:
            channels.drop(channels.by_name, name, self)
        for name in self.patterns:
            channels.drop(channels.by_pattern, name, self)
        self.server.monitors.sessions.pop(self, None)
        if not self.server.monitors.sessions:
            self.server.state &= ~MONITORED
        self.server.sessions.pop(self.id, None)
