"""Runs the commands of one client.

`run_received` runs every complete command that the receiver has, until one blocks, the client is closed, or
the time slice is over. A command takes the fast path if it works on data, neither the client nor the server
is in a special state (`state` is 0 on both), and the client's user may do everything. Every other command is
checked first: may this client run it now?

Commands with a quick form (docs/quick-forms.md) run in a loop of their own, `_run_quickly`. It stops at the
first command that needs its full form. For users with limited rights it checks each command
(acl/permissions.py).
"""

from __future__ import annotations

from penstock.core import spans
from penstock.core.frame import Frame
from penstock.engine.table import Flags
from penstock.engine.waiters import Blocked
from penstock.errors import CommandError, CoreError, ProtocolError, exec_refused, wrong_arity
from penstock.reply import NoReply
from penstock.server.session.admission import (
    HTTP_WORDS,
    TLS_HANDSHAKE,
    refusal_or_none,
    waits_for_pause,
)
from penstock.server.session.reply_buffer import SPILL_BYTES
from penstock.server.session.session import Session
from penstock.server.session.states import BLOCKED, CLOSING, MONITORED, PAUSED_ALL, PAUSED_WRITES
from penstock.server.session.transaction import leave
from penstock.server.stats.tally import Tally

_STOPPED = BLOCKED | CLOSING
_PAUSED = PAUSED_ALL | PAUSED_WRITES
_BLOCKED = BLOCKED
_MONITORED = MONITORED
_RUN_MAX = 16  # commands that are timed together at most
_RUN_BYTES_MAX = 2048  # ... and how many bytes of replies
_SPILL_BYTES = SPILL_BYTES
_SLICE_US = 250  # time for one client's commands before other clients have their turn; benchmarks/fairness.py


