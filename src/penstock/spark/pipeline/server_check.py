"""Finds problems that the servers show: unreachable, a refused login, keys that are not streams.

It needs no Spark, so `penstock pipeline check` reports these problems before it starts one.
"""

from __future__ import annotations

from collections.abc import Iterator

import redis

from penstock.errors import PenstockError
from penstock.spark.connection import Servers, StreamName
from penstock.spark.option_reader import OptionError
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import sources_of
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.place import Place
from penstock.spark.source.stream_state import group_in_use_or_none


def server_problems(pipeline: Pipeline) -> list[Problem]:
    """Servers that cannot be reached or refuse the login, and keys that are not streams."""
    try:
        place = pipeline.source.place
    except OptionError:
        return []  # reported with the file
    streams, pattern = sources_of(pipeline)
    keys: list[tuple[KeyPath, str]] = [(("reject", "stream"), pipeline.reject)]
    for at, one in enumerate(pipeline.aggregates):
        keys.append((("aggregate", at, "stream"), one.stream))
    keys.append((("metrics", "stream"), pipeline.metrics))
    found = []
    with Servers(place) as servers:
        for number, label in enumerate(_labels(place)):
            try:
                servers.ask(StreamName(b"", number), "PING")
                sources = [(("source", "stream"), name) for name in streams]
                wanted = [*sources, *(keys if number == 0 else ())]
                found += list(_key_problems(servers, number, wanted))
                found += list(_group_problems(servers, number, pipeline))
            except (redis.RedisError, PenstockError, OSError) as error:
                found.append((("source", "url"), f"{label}: {_refusal(error)}"))
        if not found and pattern:
            found += _pattern_problems(servers, pattern)
    return [pipeline.problem(path, text) for path, text in found]


def missing_streams(pipeline: Pipeline) -> list[str]:
    """Source streams that do not exist yet. That is allowed, but the name may be misspelt."""
    place = pipeline.source.place
    numbers = range(len(_labels(place)))
    with Servers(place) as servers:
        return [
            name
            for name in sources_of(pipeline)[0]
            if all(servers.type_of(_named(name, number)) == "none" for number in numbers)
        ]


def _named(name: str, server: int = 0) -> StreamName:
    return StreamName(name.encode("utf-8", "surrogateescape"), server)


def _key_problems(
    servers: Servers, server: int, keys: list[tuple[KeyPath, str]]
) -> Iterator[tuple[KeyPath, str]]:
    for path, name in keys:
        if name:
            kind = servers.type_of(_named(name, server))
            if kind not in ("stream", "none"):
                yield path, f"the key {name} holds a {kind}, not a stream"


def _group_problems(
    servers: Servers, server: int, pipeline: Pipeline
) -> Iterator[tuple[KeyPath, str]]:
    group = pipeline.source.options.get("group", "")
    for name in sources_of(pipeline)[0] if group else ():
        text = group_in_use_or_none(servers, _named(name, server), group)
        if text is not None:
            yield ("source", "group"), text


def _pattern_problems(servers: Servers, pattern: str) -> list[tuple[KeyPath, str]]:
    try:
        servers.matching(pattern)
    except (redis.RedisError, PenstockError, OSError) as error:
        return [(("source", "streamPattern"), f"cannot look for streams: {_refusal(error)}")]
    return []


def _labels(place: Place) -> list[str]:
    if place.cluster:
        return [",".join(server.label for server in place.servers)]
    return [server.label for server in place.servers]


def _refusal(error: Exception) -> str:
    """The error text of the server or the system. redis-py never includes a password."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, OSError) and cause.strerror:
        return f"cannot be reached: {cause.strerror}"
    if isinstance(error, redis.TimeoutError):
        return "cannot be reached: no answer in time"
    return " ".join(str(error).split())
