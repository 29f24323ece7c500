"""One connection: the socket's side of a session.

The session's receiver owns the incoming bytes (receiver.py); its runner runs the commands
(session/command_runner.py).

A connection takes turns with the others. In one turn of the loop it receives at most one slice (SLICE_BYTES)
and runs commands for at most one slice of time. A connection with more to do stops reading and continues in
the next turn (backlog.py). Until then its client's bytes wait in the socket.

An unexpected error in a command is caught here: it is logged, the client gets an error, and its connection is
closed. If the command may have changed data, the server stops (`lifecycle.report_broken`), because it must
not serve a partial change.

Invariants
  NC1  while commands wait for the next turn (`runner.has_more`) the socket is not read, so at most one slice
       of bytes is kept behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.engine.table import Flags
from penstock.errors import internal_error
from penstock.server.log import LOG
from penstock.server.server import Server
from penstock.server.session.admission import TLS_HANDSHAKE
from penstock.server.session.command_runner import CommandRunner
from penstock.server.session.session import Session


def _nowhere(data: bytes) -> None:
    """Discard bytes: there is no socket yet."""


class Connection:
    """An asyncio protocol that provides its own receive buffer."""

    __slots__ = ("_can_wait", "_waits", "runner", "session", "transport", "write")

    def __init__(self, server: Server) -> None:
        self._waits = False  # for its next turn
        self._can_wait = False  # the transport can stop reading
        self.session = Session(server)
        self.runner = CommandRunner(self.session)
        self.transport: asyncio.Transport | None = None
        self.write: Callable[[bytes], None] = _nowhere

    # --- Opening and closing -----------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """The socket is connected."""
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
        # The client's end of a Unix socket has no address: like Redis, show the server's for both.
        info.local_address = address_text(local)
        info.address = info.local_address if info.on_unix_socket else address_text(peer)
        socket = transport.get_extra_info("socket")
        if socket is not None:
            info.fd = socket.fileno()
        info.is_tls = transport.get_extra_info("sslcontext") is not None
        if not info.is_tls:
            self.session.fd = info.fd

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        self.session.end()
        self.session.receiver.drop()
        # A transport of TLS refers to this object, and the garbage collector is off.
        self.transport = None
        self.write = _nowhere

    def eof_received(self) -> bool:
        """The client sends no more: close the connection when its replies are sent."""
        self.session.close()
        # False lets the loop close the socket before the end of the turn. TLS has no half-closed connections.
        return not self.session.info.is_tls

    def close(self) -> None:
        """Close when everything is sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    # --- Sending -----------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The socket's send buffer is full."""
        self.session.slow = True
        self.session.check_output_limit()

    def resume_writing(self) -> None:
        """The socket's send buffer has room again."""
        self.session.slow = False
        self.session.check_output_limit()

    def unsent_bytes(self) -> int:
        """How many bytes the socket has not sent yet."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    # --- Receiving ---------------------------------------------------------------------------------

    def get_buffer(self, hint: int) -> memoryview:
        """The place for the next bytes."""
        return self.session.receiver.room()

    def buffer_updated(self, count: int) -> None:
        """Bytes were received into get_buffer()."""
        self.session.server.bytes_in += count
        is_full = self.session.receiver.received(count)
        self._run()
        if self.runner.has_more or is_full:
            self._wait_for_turn()

    def resume(self) -> None:
        """Run the kept commands, for one time slice at most."""
        self._run()
        if self.runner.has_more:
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Neither read nor run anything until the other connections have had their turn."""
        if self._can_wait and not self._waits and self.session.link is not None:
            self._waits = True
            self.transport.pause_reading()  # type: ignore[union-attr]
            self.session.server.backlog.add(self)

    def take_turn(self) -> None:
        """Continue: the other connections have had their turn."""
        self._waits = False
        if self.session.link is None:
            return
        if self.runner.has_more:
            self.resume()
        if not self._waits:
            self.transport.resume_reading()  # type: ignore[union-attr]

    # --- Running -----------------------------------------------------------------------------------

    def _run(self) -> None:
        """Run the received commands, and keep the rest."""
        try:
            self.runner.run_received()
            while self.runner.has_more and not self._can_wait:
                self.runner.run_received()
        except Exception:  # noqa: BLE001  _fail logs it
            self._fail()
        session = self.session
        if session.receiver.rest_bytes() > session.server.query_bytes_max:
            self._refuse_input()
        elif session.receiver.rest_bytes() and session.last is None and self._speaks_tls():
            session.cut_off("it speaks TLS, which belongs to tls-port")
        elif session.receiver.keep_rest():
            session.server.client_memory.note(session)

    def _speaks_tls(self) -> bool:
        """Tell whether the client's first bytes are those of a TLS handshake."""
        return not self.session.info.is_tls and self.session.receiver.starts_with(TLS_HANDSHAKE)

    def _fail(self) -> None:
        """A command raised an unexpected error."""
        session = self.session
        last = session.last
        name = "(no command)" if last is None else last.command.name
        LOG.exception(
            "%s of client %s failed; its connection is closed", name, session.info.address
        )
        session.reply(internal_error())
        session.close()
        # An error between two commands is attributed to the first: stopping once too often is safe.
        writes = last is not None and (last.command.flags & Flags.WRITE or name == "EXEC")
        if not writes:
            session.server.engine.forget_broken()  # a command that only reads has changed nothing
        elif session.server.lifecycle is not None:
            session.server.lifecycle.report_broken(name)

    def _refuse_input(self) -> None:
        """Disconnect a client whose unprocessed input exceeds client-query-buffer-limit."""
        receiver = self.session.receiver
        LOG.warning(
            "client %s is disconnected: it has sent %d bytes that no command has used",
            self.session.info.address,
            receiver.rest_bytes(),
        )
        receiver.drop()
        self.session.kill()


def address_text(address: Any) -> str:
    """A socket's address as Redis shows it: 127.0.0.1:6379, [::1]:6379, the path of a Unix socket:0."""
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(address, bytes):
        address = address.decode("utf-8", "surrogateescape")
    return f"{address}:0" if address else "?:0"
