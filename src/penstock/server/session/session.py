"""A session: one client as the server sees it, without its socket.

Bytes come in through `feed`, which runs every command that they complete. Replies gather in `output` and
leave by `flush` at the end of the turn. A command takes the short way as long as nothing is special about
the client or the server (`state` is 0 on both) and it works on data; all others are looked at first: may
this client do this, here, now?

    state         why the short way is closed: not authenticated, in a transaction, subscribed, blocked, ...
    keyspace      the database that the client has selected
    last          the counter of the command that came last, for CLIENT LIST and the logs
    waiter        the blocked command, if one waits
    transaction   what was queued since MULTI
    watching      what WATCH was asked to watch

A push (a message, an answer to SUBSCRIBE) is shown even to a client that wants no replies. While a command
is looked at, `mark` is where its reply begins, so that the reply can be taken back and the push stays.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.table import Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, PenstockError, ProtocolError, exec_refused, wrong_arity
from penstock.reply import NoReply, Push
from penstock.server.log import LOG
from penstock.server.net.link import Link
from penstock.server.server import Server
from penstock.server.session.admission import HTTP_WORDS, refusal_or_none, waits_for_pause
from penstock.server.session.client_info import ClientInfo
from penstock.server.session.states import (
    BLOCKED,
    CLOSING,
    MONITORED,
    PAUSED_ALL,
    PAUSED_WRITES,
    REPLY_OFF,
    REPLY_SKIP,
    REPLY_SKIP_NEXT,
    SUBSCRIBED,
)
from penstock.server.session.transaction import Transaction, Watching, leave
from penstock.server.session.waiter import SessionWaiter
from penstock.server.stats.tally import Tally
from penstock.wire.encoder import ReplyBuffer
from penstock.wire.parser import Parser

_STOPPED = BLOCKED | CLOSING
_SILENT = REPLY_OFF | REPLY_SKIP
_PAUSED = PAUSED_ALL | PAUSED_WRITES
_NEXT = REPLY_SKIP | REPLY_SKIP_NEXT
_BLOCKED = BLOCKED
_MONITORED = MONITORED
_RUN_MAX = 16  # so many commands are timed together at most
_SLICE_US = 250  # of running commands before the others have their turn; benchmarks/fairness.py
_SPILL_BYTES = 1 << 20  # replies are put aside in such pieces: one buffer need not grow


class Session:
    """One client.

    In: feed, run. Out: say, push, answer, refuse, reject, flush, take_pieces, deliver. Waiting: block,
    unblock, postpone, resume. Leaving: unsubscribe. End: close, kill, end.
    """

    __slots__ = (
        "_timed_us",
        "_untimed",
        "active_ms",
        "behind",
        "channels",
        "counted_bytes",
        "due",
        "frame",
        "held",
        "held_bytes",
        "id",
        "info",
        "keyspace",
        "last",
        "late",
        "link",
        "mark",
        "output",
        "over_soft_since_ms",
        "parser",
        "patterns",
        "postponed",
        "server",
        "slow",
        "state",
        "transaction",
        "waiter",
        "waiting_bytes",
        "watching",
    )

    def __init__(self, server: Server) -> None:
        self.server = server
        self.id = server.next_id
        server.next_id += 1
        server.engine.context.instant.advance()  # long ago, if nobody else said anything
        self.info = ClientInfo(server.steady_ms())
        self.active_ms = self.info.created_ms
        self.last: Tally | None = None
        self._untimed = 0  # commands since the clock was read, all of them counted by `last`
        self._timed_us = 0
        self.link: Link | None = None
        self.keyspace = server.engine.context.databases[0]
        self.frame = Frame()
        self.parser = Parser(server.wire_limits)
        self.output = ReplyBuffer()
        self.behind = False  # commands are here that have to wait for the next turn
        self.counted_bytes = 0  # what server/net/client_memory.py counts for it
        self.due = False
        self.mark = -1
        self.late: list[Push] = []  # what goes out behind the reply to the running command
        self.slow = False  # the socket takes no more for now
        self.held: list[bytes] = []
        self.held_bytes = 0
        self.waiting_bytes = 0  # taken out, and not sent yet
        self.over_soft_since_ms = 0
        self.state = 0
        self.waiter: SessionWaiter | None = None
        self.postponed: Frame | None = None
        self.transaction: Transaction | None = None
        self.watching: Watching | None = None
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}

    def open(self, link: Link) -> None:
        """The client is there."""
        self.link = link
        self.server.sessions[self.id] = self
        if self.server.password is not None:
            self.server.strangers.add(self)

    # --- In ----------------------------------------------------------------------------------------

    def feed(self, buffer: bytearray, end: int) -> None:
        """Run the commands in a buffer, up to the first that is incomplete or has to wait.

        After a slice of time the others have their turn first: `behind` tells that commands may be left.
        """
        instant = self.server.engine.context.instant
        instant.advance()
        self._timed_us = started_us = instant.steady_us()
        self.active_ms = self._timed_us // 1000
        self.behind = False
        try:
            if self.postponed is not None and not self.state & _STOPPED:
                frame = self.postponed
                self.postponed = None
                self.run(frame)
            while not self.state & _STOPPED and self.parser.next(self.frame, buffer, end):
                self.run(self.frame)
                if self.output.size > _SPILL_BYTES:
                    self._spill()
                # Read whenever commands are counted, so a slice ends after the next sixteen at the latest.
                if self._timed_us - started_us >= _SLICE_US:
                    self.behind = self.parser.start < end and not self.state & _STOPPED
                    break
        except ProtocolError as error:
            self.refuse(error)
            self.state |= CLOSING
        # The words are still those of the last command unless a part of the next one has come.
        is_last = self.parser.start == end and self.parser.left == 0 and self.frame.count > 0
        self._settle(self.frame if is_last else None)
        if self.output.size or self.held or self.state & CLOSING:
            self.server.turn.add(self)
        else:
            self.server.turn.note_effects()  # of commands that were not answered

    def run(self, frame: Frame) -> None:
        """Run one command and write its reply."""
        server = self.server
        context = server.engine.context
        tally = self.last
        if tally is None or not tally.is_asked_by(frame):
            self._settle(None)
            tally = self._find_or_none(frame)
            self.last = tally
        context.keyspace = self.keyspace
        if tally is None:
            ran = False
        elif self.state or server.state or tally.command.in_session:
            self._settle(None)
            ran = self._run_checked(tally, frame)
        elif tally.command.takes(frame.count):
            self._run_data(tally, frame)
            ran = True
        else:
            self.reject(wrong_arity(tally.command.name), tally)
            ran = False
        if tally is not None and ran:
            self._untimed += 1
            if not tally.is_fast or self._untimed == _RUN_MAX:
                self._settle(frame)

    def _find_or_none(self, frame: Frame) -> Tally | None:
        """The counter of a command; of one that does not exist, the client is told."""
        try:
            return self.server.tallies.find(frame)
        except CommandError as error:
            self._reject_unknown(frame, error)
            return None

    def _settle(self, frame: Frame | None) -> None:
        """Read the clock and count the commands since the last time; `frame` is the last of them.

        Commands that are never slow are timed in runs: reading the clock for each was a tenth of a
        pipelined XADD. What is still slow is noted with its words, or its name if they are gone.
        """
        if self._untimed:
            tally = self.last
            instant = self.server.engine.context.instant
            instant.advance()
            now_us = instant.steady_us()
            us = now_us - self._timed_us
            self._timed_us = now_us
            if tally is not None:
                tally.count(self._untimed, us)
                if us >= self.server.slow_us and not tally.command.flags & Flags.SKIP_SLOWLOG:
                    self.server.slow_log.note(self, tally.command, frame, us)
            self._untimed = 0

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
        self.mark = self.output.size
        ran = self._try(tally, frame)
        if not self.state & _BLOCKED:
            self._end_reply()
        self.mark = -1
        if self.late:
            for push in self.late:
                self.output.put(push)
            self.late = []
        return ran

    def _reject_unknown(self, frame: Frame, error: CommandError) -> None:
        """Refuse what is no command, unless the client wants no replies; cut off who speaks HTTP."""
        self.mark = self.output.size
        self.reject(error, None)
        self._end_reply()
        self.mark = -1
        if frame.piece(0).upper() in HTTP_WORDS:
            self.cut_off("it speaks HTTP")

    def _end_reply(self) -> None:
        """Take a reply back that the client does not want."""
        if self.state & _SILENT:
            self.output.cut_back(self.mark)
        if self.state & _NEXT:
            follows = REPLY_SKIP if self.state & REPLY_SKIP_NEXT else 0
            self.state = self.state & ~_NEXT | follows

    def _try(self, tally: Tally, frame: Frame) -> bool:
        server = self.server
        command = tally.command
        if self.state or server.state or not tally.is_plain or not command.takes(frame.count):
            refusal = refusal_or_none(self, command, frame)
            if refusal is not None:
                self.reject(refusal, tally)
                return False
        if server.state & _PAUSED and waits_for_pause(self, command):
            self.postpone(frame)
            return False
        transaction = self.transaction
        if transaction is not None and not command.flags & Flags.NOT_QUEUED:
            transaction.queue(tally, frame)
            self.output.put_raw(b"+QUEUED\r\n")
            return False
        if command.in_session:
            self._run_in_session(tally, frame)
        else:
            self._run_data(tally, frame)
        if server.state & _MONITORED:
            server.monitors.show(self, command, frame)
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
            if tally.command.name == "EXEC":
                leave(self)
                error = exec_refused(error)
        if self.transaction is not None:
            self.transaction.broken = True
        self.refuse(error)

    def answer(self, reply: Any) -> None:
        """Write the reply to a command that had to wait; an error is a reply too."""
        self.mark = self.output.size
        if isinstance(reply, PenstockError):
            self.refuse(reply)
        else:
            self.output.put(reply)
        self._end_reply()
        self.mark = -1

    def say(self, reply: Any) -> None:
        """Write something that is no answer to a running command."""
        if not self.state & (CLOSING | REPLY_OFF):
            self.output.put(reply)
            self.server.turn.add(self)

    def push(self, push: Push) -> None:
        """Write a push at once, to a client that wants no replies as well."""
        if self.mark >= 0 and self.state & _SILENT:
            self.output.cut_back(self.mark)
            self.output.put(push)
            self.mark = self.output.size
        else:
            self.output.put(push)
        self.server.turn.add(self)

    def message(self, channel: bytes, text: bytes) -> None:
        """A message on a channel that the client has subscribed to."""
        self._hear(Push([b"message", channel, text]))

    def pattern_message(self, pattern: bytes, channel: bytes, text: bytes) -> None:
        """A message on a channel that one of the client's patterns matches."""
        self._hear(Push([b"pmessage", pattern, channel, text]))

    def _hear(self, push: Push) -> None:
        if self.state & CLOSING:
            return
        running = self.mark >= 0
        if running and self.server.engine.context.compat.pushes_follow_reply:
            self.late.append(push)
            return
        self.push(push)
        if self.output.size > _SPILL_BYTES and not running:
            self._spill()

    def _spill(self) -> None:
        """Put what is written aside; a client that asks for more than it may have is cut off."""
        self.held.append(self.output.take())
        self.held_bytes += len(self.held[-1])
        self.check_output_limit()

    def flush(self) -> None:
        """Send what has gathered."""
        self.deliver(self.take_pieces())

    def take_pieces(self) -> list[bytes]:
        """All that has gathered, for somebody who will deliver it."""
        pieces = self.held
        if self.output.size:
            self.held_bytes += self.output.size
            pieces.append(self.output.take())
        self.waiting_bytes += self.held_bytes
        self.held = []
        self.held_bytes = 0
        return pieces

    def deliver(self, pieces: list[bytes]) -> None:
        """Send what was taken. Where more waits behind it, a client that is to go stays for that."""
        link = self.link
        size = 0
        for piece in pieces:
            size += len(piece)
        # Before they are sent: a limit that is checked meanwhile must not count them twice.
        self.waiting_bytes -= size
        if link is None:
            return
        self.server.bytes_out += size
        for piece in pieces:
            link.write(piece)
        if self.slow:
            self.check_output_limit()
        if self.state & CLOSING and not self.waiting_bytes and not self.due:
            link.close()

    def check_output_limit(self) -> None:
        """Cut the client off if it has left too much unread."""
        if self.link is None or self.state & CLOSING:
            return
        unread = self.waiting_bytes + self.held_bytes + self.output.size + self.link.unsent_bytes()
        if self.server.output_limits.is_exceeded(self, unread):
            self.cut_off(f"it has left {unread} bytes unread")
        elif self.slow or self.held_bytes:
            self.server.client_memory.note(self)

    def cut_off(self, reason: str) -> None:
        """Hang up at once. The socket calls end() later, when nobody is going through his listeners."""
        LOG.warning("client %s is cut off: %s", self.info.address, reason)
        link = self.link
        self.state |= CLOSING
        self.link = None
        self.held, self.held_bytes = [], 0
        self.output.clear()
        if link is not None:
            link.abort()

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

    def postpone(self, frame: Frame) -> None:
        """Keep a command until the pause is over."""
        self.postponed = frame.copy()
        self.state |= BLOCKED
        self.server.pause.sessions[self] = None

    def resume(self) -> None:
        """The pause is over: let the command that was kept run, and go on."""
        if self.postponed is not None:
            self.state &= ~BLOCKED
            self.server.turn.free(self)

    # --- Leaving -----------------------------------------------------------------------------------

    def unsubscribe(self) -> None:
        """Listen to no channel and no pattern, without a word."""
        channels = self.server.engine.context.channels
        for name in self.channels:
            channels.drop(channels.by_name, name, self)
        for name in self.patterns:
            channels.drop(channels.by_pattern, name, self)
        self.channels.clear()
        self.patterns.clear()
        self.state &= ~SUBSCRIBED

    # --- End ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection once the replies are out; what waits is given up."""
        self.state |= CLOSING
        self._stop_waiting()
        self.server.turn.add(self)

    def kill(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        link = self.link
        self.end()
        if link is not None:
            link.abort()

    def end(self) -> None:
        """The client is gone: leave no trace."""
        self.state |= CLOSING
        self.link = None
        self._stop_waiting()
        if self.watching is not None:
            self.watching.forget()
            self.watching = None
        self.unsubscribe()
        self.server.monitors.leave(self)
        self.server.strangers.forget(self)
        self.server.client_memory.forget(self)
        self.server.sessions.pop(self.id, None)

    def _stop_waiting(self) -> None:
        self.postponed = None
        self.server.pause.sessions.pop(self, None)
        if self.waiter is not None:
            self.waiter.give_up()
            self.waiter = None
