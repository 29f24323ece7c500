"""Connections to the servers of a source or sink.

A stream is a key on a server. With several independent servers the same key may be a stream on each of them.
Offsets then name a stream by the server's label and the key; the label holds no secret. With one url, or a
cluster, the key alone is the name.

If Sentinels name the server, a command that can be repeated safely is sent again after a failover.

In a cluster an ordinary client asks the node that has the key, so replies, pipelines and raw sockets are the
same as with one server. After a redirection the slots are looked up again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import AskError, MasterDownError, MovedError, TryAgainError

from penstock.client.bounded_replies import understood
from penstock.client.bulk import is_native
from penstock.client.replies import array, blob, parts
from penstock.spark.place import Place

T = TypeVar("T")
Word = str | bytes | int

MOVES_MAX = 20
MOVE_PAUSE_SECONDS = 0.1
SCAN_COUNT = 1000
SEARCH_PAGES_MAX = 100
SEARCH_REST = 10

FAILOVER_PAUSE_SECONDS = 0.25

# Commands that change nothing, or change it once however often they are sent (PENSTOCK APPENDBATCH).
_REPEATABLE = frozenset(
    ("EXISTS", "GET", "LLEN", "PENSTOCK", "PING", "TYPE", "XINFO", "XLEN", "XPENDING", "XRANGE")
)
_LOST = (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, MasterDownError)
# Errors of a primary that is about to be replaced, alone or out of a pipeline: it has lost its replicas or
# its disk. redis-py has no classes for them.
_FAILING = re.compile(r"(?:^|caused error: )(?:NOREPLICAS|MISCONF|MASTERDOWN)\b")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait, in seconds: for a connection, a reply, and Sentinels to find another primary."""

    connect: float
    reply: float
    failover: float


PATIENT = Limits(10, 120, 60)  # a page of large entries from a busy server takes time
QUICK = Limits(1, 2, 0)  # where an old answer is as good as a late one


@dataclass(frozen=True, slots=True, order=True)
class StreamName:
    """A key, and the index of its server in the urls."""

    key: bytes
    server: int = 0

    @property
    def text(self) -> str:
        """The key as text, as in options and messages."""
        return self.key.decode("utf-8", "surrogateescape")


def text_of(place: Place, stream: StreamName) -> str:
    """The name of a stream in offsets."""
    if place.cluster or len(place.servers) == 1:
        return stream.text
    return f"{place.servers[stream.server].label} {stream.text}"


def stream_of(place: Place, text: str) -> StreamName:
    """The stream with a name in offsets. Raises: LookupError if its server is not among the urls."""
    if place.cluster or len(place.servers) == 1:
        return StreamName(text.encode("utf-8", "surrogateescape"))
    for number, server in enumerate(place.servers):
        if text.startswith(server.label + " "):
            key = text[len(server.label) + 1 :]
            return StreamName(key.encode("utf-8", "surrogateescape"), number)
    raise LookupError(f"the checkpoint has {text!r}, and the option url no longer names its server")


