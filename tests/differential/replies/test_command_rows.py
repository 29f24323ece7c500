"""The rows of the command table agree with COMMAND INFO and COMMAND DOCS of a real Redis.

The rows of streams are compared with the oldest and the newest live version. The syntax has the options of
all levels, so only the newest version has the same tokens, apart from those of later versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.engine import compat
from penstock.engine.execute import TABLE
from penstock.engine.table import Command, Flags
from penstock.reply import NULL_ARRAY
from tests.support.engine.engines import Bench
from tests.support.engine.unknown_commands import UNKNOWN
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_8_6
from tests.support.servers.raw_redis import RawRedis, Refusal
from tests.support.servers.redis_server import RedisServer, running_redis

# The names of flags in COMMAND INFO. It does not show the other flags.
SHOWN = {
    Flags.WRITE: "write",
    Flags.READ: "readonly",
    Flags.FAST: "fast",
    Flags.BLOCKING: "blocking",
    Flags.DENY_OOM: "denyoom",
    Flags.ADMIN: "admin",
    Flags.PUBSUB: "pubsub",
    Flags.NO_AUTH: "no_auth",
    Flags.NO_MULTI: "no_multi",
    Flags.NO_SCRIPT: "noscript",
    Flags.LOADING: "loading",
    Flags.STALE: "stale",
    Flags.SKIP_MONITOR: "skip_monitor",
    Flags.SKIP_SLOWLOG: "skip_slowlog",
}
STREAM_ROWS = [row for row in TABLE.values() if row.group == "stream"]
ROWS_7_0 = [row for row in STREAM_ROWS if compat.level("7.0").knows(row.since)]
ROWS_8_6 = [row for row in STREAM_ROWS if compat.level("8.6").knows(row.since)]
LATER_TOKENS = {"MAXCOUNT", "MAXSIZE"}  # 8.10
MARKS = "=~*$"


@pytest.fixture(scope="module")
def redis_8_6() -> Iterator[RawRedis]:
    REDIS_8_6.need()
    with running_redis(program=REDIS_8_6) as server, RawRedis(server.port) as redis:
        yield redis


def flags_of(row: Command) -> set[str]:
    flags = {text for flag, text in SHOWN.items() if row.flags & flag}
    return flags | {"movablekeys"} if row.find_keys is not None else flags


def lower_name(row: Command) -> bytes:
    return row.name.lower().replace(" ", "|").encode()


def check_row(redis: RawRedis, row: Command) -> None:
    name = lower_name(row)
    [[info], docs] = redis.ask([[b"COMMAND", b"INFO", name], [b"COMMAND", b"DOCS", name]])
    assert (info[0], info[1], set(info[2])) == (name, row.arity, flags_of(row))
    assert tuple(info[3:6]) == row.keys
    described = dict(zip(docs[1][::2], docs[1][1::2], strict=True))
    assert (described[b"since"].decode(), described[b"group"].decode()) == (row.since, row.group)


@pytest.mark.parametrize("row", ROWS_7_0, ids=lambda row: row.name)
def test_a_row_agrees_with_redis(redis_server: RedisServer, row: Command) -> None:
    with RawRedis(redis_server.port) as redis:
        check_row(redis, row)


@pytest.mark.parametrize("row", ROWS_8_6, ids=lambda row: row.name)
def test_a_row_agrees_with_redis_8_6(redis_8_6: RawRedis, row: Command) -> None:
    check_row(redis_8_6, row)


def test_acl_categories_and_positions_of_keys_are_those_of_redis_8_6(redis_8_6: RawRedis) -> None:
    ask = [[b"COMMAND", b"INFO", *map(lower_name, ROWS_8_6)]]
    with running_penstock() as server, RawRedis(server.port) as penstock:
        [ours], [theirs] = penstock.ask(ask), redis_8_6.ask(ask)
    for row, our, their in zip(ROWS_8_6, ours, theirs, strict=True):
        assert set(our[6]) == set(their[6]), row.name
        assert places_of(our[8]) == places_of(their[8]), row.name


def places_of(specs: list[Any]) -> list[Any]:
    """Where the keys are, without flags and notes, which penstock does not have."""
    found = [dict(zip(spec[::2], spec[1::2], strict=True)) for spec in specs]
    return [(spec[b"begin_search"], spec[b"find_keys"]) for spec in found]


@pytest.mark.parametrize("row", ROWS_8_6, ids=lambda row: row.name)
def test_the_syntax_has_the_tokens_of_redis(redis_8_6: RawRedis, row: Command) -> None:
    [docs] = redis_8_6.ask([[b"COMMAND", b"DOCS", lower_name(row)]])
    described = dict(zip(docs[1][::2], docs[1][1::2], strict=True))
    tokens = set(_tokens(described.get(b"arguments", [])))
    words = {word for word in _words(row.syntax) if word.isupper() or word in MARKS}
    assert tokens == words - LATER_TOKENS


def _tokens(arguments: Any) -> list[str]:
    """Every literal token, at all levels of a description."""
    found: list[str] = []
    for argument in arguments:
        about = dict(zip(argument[::2], argument[1::2], strict=True))
        if b"token" in about:
            found.append(about[b"token"].decode())
        found += _tokens(about.get(b"arguments", []))
    return found


def _words(syntax: str) -> list[str]:
    for mark in "[]<>|":
        syntax = syntax.replace(mark, " ")
    return syntax.split()


def test_unknown_commands_are_refused_as_in_redis(redis_server: RedisServer) -> None:
    with RawRedis(redis_server.port) as redis:
        assert redis.ask([words for words, _ in UNKNOWN]) == [
            Refusal(f"ERR {text}") for _, text in UNKNOWN
        ]


@pytest.mark.parametrize("container", ["XGROUP", "XINFO"])
def test_help_has_the_syntax_lines_of_redis(redis_server: RedisServer, container: str) -> None:
    ours = Bench("7.0").ask(f"{container} HELP")
    with RawRedis(redis_server.port) as redis:
        [theirs] = redis.ask([[container.encode(), b"HELP"]])
    assert theirs is not NULL_ARRAY
    assert ours[0] == theirs[0]
    indented = ("    *", "      ")
    assert [line for line in ours if not line.startswith("    ")] == [
        line for line in theirs if not line.startswith("    ")
    ]
    assert len(ours) == len(theirs)
    assert [line[:6] for line in ours if line.startswith(indented)] == [
        line[:6] for line in theirs if line.startswith(indented)
    ]
