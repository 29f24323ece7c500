"""The rows of the command table agree with COMMAND INFO and COMMAND DOCS of each live version of Redis."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine import compat
from penstock.engine.execute import TABLE
from penstock.engine.table import Command, Flags
from penstock.reply import NULL_ARRAY
from tests.support.engine.engines import Bench
from tests.support.engine.unknown_commands import UNKNOWN
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.raw_redis import RawRedis, Refusal
from tests.support.servers.redis_server import RedisServer

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
ROWS = [row for row in TABLE.values() if row.group in ("stream", "list")]
# The version that added an option to a command that existed already.
OPTIONS = {
    **dict.fromkeys(("KEEPREF", "DELREF", "ACKED"), "8.2"),
    **dict.fromkeys(("IDMP", "IDMPAUTO"), "8.6"),
    **dict.fromkeys(("MAXCOUNT", "MAXSIZE"), "8.10"),
    "CLAIM": "8.4",
}


def flags_of(row: Command) -> set[str]:
    flags = {text for flag, text in SHOWN.items() if row.flags & flag}
    return flags | {"movablekeys"} if row.find_keys is not None else flags


@pytest.mark.parametrize("level", BY_LEVEL)
def test_the_rows_agree_with_redis(port: int, level: str) -> None:
    for row, info, _ in described_rows(port, level):
        flags = flags_of(row)
        if level != "7.0" and row.group == "list":
            flags.discard(
                "noscript"
            )  # of blocking commands; there are no scripts here at any level
        assert (info[0], info[1], set(info[2])) == (shown_name(row), row.arity, flags)
        assert tuple(info[3:6]) == row.keys, row.name


@pytest.mark.parametrize("level", BY_LEVEL)
def test_the_syntax_has_the_tokens_of_redis(port: int, level: str) -> None:
    knows = compat.level(level).knows
    for row, _, docs in described_rows(port, level):
        assert (docs[b"since"].decode(), docs[b"group"].decode()) == (row.since, row.group)
        words = {word for word in _words(row.syntax) if word.isupper() or word in "=~*$"}
        words = {word for word in words if knows(OPTIONS.get(word, row.since))}
        assert set(_tokens(docs.get(b"arguments", []))) == words, row.name


def described_rows(port: int, level: str) -> list[tuple[Command, list[Any], dict[bytes, Any]]]:
    """Each row that this version knows, with its COMMAND INFO and COMMAND DOCS. It knows no others."""
    known = []
    with RawRedis(port) as redis:
        for row in ROWS:
            name = shown_name(row)
            [[info], docs] = redis.ask([[b"COMMAND", b"INFO", name], [b"COMMAND", b"DOCS", name]])
            assert isinstance(info, list) == compat.level(level).knows(row.since), row.name
            if isinstance(info, list):
                known.append((row, info, dict(zip(docs[1][::2], docs[1][1::2], strict=True))))
    return known


def shown_name(row: Command) -> bytes:
    return row.name.lower().replace(" ", "|").encode()


@pytest.mark.parametrize("level", ["8.6"])
def test_acl_categories_and_positions_of_keys_are_those_of_redis(port: int, level: str) -> None:
    rows = [row for row in ROWS if row.group == "stream" and compat.level(level).knows(row.since)]
    ask = [[b"COMMAND", b"INFO", *map(shown_name, rows)]]
    with running_penstock() as server, RawRedis(server.port) as penstock, RawRedis(port) as redis:
        [ours], [theirs] = penstock.ask(ask), redis.ask(ask)
    for row, our, their in zip(rows, ours, theirs, strict=True):
        assert set(our[6]) == set(their[6]), row.name
        assert places_of(our[8]) == places_of(their[8]), row.name


def places_of(specs: list[Any]) -> list[Any]:
    """Where the keys are, without flags and notes, which penstock does not have."""
    found = [dict(zip(spec[::2], spec[1::2], strict=True)) for spec in specs]
    return [(spec[b"begin_search"], spec[b"find_keys"]) for spec in found]


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
