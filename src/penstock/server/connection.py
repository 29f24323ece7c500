"""A connection: the socket's side of a session.

All connections receive into one buffer, the inbox: as a rule what comes in is a number of whole commands,
which are run before the next socket is read. Only the rest that makes no command yet is kept, in a buffer of
the connection's own, and the next bytes are received right behind it.

    get_buffer      -> the inbox, or the room behind the kept rest
    buffer_updated  -> the session runs what is complete; the rest is kept

While buffer_updated runs, the event loop holds on to the buffer: it may be written but not resized, so a
larger one is a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.core import memory
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
        self.session.open(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        self.session.end()
        self._kept = None

    def eof_received(self) -> bool:
        """The client sends no more; nor do we."""
        return False

    def pause_writing(self) -> None:
        """The socket takes no more for now."""

    def resume_writing(self) -> None:
        """The socket takes bytes again."""

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
        if self._kept is None:
            session.feed(self._inbox.buffer, count)
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
            self.session.feed(kept, self._kept_size)
            self._keep(kept, self._kept_size)

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
        if self._kept is None:
            self._move(bytearray(max(2 * size, 2 * _KEEP_BYTES_MIN)), buffer, start)
        elif start:
            self._move(buffer, buffer, start)

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
