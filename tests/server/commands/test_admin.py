"""TIME, ROLE, WAIT, LASTSAVE, SHUTDOWN, ACL WHOAMI, FUNCTION FLUSH, SCRIPT FLUSH."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.server.lifecycle import StopRequest
from tests.support.engine.engines import SYNTAX
from tests.support.servers.connections import RecordingLifecycle, ServerBench
from tests.support.servers.durable_bench import DurableBench
from tests.support.servers.raw_redis import Refusal


def test_time_is_in_seconds_and_microseconds() -> None:
    bench = ServerBench()
    bench.advance(1234)
    assert bench.connect().reply("TIME") == [b"1700000001", b"234000"]


def test_the_role_is_that_of_a_master_without_replicas() -> None:
    assert ServerBench().connect().reply("ROLE") == [b"master", 0, []]


def test_wait_for_no_replicas_returns_at_once() -> None:
    assert ServerBench().connect().reply("WAIT 0 0") == 0


def test_wait_for_replicas_times_out() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.tell("WAIT 1 100")
    client.tell("PING")
    bench.advance(99)
    assert client.replies() == []
    bench.advance(1)
    assert client.replies() == [0, "PONG"]


def test_a_transaction_does_not_wait_for_replicas() -> None:
    client = ServerBench().connect()
    client.reply("MULTI")
    client.reply("WAIT 1 0")
    assert client.reply("EXEC") == [0]


def test_a_disconnected_client_waits_no_longer() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.tell("WAIT 1 0")
    assert bench.engine.waiters.count == 1
    client.vanish()
    assert bench.engine.waiters.count == 0


def test_lastsave_is_the_start_time_until_there_is_a_snapshot(tmp_path: Path) -> None:
    assert ServerBench().connect().reply("LASTSAVE") == 1_700_000_000
    bench = DurableBench(tmp_path, appendonly="no")
    client = bench.connect()
    bench.advance(5000)
    assert client.reply("LASTSAVE") == 1_700_000_000
    client.tell("SAVE")
    bench.advance(5000)
    assert client.replies() == ["OK"]
    assert client.reply("LASTSAVE") == 1_700_000_005


@pytest.mark.parametrize(
    ("words", "request_made"),
    [
        ("", StopRequest(None, False, False)),
        ("NOSAVE", StopRequest(False, False, False)),
        ("save now now", StopRequest(True, True, False)),
        ("FORCE NOSAVE", StopRequest(False, False, True)),
    ],
)
def test_shutdown_requests_a_stop_and_has_no_reply(words: str, request_made: StopRequest) -> None:
    bench = ServerBench()
    bench.server.lifecycle = owner = RecordingLifecycle()
    client = bench.connect()
    client.tell(f"SHUTDOWN {words}")
    assert client.replies() == []
    assert owner.stops == [request_made]


@pytest.mark.parametrize("words", ["NOPE", "SAVE NOSAVE", "ABORT NOW", "NOSAVE NOSAVE ABORT"])
def test_shutdown_refuses_invalid_arguments(words: str) -> None:
    bench = ServerBench()
    bench.server.lifecycle = owner = RecordingLifecycle()
    assert bench.connect().reply(f"SHUTDOWN {words}") == Refusal(SYNTAX)
    assert owner.stops == []


def test_there_is_no_shutdown_to_abort() -> None:
    assert ServerBench().connect().reply("SHUTDOWN ABORT") == Refusal(
        "ERR No shutdown in progress."
    )


def test_shutdown_without_an_owner_is_an_error() -> None:
    text = "ERR Errors trying to SHUTDOWN. Check logs."
    assert ServerBench().connect().reply("SHUTDOWN") == Refusal(text)


def test_every_client_is_the_default_user() -> None:
    assert ServerBench().connect().reply("ACL WHOAMI") == b"default"


def test_there_are_no_scripts_and_no_functions_to_flush() -> None:
    client = ServerBench().connect()
    for line in ("FUNCTION FLUSH", "FUNCTION FLUSH async", "SCRIPT FLUSH", "SCRIPT FLUSH SYNC"):
        assert client.reply(line) == "OK"
