"""Differences in docs/compatibility.md that no other test covers: Redis 7.0 and penstock side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.reply import NULL_ARRAY
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.raw_redis import RawRedis, Refusal


@pytest.fixture
def ports(port: int) -> Iterator[tuple[int, int]]:
    """The ports of a Redis and of a penstock with the same level, both without active expiry."""
    level = ("--compat-version", "7.0", "--enable-debug-command", "yes")
    with running_penstock(*level) as ours:
        for one in (port, ours.port):
            said(one, "DEBUG SET-ACTIVE-EXPIRE 0")
        yield port, ours.port


def said(port: int, *lines: str) -> list[Any]:
    """The replies to commands on one connection."""
    with RawRedis(port) as client:
        return client.ask([line.encode().split() for line in lines])


def test_a_watched_key_that_had_already_expired(ports: tuple[int, int]) -> None:
    ends = []
    for port in ports:
        with RawRedis(port) as client:
            client.ask(
                [line.split() for line in (b"SET k 1 PX 1", b"DEBUG SLEEP 0.01", b"WATCH k")]
            )
            assert said(port, "GET k") == [None]
            ends.append(client.ask([[b"MULTI"], [b"PING"], [b"EXEC"]])[-1])
    assert ends == [["PONG"], NULL_ARRAY]


def test_misses_of_stream_commands(ports: tuple[int, int]) -> None:
    """The first message after each kind of miss. GET causes one on both servers."""
    told = []
    for port in ports:
        said(port, "CONFIG SET notify-keyspace-events Em")
        with RawRedis(port) as listener:
            listener.ask([[b"SUBSCRIBE", b"__keyevent@0__:keymiss"]])
            said(port, "XLEN nothing", "GET missing")
            told.append(listener.read()[-1])
    assert told == [b"nothing", b"missing"]


def test_the_smallest_rank(ports: tuple[int, int]) -> None:
    found = [said(port, "RPUSH l a b a", f"LPOS l a RANK {-(2**63)}")[-1] for port in ports]
    limits = f"{-(2**63) + 1} and {2**63 - 1}"
    assert found == [2, Refusal(f"ERR value is out of range, value must between {limits}")]


def test_new_keys_among_all_events(ports: tuple[int, int]) -> None:
    shown = [
        said(port, "CONFIG SET notify-keyspace-events KAn", "CONFIG GET notify-keyspace-events")[-1]
        for port in ports
    ]
    assert shown == [[b"notify-keyspace-events", b"AK"], [b"notify-keyspace-events", b"AnK"]]


def test_replies_that_are_switched_off_inside_a_transaction(ports: tuple[int, int]) -> None:
    heard = []
    for port in ports:
        with RawRedis(port) as client:
            client.ask([line.split() for line in (b"MULTI", b"CLIENT REPLY OFF", b"PING")])
            client.send([[b"EXEC"], [b"CLIENT", b"REPLY", b"ON"], [b"QUIT"]])
            heard.append(client.rest())
    assert heard == [b"*2\r\n+OK\r\n+OK\r\n", b"+OK\r\n+OK\r\n"]


def test_a_key_that_expires_during_a_pause(ports: tuple[int, int]) -> None:
    left = []
    for port in ports:
        said(port, "SET k 1 PX 1", "CLIENT PAUSE 100000 WRITE", "DEBUG SLEEP 0.01")
        left.append(said(port, "GET k", "DBSIZE"))
    assert left == [[None, 1], [None, 0]]


def test_help_has_the_same_syntax_with_other_explanations(ports: tuple[int, int]) -> None:
    theirs, ours = (said(port, "XGROUP HELP")[0] for port in ports)
    assert theirs != ours
    assert set(syntax(theirs)) == set(syntax(ours))


def syntax(lines: list[str]) -> list[str]:
    return [line.split(" ")[0] for line in lines if line[:1].isupper()]
