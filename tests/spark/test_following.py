"""Commands that are sent again while Sentinels look for another primary."""

from __future__ import annotations

import pytest
import redis

from penstock.client.bulk import is_native
from penstock.spark import connection
from penstock.spark.connection import Servers, StreamName
from penstock.spark.source.options import parse_options
from tests.support.replication.false_sentinel import FalseSentinel

STREAM = StreamName(b"s")
FAILING = [
    b"-NOREPLICAS Not enough good replicas to write.\r\n",
    b"-MISCONF Errors writing to the AOF file: No space left on device\r\n",
    b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
    b"-READONLY You can't write against a read only replica.\r\n",
]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FAILOVER_PAUSE_SECONDS", 0.01)


def servers_of(server: FalseSentinel) -> Servers:
    return Servers(parse_options({"url": server.url, "stream": "s"}).place)


@pytest.mark.parametrize("error", FAILING)
def test_a_command_that_can_be_repeated_is_sent_again(error: bytes) -> None:
    answers = {b"XLEN": [error, error, b":3\r\n"], b"XADD": [error, b"+1-1\r\n"]}
    with FalseSentinel(answers) as server, servers_of(server) as servers:
        assert servers.ask(STREAM, "XLEN", "s") == 3
        with pytest.raises(redis.RedisError):
            servers.ask(STREAM, "XADD", "s", "*", "k", "v")


@pytest.mark.parametrize("error", FAILING)
def test_a_pipeline_is_sent_again(error: bytes) -> None:
    with (
        FalseSentinel({b"XLEN": [b":3\r\n", error, b":3\r\n"]}) as server,
        servers_of(server) as servers,
    ):
        assert servers.ask_all(STREAM, [("XLEN", "s"), ("XLEN", "s")]) == [3, 3]


def test_other_errors_are_raised() -> None:
    error = b"-ERR here NOREPLICAS is only a word\r\n"
    with (
        FalseSentinel({b"XLEN": [error]}) as server,
        servers_of(server) as servers,
        pytest.raises(redis.ResponseError, match="only a word"),
    ):
        servers.ask(STREAM, "XLEN", "s")


def test_a_search_and_the_first_question_follow_too() -> None:
    page = b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\ns\r\n"
    answers = {
        b"SCAN": [FAILING[2], page],
        b"PENSTOCK": [b"-LOADING Redis is loading\r\n", FAILING[2], b"*0\r\n"],
    }
    with FalseSentinel(answers) as server, servers_of(server) as servers:
        assert servers.matching("*") == [STREAM]
        assert servers.is_native(STREAM)


def test_only_an_unknown_command_or_a_missing_right_says_that_a_server_is_not_penstock() -> None:
    said = {
        b"-ERR unknown command 'PENSTOCK', with args beginning with: 'HELP' \r\n": False,
        b"-NOPERM User u has no permissions to run the 'penstock|help' command\r\n": False,
        b"*0\r\n": True,
    }
    for reply, expected in said.items():
        with FalseSentinel({b"PENSTOCK": [reply]}) as server, servers_of(server) as servers:
            assert is_native(servers.client(STREAM)) is expected
    with (
        FalseSentinel({b"PENSTOCK": [FAILING[2]]}) as server,
        servers_of(server) as servers,
        pytest.raises(redis.RedisError),
    ):
        is_native(servers.client(STREAM))
