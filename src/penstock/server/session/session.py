"""One client as the server sees it, without its socket.

    state         why commands need checks (states.py): not authenticated, in a transaction, blocked, ...
    keyspace      the database that the client has selected
    receiver      its input: buffers, parser, current command (net/receiver.py)
    replies       its output (reply_buffer.py); `output` is the encoder in it
    last          the counter of the last command, for CLIENT LIST and the logs
    waiter        the blocked command, if there is one
    postponed     the command that CLIENT PAUSE holds back
    user          who the client is, and `permissions` what it may do (acl/): None for everything
    transaction   the commands queued since MULTI
    watching      the keys of WATCH

command_runner.py runs the client's commands. Whatever a client is sent is written by one of two methods:
`reply` for the reply of a command, errors included, and `push` for everything else. It is sent at the end of
the turn.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.engine.waiters import Blocked
from penstock.errors import PenstockError
from penstock.reply import Push
from penstock.server.acl.permissions import Permissions
from penstock.server.acl.user import User
from penstock.server.log import LOG
from penstock.server.net.link import Link
from penstock.server.net.receiver import Receiver
from penstock.server.server import Server
from penstock.server.session.client_info import ClientInfo
from penstock.server.session.reply_buffer import ReplyBuffer
from penstock.server.session.states import (
    BLOCKED,
    CLOSING,
    REPLICA,
    REPLY_OFF,
    REPLY_SKIP,
    REPLY_SKIP_NEXT,
    SUBSCRIBED,
)
from penstock.server.session.transaction import Transaction, Watching
from penstock.server.session.waiter import SessionWaiter
from penstock.server.stats.tally import Tally

_SILENT = REPLY_OFF | REPLY_SKIP
_NEXT = REPLY_SKIP | REPLY_SKIP_NEXT
_CLOSING = CLOSING


class Session:
    """One client.

    Writing: reply, finish_reply, push, message, pattern_message, shard_message. Sending: flush, take_replies,
    deliver. Waiting: block, unblock, unblock_encoded, postpone, resume. Ending: unsubscribe, close, cut_off,
    kill, end.
    """

    __slots__ = (
        "active_ms",
        "awaiting",
        "channels",
        "counted_bytes",
        "due",
        "fd",
        "id",
        "info",
        "keyed",
        "keyspace",
        "last",
        "link",
        "output",
        "over_soft_since_ms",
        "patterns",
        "permissions",
        "postponed",
        "receiver",
        "replies",
        "server",
        "shard_channels",
        "slow",
        "state",
        "through_loop",
        "transaction",
        "user",
        "waiter",
        "watching",
    )

    def __init__(self, server: Server) -> None:
        self.server = server
        self.id = server.next_id
        server.next_id += 1
        server.engine.context.instant.advance()  # it may be old if no client has sent anything lately
        self.info = ClientInfo(server.steady_ms())
        self.active_ms = self.info.created_ms
        self.last: Tally | None = None
        self.link: Link | None = None
        self.keyspace = server.engine.context.databases[0]
        self.receiver = Receiver(server.inbox, server.wire_limits)
        self.replies = ReplyBuffer()
        self.output = self.replies.output
        self.counted_bytes = 0  # owned by net/client_memory.py
        self.due = False  # owned by turn.py
        self.fd = -1  # the socket, if replies may be sent to it without the event loop
        self.through_loop = False  # ... but the last ones were given to the loop
        self.keyed = 0  # what its replies follow from; owned by turn.py
        self.awaiting = 0  # replies that wait for replicas; owned by replication/ack_waits.py
        self.slow = False  # the socket's send buffer is full
        self.over_soft_since_ms = 0  # owned by net/output_limits.py
        self.state = 0
        self.user: User = server.users.default
        self.permissions: Permissions | None = self.user.permissions
        self.waiter: SessionWaiter | None = None
        self.postponed: Frame | None = None
        self.transaction: Transaction | None = None
        self.watching: Watching | None = None
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        self.shard_channels: dict[bytes, None] = {}

    def open(self, link: Link) -> None:
        """The client is connected."""
        self.link = link
        self.server.sessions[self.id] = self
        if self.server.users.needs_login():
            self.server.strangers.add(self)

    # --- Writing -----------------------------------------------------------------------------------

    def reply(self, reply: Any) -> None:
        """Write the reply of the running command; errors are counted."""
        if isinstance(reply, PenstockError):
            self.output.put_error(reply)
            self.server.count_error(getattr(reply, "wire_text", "ERR"))
        else:
            self.output.put(reply)

    def finish_reply(self) -> None:
        """The running command has its reply: remove it if the client does not want it."""
        if self.state & _SILENT:
            self.replies.remove_reply()
        if self.state & _NEXT:
            follows = REPLY_SKIP if self.state & REPLY_SKIP_NEXT else 0
            self.state = self.state & ~_NEXT | follows

    def push(self, push: Any) -> None:
        """Write something that is not a reply; a client that wants no replies gets it too."""
        self.replies.push(push, bool(self.state & _SILENT))
        self.server.turn.add(self)

    def message(self, channel: bytes, text: bytes) -> None:
        """Push a message of a channel that the client subscribes to."""
        self._push_message(Push([b"message", channel, text]))

    def pattern_message(self, pattern: bytes, channel: bytes, text: bytes) -> None:
        """Push a message of a channel that matches one of the client's patterns."""
        self._push_message(Push([b"pmessage", pattern, channel, text]))

    def shard_message(self, channel: bytes, text: bytes) -> None:
        """Push a message of a shard channel that the client subscribes to."""
        self._push_message(Push([b"smessage", channel, text]))

    def _push_message(self, push: Push) -> None:
        if self.state & CLOSING:
            return
        is_running = self.replies.mark >= 0
        if is_running and self.server.engine.context.compat.pushes_follow_reply:
            self.replies.push_late(push)
            return
        self.push(push)
        if not is_running:
            self.spill()

    def spill(self) -> None:
        """Set many replies aside, and disconnect a client that leaves more unread than it may."""
        if self.replies.spill():
            self.check_output_limit()

    # --- Sending -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send all replies: directly, and through the event loop what the socket has no room for."""
        replies = self.replies
        is_plain = not (self.state & _CLOSING or self.slow)
        is_next = self.output.size > 0 and replies.aside_bytes == 0 and replies.taken_bytes == 0
        if self.fd >= 0 and is_plain and is_next:
            if self.through_loop and self.link is not None:
                self.through_loop = self.link.unsent_bytes() > 0
            if not self.through_loop:
                self.server.bytes_out += replies.send(self.fd)
                if replies.is_empty():
                    return
        self.deliver(replies.take())

    def take_replies(self) -> list[bytes]:
        """Take all replies, to deliver them later."""
        return self.replies.take()

    def deliver(self, pieces: list[bytes]) -> None:
        """Send replies that were taken. A closing client is closed after the last of them."""
        link = self.link
        # First, so that a limit that is checked while they are sent does not count them twice.
        size = self.replies.give_out(pieces)
        if link is None:
            return
        self.server.bytes_out += size
        self.through_loop = True
        for piece in pieces:
            link.write(piece)
        if self.slow:
            self.check_output_limit()
        if self.state & CLOSING and not self.replies.taken_bytes and not self.due:
            link.close()

    def check_output_limit(self) -> None:
        """Disconnect the client if it has left too much unread."""
        if self.link is None or self.state & CLOSING:
            return
        unread = self.replies.unsent_bytes() + self.link.unsent_bytes()
        if self.state & REPLICA:
            unread += self.server.replication.replicas.kept_bytes(self)
        if self.server.output_limits.is_exceeded(self, unread):
            self.cut_off(f"it has left {unread} bytes unread")
        elif self.slow or self.replies.aside_bytes:
            self.server.client_memory.note(self)

    # --- Waiting -----------------------------------------------------------------------------------

    def block(self, tally: Tally, blocked: Blocked) -> None:
        """Block a command, and with it everything that the client sends after it."""
        self.waiter = SessionWaiter(self, tally, blocked)
        self.state |= BLOCKED
        self.waiter.park(blocked.timeout_ms)

    def unblock(self, reply: Any) -> None:
        """Write the reply of the blocked command, and run the commands after it."""
        self.replies.begin_reply()
        self.reply(reply)
        self._end_wait()

    def unblock_encoded(self, reply: bytes) -> None:
        """As unblock, with a reply that is encoded already."""
        self.replies.begin_reply()
        self.output.put_raw(reply)
        self._end_wait()

    def _end_wait(self) -> None:
        self.finish_reply()
        self.replies.end_reply()
        self.state &= ~BLOCKED
        if self.server.awaits_replicas and self.waiter is not None:
            self.keyed |= self.waiter.keyed
        self.waiter = None
        self.server.turn.add(self)
        self.server.turn.free(self)

    def postpone(self, frame: Frame) -> None:
        """Hold a command back until the pause ends."""
        self.postponed = frame.copy()
        self.state |= BLOCKED
        self.server.pause.sessions[self] = None

    def resume(self) -> None:
        """The pause has ended: run the postponed command and those after it."""
        if self.postponed is not None:
            self.state &= ~BLOCKED
            self.server.turn.free(self)

    # --- Ending ------------------------------------------------------------------------------------

    def unsubscribe(self) -> None:
        """Leave all channels and patterns, without a reply."""
        channels = self.server.engine.context.channels
        for own, table in (
            (self.channels, channels.by_name),
            (self.patterns, channels.by_pattern),
            (self.shard_channels, channels.by_shard_name),
        ):
            for name in own:
                channels.drop(table, name, self)
            own.clear()
        self.state &= ~SUBSCRIBED

    def close(self) -> None:
        """Close the connection when the replies are sent; a blocked command is dropped."""
        self.state |= CLOSING
        self._stop_waiting()
        self.server.turn.add(self)

    def cut_off(self, reason: str) -> None:
        """Disconnect at once, and log why.

        end() follows when the socket reports the close: a caller may be iterating over the subscribers now.
        """
        LOG.warning("client %s is disconnected: %s", self.info.address, reason)
        link = self.link
        self.state |= CLOSING
        self.link = None
        self.fd = -1
        self.replies.clear()
        if link is not None:
            link.abort()

    def kill(self) -> None:
        """Disconnect at once, without sending the remaining replies."""
        link = self.link
        self.end()
        if link is not None:
            link.abort()

    def end(self) -> None:
        """The client is gone: remove it everywhere."""
        self.state |= CLOSING
        self.link = None
        self.fd = -1
        self._stop_waiting()
        if self.watching is not None:
            self.watching.forget()
            self.watching = None
        self.unsubscribe()
        self.server.monitors.leave(self)
        self.server.strangers.forget(self)
        self.server.client_memory.forget(self)
        self.server.sessions.pop(self.id, None)
        self.server.replication.forget(self)

    def _stop_waiting(self) -> None:
        self.postponed = None
        self.server.pause.sessions.pop(self, None)
        if self.waiter is not None:
            self.waiter.give_up()
            self.waiter = None
