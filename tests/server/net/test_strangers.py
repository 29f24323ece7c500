"""Connections that have not authenticated use little memory, are closed soon and block no other client."""

from __future__ import annotations

import logging

import pytest

from penstock.server.config.directives import default_config
from penstock.server.net.client_memory import CONNECTION_BYTES
from penstock.server.session.states import OUT_OF_MEMORY
from penstock.server.stats import memory_guard
from penstock.server.stats.memory_guard import check_memory
from penstock.wire.parser import STRANGER_COMMAND_BYTES_MAX
from tests.support.servers.connections import ServerBench, encoded

PASSWORD = "sesame"
REFUSED = b"-ERR Protocol error: unauthenticated bulk length\r\n"


def guarded() -> ServerBench:
    bench = ServerBench()
    config = default_config()
    config.set_at_start("requirepass", PASSWORD)
    config.attach(bench.server)
    return bench


def bulk(size: int) -> bytes:
    return b"$%d\r\n%b\r\n" % (size, b"x" * size)


def test_the_arguments_of_a_command_have_one_limit_together() -> None:
    bench = guarded()
    client = bench.connect()
    assert client.send(b"*10\r\n" + bulk(9000)) == b""
    assert client.send(b"$9000\r\n") == REFUSED
    assert client.closed


def test_a_long_password_is_still_a_password() -> None:
    bench = guarded()
    client = bench.connect()
    long = "x" * 16384
    assert client.run("HELLO", "3", "AUTH", "default", long).startswith(b"-WRONGPASS")
    assert client.run("AUTH", PASSWORD) == b"+OK\r\n"
    assert client.run("ECHO", "x" * 20_000).startswith(b"$20000\r\n")


@pytest.mark.parametrize(
    ("start", "text"),
    [(b"x", b"inline request"), (b"*", b"mbulk count string"), (b"*1\r\n$", b"bulk count string")],
)
def test_a_line_without_an_end_is_refused_early(start: bytes, text: bytes) -> None:
    client = guarded().connect()
    assert client.send(start + b"1" * 16_000) == b""
    assert client.send(b"1" * 1000) == b"-ERR Protocol error: too big " + text + b"\r\n"
    assert client.closed


def test_the_memory_of_a_stranger_is_bounded() -> None:
    """For any input, in pieces of any size."""
    for piece in (1, 999, 5000):
        bench = guarded()
        client = bench.connect()
        data = (b"*10\r\n" + bulk(1000) * 9 + b"$16000\r\n" + b"x" * 16000) * 2
        for at in range(0, len(data), piece):
            client.send(data[at : at + piece])
            if client.closed:
                break
            kept, room = client.session.receiver.kept_bytes()
            assert kept <= room <= STRANGER_COMMAND_BYTES_MAX
        assert client.closed


def test_half_a_command_costs_the_bytes_received() -> None:
    client = ServerBench().connect()
    half = b"*3\r\n$4\r\nXADD\r\n$400000000\r\nhalf"
    client.send(half)
    assert client.session.receiver.kept_bytes() == (len(half), len(half))


def test_a_large_command_gets_a_buffer_of_its_size() -> None:
    client = ServerBench().connect()
    size = 3_000_000
    head = b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % size
    client.send(head + b"x" * (size - 10))
    kept, room = client.session.receiver.kept_bytes()
    assert kept == len(head) + size - 10
    assert room == len(head) + size + 2
    assert client.send(b"x" * 10 + b"\r\n" + b"*1\r\n$4") == b"$%d\r\n%b\r\n" % (size, b"x" * size)
    assert client.session.receiver.kept_bytes() == (6, 6)


def test_a_client_that_does_not_authenticate_in_time_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = guarded()
    silent, talking, late = bench.connect(), bench.connect(), bench.connect()
    assert late.ask(f"AUTH {PASSWORD}") == b"+OK\r\n"
    for _ in range(30):
        bench.advance(1000)
        talking.ask("PING")
    assert bench.server.strangers.since.keys() == {silent.session, talking.session}
    with caplog.at_level(logging.DEBUG):
        bench.advance(1000)
    assert silent.closed
    assert talking.closed
    assert not late.closed
    assert "client 127.0.0.1:50001 is closed: it has not authenticated" in caplog.text
    assert not bench.server.strangers.since
    bench.advance(100_000)
    assert late.ask("PING") == b"+PONG\r\n"


def test_reset_restarts_the_deadline_and_the_password_ends_it() -> None:
    bench = guarded()
    one, two = bench.connect(), bench.connect()
    one.ask(f"AUTH {PASSWORD}")
    two.ask(f"HELLO 2 AUTH default {PASSWORD}")
    bench.advance(60_000)
    one.ask("RESET")
    for _ in range(25):
        bench.advance(1000)
    assert one.ask("PING").startswith(b"-NOAUTH")
    for _ in range(6):
        bench.advance(1000)
    assert one.closed
    assert not two.closed


@pytest.mark.parametrize("setting", ["auth-timeout 0", "requirepass "])
def test_there_is_no_deadline_without_a_password_or_with_a_time_of_0(setting: str) -> None:
    bench = guarded()
    owner, stranger = bench.connect(), bench.connect()
    owner.ask(f"AUTH {PASSWORD}")
    owner.run("CONFIG", "SET", *setting.split(" "))
    for _ in range(100):
        bench.advance(1000)
    assert not stranger.closed


def test_strangers_do_not_make_the_server_refuse_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = guarded()
    bench.server.max_memory = 1_000_000
    strangers = [bench.connect() for _ in range(20)]
    for stranger in strangers:
        stranger.send(b"*10\r\n" + bulk(16_000))
    occupied = 20 * (CONNECTION_BYTES + 16_000)
    monkeypatch.setattr(memory_guard, "resident_bytes", lambda: 1_000_000 + occupied)
    check_memory(bench.server)
    assert not bench.server.state & OUT_OF_MEMORY
    for stranger in strangers:
        stranger.vanish()
    check_memory(bench.server)
    assert bench.server.state & OUT_OF_MEMORY


def test_a_client_counts_after_it_authenticates(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = guarded()
    bench.server.max_memory = 1_000_000
    client = bench.connect()
    client.send(b"*10\r\n" + bulk(5_000))
    monkeypatch.setattr(memory_guard, "resident_bytes", lambda: 1_000_001)
    check_memory(bench.server)
    assert not bench.server.state & OUT_OF_MEMORY
    client.send(bulk(1) * 9 + encoded("AUTH", PASSWORD))
    check_memory(bench.server)
    assert bench.server.state & OUT_OF_MEMORY
