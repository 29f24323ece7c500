"""A connection: the socket's side of a session.

All connections receive into one buffer, the inbox: as a rule what comes in is a number of whole commands,
which are run before the next socket is read. Only the rest that makes no command yet is kept, in a buffer of
the connection's own, and the next bytes are received right behind it.

    get_buffer      -> the inbox, or the room behind the kept rest
    buffer_updated  -> the session runs what is complete; the rest is kept

While buffer_updated runs, the event loop holds on to the buffer: it may be written but not resized, so a
larger one is a new one.

Whatever a command raises that is no refusal ends here: it is logged, the client is told and its connection
closed. If the command may have changed data, `server.on_broken` is told as well, for half a change must not
be served on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.core import memory
from penstock.engine.table import Flags
from penstock.errors import internal_error
from penstock.server.log import LOG
from penstock.server.server import Server
from penstock.server.session import Session

INBOX_BYTES = 256 * 1024
KEEP_BYTES_MIN = 4096

_KEEP_BYTES_MIN = KEEP_BYTES_MIN


def _nowhere(data: bytes) -> None:
    """Where bytes go before there is a socket."""


class Inbox:
    """The buffer that all connections of a loop receive into."""

    __slots__ = ("buffer", "view")

    def __init__(self) -> None:
        self.buffer = bytearray(INBOX_BYTES)
        self.view = memoryview(self.buffer)


class Connection:
    """A protocol for asyncio, of the kind that brings its own buffer."""

    __slots__ = ("_inbox", "_kept", "_kept_size", "session", "transport", "write")

    def __init__(self, server: Server, inbox: Inbox) -> None:
        self._inbox = inbox
        self._kept: bytearray | None = None
        self._kept_size = 0
        self.session = Session(server)
        self.transport: asyncio.Transport | None = None
        self.write: Callable[[bytes], None] = _nowhere

    def connection_made(self, transport: Any) -> None:
        """The socket is there."""
        self.transport = transport
        self.write = transport.write
        self._note_addresses(transport)
        door = self.session.server.door
        if door is None or door.admits(transport):
            self.session.open(self)

    def _note_addresses(self, transport: Any) -> None:
        info = self.session.info
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        info.on_unix_socket = not isinstance(local, tuple)
        # A client of a Unix socket has no name of its own: Redis shows the server's for both.
        info.local_address = address_text(local)
        info.address = info.local_address if info.on_unix_socket else address_text(peer)
        socket = transport.get_extra_info("socket")
        if socket is not None:
            info.fd = socket.fileno()

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        self.session.end()
        self._kept = None

    def eof_received(self) -> bool:
        """The client sends no more: it gets the replies that are due, and that is all."""
        self.session.close()
        return True  # or the loop would close before the end of the turn

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        self.session.slow = True
        self.session.check_output_limit()

    def resume_writing(self) -> None:
        """The socket takes bytes again."""
        self.session.slow = False
        self.session.check_output_limit()

    def close(self) -> None:
        """Close once everything is sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    def unsent_bytes(self) -> int:
        """How much the client has not taken yet."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def kept_bytes(self) -> tuple[int, int]:
        """How much input is kept that makes no command yet, and the room that it takes."""
        if self._kept is None:
            return 0, 0
        return self._kept_size, len(self._kept)

    def get_buffer(self, hint: int) -> memoryview:
        """Where the next bytes are to go."""
        if self._kept is None:
            return self._inbox.view
        if len(self._kept) - self._kept_size < _KEEP_BYTES_MIN:
            self._move(bytearray(2 * len(self._kept)), self._kept, 0)
        return memoryview(self._kept)[self._kept_size :]

    def buffer_updated(self, count: int) -> None:
        """So many bytes have come."""
        session = self.session
        session.server.bytes_in += count
        if self._kept is None:
            self._feed(self._inbox.buffer, count)
            if session.parser.start != count:
                self._keep(self._inbox.buffer, count)
            else:
                session.parser.rest_moved(count)
        else:
            self._kept_size += count
            self.go_on()

    def go_on(self) -> None:
        """Run what was kept, as far as it is complete."""
        kept = self._kept
        if kept is not None:
            self._feed(kept, self._kept_size)
            self._keep(kept, self._kept_size)
        else:
            self._feed(self._inbox.buffer, 0)  # a command may have been postponed

    def _feed(self, buffer: bytearray, end: int) -> None:
        """Let the session run what is complete; the one place where an unexpected error is caught."""
        try:
            self.session.feed(buffer, end)
        except Exception:  # noqa: BLE001  _fail logs it
            self._fail()

    def _fail(self) -> None:
        """A command has failed in a way that nobody foresaw."""
        session = self.session
        last = session.last
        name = "(no command)" if last is None else last.command.name
        LOG.exception(
            "%s of client %s failed, its connection is closed", name, session.info.address
        )
        session.refuse(internal_error())
        session.close()
        # An error between two commands counts for the one before: rather stop once too often.
        writes = last is not None and (last.command.flags & Flags.WRITE or name == "EXEC")
        if not writes:
            session.server.engine.forget_broken()  # a command that only looks has changed nothing
        elif session.server.on_broken is not None:
            session.server.on_broken(name)

    def _keep(self, buffer: bytearray, end: int) -> None:
        """Keep what the session has not run yet."""
        start = self.session.parser.start
        size = end - start
        if size == 0:
            self.session.parser.rest_moved(start)
            self._kept = None
            self._kept_size = 0
            return
        self._kept_size = size
        if size > self.session.server.query_bytes_max:
            self._refuse_more()
        elif self._kept is None:
            self._move(bytearray(max(2 * size, 2 * _KEEP_BYTES_MIN)), buffer, start)
        elif start:
            self._move(buffer, buffer, start)

    def _refuse_more(self) -> None:
        """Cut a client off that sends more than it may before a command is complete."""
        LOG.warning(
            "client %s is cut off: it has sent %d bytes that wait to be run",
            self.session.info.address,
            self._kept_size,
        )
        self._kept = None
        self._kept_size = 0
        self.session.kill()

    def _move(self, target: bytearray, source: bytearray, start: int) -> None:
        """Bring the kept bytes, which lie at `start`, to the beginning of another buffer, or of the same."""
        if target is source:
            memory.move(target, 0, start, self._kept_size)
        else:
            memory.copy(target, 0, source, start, self._kept_size)
        self._kept = target
        if self.session.parser.left:
            self.session.frame.move_to(target, start)
        self.session.parser.rest_moved(start)


def address_text(address: Any) -> str:
    """A socket's address as Redis shows it: 127.0.0.1:6379, [::1]:6379, the path of a Unix socket:0."""
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(address, bytes):
        address = address.decode("utf-8", "surrogateescape")
    return f"{address}:0" if address else "?:0"
