"""Connections: errors are reported in one line, and no password is ever shown."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from penstock.cli.connect import ServerConnection
from penstock.cli.terminal.outcome import Failure
from tests.support.command_line import CommandLine, url_of
from tests.support.replication.false_sentinel import FalseSentinel

SECRET = "hunter2"


@pytest.fixture
def guarded(penstock: CommandLine) -> Iterator[CommandLine]:
    """A server with a password."""
    client = penstock.server.client
    client.config_set("requirepass", SECRET)
    yield penstock
    client.config_set("requirepass", "")  # this connection was let in before


@pytest.mark.parametrize(
    "url",
    [
        "",
        SECRET,
        f"http://:{SECRET}@host/",
        f"rediss//{SECRET}",
        f"redis://:{SECRET}/x@127.0.0.1:1/0",
        f"redis://:{SECRET}#x@127.0.0.1:1/0",
        f"redis://:{SECRET}?x@127.0.0.1:1/0",
        f"redis://:12345/{SECRET}@127.0.0.1:1/0",
        f"redis://127.0.0.1:{SECRET}/0",
        f"redis://127.0.0.1:1/{SECRET}",
        f"redis://:{SECRET}@127.0.0.1:99999/0",
        f"redis://:{SECRET}@[::1/0",
        f"redis://:{SECRET}@127.0.0.1:1/0?no_such_option=1",
        f"redis://:{SECRET}@127.0.0.1:1/0?socket_connect_timeout={SECRET}",
    ],
)
def test_a_url_that_cannot_be_used_is_a_usage_error(penstock: CommandLine, url: str) -> None:
    code, line = penstock.error("info", "--url", url)
    assert code == 2
    assert SECRET not in line
    assert "12345" not in line


@pytest.mark.parametrize(
    "words",
    [["info"], ["groups", "s"], ["pending", "s", "g"], ["tail", "s"], ["add", "s", "a=1"]],
)
def test_a_server_that_is_not_running(penstock: CommandLine, words: list[str]) -> None:
    with socket.socket() as bound_but_not_listening:
        bound_but_not_listening.bind(("127.0.0.1", 0))
        port = bound_but_not_listening.getsockname()[1]
        code, line = penstock.error(*words, "--url", f"redis://:{SECRET}@127.0.0.1:{port}/0")
    assert (code, line) == (3, f"cannot reach 127.0.0.1:{port}: Connection refused")


@pytest.mark.parametrize("url", ["redis://a..b:1/0", f"unix:///none?password={SECRET}"])
def test_a_host_or_socket_that_does_not_exist(penstock: CommandLine, url: str) -> None:
    code, line = penstock.error("info", "--url", url)
    assert code == 3
    assert SECRET not in line


@pytest.mark.parametrize(
    "error",
    [
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "LOADING Redis is loading the dataset in memory",
        "UNBLOCKED force unblock from blocking operation, instance state changed",
        "NOREPLICAS Not enough good replicas to write.",
        "MISCONF Errors writing to the AOF file",
    ],
)
def test_a_primary_that_is_replaced_is_asked_again(error: str) -> None:
    answers = [f"-{error}\r\n".encode(), b":1\r\n"]
    with FalseSentinel({b"XACK": answers}) as server:
        with ServerConnection(server.url, retry_seconds=20) as connection:
            assert connection.ask("XACK", "s", "g", "1-1") == 1
        asked = [words[0] for words in server.heard]
        assert asked.count(b"SENTINEL") == 2
        answers[:] = [f"-{error}\r\n".encode()]
        with ServerConnection(server.url) as connection, pytest.raises(Failure):
            connection.ask("XACK", "s", "g", "1-1")


def test_lines_that_cannot_be_sent_say_how_many_were_added(penstock: CommandLine) -> None:
    code, line = penstock.error("add", "s", "-", "--url", "unix:///none", stdin='{"a":1}\n')
    assert code == 3
    assert line.endswith("; 0 added before, and possibly some of the next 1")


def test_a_password_is_required_and_checked(guarded: CommandLine) -> None:
    port = guarded.server.port
    code, line = guarded.error("info")
    assert code == 1
    assert "refuses the login: Authentication required. The password is a part of the URL" in line
    code, line = guarded.error("info", "--url", f"redis://:wrong{SECRET}@127.0.0.1:{port}/0")
    assert code == 1
    assert SECRET not in line
    assert guarded.lines("add", "s", "a=1", "--url", f"redis://:{SECRET}@127.0.0.1:{port}/0")


def test_a_user_who_may_only_read_can_tail(penstock: CommandLine) -> None:
    client = penstock.server.client
    client.xadd("s", {"a": 1}, id="1-0")
    client.acl_setuser(
        "reader", enabled=True, passwords=[f"+{SECRET}"], keys=["s"], categories=["+@read"]
    )
    try:
        url = f"redis://reader:{SECRET}@127.0.0.1:{penstock.server.port}/0"
        assert (
            len(penstock.lines("tail", "s", "--from", "99999w", "--no-follow", "--url", url)) == 1
        )
        code, line = penstock.error("add", "s", "a=1", "--url", url)
    finally:
        client.acl_deluser("reader")
    assert code == 1
    assert line.startswith("s: ")
    assert "permissions" in line


def test_another_protocol_and_decoding_in_the_url_change_nothing(penstock: CommandLine) -> None:
    options = "?protocol=3&decode_responses=true&socket_timeout=0.001"
    url = url_of(penstock.server) + options
    penstock.lines("add", "s", "a=1", "--id", "1-0", "--url", url)
    lines = penstock.lines("tail", "s", "--no-follow", "--format", "{id} {fields}", "--url", url)
    assert lines == ["1-0 a=1"]


def test_the_option_wins_over_the_environment(penstock: CommandLine) -> None:
    other = f"redis://127.0.0.1:{penstock.server.port}/5"
    penstock.lines("add", "s", "a=1", "--url", other)
    assert not penstock.server.client.exists("s")
    code, line = penstock.error("info", "--url", other.replace("/5", "/5000"))
    assert code == 1
    assert "DB index" in line


def test_a_server_that_is_not_redis(penstock: CommandLine) -> None:
    """A server with another protocol."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad\x1b Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        code, line = penstock.error("info", "--url", f"redis://127.0.0.1:{port}/0")
        thread.join()
    assert code == 3
    assert line.isprintable()
