"""/export: a selection of a stream as a download."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from importlib.util import find_spec

from fastapi import Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from nicegui import app

from penstock.client.replies import UnexpectedReply
from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID, parse
from penstock.errors import InvalidID
from penstock.human.moment import Ago, Edge, parse_moment
from penstock.human.where import parse_conditions
from penstock.web.board import Board
from penstock.web.http.names import parse_name
from penstock.web.model.exports import LIMIT_DEFAULT, TYPES, ExportSelection, export
from penstock.web.model.facts import one_stream
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient, ServerUnreachable

DEFUSE, KEEP = "defuse", "keep"  # formulas in CSV

_COUNT = re.compile(r"0*[1-9]\d{0,17}", re.ASCII)
_WHOLE_ID = re.compile(r"\d+-\d+", re.ASCII)


def register(board: Board) -> None:
    """Serve downloads."""

    @app.get(f"{board.path}/export")
    async def download(request: Request) -> Response:
        kind = request.query_params.get("kind", "jsonl")
        if kind not in TYPES:
            return PlainTextResponse(f"kind must be one of {', '.join(TYPES)}", 400)
        if kind == "parquet" and find_spec("pyarrow") is None:
            return PlainTextResponse("Parquet needs pyarrow: pip install pyarrow", 501)
        try:
            selection = await find_selection(board.server, request.query_params)
            pieces = export(board.server, selection, kind)
            # Create the first piece before the headers are sent, so that an error has its own status.
            first = await anext(pieces)
        except (ValueError, InvalidID, Refused, UnexpectedReply) as error:
            return PlainTextResponse(str(error), 400)
        except ServerUnreachable as error:
            return PlainTextResponse(str(error), 503)
        file = re.sub(r"[^A-Za-z0-9._-]", "_", request.query_params["name"]) or "stream"
        headers = {"Content-Disposition": f'attachment; filename="{file}.{kind}"'}
        return StreamingResponse(_all(first, pieces), media_type=TYPES[kind], headers=headers)


async def find_selection(server: ServerClient, words: Mapping[str, str]) -> ExportSelection:
    """As parse_selection, and checks that the stream exists.

    Raises: ValueError, InvalidID, Refused, ServerUnreachable.
    """
    selection = parse_selection(words, await server.now_ms())
    await one_stream(server, selection.name)
    return selection


def parse_selection(words: Mapping[str, str], now_ms: int) -> ExportSelection:
    """Read the query parameters. Raises: ValueError, InvalidID."""
    if not words.get("name"):
        raise ValueError("name the stream: name=...")
    limit = words.get("limit", str(LIMIT_DEFAULT))
    if not _COUNT.fullmatch(limit):
        raise ValueError(f"limit={limit!r} is not a number of entries: write 1 or more")
    return ExportSelection(
        name=parse_name(words["name"]),
        start=_bound(words.get("start", "start"), now_ms),
        end=_end(words.get("end", "end"), now_ms),
        ids=tuple(parse(text.encode()) for text in words.get("ids", "").split(",") if text),
        conditions=tuple(parse_conditions(words.get("where", ""))),
        limit=int(limit),
        keeps_formulas=_keeps_formulas(words.get("formulas", DEFUSE)),
    )


def _keeps_formulas(text: str) -> bool:
    if text not in (DEFUSE, KEEP):
        raise ValueError(f"formulas={text!r} must be {DEFUSE} or {KEEP}")
    return text == KEEP


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _bound(text: str, now_ms: int) -> StreamID:
    moment = parse_moment(text)
    if isinstance(moment, Edge):
        return SMALLEST if moment is Edge.START else LARGEST
    return moment.at(now_ms) if isinstance(moment, Ago) else moment


def _end(text: str, now_ms: int) -> StreamID:
    """The end of a range, as in XRANGE: a bare millisecond includes all its ids."""
    bound = _bound(text, now_ms)
    return bound if _WHOLE_ID.fullmatch(text) else StreamID(bound.ms, MAX64)
