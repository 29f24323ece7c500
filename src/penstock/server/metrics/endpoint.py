"""Answers /metrics, /healthz and /readyz on the server's own event loop.

/healthz   the process answers
/readyz    its data is loaded, the log can be written, and a replica has its primary; otherwise 503 and
           the reasons, one on each line
/metrics   everything, in Prometheus's text format
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from penstock.metrics.listener import Answer, HttpListener, readiness
from penstock.metrics.text import CONTENT_TYPE, Page
from penstock.server.log import LOG
from penstock.server.metrics import figures
from penstock.server.metrics.figures import Timings
from penstock.server.metrics.pace import Pace
from penstock.server.metrics.streams import add_streams
from penstock.server.server import Server
from penstock.server.session.states import BROKEN, DISK_FAILED, LOADING


def reasons_not_ready(server: Server) -> list[str]:
    """Why clients should not use this server now."""
    found = []
    if server.state & LOADING:
        found.append("the data is being loaded")
    if server.state & BROKEN:
        found.append("a command failed halfway: the server is stopping")
    if server.state & DISK_FAILED:
        found.append(f"the log cannot be written: {server.disk_failure.reason}")
    link = server.replication.link
    if link is not None and not link.is_up:
        why = f": {link.problem}" if link.problem else ""
        found.append(f"this replica has no link to its primary {link.host}:{link.port}{why}")
    return found


async def metrics_pieces(server: Server, timings: Timings, streams_max: int) -> list[bytes]:
    """The page of a scrape, a part at a time."""
    pace = Pace(server.engine.context.instant.steady_us)
    page = Page()
    ready = int(not reasons_not_ready(server))
    page.gauge("penstock_ready", "Whether /readyz answers with 200.", ready)
    figures.add_process(page, server, timings)
    figures.add_certificate(page, server)
    figures.add_clients(page, server)
    figures.add_disk(page, server)
    figures.add_replication(page, server)
    await figures.add_commands(page, server, pace)
    if not server.state & LOADING:  # another thread changes the keys until then
        await add_streams(page, server, streams_max, pace)
    pieces = []
    for piece in page.take_pieces():
        pieces.append(piece.encode(errors="replace"))
        await pace.rest()
    return pieces


class MetricsEndpoint:
    """The listener of `metrics-port`: start, close."""

    def __init__(self, server: Server, timings: Timings) -> None:
        self._server = server
        self._timings = timings
        routes = {"/metrics": self._metrics, "/healthz": self._health, "/readyz": self._readiness}
        self._listener = HttpListener(routes, _log_error)

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Answer on these sockets."""
        await self._listener.start(sockets)

    def close(self) -> None:
        """Accept no more requests."""
        self._listener.close()

    async def _metrics(self) -> Answer:
        config = self._server.config
        assert config is not None
        limit = config.value("metrics-streams-max")
        pieces = await metrics_pieces(self._server, self._timings, limit)
        return Answer(pieces, content_type=CONTENT_TYPE)

    async def _health(self) -> Answer:
        return Answer("ok\n")

    async def _readiness(self) -> Answer:
        return readiness(reasons_not_ready(self._server))


def _log_error(path: str, error: Exception) -> None:
    LOG.error("cannot answer %s: %s", path, error, exc_info=error)
