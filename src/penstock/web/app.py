"""The dashboard put together and run."""

from __future__ import annotations

import asyncio

from fastapi import Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from nicegui import app, ui

from penstock.web.board import Board, Settings
from penstock.web.http.auth import Gate, proxy_options
from penstock.web.http.plain_page import nowhere_page
from penstock.web.pages import export, group, groups, pipeline, stream, streams, structure

# Kept for a browser that lost its connection for a moment; each may be as large as a table.
MESSAGES_KEPT = 20
END_SECONDS_MAX = 2


def run(settings: Settings) -> None:
    """Serve until a signal ends it. Raises: BadUrl."""
    board = Board(settings)
    tasks: set[asyncio.Task[None]] = set()

    async def begin() -> None:
        tasks.add(asyncio.create_task(board.catalogue.run()))

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await board.server.close()

    app.on_startup(begin)
    app.on_shutdown(end)
    app.add_middleware(Gate, password=settings.password)
    app.add_exception_handler(404, _nowhere)
    # A bar for every request in the background tells nothing, and screen readers that something goes on.
    app.config.quasar_config["loadingBar"] = {"skipHijack": True}
    for page in (streams, stream, groups, group, structure, pipeline, export):
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
        **proxy_options(settings.proxies),
    )


async def _nowhere(request: Request, error: Exception) -> Response:
    """For people a page; for scripts that miss one of NiceGUI's files a word."""
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(nowhere_page(request.url.path), 404)
    return PlainTextResponse("not found", 404)
