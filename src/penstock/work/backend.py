"""The work commands on an embedded database, a penstock server, Redis or Valkey.

All take the same keys and arguments and give the same replies. A penstock server and an embedded database
have commands for them, other servers run scripts.

Errors are the same everywhere: CommandError if the server refuses, ConnectionLost if its reply did not come.
Nothing is retried here.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import redis
from redis.exceptions import MovedError

import penstock
from penstock.client.address import BadUrl, parse_url
from penstock.embedded.database import Database
from penstock.errors import CommandError, ConfigError, ConnectionLost
from penstock.work import cluster
from penstock.work.cluster import ClusterClient
from penstock.work.scripts import SCRIPTS

Word = str | bytes | int

CONNECT_SECONDS_MAX = 5
REPLY_SECONDS_MAX = 10  # more than any BLOCK of a worker
MEMORY = "memory:"
DIRECTORY = "file:"

# Refusals that pass by themselves, or when somebody repairs the server: the same command may succeed later.
PASSING = frozenset(
    (
        "ASK",
        "BUSY",
        "CLUSTERDOWN",
        "LOADING",
        "MASTERDOWN",
        "MISCONF",
        "MOVED",
        "NOREPLICAS",
        "OOM",
        "READONLY",
        "TRYAGAIN",
    )
)
# redis-py removes these codes from the text and makes classes of them.
_CODES = {
    "AskError": "ASK",
    "ClusterCrossSlotError": "CROSSSLOT",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "NoPermissionError": "NOPERM",
    "NoScriptError": "NOSCRIPT",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}


class Backend(Protocol):
    """A server, or a database in this process."""

    def check(self, keys: Sequence[str], stream: str) -> None:
        """Make sure that one step can change these keys. `stream`: the name that their handler gives.

        Raises: ConfigError, and as `ask`.
        """

    def work(self, name: str, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        """Run a work command. Raises: CommandError, ConnectionLost."""

    def ask(self, *words: Word) -> Any:
        """Run an ordinary command. Raises: CommandError, ConnectionLost."""

    def wait(self, after: Mapping[str, str], block_ms: int) -> bool:
        """Wait until one of these streams has an entry after its id: True. False if the time is over.

        Raises: CommandError, ConnectionLost.
        """

    def another(self) -> Backend:
        """The same server or database, by connections of its own."""

    def close(self) -> None:
        """End connections that this object has opened."""


class EmbeddedBackend:
    """A Database in this process."""

    def __init__(self, database: Database[Any], own: bool = False) -> None:
        """`own`: close the database at the end."""
        if database._decode:
            raise ConfigError("open the database of an App without decode_responses")
        self.database = database
        self._own = own

    def check(self, keys: Sequence[str], stream: str) -> None:
        pass

    def work(self, name: str, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        return self.database._run(f"PENSTOCK {name}", [len(keys), *keys, *arguments])

    def ask(self, *words: Word) -> Any:
        first, *rest = words
        if first == "XGROUP":
            first, *rest = f"XGROUP {rest[0]!s}", *rest[1:]
        return self.database._run(str(first), rest)

    def wait(self, after: Mapping[str, str], block_ms: int) -> bool:
        return bool(self.database.xread(dict(after), count=1, block=block_ms))

    def another(self) -> EmbeddedBackend:
        return EmbeddedBackend(self.database)

    def close(self) -> None:
        if self._own:
            self.database.close()


class ServerBackend:
    """A server: penstock, Redis or Valkey, or a cluster of them that is found through any of its nodes.

    Connects on first use; each thread has its own connection.
    """

    def __init__(self, url: str) -> None:
        try:
            server = parse_url(url)
        except BadUrl as error:
            raise ConfigError(f"{url!r} is not the address of a server: write {error}") from None
        self.name = server.name
        self._url = url
        self._server = server
        self._client: redis.Redis | ClusterClient
        self._client = server.connect(CONNECT_SECONDS_MAX, REPLY_SECONDS_MAX)
        self._lock = threading.RLock()
        self._has_commands: bool | None = None

    def check(self, keys: Sequence[str], stream: str) -> None:
        self._is_penstock()
        if isinstance(self._client, ClusterClient):
            problem = cluster.problem_or_none(keys, stream)
            if problem is not None:
                raise ConfigError(f"{self.name}: {problem}")

    def work(self, name: str, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        if self._is_penstock():
            return self.ask("PENSTOCK", name, len(keys), *keys, *arguments)
        script = SCRIPTS[name]
        digest = hashlib.sha1(script.encode()).hexdigest()
        try:
            return self.ask("EVALSHA", digest, len(keys), *keys, *arguments)
        except CommandError as error:
            if error.code != "NOSCRIPT":
                raise
            return self.ask("EVAL", script, len(keys), *keys, *arguments)

    def ask(self, *words: Word) -> Any:
        client = self._client  # another thread may replace it
        try:
            try:
                return client.execute_command(*words)
            except MovedError:
                if isinstance(client, ClusterClient):
                    raise
                return self._use_cluster().execute_command(*words)
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            raise ConnectionLost(f"{self.name}: {error}") from error
        except redis.RedisError as error:
            raise _refusal(str(error), type(error).__name__) from None

    def wait(self, after: Mapping[str, str], block_ms: int) -> bool:
        options: list[Word] = ["COUNT", 1, "BLOCK", block_ms]
        return bool(self.ask("XREAD", *options, "STREAMS", *after, *after.values()))

    def another(self) -> ServerBackend:
        return ServerBackend(self._url)

    def close(self) -> None:
        self._client.close()

    def _is_penstock(self) -> bool:
        """Ask once which kind of server this is."""
        with self._lock:
            if self._has_commands is None:
                try:
                    self.ask("PENSTOCK", "HELP")
                except CommandError as error:
                    if error.code not in ("ERR", "NOPERM"):  # it may be penstock, in another moment
                        raise
                    if self._is_cluster():
                        self._use_cluster()
                    self._has_commands = False
                else:
                    self._has_commands = True
            return self._has_commands

    def _is_cluster(self) -> bool:
        """Ask whether the server is a node of a cluster. False if we may not ask: then MOVED will tell."""
        try:
            return b"cluster_enabled:1" in self.ask("INFO", "cluster")
        except CommandError as error:
            if error.code != "NOPERM":
                raise
            return False

    def _use_cluster(self) -> ClusterClient:
        """The server is a node of a Redis Cluster: find the node of each key from now on."""
        with self._lock:
            client = self._client
            if not isinstance(client, ClusterClient):
                client = ClusterClient(self._server, CONNECT_SECONDS_MAX, REPLY_SECONDS_MAX)
                self._client = client
            return client


def _refusal(text: str, kind: str) -> CommandError:
    """The error reply of a server. Redis 6.2 puts the error of a script's command behind a line number."""
    if kind in _CODES:
        return CommandError(text, _CODES[kind])
    found = re.match(r"(?:Error running script.*@user_script: ?\d+: )?([A-Z]+) (.*)", text, re.S)
    return CommandError(found[2], found[1]) if found else CommandError(text)


def backend_for(where: str | Database[Any]) -> Backend:
    """The backend for the first argument of an App. Raises: ConfigError."""
    if isinstance(where, str) and where == MEMORY:
        return EmbeddedBackend(penstock.open(), own=True)
    if isinstance(where, str) and where.startswith(DIRECTORY):
        return EmbeddedBackend(penstock.open(where.removeprefix(DIRECTORY)), own=True)
    if isinstance(where, str):
        return ServerBackend(where)
    return EmbeddedBackend(where)
