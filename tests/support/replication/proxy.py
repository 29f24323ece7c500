"""A TCP proxy in front of a server. It can be cut, which isolates the server from everybody who uses it."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from types import TracebackType

PIECE = 64 * 1024
LOOK_SECONDS = 0.05


class Proxy:
    """Passes bytes on in both directions: cut, heal.

    target      the port of the server; it may change
    bytes_max   each of the next connections is closed after this many bytes of the server; one number each
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0
        self.bytes_max: list[int] = []
        self._left: dict[socket.socket, int] = {}
        self._is_cut = False
        self._is_closed = False
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_closed = True
        self._thread.join()

    def cut(self) -> None:
        """Pass nothing on: open connections fall silent, new ones are not answered."""
        self._is_cut = True

    def heal(self) -> None:
        """Drop the silent connections, and pass new ones on."""
        for one in list(self._pairs):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._is_cut = False

    def _run(self) -> None:
        while not self._is_closed:
            if self._is_cut:
                select.select([], [], [], LOOK_SECONDS)
                continue
            readable, _, _ = select.select([self._listener, *self._pairs], [], [], LOOK_SECONDS)
            for one in readable:
                if one is self._listener:
                    self._accept()
                elif one in self._pairs:
                    self._pass_on(one)
        self._listener.close()
        for one in list(self._pairs):
            one.close()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            client.close()
            return
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pairs[client], self._pairs[server] = server, client
        if self.bytes_max:
            self._left[server] = self.bytes_max.pop(0)

    def _pass_on(self, one: socket.socket) -> None:
        other = self._pairs[one]
        try:
            data = one.recv(min(PIECE, self._left.get(one, PIECE)))
            if data:
                other.sendall(data)
                if one not in self._left:
                    return
                self._left[one] -= len(data)
                if self._left[one] > 0:
                    return
        except OSError:
            pass
        for end in (one, other):
            del self._pairs[end]
            self._left.pop(end, None)
            end.close()
