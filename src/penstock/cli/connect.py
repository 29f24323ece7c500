"""Connections from the command line to a server.

Replies are returned as RESP2 carries them (see client/replies.py). By default no command is retried: an XADD
whose reply was lost may have been applied, and a retry would add a second entry. Only `tail` retries, because
its commands can be repeated safely.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Annotated, TypeVar

import redis
import typer
from redis.exceptions import MasterDownError

from penstock.cli.terminal.outcome import Failure, LoginRefused, Unreachable, say
from penstock.client.address import BadUrl, ServerUrl, parse_url
from penstock.client.bounded_replies import understood
from penstock.client.replies import Reply, number, parts

URL_DEFAULT = "redis://127.0.0.1:6379/0"
Word = str | bytes | int
T = TypeVar("T")

CONNECT_SECONDS_MAX = 10
REPLY_SECONDS_MAX = 30
LOGIN_HINT = "The password is a part of the URL: redis://:PASSWORD@host:port"
BLOCK_MS = 5000  # well below REPLY_SECONDS_MAX, the limit for a server that sends nothing
RETRY_PAUSE_SECONDS = 0.2

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="PENSTOCK_URL",
        metavar="URL",
        help="Server: redis://[user:password@]host:port/db, rediss://..., unix://path, or by Sentinels redis+sentinel://host:port,host:port/name.",
    ),
]
MetricsBind = Annotated[
    str,
    typer.Option(
        "--metrics-bind",
        metavar="ADDRESS",
        help="Address of the port of --metrics. It has no password.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]

# Errors of a server that is not the primary any more, or not for long. redis-py has no classes for most.
_FAILING = re.compile(r"(?:NOREPLICAS|MISCONF|UNBLOCKED)\b")
_GONE = (redis.ConnectionError, redis.TimeoutError, redis.InvalidResponse, OSError, UnicodeError)


class ServerConnection:
    """A connection to a server, opened on first use. Use it in a `with` statement."""

    def __init__(self, url: str, retry_seconds: float = 0) -> None:
        server = parse_option(url)
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
        """Send a command and return its reply. Raises: Failure, with `about`, the stream, in its text."""
        try:
            reply: Reply = self._with_retries(lambda: self._client.execute_command(*words))  # type: ignore[no-untyped-call]
        except redis.RedisError as error:
            raise refusal(error, about) from None
        return reply

    def ask_all(self, commands: Sequence[Sequence[Word]]) -> list[Reply | redis.RedisError]:
        """Send many commands at once. A command that fails has its error in place of its reply."""
        try:
            return self._with_retries(lambda: self._send_all(commands))
        except redis.RedisError as error:
            raise refusal(error) from None

    def _send_all(self, commands: Sequence[Sequence[Word]]) -> list[Reply | redis.RedisError]:
        with self._client.pipeline(transaction=False) as pipeline:
            for words in commands:
                pipeline.execute_command(*words)  # type: ignore[no-untyped-call]
            replies: list[Reply | redis.RedisError] = pipeline.execute(raise_on_error=False)
            return replies

    def now_ms(self) -> int:
        """The server's clock, or the local one if the user may not run TIME."""
        try:
            reply = self.ask("TIME")
        except (Unreachable, LoginRefused):
            raise
        except Failure:
            return time.time_ns() // 1_000_000
        seconds, microseconds = parts(reply, 2)
        return number(seconds) * 1000 + number(microseconds) // 1000

    def _with_retries(self, act: Callable[[], T]) -> T:
        deadline = None
        while True:
            try:
                result = understood(act)
            except redis.AuthenticationError as error:
                # The server answered, although redis-py derives this from ConnectionError.
                why = str(error).rstrip(".")
                raise LoginRefused(f"{self.name} refuses the login: {why}. {LOGIN_HINT}") from None
            except (*_GONE, redis.ResponseError) as error:
                is_gone = isinstance(error, _GONE)
                if not is_gone and not _is_of_former_primary(error):
                    raise
                now = time.monotonic()
                why = _why(error)
                if deadline is None:
                    deadline = now + self._retry_seconds
                    if self._retry_seconds:
                        say(f"lost {self.name}: {why}; retrying for {self._retry_seconds:g} s")
                if now >= deadline:
                    if not is_gone:
                        raise
                    raise Unreachable(f"cannot reach {self.name}: {why}") from None
                self._client.connection_pool.disconnect()  # the Sentinels are asked again
                time.sleep(min(RETRY_PAUSE_SECONDS, deadline - now))
            else:
                if deadline is not None:
                    say(f"reconnected to {self.name}")
                return result


def refusal(error: redis.RedisError, about: bytes | None = None) -> Failure:
    """A failure with the server's error text, and the stream it is about."""
    text = str(error)
    if about is None:
        return Failure(text)
    return Failure(f"{about.decode('utf-8', 'backslashreplace')}: {text}")


def parse_option(url: str) -> ServerUrl:
    """The server of --url. Raises: typer.BadParameter."""
    try:
        return parse_url(url)
    except BadUrl as error:
        raise typer.BadParameter(
            f"expected {error}", param_hint="'--url' (or PENSTOCK_URL)"
        ) from None


def _is_of_former_primary(error: Exception) -> bool:
    """Tell whether another server may soon answer in place of this one."""
    if isinstance(error, redis.ReadOnlyError | MasterDownError):
        return True
    return _FAILING.match(str(error)) is not None


def _why(error: Exception) -> str:
    """The error text of the operating system, if there is one; redis-py's texts are longer."""
    cause = error.__cause__ or error.__context__
    for candidate in (error, cause):
        if isinstance(candidate, TimeoutError | socket.timeout | redis.TimeoutError):
            return "timed out"
        if isinstance(candidate, OSError) and candidate.strerror:
            return candidate.strerror
    return str(error)
