"""Accepts the clients of tls-port.

asyncio's own listener would keep the context that it was started with. Here each connection is accepted, and
then takes the current one (tls.py). A connection that has not shaken hands is not a client yet: there may be
as many as clients are still allowed, and each has a few seconds.

A client that speaks plain text, or whose certificate is refused, is logged. Anyone can cause such lines, so
there is at most one a second; the next one counts those that were left out.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

from penstock.server.log import LOG
from penstock.server.net.tls import Tls
from penstock.server.server import Server

HANDSHAKE_SECONDS_MAX = 10.0
_RETRY_SECONDS = 0.1  # if the system has no more files
_REPORT_EVERY_MS = 1000
# How OpenSSL calls bytes that are not TLS.
_PLAIN_TEXT = {
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
}


class TlsListener:
    """One listening socket. `shaking`: connections that have not shaken hands yet."""

    def __init__(
        self, listening: socket.socket, server: Server, tls: Tls, protocol: Callable[[], Any]
    ) -> None:
        self._listening = listening
        self._server = server
        self._tls = tls
        self._protocol = protocol
        self._accepting: asyncio.Task[None] | None = None
        self._reported_ms = -_REPORT_EVERY_MS
        self._unreported = 0
        self.shaking: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Accept clients from now on."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accept no more clients, and drop those that have not shaken hands."""
        if self._accepting is not None:
            self._accepting.cancel()
        for task in list(self.shaking):
            task.cancel()
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connected, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                LOG.warning("tls-port: cannot accept a client: %s", error.strerror)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            server = self._server
            if len(server.sessions) + len(self.shaking) >= server.max_clients:
                if server.door is not None:
                    server.door.rejected += 1
                connected.close()
                continue
            task = loop.create_task(self._shake_hands(connected))
            self.shaking.add(task)
            task.add_done_callback(self.shaking.discard)

    async def _shake_hands(self, connected: socket.socket) -> None:
        peer = None
        try:
            peer = connected.getpeername()  # raises if the client has already gone
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol,
                connected,
                ssl=self._tls.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX,
            )
        except OSError as error:  # ssl.SSLError and TimeoutError are OSErrors
            if peer is None:
                connected.close()
            self._report(peer, _reason(error))
            # asyncio's frames in the traceback refer to the error and to the buffers of the connection. The
            # garbage collector is off, so that cycle would stay.
            error.__traceback__ = error.__context__ = None

    def _report(self, peer: Any, reason: str) -> None:
        now_ms = self._server.steady_ms()
        if now_ms - self._reported_ms < _REPORT_EVERY_MS:
            self._unreported += 1
            return
        more = f" ({self._unreported} more since the last such line)" if self._unreported else ""
        address = "?" if peer is None else f"{peer[0]}:{peer[1]}"
        LOG.warning("tls-port: client %s is refused: %s%s", address, reason, more)
        self._reported_ms = now_ms
        self._unreported = 0


def _reason(error: OSError) -> str:
    if not isinstance(error, ssl.SSLError):
        return f"it broke off the handshake: {error}"
    if error.reason in _PLAIN_TEXT:
        return "it does not speak TLS. Plain text belongs to `port`"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
