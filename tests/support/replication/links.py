"""Servers that follow each other: waits for links, compares the data at both ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import redis

from tests.support.random.stream_commands import Words
from tests.support.servers.raw_redis import RawRedis

SECONDS_MAX = 60.0
# A snapshot begins at once, and tests may compare digests.
QUICK = ("--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes")


def eventually(
    holds: Callable[[], object], what: str = "", seconds_max: float = SECONDS_MAX
) -> None:
    """Wait until a condition holds. Servers that start or stop meanwhile refuse connections."""
    deadline = time.monotonic() + seconds_max
    last: object = None
    while time.monotonic() < deadline:
        try:
            last = holds()
        except redis.RedisError as error:
            last = error
        else:
            if last:
                return
        time.sleep(0.02)
    raise AssertionError(f"{what or holds}: still {last!r}")


def client_of(port: int) -> Any:
    """A client of a server in these tests."""
    return redis.Redis(port=port, socket_timeout=20)


def digest(client: Any) -> Any:
    """DEBUG DIGEST: equal for equal data."""
    return client.execute_command("DEBUG", "DIGEST")


def role(client: Any) -> Any:
    """The reply of ROLE."""
    return client.execute_command("ROLE")


def follow(replica: Any, primary_port: int) -> None:
    """Let a server follow another one, and wait until the link is up."""
    replica.execute_command("REPLICAOF", "127.0.0.1", primary_port)
    linked(replica)


def online(primary: Any, count: int = 1) -> None:
    """Wait until a primary counts on its replicas."""
    eventually(lambda: len(role(primary)[2]) >= count, f"{count} replicas are online")


def linked(replica: Any) -> None:
    """Wait until a replica follows its primary."""
    eventually(lambda: replica.info("replication")["master_link_status"] == "up", "the link is up")


def same(primary: Any, replica: Any) -> None:
    """Wait until both have the same data. Between two penstocks also what the digest leaves out."""
    eventually(lambda: digest(primary) == digest(replica), "both have the same data")
    if all("penstock_version" in client.info("penstock") for client in (primary, replica)):
        eventually(
            lambda: streams_of(primary) == streams_of(replica),
            "both have the same groups, producers and counters",
        )


def streams_of(client: Any) -> dict[tuple[str, bytes], dict[bytes, Any]]:
    """What XINFO STREAM FULL says about each stream of each database: groups, producers and counters.

    Left out is what the stream of changes does not have: when consumers were seen, how nodes are cut, and,
    with replicas of Redis, messages that were known already.
    """
    found = {}
    databases = client.info("keyspace")
    connection = client.connection_pool.get_connection()  # that of the client: it may be logged in

    def ask(*words: Any) -> Any:
        connection.send_command(*words)
        return connection.read_response()

    try:
        for name in databases:
            ask("SELECT", name.removeprefix("db"))
            for key in ask("KEYS", "*"):
                if ask("TYPE", key) == b"stream":
                    found[name, key] = _stream(ask("XINFO", "STREAM", key, "FULL", "COUNT", 0))
    finally:
        try:
            ask("SELECT", 0)
        finally:
            client.connection_pool.release(connection)
    return found


def _stream(about: dict[bytes, Any]) -> dict[bytes, Any]:
    left_out = (b"radix-tree-keys", b"radix-tree-nodes", b"iids-duplicates")
    found = {field: value for field, value in about.items() if field not in left_out}
    found[b"groups"] = [
        group | {b"consumers": [_consumer(one) for one in group[b"consumers"]]}
        for group in about[b"groups"]
    ]
    return found


def _consumer(about: dict[bytes, Any]) -> dict[bytes, Any]:
    times = (b"seen-time", b"active-time")
    return {field: value for field, value in about.items() if field not in times}


def send(port: int, commands: Iterable[Words]) -> None:
    """Send commands, and read their replies, whatever they are."""
    with RawRedis(port) as connection:
        connection.ask(list(commands))


def stats(client: Any) -> dict[str, int]:
    """The counters of syncs."""
    found = client.info("stats")
    return {name: found[name] for name in ("sync_full", "sync_partial_ok", "sync_partial_err")}
