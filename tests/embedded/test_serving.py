"""A Database on a socket: the program and clients use it at the same time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock
from penstock.embedded.serving import Serving
from tests.support.servers.raw_redis import RawRedis

ENTRIES = 300
WAIT_SECONDS_MAX = 20.0


@pytest.fixture
def db() -> Iterator[penstock.Database]:
    with penstock.open() as database:
        yield database


def test_program_and_clients_read_each_others_entries(db: penstock.Database) -> None:
    with db.serve(port=0) as serving, redis.Redis(port=serving.port or 0) as client:
        db.xadd("s", {"from": "program"}, id="1-0")
        client.xadd("s", {"from": "client"}, id="2-0")
        expected = [(b"1-0", {b"from": b"program"}), (b"2-0", {b"from": b"client"})]
        assert client.xrange("s") == expected
        assert db.xrange("s") == expected


def test_a_blocked_client_is_served_by_the_program(db: penstock.Database) -> None:
    with db.serve(port=0) as serving, RawRedis(serving.port or 0) as client:
        for number in range(1, 21):
            client.send([[b"XREAD", b"BLOCK", b"60000", b"STREAMS", b"s", b"$"], [b"PING"]])
            wait_for_reader(serving)
            db.xadd("s", {"a": "b"}, id=f"{number}-0")
            assert client.read() == [[b"s", [[b"%d-0" % number, [b"a", b"b"]]]]]
            assert client.read() == "PONG"


def test_a_blocked_program_is_served_by_a_client(db: penstock.Database) -> None:
    with (
        db.serve(port=0) as serving,
        redis.Redis(port=serving.port or 0) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(db.xread, {"s": "0"}, None, 60_000)
        client.xadd("s", {"a": "b"}, id="1-0")
        found: Any = waiting.result(timeout=20)
        assert found == [[b"s", [(b"1-0", {b"a": b"b"})]]]


def test_a_client_that_selects_another_database_does_not_move_the_program(
    db: penstock.Database,
) -> None:
    with db.serve(port=0) as serving, redis.Redis(port=serving.port or 0, db=5) as client:
        client.xadd("s", {"a": "b"})
        assert db.xlen("s") == 0
        db.xadd("s", {"c": "d"}, id="1-0")
        assert client.xlen("s") == 1
        assert db.xlen("s") == 1


def test_events_of_the_program_reach_a_subscriber(db: penstock.Database) -> None:
    with db.serve(port=0) as serving, RawRedis(serving.port or 0) as client:
        client.ask([[b"CONFIG", b"SET", b"notify-keyspace-events", b"KA"]])
        client.ask([[b"SUBSCRIBE", b"__keyspace@0__:s"]])
        db.xadd("s", {"a": "b"})
        assert client.read() == [b"message", b"__keyspace@0__:s", b"xadd"]


def test_many_threads_and_many_clients_lose_nothing(db: penstock.Database) -> None:
    def from_program(name: str) -> None:
        for _ in range(ENTRIES):
            db.xadd("s", {"from": name})

    def from_client(name: str, port: int) -> None:
        with RawRedis(port) as client:
            for _ in range(ENTRIES // 10):
                client.ask([[b"XADD", b"s", b"*", b"from", name.encode()]] * 10)

    def read(port: int) -> int:
        seen = 0
        with RawRedis(port) as client:
            last = b"0"
            while seen < 4 * ENTRIES:
                words = [b"XREAD", b"COUNT", b"50", b"BLOCK", b"60000", b"STREAMS", b"s", last]
                (reply,) = client.ask([words])
                entries = reply[0][1]
                seen += len(entries)
                last = entries[-1][0]
        return seen

    with db.serve(port=0) as serving, ThreadPoolExecutor(6) as pool:
        port = serving.port or 0
        readers = [pool.submit(read, port) for _ in range(2)]
        writers = [pool.submit(from_program, name) for name in "ab"]
        writers += [pool.submit(from_client, name, port) for name in "cd"]
        for writer in writers:
            writer.result(timeout=120)
        assert [reader.result(timeout=120) for reader in readers] == [4 * ENTRIES] * 2
    assert db.xlen("s") == 4 * ENTRIES


def test_a_blocked_client_times_out(db: penstock.Database) -> None:
    with db.serve(port=0) as serving, RawRedis(serving.port or 0) as client:
        client.send([[b"XREAD", b"BLOCK", b"10", b"STREAMS", b"s", b"$"], [b"PING"]])
        client.read()
        assert client.read() == "PONG"


def test_clients_see_the_settings_of_the_database() -> None:
    with (
        penstock.open(node_entries_max=7, compat_version="7.0") as db,
        db.serve(port=0) as serving,
        redis.Redis(port=serving.port or 0, decode_responses=True) as client,
    ):
        asked = client.config_get("stream-node-max-entries", "compat-version")
        assert asked == {"stream-node-max-entries": "7", "compat-version": "7.0"}


def test_closing_the_serving_disconnects_clients_and_leaves_the_database_open(
    db: penstock.Database,
) -> None:
    serving = db.serve(port=0)
    with RawRedis(serving.port or 0) as client:
        client.send([[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]])
        wait_for_reader(serving)
        serving.close()
        assert client.socket.recv(100) == b""
    serving.close()
    db.xadd("s", {"a": "b"})
    assert db.xlen("s") == 1
    assert "penstock-serve" not in {thread.name for thread in threading.enumerate()}


def test_close_of_the_database_ends_the_serving() -> None:
    db = penstock.open()
    serving = db.serve(port=0)
    db.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", serving.port or 0))
    with pytest.raises(penstock.DatabaseClosed):
        db.serve(port=0)


def test_a_password_a_unix_socket_and_a_port_in_use(db: penstock.Database, tmp_path: Path) -> None:
    path = str(tmp_path / "db.sock")
    with db.serve(port=0, unixsocket=path, password="secret") as serving:
        with redis.Redis(unix_socket_path=path, password="secret") as client:
            assert client.ping()
        with pytest.raises(redis.AuthenticationError), redis.Redis(unix_socket_path=path) as client:
            client.ping()
        with pytest.raises(penstock.ConfigError, match="Address already in use"):
            db.serve(port=serving.port or 0)


def wait_for_reader(serving: Serving) -> None:
    """Wait until a client's command is blocked."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    with RawRedis(serving.port or 0) as client:
        while b"flags=b" not in client.ask([[b"CLIENT", b"LIST"]])[0]:
            assert time.monotonic() < deadline, "no client is blocked"
