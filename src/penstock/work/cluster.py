"""Finds the node of a Redis Cluster for each command.

All keys of one command are in one slot: a stream and the keys beside it share a hash tag, which
`problem_or_none` checks. Nothing is repeated, except what a node has refused because another node has the
slot.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import redis
from redis.crc import key_slot
from redis.exceptions import AskError, MovedError

from penstock.client.address import ServerUrl

Address = tuple[str, int]
MOVES_MAX = 5
_WITHOUT_KEYS = frozenset(("ACL", "CLUSTER", "CONFIG", "FLUSHALL", "INFO", "PENSTOCK"))
_SCRIPTS = frozenset(("EVAL", "EVALSHA"))
_WITH_SUBCOMMANDS = frozenset(("XGROUP", "XINFO"))


def problem_or_none(keys: Sequence[str]) -> str | None:
    """Why one command cannot use these keys, if it cannot."""
    if len({key_slot(key.encode()) for key in keys}) == 1:
        return None
    return (
        f"{keys[0]!r} and {keys[1]!r} are on different nodes of the Redis Cluster:"
        f" give the stream a hash tag, such as '{{{keys[0]}}}'"
    )


class ClusterClient:
    """Takes the place of redis-py's client of one server. Threads may share it."""

    def __init__(self, server: ServerUrl, connect_seconds: float, reply_seconds: float) -> None:
        """`server`: any node."""
        self._server = server
        self._limits = (connect_seconds, reply_seconds)
        self._lock = threading.Lock()
        self._clients: dict[Address, redis.Redis] = {}
        self._slots: list[tuple[int, int, Address]] = []  # first, last, node

    def execute_command(self, *words: str | bytes | int) -> Any:
        """Run a command on the node that has its keys. Raises: what redis-py raises."""
        for _ in range(MOVES_MAX):
            try:
                return self._run(words)
            except MovedError:
                self._forget()
            except (redis.ConnectionError, redis.TimeoutError):
                self._forget()  # perhaps another node takes over
                raise
        return self._run(words)

    def close(self) -> None:
        with self._lock:
            for client in self._clients.values():
                client.close()

    def _run(self, words: Sequence[str | bytes | int]) -> Any:
        client = self._client_at(self._address_of(words))
        try:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]
        except MovedError:
            raise
        except AskError as error:  # the slot is being moved, and the next node has the key already
            with self._client_at((error.host, error.port)).pipeline(transaction=False) as pipeline:
                pipeline.execute_command("ASKING")  # type: ignore[no-untyped-call]
                pipeline.execute_command(*words)  # type: ignore[no-untyped-call]
                return pipeline.execute()[1]

    def _client_at(self, address: Address) -> redis.Redis:
        with self._lock:
            if address not in self._clients:
                host, port = address
                node = replace(
                    self._server, settings=self._server.settings | {"host": host, "port": port}
                )
                self._clients[address] = node.connect(*self._limits)
            return self._clients[address]

    def _address_of(self, words: Sequence[str | bytes | int]) -> Address:
        key = _key_of_or_none(words)
        if key is None:
            return self._server.address
        slot = key_slot(key.encode() if isinstance(key, str) else bytes(key))
        for first, last, address in self._known_slots():
            if first <= slot <= last:
                return address
        raise redis.exceptions.ClusterDownError(f"no node serves the slot of {key!r}")

    def _known_slots(self) -> list[tuple[int, int, Address]]:
        """Which node has which slots. Asks a node that answers. Raises: redis.ConnectionError."""
        with self._lock:
            known = self._slots
            addresses = [self._server.address, *self._clients]
        failure: Exception = redis.ConnectionError("no node answers")
        for address in () if known else dict.fromkeys(addresses):
            try:
                rows = self._client_at(address).execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
            except (redis.ConnectionError, redis.TimeoutError) as error:
                failure = error
                continue
            known = [(first, last, _place(node, address)) for first, last, node, *_ in rows]
            with self._lock:
                self._slots = known
            break
        else:
            if not known:
                raise failure
        return known

    def _forget(self) -> None:
        with self._lock:
            self._slots = []


def _place(node: Sequence[Any], asked: Address) -> Address:
    """The address of a node in CLUSTER SLOTS; without a host it is that of the node that was asked."""
    host = (node[0] or b"").decode()
    return (host if host not in ("", "?") else asked[0], int(node[1]))


def _key_of_or_none(words: Sequence[str | bytes | int]) -> str | bytes | None:
    """One key of a command that workers use."""
    name = str(words[0]).upper()
    if name in _WITHOUT_KEYS:
        return None
    at = 1
    if name in _SCRIPTS:
        at = 3
    elif name in _WITH_SUBCOMMANDS:
        at = 2
    elif name == "XREAD":
        at = words.index("STREAMS") + 1
    key = words[at]
    return key if isinstance(key, str | bytes) else str(key)