class CommandRunner:
    """Runs the commands of one session. `has_more`: the time slice ended before the commands did."""

    __slots__ = (
        "_engine",
        "_output",
        "_replies",
        "_server",
        "_session",
        "_timed_bytes",
        "_timed_us",
        "_uncounted",
        "_untimed",
        "has_more",
    )

    def __init__(self, session: Session) -> None:
        self._session = session
        self._server = session.server
        self._engine = session.server.engine
        self._output = session.output
        self._replies = session.replies
        self._uncounted: list[Tally] = []  # of the commands since the clock was read
        self._untimed = 0  # how many these are
        self._timed_us = 0
        self._timed_bytes = 0  # the size of the output then
        self.has_more = False

    def run_received(self) -> None:
        """Run the received commands, for one time slice at most."""
        session = self._session
        receiver = session.receiver
        frame = receiver.frame
        instant = self._engine.context.instant
        instant.advance()
        self._timed_us = started_us = instant.steady_us()
        session.active_ms = self._timed_us // 1000
        self._timed_bytes = self._output.size
        self.has_more = False
        try:
            if session.postponed is not None and not session.state & _STOPPED:
                postponed = session.postponed
                session.postponed = None
                self._find(postponed)
                if session.last is not None:
                    self._run_full(session.last, postponed)
            self._engine.context.keyspace = session.keyspace
            while self._run_quickly(started_us):
                if session.last is not None:
                    self._run_full(session.last, frame)
                    self._engine.context.keyspace = session.keyspace  # SELECT may have changed it
                if self._output.size > _SPILL_BYTES:
                    session.spill()
                if self._has_used_slice(started_us):
                    break
        except ProtocolError as error:
            session.reply(error)
            session.state |= CLOSING
        finally:
            self._settle(receiver.last_frame_or_none())
        if not session.replies.is_empty() or session.state & CLOSING:
            self._server.turn.add(session)
        else:
            self._server.turn.note_effects()  # of commands without a reply

    def _run_quickly(self, started_us: int) -> bool:
        """Run commands by their quick forms, for one time slice at most.

        True if the command in the frame needs its full form (`session.last`; None: it is unknown).
        """
        session = self._session
        server = self._server
        receiver = session.receiver
        frame = receiver.frame
        output = self._output
        try:
            while not session.state & _STOPPED and receiver.next():
                tally = session.last
                if tally is None or not spans.is_piece(frame.buffer, frame.spans, 0, tally.word):
                    self._find(frame)
                    tally = session.last
                if (
                    tally is None
                    or tally.quick is None
                    or session.state | server.state & tally.full_in
                    or not tally.command.takes(frame.count)
                    or (
                        session.permissions is not None
                        and not session.permissions.allows(tally.command, frame)
                    )
                    or not self._engine.execute_quick(tally.quick, frame, output)
                ):
                    return True
                tally.quick_calls += 1
                self._note(tally)
                if self._untimed >= _RUN_MAX or output.size - self._timed_bytes > _RUN_BYTES_MAX:
                    self._settle(frame)
                    if output.size > _SPILL_BYTES:
                        session.spill()
                    if self._has_used_slice(started_us):
                        return False
        except (CommandError, CoreError):
            return True  # a quick form has refused the command, and nothing has changed
        return False

    def _has_used_slice(self, started_us: int) -> bool:
        """Tell whether the time slice is over, as of the last settling: at most 16 commands late."""
        if self._timed_us - started_us < _SLICE_US:
            return False
        session = self._session
        self.has_more = session.receiver.rest_bytes() > 0 and not session.state & _STOPPED
        return True

    def _run_full(self, tally: Tally, frame: Frame) -> None:
        session = self._session
        is_special = (
            session.state
            or self._server.state
            or tally.command.in_session
            or session.permissions is not None
        )
        if is_special or not tally.is_fast:
            self._settle(None)
        if is_special:
            ran = self._run_checked(tally, frame)
        elif tally.command.takes(frame.count):
            self._run_data(tally, frame)
            ran = True
        else:
            self._reject(wrong_arity(tally.command.name), tally)
            ran = False
        if ran:
            self._note(tally)
            if not tally.is_fast or self._untimed >= _RUN_MAX:
                self._settle(frame)

    def _note(self, tally: Tally) -> None:
        """Note a command that has run; it is counted when the clock is read."""
        if tally.uncounted == 0:
            self._uncounted.append(tally)
        tally.uncounted += 1
        self._untimed += 1

    def _find(self, frame: Frame) -> None:
        """Find the counter of a command, for `session.last`; an unknown command gets an error."""
        session = self._session
        try:
            session.last = self._server.tallies.find(frame)
        except CommandError as error:
            self._reject_unknown(frame, error)
            self._settle(None)
            session.last = None

    def _settle(self, frame: Frame | None) -> None:
        """Read the clock, and count the commands since it was read last; `frame` is the last of them.

        Fast commands are timed in runs: reading the clock for each one took a tenth of a pipelined XADD. The
        commands of a run share its time equally. A slow run is logged with the arguments of its last command,
        or with its name if the arguments are gone.
        """
        if self._untimed:
            instant = self._engine.context.instant
            instant.advance()
            now_us = instant.steady_us()
            us = now_us - self._timed_us
            for tally in self._uncounted:
                if self._server.awaits_replicas:
                    self._session.keyed |= tally.keyed
                tally.count(tally.uncounted, us * tally.uncounted // self._untimed)
                tally.uncounted = 0
            self._uncounted.clear()
            self._untimed = 0
            self._timed_us = now_us
            self._timed_bytes = self._output.size
            last = self._session.last
            if (
                us >= self._server.slow_us
                and last is not None
                and not last.command.flags & Flags.SKIP_SLOWLOG
            ):
                self._server.slow_log.note(self._session, last.command, frame, us)

    def _run_data(self, tally: Tally, frame: Frame) -> None:
        try:
            reply = self._engine.execute_now(tally.command, frame)
            if type(reply) is Blocked:
                self._session.block(tally, reply)
            else:
                self._output.put(reply)
        except CommandError as error:
            tally.failed += 1
            self._session.reply(error)

    def _run_in_session(self, tally: Tally, frame: Frame) -> None:
        try:
            reply = tally.command.run(self._session, frame)
            if type(reply) is not NoReply:
                self._output.put(reply)
        except CommandError as error:
            tally.failed += 1
            self._session.reply(error)

    # --- Checked commands --------------------------------------------------------------------------

    def _run_checked(self, tally: Tally, frame: Frame) -> bool:
        """Run a command if the client may use it now; False if it did not run."""
        session = self._session
        self._replies.begin_reply()
        ran = self._try(tally, frame)
        if session.state and not session.state & _BLOCKED:
            session.finish_reply()
        self._replies.end_reply()
        return ran

    def _try(self, tally: Tally, frame: Frame) -> bool:
        session = self._session
        server = self._server
        command = tally.command
        if (
            session.state
            or server.state
            or session.permissions is not None
            or not tally.is_plain
            or not command.takes(frame.count)
        ):
            refusal = refusal_or_none(session, command, frame)
            if refusal is not None:
                self._reject(refusal, tally)
                return False
        if server.state & _PAUSED and waits_for_pause(session, command):
            session.postpone(frame)
            return False
        transaction = session.transaction
        if transaction is not None and not command.flags & Flags.NOT_QUEUED:
            transaction.queue(tally, frame)
            self._output.put_raw(b"+QUEUED\r\n")
            return False
        if command.in_session:
            self._run_in_session(tally, frame)
        else:
            self._run_data(tally, frame)
        if server.state & _MONITORED:
            server.monitors.show(session, command, frame)
        return True

    def _reject(self, error: CommandError, tally: Tally | None) -> None:
        """Reply with an error instead of running a command; its transaction cannot run any more either."""
        session = self._session
        if tally is not None:
            tally.rejected += 1
            if tally.command.name == "EXEC":
                leave(session)
                error = exec_refused(error)
        if session.transaction is not None:
            session.transaction.broken = True
        session.reply(error)

    def _reject_unknown(self, frame: Frame, error: CommandError) -> None:
        """Reply to an unknown command; a client that speaks HTTP is disconnected."""
        session = self._session
        session.replies.begin_reply()
        self._reject(error, None)
        session.finish_reply()
        session.replies.end_reply()
        if frame.piece(0).upper() in HTTP_WORDS:
            session.cut_off("it speaks HTTP")
        elif frame.piece(0).startswith(TLS_HANDSHAKE):
            session.cut_off("it speaks TLS, which belongs to tls-port")
