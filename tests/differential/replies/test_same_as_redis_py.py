"""The same program gets the same results from penstock.open() and from redis-py with a server."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import redis
from redis.commands.core import StreamCommands

import penstock
from penstock.aio import AsyncDatabase
from penstock.embedded.pipeline import Pipeline
from tests.support.redis_py import key_scenario, scenario, scenario_8

PROGRAMS = {
    "7.0 streams": ("7.0", scenario),
    "7.0 keys": ("7.0", key_scenario),
    "8.6 streams": ("8.6", scenario),
    "8.6 keys": ("8.6", key_scenario),
    "8.6 new in 8": ("8.6", scenario_8),
}


@pytest.mark.parametrize(("level", "program"), list(PROGRAMS.values()), ids=list(PROGRAMS))
@pytest.mark.parametrize("decode", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("node_entries_max", [100, 3])
def test_a_program_gets_the_same_results(
    level: str, port: int, program: ModuleType, decode: bool, node_entries_max: int
) -> None:
    with (
        redis.Redis(port=port, decode_responses=decode) as client,
        penstock.open(
            compat_version=level, decode_responses=decode, node_entries_max=node_entries_max
        ) as db,
    ):
        client.config_set("stream-node-max-entries", node_entries_max)
        theirs, ours = program.run(client), program.run(db)
    different = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    assert not different, "\n".join(f"ours   {ours}\ntheirs {theirs}" for ours, theirs in different)


def methods() -> list[str]:
    """The stream methods of redis-py."""
    names = [name for name, _ in inspect.getmembers(StreamCommands, inspect.isfunction)]
    return [name for name in names if name.startswith("x")]


def arguments(method: Callable[..., Any]) -> list[tuple[str, object, object]]:
    """The arguments of a method: name, kind, default. redis-py's options for clusters do not count."""
    parameters = inspect.signature(method).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.kind is not p.VAR_KEYWORD]


@pytest.mark.parametrize("name", sorted({*methods(), *key_scenario.KEY_METHODS}))
def test_a_method_has_the_arguments_of_redis_py(name: str) -> None:
    theirs = arguments(getattr(redis.Redis, name))
    assert arguments(getattr(penstock.Database, name)) == theirs
    if name != "scan_iter":  # redis-py's pipeline has it, and it fails there
        assert arguments(getattr(Pipeline, name)) == theirs
    assert arguments(getattr(AsyncDatabase, name)) == theirs


def test_the_scenarios_use_every_method() -> None:
    source = inspect.getsource(scenario) + inspect.getsource(scenario_8)
    assert set(re.findall(r"db\.(x\w+)", source)) >= set(methods())
    used = set(re.findall(r"db\.(\w+)", inspect.getsource(key_scenario)))
    assert used >= set(key_scenario.KEY_METHODS)
