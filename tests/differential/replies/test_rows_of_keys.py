"""The rows of commands for keys agree with COMMAND INFO and COMMAND DOCS of a real Redis."""

from __future__ import annotations

import pytest

from penstock.engine.commands import databases, expiry, keys, numbers, scan, strings, substrings
from penstock.engine.table import Command, Flags
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer

MODULES = (strings, numbers, substrings, keys, scan, databases, expiry)
ROWS = [row for module in MODULES for row in module.COMMANDS]
NAMES = {
    Flags.WRITE: "write",
    Flags.READ: "readonly",
    Flags.FAST: "fast",
    Flags.DENY_OOM: "denyoom",
    Flags.LOADING: "loading",
    Flags.STALE: "stale",
}
CATEGORIES = {Flags.KEYSPACE: "@keyspace", Flags.DANGEROUS: "@dangerous"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_agrees_with_redis(redis_server: RedisServer, row: Command) -> None:
    name = row.name.lower().replace(" ", "|").encode()
    with RawRedis(redis_server.port) as redis:
        [info] = redis.ask([[b"COMMAND", b"INFO", name]])[0]
        flat = redis.ask([[b"COMMAND", b"DOCS", name]])[0][1]
    docs = dict(zip(flat[::2], flat[1::2], strict=True))
    assert info[0] == name
    assert row.arity == info[1]
    assert {text for flag, text in NAMES.items() if row.flags & flag} == set(info[2])
    assert row.keys == tuple(info[3:6])
    marked = {text for flag, text in CATEGORIES.items() if row.flags & flag}
    assert marked == set(info[6]) & set(CATEGORIES.values())
    assert (row.since, row.group) == (docs[b"since"].decode(), docs[b"group"].decode())
    assert bool(row.syntax) == (b"arguments" in docs)
