"""Connections to one server or to a Redis Cluster. Replies are returned as RESP2 carries them.

On a cluster, each command goes to the node of its key. A command without a key (TIME) goes to any node. SCAN
walks one node after the other; its cursor is `NODE:CURSOR`, where NODE is the number of a primary in the
order of their names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, cast

import redis
import redis.asyncio
import redis.asyncio.sentinel
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

# redis-py needs these replies parsed to route commands in a cluster. All other replies stay unparsed.
_TOPOLOGY = ("CLUSTER SLOTS", "CLUSTER SHARDS", "COMMAND", "COMMAND INFO")

# Commands without a key, about one server. redis-py would send some of them to all nodes.
_ABOUT_A_NODE = ("INFO", "CLIENT", "CONFIG", "SLOWLOG")


class ServerLink(Protocol):
    """Connections to one server or cluster."""

    name: str

    async def send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        """Send commands. A command that fails has its error in place of its reply."""

    async def scan(self, cursor: bytes, words: Sequence[Word]) -> tuple[bytes, Reply]:
        """The next cursor, `0` at the end, and some names."""

    async def close(self) -> None: ...


class SingleLink:
    """One server."""

    def __init__(self, url: str) -> None:
        server = parse_url(url)
        settings = _settings(server) | {"parser_class": BoundedAsyncParser}
        self.name = server.name
        self._sentinels: list[redis.asyncio.Redis] = []
        if server.sentinels:
            pool_of_primary = _pool_of_primary(server, settings)
            self._sentinels = pool_of_primary.sentinel_manager.sentinels
            self._client = redis.asyncio.Redis(connection_pool=pool_of_primary)
            self._client.response_callbacks.clear()
            return
        if server.is_unix:
            settings["connection_class"] = UnixDomainSocketConnection
        elif server.is_tls:
            settings["connection_class"] = SSLConnection
        pool = redis.asyncio.BlockingConnectionPool(timeout=REPLY_SECONDS_MAX, **settings)
        self._client = redis.asyncio.Redis(connection_pool=pool)
        self._client.response_callbacks.clear()

    async def send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        async with self._client.pipeline(transaction=False) as pipeline:
            for words in commands:
                pipeline.execute_command(*words)
            return cast("Replies", await pipeline.execute(raise_on_error=False))

    async def scan(self, cursor: bytes, words: Sequence[Word]) -> tuple[bytes, Reply]:
        (reply,) = await self.send([("SCAN", cursor, *words)])
        if isinstance(reply, redis.RedisError):
            raise reply
        next_cursor, names = parts(reply, 2)
        return blob(next_cursor), names

    async def close(self) -> None:
        await self._client.aclose(close_connection_pool=True)
        for sentinel in self._sentinels:
            await sentinel.aclose(close_connection_pool=True)


class ClusterLink:
    """All primaries of a cluster. The URL names any node."""

    def __init__(self, url: str) -> None:
        server = parse_url(url)
        if server.is_unix or server.database:
            raise BadUrl("redis://host:port without a database: a cluster has only one database")
        settings = _settings(server)
        settings.pop("db", None)
        self.name = f"cluster at {server.name}"
        settings["ssl"] = server.is_tls
        # redis-py's cluster client fails if no connection is free, where the other one waits.
        self._turn = asyncio.Semaphore(CONNECTIONS_MAX // 2)
        self._client: Any = RedisCluster(**settings)
        for command in set(self._client.response_callbacks) - set(_TOPOLOGY):
            del self._client.response_callbacks[command]

    async def send(self, commands: Sequence[Sequence[Word]]) -> Replies:
        await self._client.initialize()
        return list(await asyncio.gather(*(self._one(words) for words in commands)))

    async def _one(self, words: Sequence[Word]) -> Reply | redis.RedisError:
        is_keyless = len(words) == 1 or words[0] in _ABOUT_A_NODE
        asked = self._client.get_default_node() if is_keyless else self._client
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
        # Ask the node directly: the cluster client's own SCAN has one cursor for all nodes.
        reply = cast("Reply", await nodes[place].execute_command("SCAN", inner, *words))
        cursor_reply, names = parts(reply, 2)
        next_cursor = blob(cursor_reply)
        if next_cursor == b"0":
            place += 1
        return b"0" if place == len(nodes) else b"%d:%s" % (place, next_cursor), names

    async def close(self) -> None:
        await self._client.aclose()


def _as_server_says(error: redis.RedisError, words: Sequence[Word]) -> redis.ResponseError:
    """redis-py's error for a command that the cluster does not list, worded like a server's error."""
    if "doesn't exist" in str(error):
        return redis.ResponseError(f"ERR unknown command '{words[0]!s}'")
    return redis.ResponseError(str(error))


def _pool_of_primary(
    server: ServerUrl, settings: dict[str, Any]
) -> redis.asyncio.sentinel.SentinelConnectionPool:
    """Connections that each ask the Sentinels for the primary when they are opened."""
    limits = {name: settings[name] for name in ("socket_timeout", "socket_connect_timeout")}
    asking = server.asking_sentinels(limits)
    manager = redis.asyncio.sentinel.Sentinel(  # type: ignore[no-untyped-call]
        list(server.sentinels), sentinel_kwargs=asking, **limits
    )
    return redis.asyncio.sentinel.SentinelConnectionPool(  # type: ignore[no-untyped-call]
        server.name, manager, ssl=server.is_tls, **settings
    )


def _settings(server: ServerUrl) -> dict[str, Any]:
    """Arguments for redis-py's asynchronous connections."""
    settings = server.client_settings(CONNECT_SECONDS_MAX, REPLY_SECONDS_MAX)
    # Overrides a limit in the URL, because a page waits for the connection.
    settings["socket_connect_timeout"] = CONNECT_SECONDS_MAX
    return settings | {"retry": Retry(NoBackoff(), 0), "max_connections": CONNECTIONS_MAX}
