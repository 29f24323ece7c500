"""Connections to one server, or to all of a Redis Cluster: commands in, replies as RESP2 has them out.

On a cluster each command goes to the node that has its key, and SCAN walks one node after the other: its
cursor is `NODE:CURSOR`, the number of a node among the primaries in the order of their names. What has no
key (TIME) goes to any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, cast

import redis
import redis.asyncio
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from penstock.client.address import BadUrl, ServerUrl, parse_url
from penstock.client.bounded_replies import BoundedAsyncParser
from penstock.client.replies import Reply, blob, parts
from penstock.web.refusal import Word

CONNECT_SECONDS_MAX = 2.0
REPLY_SECONDS_MAX = 10.0
CONNECTIONS_MAX = 32

Replies: TypeAlias = "list[Reply | redis.RedisError]"

# What redis-py needs to find its way in a cluster; every other reply stays as it came.
_TOPOLOGY = ("CLUSTER SLOTS", "CLUSTER SHARDS", "COMMAND", "COMMAND INFO")


class ServerLink(Protocol):
    """What a Server asks through."""

    name: str

    async def send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        """The replies in the order of the commands; a refusal stands where its reply would."""

    async def scan(self, cursor: bytes, words: Sequence[Word]) -> tuple[bytes, Reply]:
        """Where to go on, `0` at the end, and the names that SCAN gave."""

    async def close(self) -> None: ...


class SingleLink:
    """One server."""

    def __init__(self, url: str) -> None:
        server = parse_url(url)
        settings = _settings(server) | {"parser_class": BoundedAsyncParser}
        if server.is_unix:
            settings["connection_class"] = UnixDomainSocketConnection
        elif server.is_tls:
            settings["connection_class"] = SSLConnection
        pool = redis.asyncio.BlockingConnectionPool(timeout=REPLY_SECONDS_MAX, **settings)
        self._client = redis.asyncio.Redis(connection_pool=pool)
        self._client.response_callbacks.clear()
        self.name = server.name

    async def send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        async with self._client.pipeline(transaction=False) as pipeline:
            for words in commands:
                pipeline.execute_command(*words)
            return cast("Replies", await pipeline.execute(raise_on_error=False))

    async def scan(self, cursor: bytes, words: Sequence[Word]) -> tuple[bytes, Reply]:
        (reply,) = await self.send([("SCAN", cursor, *words)])
        if isinstance(reply, redis.RedisError):
            raise reply
        onwards, names = parts(reply, 2)
        return blob(onwards), names

    async def close(self) -> None:
        await self._client.aclose(close_connection_pool=True)


class ClusterLink:
    """All primaries of a cluster; the URL names any of its nodes."""

    def __init__(self, url: str) -> None:
        server = parse_url(url)
        if server.is_unix or server.database:
            raise BadUrl("redis://host:port without a database: a cluster has only one database")
        settings = _settings(server)
        settings.pop("db", None)
        self.name = f"cluster at {server.name}"
        settings["ssl"] = server.is_tls
        # redis-py refuses what finds no connection, where the other kind of client waits.
        self._turn = asyncio.Semaphore(CONNECTIONS_MAX // 2)
        self._client: Any = RedisCluster(**settings)
        for command in set(self._client.response_callbacks) - set(_TOPOLOGY):
            del self._client.response_callbacks[command]

    async def send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        await self._client.initialize()
        return list(await asyncio.gather(*(self._one(words) for words in commands)))

    async def _one(self, words: Sequence[Word]) -> Reply | redis.RedisError:
        asked = self._client.get_default_node() if len(words) == 1 else self._client
        async with self._turn:
            try:
                return cast("Reply", await asked.execute_command(*words))
            except redis.ResponseError as error:
                return error
            except redis.RedisError as error:
                if type(error) is not redis.RedisError:
                    raise
                return _as_server_says(error, words)

    async def scan(self, cursor: bytes, words: Sequence[Word]) -> tuple[bytes, Reply]:
        await self._client.initialize()
        nodes: list[ClusterNode] = sorted(self._client.get_primaries(), key=lambda node: node.name)
        number, _, inner = cursor.rpartition(b":")
        place = min(int(number or 0), len(nodes) - 1)
        # The node itself: what the cluster's client makes of SCAN has one cursor for all nodes.
        reply = cast("Reply", await nodes[place].execute_command("SCAN", inner, *words))
        cursor_reply, names = parts(reply, 2)
        onwards = blob(cursor_reply)
        if onwards == b"0":
            place += 1
        return b"0" if place == len(nodes) else b"%d:%s" % (place, onwards), names

    async def close(self) -> None:
        await self._client.aclose()


def _as_server_says(error: redis.RedisError, words: Sequence[Word]) -> redis.ResponseError:
    """A refusal of redis-py's own, which sends no command that the cluster does not list, as a server's."""
    if "doesn't exist" in str(error):
        return redis.ResponseError(f"ERR unknown command '{words[0]!s}'")
    return redis.ResponseError(str(error))


def _settings(server: ServerUrl) -> dict[str, Any]:
    """Arguments for redis-py's asynchronous connections."""
    settings = server.client_settings(CONNECT_SECONDS_MAX, REPLY_SECONDS_MAX)
    # Our limit wins over one in the URL: a page waits for it.
    settings["socket_connect_timeout"] = CONNECT_SECONDS_MAX
    return settings | {"retry": Retry(NoBackoff(), 0), "max_connections": CONNECTIONS_MAX}
