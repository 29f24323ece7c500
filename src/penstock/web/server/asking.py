"""Sends the commands of pages to a server. Writes are refused unless they are allowed.

`ask` and `ask_all` accept only the commands in READS, so no page can write through them. `change` is the only
way to write. It refuses unless the dashboard was started with --allow-writes and the user is an operator.
Both are enforced here, not only in the pages.

A read whose connection is broken is retried once on a new connection. A write is never retried, because it
may have been applied.

Error texts do not quote the URL, which may contain a password.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import redis
from redis.exceptions import RedisClusterException

from penstock.client.bounded_replies import understood_later
from penstock.client.replies import Reply, array, blob, number, parts
from penstock.errors import PenstockError
from penstock.web.http.sessions import Session
from penstock.web.refusal import Refused, Word
from penstock.web.server.links import ClusterLink, Replies, ServerLink, SingleLink

READS = frozenset(
    ("CLIENT", "CONFIG", "DUMP", "EXISTS", "INFO", "MEMORY", "PENSTOCK", "PING", "ROLE", "SCAN", "SLOWLOG",
     "TIME", "TYPE", "XINFO", "XLEN", "XPENDING", "XRANGE", "XREVRANGE")
)  # fmt: skip
READ_SUBCOMMANDS = {
    "CLIENT": {"LIST"},
    "CONFIG": {"GET"},
    "MEMORY": {"USAGE"},
    "PENSTOCK": {"NODES", "RETENTION", "SPLITS"},
    "SLOWLOG": {"GET"},
}

NOT_AN_OPERATOR = "viewers cannot change data: log in as an operator"
LOGGED_OUT = "you are logged out: log in again to change data"

_GONE = (redis.ConnectionError, redis.TimeoutError, redis.InvalidResponse, RedisClusterException, OSError,
         UnicodeError)  # fmt: skip


class ServerUnreachable(PenstockError):
    """The server cannot be reached, or refuses the connection. The text is for the user."""


class ServerClient:
    """Connections to a server or cluster, opened on first use."""

    def __init__(self, url: str, allow_writes: bool = False, cluster: bool = False) -> None:
        self.allow_writes = allow_writes
        self._link: ServerLink = ClusterLink(url) if cluster else SingleLink(url)
        self.name = self._link.name
        self.reads = self.writes = self.failures = (
            0  # commands sent, and sends that found no server
        )
        self._ahead_ms = 0

    async def close(self) -> None:
        await self._link.close()

    async def ask(self, *words: Word) -> Reply:
        """Send a read and return its reply. Raises: Refused, ServerUnreachable."""
        reply = (await self.ask_all([words]))[0]
        if isinstance(reply, redis.RedisError):
            raise Refused(str(reply))
        return reply

    async def ask_all(self, questions: Sequence[Sequence[Word]]) -> Replies:
        """Send many reads at once. A command that fails has its error in place of its reply."""
        for words in questions:
            check_is_read(words)
        if not questions:
            return []
        self.reads += len(questions)
        try:
            return await self._send(questions)
        except _GONE as error:
            if isinstance(error, redis.TimeoutError | redis.AuthenticationError):
                raise self._unreachable(error) from None
        try:
            # An old connection may be broken; a new one shows whether the server is running.
            return await self._send(questions)
        except _GONE as error:
            raise self._unreachable(error) from None

    async def change(self, session: Session, *words: Word) -> Reply:
        """Send a write of a user, once. Raises: Refused, ServerUnreachable."""
        if not self.allow_writes:
            raise Refused("the dashboard is read-only: start it with --allow-writes to change data")
        if not session.may_change:
            raise Refused(NOT_AN_OPERATOR if session.is_open else LOGGED_OUT)
        self.writes += 1
        try:
            reply = (await self._send([words]))[0]
        except _GONE as error:
            raise ServerUnreachable(
                f"{self._unreachable(error)}; the change may have been applied"
            ) from None
        if isinstance(reply, redis.RedisError):
            raise Refused(str(reply))
        return reply

    async def scan(self, cursor: bytes, *words: Word) -> tuple[bytes, list[bytes]]:
        """The next cursor, `0` at the end, and some names. Raises: Refused, ServerUnreachable."""
        try:
            next_cursor, names = await understood_later(self._link.scan(cursor, words))
        except redis.AuthenticationError as error:
            raise ServerUnreachable(f"{self.name} wants another password: {_why(error)}") from None
        except redis.ResponseError as error:
            raise Refused(str(error)) from None
        except _GONE as error:
            raise self._unreachable(error) from None
        return next_cursor, [blob(name) for name in array(names)]

    async def now_ms(self) -> int:
        """The server's clock, or the local one if the user may not run TIME."""
        try:
            seconds, microseconds = parts(await self.ask("TIME"), 2)
        except Refused:
            return _local_ms()
        now_ms = number(seconds) * 1000 + number(microseconds) // 1000
        self._ahead_ms = now_ms - _local_ms()
        return now_ms

    def known_now_ms(self) -> int:
        """The server's clock, as far as the last answer to `now_ms` tells. Asks nothing."""
        return _local_ms() + self._ahead_ms

    async def _send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        try:
            return await understood_later(self._link.send(commands))
        except redis.AuthenticationError as error:
            raise ServerUnreachable(f"{self.name} wants another password: {_why(error)}") from None
        except redis.ResponseError as error:  # of the connection itself: SELECT, HELLO
            raise ServerUnreachable(f"{self.name} refuses: {_why(error)}") from None

    def _unreachable(self, error: BaseException) -> ServerUnreachable:
        self.failures += 1
        return ServerUnreachable(f"cannot reach {self.name}: {_why(error)}")


def _local_ms() -> int:
    return time.time_ns() // 1_000_000


def check_is_read(words: Sequence[Word]) -> None:
    """Raises: Refused if the command is not a read."""
    name = str(words[0]).upper()
    allowed = READ_SUBCOMMANDS.get(name)
    if name not in READS or (allowed and str(words[1]).upper() not in allowed):
        raise Refused(f"{name} is not a read command of the dashboard")


def _why(error: BaseException) -> str:
    """The error text of the operating system, if there is one; redis-py's and asyncio's are longer."""
    for candidate in (error, error.__cause__, error.__context__):
        if isinstance(candidate, TimeoutError | redis.TimeoutError):
            return "timed out"
        if isinstance(candidate, OSError) and candidate.errno and candidate.errno > 0:
            return os.strerror(candidate.errno).lower()
    return str(error).rstrip(".") or type(error).__name__
