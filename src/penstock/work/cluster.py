"""Finds the node of a Redis Cluster for each command.

All keys of one command are in one slot: a stream and the keys beside it share a hash tag, which
`problem_or_none` checks. Nothing is repeated, except what a node has refused because another node has the
slot.

The map of the slots may be old, whichever node it is from. A node that refuses a command names the right one,
and that corrects the map. After a failure the map is read again, from another node than before.
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
_THIS_MACHINE = "127.0.0.1"
_WITHOUT_KEYS = frozenset(("ACL", "CLUSTER", "CONFIG", "FLUSHALL", "INFO", "PENSTOCK"))
_SCRIPTS = frozenset(("EVAL", "EVALSHA"))
_WITH_SUBCOMMANDS = frozenset(("XGROUP", "XINFO"))


def problem_or_none(keys: Sequence[str], stream: str) -> str | None:
    """Why one command cannot use these keys, if it cannot. `stream`: the name that can be changed."""
    if len({key_slot(key.encode()) for key in keys}) == 1:
        return None
    return (
        f"{keys[0]!r} and {keys[1]!r} are on different nodes of the Redis Cluster:"
        f" give the stream a hash tag, such as '{{{stream}}}'"
    )


class ClusterClient:
    """Takes the place of redis-py's client of one server. Threads may share it."""

    def __init__(self, server: ServerUrl, connect_seconds: float, reply_seconds: float) -> None:
        """`server`: any node."""
        self._server = server
        self._limits = (connect_seconds, reply_seconds)
        self._lock = threading.Lock()
        # A Unix socket has no address; that of its node is learned, like those of the others.
        self._seed: Address = (server.settings.get("host", ""), server.settings.get("port", 0))
        self._clients: dict[Address, redis.Redis] = {}
        self._nodes: dict[Address, None] = {self._seed: None}  # the first is asked for the map next
        self._slots: dict[int, Address] = {}

    def execute_command(self, *words: str | bytes | int) -> Any:
        """Run a command on the node that has its keys. Raises: what redis-py raises."""
        key = _key_of_or_none(words)
        address = self._next_node() if key is None else self._address_of(_slot_of(key))
        asking = False  # the slot is being moved, and this node has the key already
        moves = 0
        while True:
            try:
                return self._run(address, words, asking)
            except AskError as error:  # MOVED is one of them
                moves += 1
                if moves > MOVES_MAX:
                    raise
                asking = not isinstance(error, MovedError)
                address = _place(error.host, error.port, address)
                if not asking:
                    self._slots[error.slot_id] = address
            except (redis.ConnectionError, redis.TimeoutError):
                self._put_last(address)
                self._slots = {}  # perhaps another node takes over
                raise

    def close(self) -> None:
        with self._lock:
            for client in self._clients.values():
                client.close()

    def _run(self, address: Address, words: Sequence[str | bytes | int], asking: bool) -> Any:
        client = self._client_at(address)
        if not asking:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]
        with client.pipeline(transaction=False) as pipeline:
            pipeline.execute_command("ASKING")  # type: ignore[no-untyped-call]
            pipeline.execute_command(*words)  # type: ignore[no-untyped-call]
            reply = pipeline.execute(raise_on_error=False)[1]  # a raised one has another text
        if isinstance(reply, redis.RedisError):
            raise reply
        return reply

    def _client_at(self, address: Address) -> redis.Redis:
        with self._lock:
            if address not in self._clients:
                node = self._server
                if address != self._seed:
                    host, port = address
                    settings = {**node.settings, "host": host, "port": port}
                    settings.pop("path", None)
                    node = replace(node, is_unix=False, sentinels=(), settings=settings)
                self._clients[address] = node.connect(*self._limits)
            return self._clients[address]

    def _next_node(self) -> Address:
        with self._lock:
            return next(iter(self._nodes))

    def _put_last(self, address: Address) -> None:
        """Ask all other nodes for the map before this one."""
        with self._lock:
            self._nodes.pop(address, None)
            self._nodes[address] = None

    def _address_of(self, slot: int) -> Address:
        if slot not in self._slots:
            self._read_slots()
        address = self._slots.get(slot)
        if address is None:
            raise redis.exceptions.ClusterDownError(f"no node serves slot {slot}")
        return address

    def _read_slots(self) -> None:
        """Ask a node that answers which node has which slots. Raises: redis.ConnectionError, TimeoutError."""
        with self._lock:
            nodes = list(self._nodes)
        failure: Exception = redis.ConnectionError("no node answers")
        for asked in nodes:
            try:
                rows = self._client_at(asked).execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
            except (redis.ConnectionError, redis.TimeoutError) as error:
                failure = error
                self._put_last(asked)
                continue
            found: dict[int, Address] = {}
            for first, last, node, *_ in rows:
                address = _place((node[0] or b"").decode(), int(node[1]), asked)
                found |= dict.fromkeys(range(first, last + 1), address)
                with self._lock:
                    self._nodes.setdefault(address)
            self._put_last(asked)
            self._slots = found
            return
        raise failure


def _place(host: str, port: int, asked: Address) -> Address:
    """The address of a node, as another one gives it: without a host it is on the same machine."""
    return (host if host not in ("", "?") else asked[0] or _THIS_MACHINE, port)


def _slot_of(key: str | bytes) -> int:
    return int(key_slot(key.encode() if isinstance(key, str) else key))


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
