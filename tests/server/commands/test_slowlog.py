"""SLOWLOG shows slow commands, newest first, without passwords."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.server.server import NEVER_SLOW
from tests.support.engine.streams import frame_of
from tests.support.servers.connections import ManualClient, ServerBench, encoded
from tests.support.servers.raw_redis import Refusal


def slow() -> tuple[ServerBench, ManualClient]:
    """A server on which every command is slow."""
    bench = ServerBench()
    bench.server.slow_us = 0
    client = bench.connect()
    client.session.info.address = "10.0.0.1:5"
    client.session.info.name = b"me"
    return bench, client


def test_by_default_nothing_is_slow() -> None:
    bench = ServerBench()
    assert bench.server.slow_us == NEVER_SLOW
    assert bench.connect().reply("SLOWLOG GET") == []


def test_an_entry_has_arguments_time_duration_and_client() -> None:
    bench, client = slow()
    client.reply("XLEN s")
    bench.server.slow_us = NEVER_SLOW
    assert client.reply("SLOWLOG GET") == [
        [0, 1_700_000_000, 0, [b"XLEN", b"s"], b"10.0.0.1:5", b"me"]
    ]


def ids(reply: Any) -> list[int]:
    return [entry[0] for entry in reply]


def test_the_newest_entries_come_first_ten_by_default() -> None:
    bench, client = slow()
    for _ in range(12):
        client.reply("XLEN s")
    bench.server.slow_us = NEVER_SLOW
    assert ids(client.reply("SLOWLOG GET")) == list(range(11, 1, -1))
    assert ids(client.reply("SLOWLOG GET 2")) == [11, 10]
    assert ids(client.reply("SLOWLOG GET -1")) == list(range(11, -1, -1))
    assert ids(client.reply("SLOWLOG GET 0")) == []


def test_reset_removes_entries_and_the_ids_continue() -> None:
    bench, client = slow()
    client.reply("XLEN s")
    bench.server.slow_us = NEVER_SLOW
    assert client.reply("SLOWLOG LEN") == 1
    assert client.reply("SLOWLOG RESET") == "OK"
    assert client.reply("SLOWLOG LEN") == 0
    bench.server.slow_us = 0
    client.reply("XLEN s")
    bench.server.slow_us = NEVER_SLOW
    assert ids(client.reply("SLOWLOG GET")) == [1]


@pytest.mark.parametrize("count", ["-2", "x", "9223372036854775808"])
def test_an_invalid_count_is_refused(count: str) -> None:
    refusal = Refusal("ERR count should be greater than or equal to -1")
    assert ServerBench().connect().reply(f"SLOWLOG GET {count}") == refusal


def test_passwords_are_not_shown() -> None:
    bench, client = slow()
    auth = bench.server.tallies.by_name["AUTH"].command
    bench.server.slow_log.note(client.session, auth, frame_of(b"AUTH", b"secret"), 0)
    bench.server.slow_us = NEVER_SLOW
    assert client.reply("SLOWLOG GET")[0][3] == [b"AUTH", b"(redacted)"]


def test_a_command_followed_by_half_a_command_is_logged() -> None:
    _, client = slow()
    assert client.send(encoded("PING") + b"*1\r\n") == b"+PONG\r\n"
    assert client.send(b"$4\r\nPING\r\n\r\n") == b"+PONG\r\n"
    assert client.send(encoded("PING") + b"*x\r\n").startswith(b"+PONG\r\n-ERR Protocol error")
