"""A connection for asyncio's own event loop, which needs a base class; uvloop needs only the methods."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.server.net.connection import Connection


class BufferedConnection(asyncio.BufferedProtocol):
    """Forwards all calls to a Connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_made(self, transport: Any) -> None:
        self._connection.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.buffer_updated(nbytes)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
