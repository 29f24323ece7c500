"""A TCP proxy in front of a server. It can be cut, in one or both directions.

with Proxy("peers", "near") as proxy:
    proxy.target = server.port
    proxy.cut("peers", BOTH)      clients of the port "near" still reach the server
    proxy.heal()

Each way in has a port of its own, so a test decides who is cut off by the port that it gives to them.
"""

from __future__ import annotations

import re
import select
import socket
import threading
from dataclasses import dataclass
from types import TracebackType

PIECE = 64 * 1024
LOOK_SECONDS = 0.05
TO_SERVER, FROM_SERVER = 1, 2
BOTH = TO_SERVER | FROM_SERVER
# A replica says in its handshake which port it has.
_ANNOUNCED = re.compile(rb"listening-port\r\n\$\d+\r\n(\d+)\r\n")
_HANDSHAKE_BYTES_MAX = 1024


@dataclass(eq=False)
class _Way:
    """One port of the proxy. `cut`: the directions that are silent, but for the link of one replica."""

    listener: socket.socket
    cut: int = 0
    but_replica: int = 0


@dataclass(eq=False)
class _Pair:
    """A client's connection and the one to the server."""

    way: _Way
    client: socket.socket
    server: socket.socket
    said: bytes = b""  # the beginning of what the client has sent
    replica: int = 0  # the port that it has announced
    bytes_left: int | None = None
    is_silent: bool = False
    is_dropped: bool = False

    def other(self, one: socket.socket) -> socket.socket:
        return self.server if one is self.client else self.client

    def passes(self, one: socket.socket) -> bool:
        """Tell whether bytes that come from one end are passed on."""
        if self.is_dropped or self.is_silent:
            return False
        direction = TO_SERVER if one is self.client else FROM_SERVER
        return not self.way.cut & direction or self.is_spared()

    def is_spared(self) -> bool:
        """Tell whether this is the link that works though its way is cut."""
        return self.replica != 0 and self.replica == self.way.but_replica

    def note(self, data: bytes) -> None:
        """The client has sent this."""
        if not self.replica and len(self.said) < _HANDSHAKE_BYTES_MAX:
            self.said += data
            if found := _ANNOUNCED.search(self.said):
                self.replica = int(found[1])


class Proxy:
    """Passes bytes on in both directions: cut, heal.

    target      the port of the server; it may change
    port        the port of the first way in; `ports` has all of them by name
    bytes_max   each of the next connections is closed after this many bytes of the server; one number each
    stalls      such a connection is not closed but falls silent; `has_stalled` tells when
    """

    def __init__(self, *names: str) -> None:
        self._ways = {name: _Way(socket.create_server(("127.0.0.1", 0))) for name in names or ("",)}
        self.ports = {name: _port(way.listener) for name, way in self._ways.items()}
        self.port = next(iter(self.ports.values()))
        self.target = 0
        self.bytes_max: list[int] = []
        self.stalls = False
        self._is_closed = False
        self._pairs: dict[socket.socket, _Pair] = {}
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

    def cut(self, name: str = "", directions: int = BOTH, but_replica: int = 0) -> None:
        """Pass nothing on: open connections fall silent, new ones are not answered.

        name          the way that is cut; without a name all of them
        directions    TO_SERVER, FROM_SERVER or BOTH
        but_replica   the link of the replica that announces this port still works
        """
        for way in [self._ways[name]] if name else self._ways.values():
            way.but_replica = but_replica
            way.cut = directions

    def heal(self) -> None:
        """Drop the silent connections, and pass new ones on."""
        for pair in list(self._pairs.values()):
            pair.is_dropped = pair.is_silent or (pair.way.cut != 0 and not pair.is_spared())
        for way in self._ways.values():
            way.cut = 0

    def has_stalled(self) -> bool:
        """Tell whether a connection has passed its last byte."""
        return any(pair.is_silent for pair in list(self._pairs.values()))

    def _run(self) -> None:
        while not self._is_closed:
            for pair in {pair for pair in self._pairs.values() if pair.is_dropped}:
                self._close(pair)
            listeners = {way.listener: way for way in self._ways.values() if not way.cut}
            ends = [one for one, pair in self._pairs.items() if pair.passes(one)]
            readable, _, _ = select.select([*listeners, *ends], [], [], LOOK_SECONDS)
            for one in readable:
                if one in listeners:
                    self._accept(listeners[one])
                elif one in self._pairs and self._pairs[one].passes(one):
                    self._pass_on(one)
        for way in self._ways.values():
            way.listener.close()
        for one in list(self._pairs):
            one.close()

    def _accept(self, way: _Way) -> None:
        client, _ = way.listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            client.close()
            return
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = _Pair(way, client, server)
        self._pairs[client] = self._pairs[server] = pair
        if self.bytes_max:
            pair.bytes_left = self.bytes_max.pop(0)
            pair.is_silent = self.stalls and pair.bytes_left == 0

    def _pass_on(self, one: socket.socket) -> None:
        pair = self._pairs[one]
        limit = None if one is pair.client else pair.bytes_left
        try:
            data = one.recv(PIECE if limit is None else min(PIECE, limit))
            if data:
                if one is pair.client:
                    pair.note(data)
                pair.other(one).sendall(data)
                if limit is None:
                    return
                pair.bytes_left = limit - len(data)
                pair.is_silent = self.stalls and pair.bytes_left == 0
                if pair.bytes_left > 0 or pair.is_silent:
                    return
        except OSError:
            pass
        self._close(pair)

    def _close(self, pair: _Pair) -> None:
        for end in (pair.client, pair.server):
            del self._pairs[end]
            end.close()


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
