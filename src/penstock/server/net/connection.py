"""A connection: the socket's side of a session.

All connections receive into one buffer, the inbox: as a rule what comes in is a number of whole commands,
which are run before the next socket is read. Only the rest that makes no command yet is kept.

    get_buffer      -> the room in the inbox behind the kept rest, or that in the large buffer
    buffer_updated  -> the session runs what is complete; the rest is kept

    kept bytes      where they are
    none            nowhere: the connection has no buffer
    up to 16 KB     in a buffer of just their size; copied to the front of the inbox before the socket is read
    more            in a large buffer that grows by what has arrived, and the socket is read right behind them

So a client that has sent half a command costs what it has sent, and a large buffer goes with the command that
needed it.

A connection takes turns with the others. In one turn of the loop it receives one slice (SLICE_BYTES), and the
session runs commands for one slice of time (server/session/session.py). A connection with more to do stops
reading and goes on in the next turn (backlog.py); until then its client's bytes wait in the socket, not here.

While buffer_updated runs, the event loop holds on to the buffer: it may be written but not resized, so a
larger one is a new one.

An unexpected error in a command ends here: it is logged, the client is told and its connection closed. If the
command may have changed data, `server.on_broken` is told as well, for half a change must not be served on.

Invariants
  C1  bytes are kept only in `_kept`, from `parser.start` up to `_kept_size`; of a small rest, `start` is 0.
  C2  while commands wait for their turn (`session.behind`) the socket is not read, so no more than one slice
      gathers behind them.
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
from penstock.server.session.session import Session

SLICE_BYTES = 16 * 1024  # that a socket is read in a turn; see benchmarks/fairness.py
SMALL_BYTES = 16 * 1024  # a rest up to this size is copied rather than read behind
LARGE_SLICE_BYTES = 256 * 1024  # of a large argument: it is only copied, no command runs

_SLICE_BYTES = SLICE_BYTES
_SMALL_BYTES = SMALL_BYTES
_LARGE_SLICE_BYTES = LARGE_SLICE_BYTES


def _nowhere(data: bytes) -> None:
    """Where bytes go before there is a socket."""


class Inbox:
    """The buffer that all connections of a loop receive into: a small rest, and a slice behind it."""

    __slots__ = ("buffer", "first", "view")

    def __init__(self) -> None:
        self.buffer = bytearray(SMALL_BYTES + SLICE_BYTES)
        self.view = memoryview(self.buffer)
        self.first = self.view[:SLICE_BYTES]


class Connection:
    """A protocol for asyncio, of the kind that brings its own buffer."""

    __slots__ = (
        "_can_wait",
        "_inbox",
        "_kept",
        "_kept_size",
        "_offered",
        "_waits",
        "session",
        "transport",
        "write",
    )

    def __init__(self, server: Server, inbox: Inbox) -> None:
        self._inbox = inbox
        self._kept: bytearray | None = None
        self._kept_size = 0
        self._offered = 0  # bytes of room that the socket was given
        self._waits = False  # for its next turn
        self._can_wait = False
        self.session = Session(server)
        self.transport: asyncio.Transport | None = None
        self.write: Callable[[bytes], None] = _nowhere

    def connection_made(self, transport: Any) -> None:
        """The socket is there."""
        self.transport = transport
        self.write = transport.write
        self._can_wait = hasattr(transport, "pause_reading")
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
        return self._kept_size - self.session.parser.start, len(self._kept)

    # --- Receiving ---------------------------------------------------------------------------------

    def get_buffer(self, hint: int) -> memoryview:
        """Where the next bytes are to go."""
        kept = self._kept
        size = self._kept_size
        if kept is None:
            self._offered = _SLICE_BYTES
            return self._inbox.first
        if size <= _SMALL_BYTES:
            memory.copy(self._inbox.buffer, 0, kept, 0, size)
            self._offered = _SLICE_BYTES
            return self._inbox.view[size : size + _SLICE_BYTES]
        if size == len(kept):
            kept = self._make_room()
            size = self._kept_size
        view = memoryview(kept)[size : size + _LARGE_SLICE_BYTES]
        self._offered = len(view)
        return view

    def buffer_updated(self, count: int) -> None:
        """So many bytes have come."""
        session = self.session
        session.server.bytes_in += count
        end = self._kept_size + count
        buffer = self._kept
        if buffer is None or self._kept_size <= _SMALL_BYTES:
            buffer = self._inbox.buffer
            if session.parser.left:
                session.frame.move_to(buffer, 0)
        self._run(buffer, end)
        if session.behind or count == self._offered:
            self._wait_for_turn()

    def go_on(self) -> None:
        """Run what was kept, as far as it is complete and its turn lasts."""
        kept = self._kept
        if kept is not None:
            self._run(kept, self._kept_size)
        else:
            self._feed(self._inbox.buffer, 0)  # a command may have been postponed
        if self.session.behind:
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Do no more before the others had their turn: neither read nor run."""
        if self._can_wait and not self._waits and self.session.link is not None:
            self._waits = True
            self.transport.pause_reading()  # type: ignore[union-attr]
            self.session.server.backlog.add(self)

    def take_turn(self) -> None:
        """The others had their turn."""
        self._waits = False
        if self.session.link is None:
            return
        if self.session.behind:
            self.go_on()
        if not self._waits:
            self.transport.resume_reading()  # type: ignore[union-attr]

    # --- Running and keeping -----------------------------------------------------------------------

    def _run(self, buffer: bytearray, end: int) -> None:
        """Let the session run what is complete, and keep the rest."""
        self._feed(buffer, end)
        parser = self.session.parser
        if parser.start != end:
            self._keep(buffer, end)
        else:
            parser.rest_moved(end)
            if self._kept is not None:
                self._let_go()

    def _feed(self, buffer: bytearray, end: int) -> None:
        """Let the session run what is complete; the one place where an unexpected error is caught."""
        try:
            self.session.feed(buffer, end)
            while self.session.behind and not self._can_wait:
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
        """Keep what the session has not run yet: the bytes from `parser.start` on."""
        start = self.session.parser.start
        size = end - start
        is_kept = buffer is self._kept
        was_large = self._kept_size > _SMALL_BYTES
        if size > self.session.server.query_bytes_max:
            self._refuse_more(size)
        elif size <= _SMALL_BYTES:
            if start or not is_kept or len(buffer) != size:
                self._move(bytearray(size), buffer, start, size)
        elif not is_kept:
            self._move(bytearray(self._room_for(size)), buffer, start, size)
        elif start > size:
            # Only now: what is moved is less than what was run since it was moved last.
            fits = len(buffer) <= 4 * size
            self._move(buffer if fits else bytearray(2 * size), buffer, start, size)
        else:
            self._kept_size = end
        if was_large or self.session.parser.stranger:
            self.session.server.client_memory.note(self.session)

    def _let_go(self) -> None:
        """Nothing is left of what was kept."""
        was_large = self._kept_size > _SMALL_BYTES
        self._kept = None
        self._kept_size = 0
        if was_large or self.session.parser.stranger:
            self.session.server.client_memory.note(self.session)

    def _room_for(self, size: int) -> int:
        """How large a buffer is made for so many bytes: by what has come, not by what is announced."""
        parser = self.session.parser
        room = 2 * size
        if parser.bulk >= 0:
            needed = parser.at - parser.start + parser.bulk + 2
            if size < needed < room:
                return needed
        return room

    def _make_room(self) -> bytearray:
        """The large buffer is full: take a larger one, or the room in front of what is left."""
        assert self._kept is not None
        start = self.session.parser.start
        size = self._kept_size - start
        larger = bytearray(self._room_for(size))
        self._move(larger, self._kept, start, size)
        return larger

    def _refuse_more(self, size: int) -> None:
        """Cut a client off that sends more than it may before a command is complete."""
        LOG.warning(
            "client %s is cut off: it has sent %d bytes that wait to be run",
            self.session.info.address,
            size,
        )
        self._kept = None
        self._kept_size = 0
        self.session.kill()

    def _move(self, target: bytearray, source: bytearray, start: int, size: int) -> None:
        """Bring bytes, which lie at `start`, to the beginning of another buffer, or of the same."""
        if target is source:
            memory.move(target, 0, start, size)
        else:
            memory.copy(target, 0, source, start, size)
        self._kept = target
        self._kept_size = size
        if self.session.parser.left:
            self.session.frame.move_to(target, start)
        self.session.parser.rest_moved(start)
        if size > _SMALL_BYTES:
            self.session.server.client_memory.note(self.session)


def address_text(address: Any) -> str:
    """A socket's address as Redis shows it: 127.0.0.1:6379, [::1]:6379, the path of a Unix socket:0."""
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(address, bytes):
        address = address.decode("utf-8", "surrogateescape")
    return f"{address}:0" if address else "?:0"
