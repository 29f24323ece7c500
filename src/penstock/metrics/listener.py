"""A small HTTP listener for metrics and health checks.

It answers GET for a few paths and closes the connection after each answer. Everything is limited: the number
of connections, the size of a request, and its time. So a stranger on its port cannot use up the memory or the
files of the process. A socket of the loopback interface answers only requests for its names (loopback.py).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from penstock.metrics.loopback import is_loopback

CONNECTIONS_MAX = 32
HEAD_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 10.0  # to send the request
ANSWER_SECONDS_MAX = 60.0  # to collect the answer and to read it

BIND_DEFAULT = "127.0.0.1"
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request. A long text is in encoded pieces, which are sent one by one."""

    text: str | Sequence[bytes]
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN

    def pieces(self) -> Sequence[bytes]:
        """As HTTP."""
        text = self.text
        body = [text.encode(errors="replace")] if isinstance(text, str) else text
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {sum(map(len, body))}",
            "Cache-Control: no-store",
            "Connection: close",
        )
        return ["\r\n".join((*head, "", "")).encode(), *body]


def readiness(reasons: Sequence[str]) -> Answer:
    """The answer of /readyz: 200, or 503 and why, one reason on each line."""
    if not reasons:
        return Answer("ready\n")
    return Answer("".join(f"{one}\n" for one in reasons), HTTPStatus.SERVICE_UNAVAILABLE)


Routes = Mapping[str, Callable[[], Awaitable[Answer]]]
"""The paths, and the functions that answer for them."""


def refusal_or_path(head: bytes, routes: Routes, only_loopback: bool) -> Answer | str:
    """The path of a request, or the answer to one that is refused."""
    first, *lines = head.decode(errors="replace").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return Answer("not an HTTP request\n", HTTPStatus.BAD_REQUEST)
    if only_loopback and not all(map(is_loopback, _hosts(lines))):
        text = "use localhost or 127.0.0.1 as the host\n"
        return Answer(text, HTTPStatus.MISDIRECTED_REQUEST)
    if words[0] != "GET":
        return Answer("only GET is supported\n", HTTPStatus.METHOD_NOT_ALLOWED)
    path = words[1].split("?", 1)[0]
    if path not in routes:
        known = ", ".join(sorted(routes))
        return Answer(f"not found; there are {known}\n", HTTPStatus.NOT_FOUND)
    return path


def _hosts(lines: Sequence[str]) -> list[str]:
    """The Host header, which every browser sends."""
    headers = (line.partition(":") for line in lines)
    return [value.strip() for name, _, value in headers if name.strip().lower() == "host"]


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
            serve = partial(self._serve, is_loopback(_host_of(listening)))
            self._servers.append(
                await asyncio.start_server(serve, sock=listening, limit=HEAD_BYTES_MAX)
            )

    def close(self) -> None:
        """Accept no more connections."""
        for server in self._servers:
            server.close()

    async def _serve(
        self, only_loopback: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._open += 1
        try:
            # A client that is too slow or gone gets no answer.
            with suppress(OSError, TimeoutError):
                if self._open > CONNECTIONS_MAX:
                    answer = Answer("too many connections\n", HTTPStatus.SERVICE_UNAVAILABLE)
                else:
                    answer = await self._answer(reader, only_loopback)
                await asyncio.wait_for(_send(writer, answer.pieces()), ANSWER_SECONDS_MAX)
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, only_loopback: bool) -> Answer:
        """Raises: TimeoutError if the client does not send its request."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS_MAX)
        except asyncio.IncompleteReadError:
            return Answer("the request is incomplete\n", HTTPStatus.BAD_REQUEST)
        except asyncio.LimitOverrunError:
            return Answer("the request is too long\n", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        found = refusal_or_path(head, self._routes, only_loopback)
        if isinstance(found, Answer):
            return found
        try:
            return await asyncio.wait_for(self._routes[found](), ANSWER_SECONDS_MAX)
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - a scrape must not end the process
            self._on_error(found, error)
            return Answer("failed; see the log\n", HTTPStatus.INTERNAL_SERVER_ERROR)


async def _send(writer: asyncio.StreamWriter, pieces: Sequence[bytes]) -> None:
    """Send pieces, and let the event loop do other work between them."""
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)


def listening_socket(port: int, bind: str = BIND_DEFAULT) -> socket.socket:
    """A socket for `start`. Raises: OSError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    return socket.create_server((bind, port), family=family)


def _host_of(listening: socket.socket) -> str:
    """The address of a socket, as a Host header has it."""
    address = listening.getsockname()[0]
    return f"[{address}]" if listening.family == socket.AF_INET6 else address
