"""Starts the dashboard."""

from __future__ import annotations

import asyncio

from fastapi import Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from nicegui import app, ui
from nicegui.server import Server

from penstock.web.background import Work, keep_running
from penstock.web.board import Board, Settings
from penstock.web.elements.unconnected import delete_unconnected, open_pages
from penstock.web.http.auth import Gate, proxy_options
from penstock.web.http.certificates import Certificates
from penstock.web.http.plain_page import not_found_page
from penstock.web.metrics import DashboardMetrics, RequestCounter
from penstock.web.pages import (
    export,
    group,
    groups,
    overview,
    retention,
    servers,
    stream,
    streams,
    structure,
)
from penstock.web.pages.jobs import pipeline, workers
from penstock.web.pages.server import clients, configuration, replication, slow_log

# Messages kept for a browser that reconnects; each may be as large as a table.
MESSAGES_KEPT = 20
END_SECONDS_MAX = 2
PAGES = (
    *(overview, streams, stream, groups, group, retention, structure, pipeline, workers, export),
    *(replication, clients, slow_log, configuration),
)


def run(settings: Settings) -> None:
    """Serve the dashboard until a signal stops it. Raises: BadUrl, ArchiveError."""
    boards = [Board(settings, server) for server in settings.servers]
    tasks: set[asyncio.Task[None]] = set()
    metrics = DashboardMetrics(boards, open_pages)

    def start(what: str, work: Work) -> None:
        tasks.add(asyncio.create_task(keep_running(what, work)))

    async def begin() -> None:
        for board in boards:
            for what, work in board.background().items():
                start(f"{board.name}: {what}", work)
        start("the deletion of unconnected pages", delete_unconnected)
        if settings.metrics_port is not None:
            await metrics.listen(settings.metrics_port, settings.metrics_bind)
        context = Server.instance.config.ssl
        if settings.certificate is not None and context is not None:
            files = Certificates(context, settings.certificate, settings.key)
            start("the renewal of the certificate", files.run)

    async def end() -> None:
        for task in tasks:
            task.cancel()
        metrics.close()
        for board in boards:
            await board.server.close()
            board.recorder.close()

    app.on_startup(begin)
    app.on_shutdown(end)
    app.add_middleware(Gate, password=settings.password, viewer_password=settings.viewer_password)
    app.add_middleware(RequestCounter, requests=metrics.requests)
    app.add_exception_handler(404, _not_found)
    # No loading bar for background requests: it is of no use, and screen readers would announce it.
    app.config.quasar_config["loadingBar"] = {"skipHijack": True}
    if settings.has_several:
        servers.register(boards)
    for board in boards:
        for page in PAGES:
            page.register(board)
    ui.run(
        host=settings.bind,
        port=settings.port,
        title="penstock",
        dark=None,
        language="en-US",
        show=False,
        reload=False,
        show_welcome_message=False,
        message_history_length=MESSAGES_KEPT,
        binding_refresh_interval=None,
        timeout_graceful_shutdown=END_SECONDS_MAX,
        access_log=False,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        **proxy_options(settings.proxies),
    )


async def _not_found(request: Request, error: Exception) -> Response:
    """A page for people, plain text for scripts."""
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(not_found_page(request.url.path), 404)
    return PlainTextResponse("not found", 404)
