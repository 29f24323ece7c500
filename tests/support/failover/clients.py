"""Clients that find the primary through redis-py's Sentinel, and note every answer."""

from __future__ import annotations

import threading
import time
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from tests.support.replication.sentinels import NAME, Group

GROUP = "g"
TOKEN = b"token"
NEAR = 2  # clients that may be cut off together with a primary
CLIENTS = 5
REPLY_SECONDS_MAX = 1.0
PAUSE_SECONDS = 0.005
WAIT_MS = 300


class _Sentinel(Sentinel):
    """Gives a client the port of its way to the primary, instead of the announced one."""

    def __init__(self, group: Group, way: str) -> None:
        super().__init__(group.addresses, socket_timeout=REPLY_SECONDS_MAX)  # type: ignore[no-untyped-call]
        self._ports = {node.proxy.port: node.proxy.ports[way] for node in group.nodes}

    def discover_master(self, service_name: str) -> tuple[str, int]:
        host, port = super().discover_master(service_name)  # type: ignore[no-untyped-call]
        return host, self._ports[port]


class Client(threading.Thread):
    """Adds entries with tokens of its own, reads a group and acks what it gets: start, stop.

    acknowledged   tokens whose XADD was answered, with their ids, in order
    refused        tokens whose XADD was answered by an error, or not confirmed by WAIT
    acked          ids whose XACK was answered, with their tokens
    times          when a change was acknowledged
    """

    def __init__(self, group: Group, number: int, stream: str, waits: bool) -> None:
        super().__init__(daemon=True)
        self.way = "near" if number < NEAR else "far"
        self._name = f"c{number}"
        self._stream = stream
        self._waits = waits
        self._ends = threading.Event()
        self._sentinel = _Sentinel(group, self.way)
        self._client: Any = self._sentinel.master_for(  # type: ignore[no-untyped-call]
            NAME, socket_timeout=REPLY_SECONDS_MAX, retry=Retry(NoBackoff(), 0)
        )
        self.attempts = 0
        self.acknowledged: dict[bytes, bytes] = {}
        self.refused: set[bytes] = set()
        self.acked: dict[bytes, bytes] = {}
        self.times: list[float] = []

    def stop(self) -> None:
        """End the current attempt, and all."""
        self._ends.set()
        self.join()
        self._client.close()
        self._sentinel.close()

    def run(self) -> None:
        while not self._ends.is_set():
            try:
                self._attempt()
            except redis.RedisError:
                # The outcome is unknown, or a read was refused. A client tries again.
                self._ends.wait(PAUSE_SECONDS * 4)
            else:
                self._ends.wait(PAUSE_SECONDS)

    def _attempt(self) -> None:
        self.attempts += 1
        token = f"{self._name}:{self.attempts}".encode()
        try:
            entry, is_confirmed = self._change("XADD", self._stream, "*", TOKEN, token)
        except redis.ResponseError:
            self.refused.add(token)
            raise
        if is_confirmed:
            self.acknowledged[token] = entry
            self.times.append(time.monotonic())
        else:
            self.refused.add(token)
        asked = {self._stream: ">"}
        for _, entries in self._client.xreadgroup(GROUP, self._name, asked, count=3) or ():
            for found, fields in entries:
                count, is_confirmed = self._change("XACK", self._stream, GROUP, found)
                if count and is_confirmed:
                    self.acked[found] = fields[TOKEN]

    def _change(self, *words: str | bytes) -> tuple[Any, bool]:
        """Send a change: its reply, and whether it counts as acknowledged. Raises: redis.RedisError."""
        if not self._waits:
            return self._client.execute_command(*words), True
        with self._client.pipeline(transaction=False) as pipe:
            pipe.execute_command(*words)
            pipe.execute_command("WAIT", 1, WAIT_MS)
            reply, count = pipe.execute(raise_on_error=False)
        if isinstance(reply, redis.RedisError):
            raise reply
        return reply, isinstance(count, int) and count >= 1
