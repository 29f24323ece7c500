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
    """Wait until both have the same data."""
    eventually(lambda: digest(primary) == digest(replica), "both have the same data")


def send(port: int, commands: Iterable[Words]) -> None:
    """Send commands, and read their replies, whatever they are."""
    with RawRedis(port) as connection:
        connection.ask(list(commands))


def stats(client: Any) -> dict[str, int]:
    """The counters of syncs."""
    found = client.info("stats")
    return {name: found[name] for name in ("sync_full", "sync_partial_ok", "sync_partial_err")}