class Servers:
    """Connections to all servers of a place, opened on first use. Close it, or use `with`."""

    def __init__(self, place: Place, limits: Limits = PATIENT) -> None:
        self._place = place
        self._limits = limits
        self._clients: dict[str, redis.Redis] = {}
        self._cluster: RedisCluster | None = None
        self._native: dict[int, bool] = {}
        self._matches: dict[str, tuple[list[StreamName], float]] = {}

    def __enter__(self) -> Servers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. A later call opens them again."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def ask(self, stream: StreamName, *words: Word) -> Any:
        """Send one command about a stream, and return its raw reply."""
        return self._following(
            lambda: self.client(stream).execute_command(*words),  # type: ignore[no-untyped-call]
            words[0] in _REPEATABLE,
        )

    def ask_all(self, stream: StreamName, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """Send commands about a stream in one pipeline. All are sent again if the stream has moved."""

        def act() -> list[Any]:
            with self.client(stream).pipeline(transaction=False) as pipeline:
                for words in commands:
                    pipeline.execute_command(*words)  # type: ignore[no-untyped-call]
                return pipeline.execute()

        return self._following(act, all(words[0] in _REPEATABLE for words in commands))

    def is_native(self, stream: StreamName) -> bool:
        """Whether the stream's server has the PENSTOCK commands."""
        if self._place.cluster:
            return False
        if stream.server not in self._native:
            self._native[stream.server] = self._following(
                lambda: is_native(self.client(stream)), repeatable=True
            )
        return self._native[stream.server]

    def type_of(self, stream: StreamName) -> str:
        """The type of the key, as TYPE returns it."""
        kind = self.ask(stream, "TYPE", stream.key)
        return kind.decode("utf-8", "backslashreplace") if isinstance(kind, bytes) else str(kind)

    def matching(self, pattern: str) -> list[StreamName]:
        """The streams whose keys match a glob, in order.

        Called several times a second. After a search through very many keys the result is kept for ten times
        as long as the search took, so that the server is not busy with SCAN all the time.
        """
        known, until = self._matches.get(pattern, ([], 0.0))
        began = time.monotonic()
        if began >= until:
            known, pages = self._search(pattern)
            now = time.monotonic()
            rest = SEARCH_REST * (now - began) if pages > SEARCH_PAGES_MAX else 0.0
            self._matches[pattern] = known, now + rest
        return known

    def _search(self, pattern: str) -> tuple[list[StreamName], int]:
        """The streams that match, and the number of SCAN calls."""
        found: set[StreamName] = set()
        pages = 0
        if self._place.cluster:
            scans = [(0, partial(_scan, node, pattern)) for node in self._nodes()]
        else:
            scans = [
                (number, partial(self._scan_server, number, pattern))
                for number in range(len(self._place.servers))
            ]
        for number, scan in scans:
            keys, count = self._following(scan, repeatable=True)
            found.update(StreamName(key, number) for key in keys)
            pages += count
        return sorted(found), pages

    def _scan_server(self, number: int, pattern: str) -> tuple[list[bytes], int]:
        return _scan(self.client(StreamName(b"", number)), pattern)

    def client(self, stream: StreamName) -> redis.Redis:
        """The client for the server that has the stream."""
        if self._place.cluster:
            node = self._topology().get_node_from_key(stream.key)  # type: ignore[no-untyped-call]
            if node is None:
                raise redis.ConnectionError("no node of the cluster serves the stream's slot")
            return self._node_client(str(node.host), int(node.port))
        server = self._place.servers[stream.server]
        if server.label not in self._clients:
            self._clients[server.label] = server.connect(self._limits.connect, self._limits.reply)
        return self._clients[server.label]

    def _nodes(self) -> list[redis.Redis]:
        nodes = self._topology().get_primaries()  # type: ignore[no-untyped-call]
        return [self._node_client(str(node.host), int(node.port)) for node in nodes]

    def _node_client(self, host: str, port: int) -> redis.Redis:
        label = f"{host}:{port}"
        if label not in self._clients:
            first = self._place.servers[0]
            moved = replace(first, settings=first.settings | {"host": host, "port": port})
            self._clients[label] = moved.connect(self._limits.connect, self._limits.reply)
        return self._clients[label]

    def _topology(self) -> RedisCluster:
        if self._cluster is None:
            first = self._place.servers[0]
            settings = first.client_settings(self._limits.connect, self._limits.reply)
            for own in ("host", "port", "db"):
                settings.pop(own, None)
            if first.is_tls:
                settings["ssl"] = True
            nodes = [
                ClusterNode(*server.address)  # type: ignore[no-untyped-call]
                for server in self._place.servers
            ]
            self._cluster = RedisCluster(startup_nodes=nodes, **settings)
        return self._cluster

    def _following(self, act: Callable[[], T], repeatable: bool) -> T:
        """Follow the moves of a cluster, or a failover if Sentinels name the servers."""
        if not repeatable or not any(server.sentinels for server in self._place.servers):
            return self._following_moves(act)
        deadline = time.monotonic() + self._limits.failover
        while True:
            try:
                return understood(act)
            except redis.AuthenticationError:
                raise
            except redis.RedisError as error:
                if not _is_lost(error) or time.monotonic() > deadline:
                    raise
                self.close()
                time.sleep(FAILOVER_PAUSE_SECONDS)

    def _following_moves(self, act: Callable[[], T]) -> T:
        for _ in range(MOVES_MAX):
            try:
                return understood(act)
            except (MovedError, AskError, TryAgainError):
                if self._cluster is not None:
                    self._cluster.close()
                    self._cluster = None
                time.sleep(MOVE_PAUSE_SECONDS)  # the slot is being moved
        return understood(act)


def _is_lost(error: redis.RedisError) -> bool:
    """Tell whether another server may answer the command in a moment."""
    return isinstance(error, _LOST) or _FAILING.search(str(error)) is not None


def _scan(client: redis.Redis, pattern: str) -> tuple[list[bytes], int]:
    keys: list[bytes] = []
    cursor = b"0"
    pages = 0
    while True:
        pages += 1
        words = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT, "TYPE", "stream")
        reply = client.execute_command(*words)  # type: ignore[no-untyped-call]
        onwards, found = parts(reply, 2)
        cursor = blob(onwards)
        keys.extend(blob(name) for name in array(found))
        if cursor == b"0":
            return keys, pages
