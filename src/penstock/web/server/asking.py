"""A server that can be asked from a page, and changed only where that is allowed.

`ask` and `ask_all` take the commands of READS and no other, so a page that asks cannot write, whatever it
was made to send. `change` is the one way to write, and refuses unless the dashboard was started with
--allow-writes: read-only holds here, and not only in what the pages show.

A question may be repeated: one that finds its connection broken is sent again on a new one, once. A change
never is, for it may have been applied.

No text made here quotes the URL, which may carry a password.
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
from penstock.web.refusal import Refused, Word
from penstock.web.server.links import ClusterLink, Replies, ServerLink, SingleLink

READS = frozenset(
    ("DUMP", "EXISTS", "INFO", "MEMORY", "PENSTOCK", "PING", "SCAN", "TIME", "TYPE", "XINFO",
     "XLEN", "XPENDING", "XRANGE", "XREVRANGE")
)  # fmt: skip
READ_SUBCOMMANDS = {"MEMORY": {"USAGE"}, "PENSTOCK": {"NODES", "SPLITS"}}

_GONE = (redis.ConnectionError, redis.TimeoutError, redis.InvalidResponse, RedisClusterException, OSError,
         UnicodeError)  # fmt: skip


class Away(PenstockError):
    """Nobody answers at the other end; the text is for the user."""


class ServerClient:
    """Connections to one server, made when they are first used."""

    def __init__(self, url: str, allow_writes: bool = False, cluster: bool = False) -> None:
        self.allow_writes = allow_writes
        self._link: ServerLink = ClusterLink(url) if cluster else SingleLink(url)
        self.name = self._link.name

    async def close(self) -> None:
        await self._link.close()

    async def ask(self, *words: Word) -> Reply:
        """The reply to a question. Raises: Refused, Away."""
        reply = (await self.ask_all([words]))[0]
        if isinstance(reply, redis.RedisError):
            raise Refused(str(reply))
        return reply

    async def ask_all(self, questions: Sequence[Sequence[Word]]) -> Replies:
        """The reply to each of many questions, sent at once; a refusal stands where its reply would."""
        for words in questions:
            check_is_read(words)
        if not questions:
            return []
        try:
            return await self._send(questions)
        except _GONE as error:
            if isinstance(error, redis.TimeoutError | redis.AuthenticationError):
                raise self._away(error) from None
        try:
            # The connection was one of before; a new one shows whether the server is there.
            return await self._send(questions)
        except _GONE as error:
            raise self._away(error) from None

    async def change(self, *words: Word) -> Reply:
        """Send a command that writes, once. Raises: Refused, Away."""
        if not self.allow_writes:
            raise Refused("this dashboard only reads: start it with --allow-writes to change data")
        try:
            reply = (await self._send([words]))[0]
        except _GONE as error:
            raise Away(f"{self._away(error)}; the change may have been applied, or not") from None
        if isinstance(reply, redis.RedisError):
            raise Refused(str(reply))
        return reply

    async def scan(self, cursor: bytes, *words: Word) -> tuple[bytes, list[bytes]]:
        """Where to go on, `0` at the end, and some names. Raises: Refused, Away."""
        try:
            onwards, names = await understood_later(self._link.scan(cursor, words))
        except redis.AuthenticationError as error:
            raise Away(f"{self.name} wants another password: {_why(error)}") from None
        except redis.ResponseError as error:
            raise Refused(str(error)) from None
        except _GONE as error:
            raise self._away(error) from None
        return onwards, [blob(name) for name in array(names)]

    async def now_ms(self) -> int:
        """The server's clock, or ours where a user may not ask for it."""
        try:
            seconds, microseconds = parts(await self.ask("TIME"), 2)
        except Refused:
            return time.time_ns() // 1_000_000
        return number(seconds) * 1000 + number(microseconds) // 1000

    async def _send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        try:
            return await understood_later(self._link.send(commands))
        except redis.AuthenticationError as error:
            raise Away(f"{self.name} wants another password: {_why(error)}") from None
        except redis.ResponseError as error:  # of the connection itself: SELECT, HELLO
            raise Away(f"{self.name} refuses: {_why(error)}") from None

    def _away(self, error: BaseException) -> Away:
        return Away(f"cannot reach {self.name}: {_why(error)}")


def check_is_read(words: Sequence[Word]) -> None:
    """Raises: Refused if the words are no question."""
    name = str(words[0]).upper()
    allowed = READ_SUBCOMMANDS.get(name)
    if name not in READS or (allowed and str(words[1]).upper() not in allowed):
        raise Refused(f"{name} is not among the commands that the dashboard asks with")


def _why(error: BaseException) -> str:
    """The system's own words where there are any; redis-py and asyncio wrap them in longer ones."""
    for candidate in (error, error.__cause__, error.__context__):
        if isinstance(candidate, TimeoutError | redis.TimeoutError):
            return "no answer in time"
        if isinstance(candidate, OSError) and candidate.errno and candidate.errno > 0:
            return os.strerror(candidate.errno).lower()
    return str(error).rstrip(".") or type(error).__name__
