"""SHUTDOWN with replicas that are behind, and with a disk that fails."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.replication.links import QUICK, client_of, eventually, follow, online
from tests.support.servers.penstock_server import PenstockServer, running_penstock


@pytest.fixture
def primary() -> Iterator[PenstockServer]:
    """Its replica does nothing, and has not got the last write."""
    with (
        running_penstock(*QUICK, "--shutdown-timeout", "600") as server,
        running_penstock(*QUICK) as replica,
    ):
        follow(client_of(replica.port), server.port)
        online(client_of(server.port))
        replica.process.send_signal(signal.SIGSTOP)
        client_of(server.port).set("a", "1")
        yield server
        replica.process.send_signal(signal.SIGCONT)
        if server.process.poll() is None:
            server.kill()


@contextmanager
def told(server: PenstockServer, *words: str) -> Iterator[Any]:
    """Send a command; yields the connection."""
    with client_of(server.port) as client:
        connection = client.connection_pool.get_connection()
        connection.send_command(*words)
        yield connection


def blocked(server: PenstockServer) -> int:
    return int(client_of(server.port).info("clients")["blocked_clients"])


def test_now_does_not_wait_for_replicas(primary: PenstockServer) -> None:
    with told(primary, "SHUTDOWN", "NOW"):
        assert primary.wait() == 0


def test_now_ends_a_stop_that_waits(primary: PenstockServer) -> None:
    with told(primary, "SHUTDOWN"):
        eventually(lambda: blocked(primary) == 1)
        with told(primary, "SHUTDOWN", "NOW"):
            assert primary.wait() == 0


def test_abort_gives_up_a_stop_that_waits_for_replicas(primary: PenstockServer) -> None:
    client = client_of(primary.port)
    with pytest.raises(redis.RedisError, match="No shutdown in progress"):
        client.execute_command("SHUTDOWN", "ABORT")
    with told(primary, "SHUTDOWN") as stopping:
        eventually(lambda: blocked(primary) == 1)
        with told(primary, "SET", "a", "2") as writing:
            assert client.get("a") == b"1"
            assert client.execute_command("SHUTDOWN", "ABORT")
            with pytest.raises(redis.RedisError, match="Errors trying to SHUTDOWN"):
                stopping.read_response()
            assert writing.read_response() == b"OK"
    assert client.get("a") == b"2"
    primary.process.send_signal(signal.SIGTERM)
    eventually(lambda: client.execute_command("SHUTDOWN", "ABORT"), "SIGTERM can be aborted too")
    assert client.set("a", "3")


def test_a_server_that_cannot_save_stops_only_by_force(tmp_path: Path) -> None:
    arguments = ("--appendonly", "no", "--save", "3600 1")
    with running_penstock(*QUICK, *arguments, data=tmp_path) as server:
        client = client_of(server.port)
        client.set("a", "1")
        (tmp_path / "dump.rdb").mkdir()  # the snapshot cannot take its place
        with (
            told(server, "SHUTDOWN") as stopping,
            pytest.raises(redis.RedisError, match="Errors trying to SHUTDOWN"),
        ):
            stopping.read_response()
        assert client.get("a") == b"1"
        assert client.set("a", "2")
        with told(server, "SHUTDOWN", "FORCE"):
            assert server.wait() == 1
