"""A program cannot tell penstock.open() from redis-py's client in front of a server."""

from __future__ import annotations

import inspect
import re

import pytest
import redis
from redis.commands.core import StreamCommands

import penstock
from tests.support.engine import scenario
from tests.support.servers.redis_server import RedisServer

# redis-py's method for a command of Redis 8 that this version does not know.
NOT_YET = {"xackdel", "xcfgset", "xdelex", "xnack"}


@pytest.mark.parametrize("decode", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("node_entries_max", [100, 3])
def test_the_scenario_shows_the_same(
    redis_server: RedisServer, decode: bool, node_entries_max: int
) -> None:
    redis_server.client.config_set("stream-node-max-entries", node_entries_max)
    with (
        redis.Redis(port=redis_server.port, decode_responses=decode) as client,
        penstock.open(
            compat_version="7.0", decode_responses=decode, node_entries_max=node_entries_max
        ) as db,
    ):
        theirs, ours = scenario.run(client), scenario.run(db)
    different = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    assert not different, "\n".join(f"ours   {ours}\ntheirs {theirs}" for ours, theirs in different)


def methods() -> list[str]:
    """The stream methods of redis-py's client."""
    names = [name for name, _ in inspect.getmembers(StreamCommands, inspect.isfunction)]
    return [name for name in names if name.startswith("x")]


def test_every_stream_method_of_redis_py_is_there_with_the_same_arguments() -> None:
    for name in sorted(set(methods()) - NOT_YET):
        theirs = inspect.signature(getattr(redis.Redis, name)).parameters.values()
        ours = inspect.signature(getattr(penstock.Database, name)).parameters.values()
        assert [(p.name, p.kind, p.default) for p in ours] == [
            (p.name, p.kind, p.default) for p in theirs
        ], name


def test_the_scenario_uses_every_method() -> None:
    used = set(re.findall(r"db\.(x\w+)", inspect.getsource(scenario)))
    assert used >= set(methods()) - NOT_YET
