"""The HTTP listener in a thread of its own, for programs without an event loop."""

from __future__ import annotations

import asyncio
import logging
import threading

from penstock.errors import ConfigError
from penstock.metrics.listener import BIND_DEFAULT, HttpListener, Routes, listening_socket

PORT_MAX = 65535

_LOG = logging.getLogger("penstock.metrics")


class ThreadedListener:
    """Answers on a port until it is closed. Port 0 takes a free one."""

    def __init__(self, routes: Routes, port: int, bind: str = BIND_DEFAULT) -> None:
        """Raises: ConfigError if the port cannot be used."""
        if not 0 <= port <= PORT_MAX:
            raise ConfigError(f"cannot serve metrics on port {port}: it must be 0 to {PORT_MAX}")
        try:
            self._socket = listening_socket(port, bind)
        except OSError as error:
            raise ConfigError(f"cannot serve metrics on port {port}: {error}") from None
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._routes = routes
        self._thread = threading.Thread(target=self._run, name="penstock-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; open requests are abandoned."""
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        listener = HttpListener(self._routes, _log_error)
        await listener.start([self._socket])
        await self._done.wait()
        listener.close()


def _log_error(path: str, error: Exception) -> None:
    _LOG.error("cannot answer %s: %s", path, error, exc_info=error)
