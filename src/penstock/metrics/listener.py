"""A small HTTP listener for metrics and health checks.

It answers GET for a few paths and closes the connection after each answer. Everything is limited: the number
of connections, the size of a request, and its time. So a stranger on its port cannot use up the memory or the
files of the process.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

CONNECTIONS_MAX = 32
HEAD_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 10.0  # to send the request
ANSWER_SECONDS_MAX = 60.0  # to collect the answer and to read it

PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    text: str
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN

    def encoded(self) -> bytes:
        """As HTTP."""
        body = self.text.encode(errors="replace")
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "Connection: close",
        )
        return "\r\n".join((*head, "", "")).encode() + body


Routes = Mapping[str, Callable[[], Awaitable[Answer]]]
"""The paths, and the functions that answer for them."""


def refusal_or_path(head: bytes, routes: Routes) -> Answer | str:
    """The path of a request, or the answer to one that is refused."""
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return Answer("not an HTTP request\n", HTTPStatus.BAD_REQUEST)
    if words[0] != b"GET":
        return Answer("only GET is supported\n", HTTPStatus.METHOD_NOT_ALLOWED)
    path = words[1].split(b"?", 1)[0].decode(errors="replace")
    if path not in routes:
        known = ", ".join(sorted(routes))
        return Answer(f"not found; there are {known}\n", HTTPStatus.NOT_FOUND)
    return path


class HttpListener:
    """Answers requests on sockets that listen already: start, close."""

    def __init__(self, routes: Routes, on_error: Callable[[str, Exception], None]) -> None:
        """`on_error` is called with the path if a route raises."""
        self._routes = routes
        self._on_error = on_error
        self._open = 0
        self._servers: list[asyncio.Server] = []

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections."""
        for listening in sockets:
            self._servers.append(
                await asyncio.start_server(self._serve, sock=listening, limit=HEAD_BYTES_MAX)
            )

    def close(self) -> None:
        """Accept no more connections."""
        for server in self._servers:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            # A client that is too slow or gone gets no answer.
            with suppress(OSError, TimeoutError):
                if self._open > CONNECTIONS_MAX:
                    answer = Answer("too many connections\n", HTTPStatus.SERVICE_UNAVAILABLE)
                else:
                    answer = await self._answer(reader)
                writer.write(answer.encoded())
                await asyncio.wait_for(writer.drain(), ANSWER_SECONDS_MAX)
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        """Raises: TimeoutError if the client does not send its request."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS_MAX)
        except asyncio.IncompleteReadError:
            return Answer("the request is incomplete\n", HTTPStatus.BAD_REQUEST)
        except asyncio.LimitOverrunError:
            return Answer("the request is too long\n", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        found = refusal_or_path(head, self._routes)
        if isinstance(found, Answer):
            return found
        try:
            return await asyncio.wait_for(self._routes[found](), ANSWER_SECONDS_MAX)
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - a scrape must not end the process
            self._on_error(found, error)
            return Answer("failed; see the log\n", HTTPStatus.INTERNAL_SERVER_ERROR)
