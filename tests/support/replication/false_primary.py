"""A primary that says what a test tells it to: garbage, half a snapshot, nothing.

with FalsePrimary([b"+PONG\\r\\n", ...]) as primary:
    primary.port, primary.heard()

Each reply is sent after one command of the replica; None sends nothing. After the last one the socket stays
open until the replica or the test closes it.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

from tests.support.servers.raw_redis import read_reply

HANDSHAKE: list[bytes | None] = [b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n", b"+OK\r\n"]
SOME_ID = b"0123456789" * 4


class FalsePrimary:
    """Serves one replica at a time, again and again."""

    def __init__(self, replies: list[bytes | None]) -> None:
        self._replies = replies
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._heard: list[list[bytes]] = []
        self.connections = 0
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> FalsePrimary:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        self.drop()

    def drop(self) -> None:
        """Close the open connections."""
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def heard(self) -> list[list[bytes]]:
        """All commands so far."""
        return list(self._heard)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            with suppress(OSError, EOFError, ValueError, IndexError):
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as source:
            for reply in self._replies:
                self._heard.append(read_reply(source))
                if reply is not None:
                    connection.sendall(reply)
            while True:
                self._heard.append(read_reply(source))
