"""From a URL to a server that can be asked.

Replies come as RESP2 has them (see client/replies.py). Nothing is sent twice behind our back: an XADD whose
reply was lost may have been applied, and a second one would be a second entry. Only `tail`, whose commands
may be repeated, asks for patience.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Annotated, TypeVar

import redis
import typer

from penstock.cli.terminal.outcome import Failure, Unreachable, say
from penstock.client.address import BadUrl, ServerUrl, parse_url
from penstock.client.bounded_replies import understood
from penstock.client.replies import Reply, number, parts

URL_DEFAULT = "redis://127.0.0.1:6379/0"
Word = str | bytes | int
T = TypeVar("T")

CONNECT_SECONDS_MAX = 10
REPLY_SECONDS_MAX = 30
BLOCK_MS = 5000  # well below REPLY_SECONDS_MAX: a server that is silent for longer is gone
RETRY_PAUSE_SECONDS = 0.2

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="PENSTOCK_URL",
        metavar="URL",
        help="The server: redis://[user:password@]host:port/db, rediss:// or unix://path.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]

_GONE = (redis.ConnectionError, redis.TimeoutError, redis.InvalidResponse, OSError, UnicodeError)


class ServerConnection:
    """A connection, made when it is first used. Use it in a `with`."""

    def __init__(self, url: str, retry_seconds: float = 0) -> None:
        server = _parse(url)
        self._client = server.connect(CONNECT_SECONDS_MAX, REPLY_SECONDS_MAX)
        self._retry_seconds = retry_seconds
        self.name = server.name

    def __enter__(self) -> ServerConnection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def ask(self, *words: Word, about: bytes | None = None) -> Reply:
        """The reply to one command. Raises: Failure, which names what it was `about`."""
        try:
            reply: Reply = self._patiently(lambda: self._client.execute_command(*words))  # type: ignore[no-untyped-call]
        except redis.RedisError as error:
            raise refusal(error, about) from None
        return reply

    def ask_all(self, commands: Sequence[Sequence[Word]]) -> list[Reply | redis.RedisError]:
        """The reply to each of many commands, sent at once; a refusal stands where its reply would."""
        with self._client.pipeline(transaction=False) as pipeline:
            for words in commands:
                pipeline.execute_command(*words)  # type: ignore[no-untyped-call]
            replies: list[Reply | redis.RedisError]
            try:
                replies = self._patiently(lambda: pipeline.execute(raise_on_error=False))
            except redis.RedisError as error:
                raise refusal(error) from None
            return replies

    def now_ms(self) -> int:
        """The server's clock, or ours where a user may not ask for it."""
        try:
            reply = self.ask("TIME")
        except Unreachable:
            raise
        except Failure:
            return time.time_ns() // 1_000_000
        seconds, microseconds = parts(reply, 2)
        return number(seconds) * 1000 + number(microseconds) // 1000

    def _patiently(self, act: Callable[[], T]) -> T:
        deadline = None
        while True:
            try:
                result = understood(act)
            except redis.AuthenticationError:
                raise  # an answer, whatever redis-py derives it from
            except _GONE as error:
                now = time.monotonic()
                why = _why(error)
                if deadline is None:
                    deadline = now + self._retry_seconds
                    if self._retry_seconds:
                        say(f"lost {self.name}: {why}; trying for {self._retry_seconds:g} s")
                if now >= deadline:
                    raise Unreachable(f"cannot reach {self.name}: {why}") from None
                time.sleep(min(RETRY_PAUSE_SECONDS, deadline - now))
            else:
                if deadline is not None:
                    say(f"connected to {self.name} again")
                return result


def refusal(error: redis.RedisError, about: bytes | None = None) -> Failure:
    """What the server said, and about which stream."""
    text = str(error)
    if about is None:
        return Failure(text)
    return Failure(f"{about.decode('utf-8', 'backslashreplace')}: {text}")


def _parse(url: str) -> ServerUrl:
    try:
        return parse_url(url)
    except BadUrl as error:
        raise typer.BadParameter(
            f"expected {error}", param_hint="'--url' (or PENSTOCK_URL)"
        ) from None


def _why(error: Exception) -> str:
    """The system's own words where there are any; redis-py wraps them in longer ones."""
    cause = error.__cause__ or error.__context__
    for candidate in (error, cause):
        if isinstance(candidate, TimeoutError | socket.timeout | redis.TimeoutError):
            return "no answer in time"
        if isinstance(candidate, OSError) and candidate.strerror:
            return candidate.strerror
    return str(error)
