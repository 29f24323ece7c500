"""Sends many commands to a real Redis at once."""

from __future__ import annotations

from typing import Any

from tests.support.servers.redis_server import RedisServer


def answers(server: RedisServer, *commands: tuple[bytes | str, ...]) -> list[Any]:
    """The reply to each command as redis-py returns it. Errors are returned, not raised."""
    pipe = server.client.pipeline(transaction=False)
    for command in commands:
        pipe.execute_command(*command)  # type: ignore[no-untyped-call]
    replies: list[Any] = pipe.execute(raise_on_error=False)
    return replies
