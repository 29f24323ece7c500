"""Clients that read slowly, not at all, or leave early: all bytes are correct, and others are served."""

from __future__ import annotations

import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.raw_redis import RawRedis, encode

ENTRIES = 2000
VALUE = b"v" * 200
REPLIES = 20
WAIT_SECONDS_MAX = 60
WHOLE_STREAM = encode([b"XRANGE", b"s", b"-", b"+"])
LIMIT = b"client-output-buffer-limit"


@pytest.fixture(scope="module")
def server() -> Iterator[PenstockServer]:
    with running_penstock() as running:
        with RawRedis(running.port) as client:
            client.ask([[b"XADD", b"s", b"%d-0" % n, b"k", VALUE] for n in range(1, ENTRIES + 1)])
        yield running
        assert "Traceback" not in running.log()


def slow_socket(port: int) -> socket.socket:
    """A connection with a small receive buffer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(WAIT_SECONDS_MAX)
    client.connect(("127.0.0.1", port))
    return client


def clients_of(client: RawRedis) -> int:
    [found] = client.ask([[b"INFO", b"clients"]])
    return int(found.partition(b"connected_clients:")[2].split(b"\r")[0])


def until(condition: Callable[[], bool], server: PenstockServer) -> None:
    """Wait for a condition of the server."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.01)


def until_cut_off(server: PenstockServer, client: socket.socket) -> None:
    address = f"client 127.0.0.1:{client.getsockname()[1]} is disconnected: it has left "
    until(lambda: address in server.log(), server)


def bytes_of(port: int, data: bytes) -> bytes:
    """All replies to a new client."""
    with RawRedis(port) as client:
        client.socket.sendall(data + encode([b"QUIT"]))
        said = client.rest()
        assert said.endswith(b"+OK\r\n")
        return said[:-5]


def rest_of(client: socket.socket) -> bytes:
    """The bytes that arrive before the connection is reset."""
    taken = b""
    try:
        while piece := client.recv(1 << 16):
            taken += piece
    except ConnectionResetError:
        pass
    return taken


def test_a_slow_reader_under_a_flood_gets_every_byte_right(server: PenstockServer) -> None:
    flood = (WHOLE_STREAM + encode([b"ECHO", b"between"])) * REPLIES
    expected = bytes_of(server.port, flood)
    taken = bytearray()
    with closing(slow_socket(server.port)) as slow, RawRedis(server.port) as other:
        slow.sendall(flood)
        n = 0
        while len(taken) < len(expected):
            taken += slow.recv(10_000)
            n += 1
            if n % 20 == 0:
                assert other.ask([[b"XLEN", b"s"], [b"ECHO", b"%d" % n]]) == [ENTRIES, b"%d" % n]
    assert taken == expected


def test_a_slow_reader_is_disconnected_at_the_normal_limit(server: PenstockServer) -> None:
    expected = bytes_of(server.port, WHOLE_STREAM)
    with closing(slow_socket(server.port)) as slow, RawRedis(server.port) as other:
        other.ask([[b"CONFIG", b"SET", LIMIT, b"normal 1000000 0 0"]])
        slow.sendall(WHOLE_STREAM * 50)
        until_cut_off(server, slow)
        taken = rest_of(slow)
        assert (expected * 50).startswith(taken)
        assert len(taken) < 50 * len(expected)
        assert other.ask([[b"XLEN", b"s"], [b"CONFIG", b"SET", LIMIT, b"normal 0 0 0"]]) == [
            ENTRIES,
            "OK",
        ]


def test_a_subscriber_that_does_not_read_is_disconnected_and_the_others_get_all(
    server: PenstockServer,
) -> None:
    text = b"x" * 10_000
    with (
        closing(slow_socket(server.port)) as deaf,
        RawRedis(server.port) as listener,
        RawRedis(server.port) as speaker,
    ):
        speaker.ask([[b"CONFIG", b"SET", LIMIT, b"pubsub 1000000 0 0"]])
        deaf.sendall(encode([b"SUBSCRIBE", b"news"]))
        listener.ask([[b"SUBSCRIBE", b"news"]])
        until(lambda: speaker.ask([[b"PUBSUB", b"NUMSUB", b"news"]]) == [[b"news", 2]], server)
        for _ in range(1000):
            speaker.ask([[b"PUBLISH", b"news", text]])
            assert listener.read() == [b"message", b"news", text]
        until_cut_off(server, deaf)
        assert speaker.ask([[b"PUBLISH", b"news", b"end"]]) == [1]
        assert listener.read() == [b"message", b"news", b"end"]
        begin = b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
        message = encode([b"message", b"news", text])
        assert (begin + message * 1000).startswith(rest_of(deaf))


def test_a_client_that_leaves_during_a_large_reply_leaves_nothing_behind(
    server: PenstockServer,
) -> None:
    with RawRedis(server.port) as other:
        for _ in range(5):
            with closing(slow_socket(server.port)) as slow:
                slow.sendall(WHOLE_STREAM * 10)
                slow.recv(1)
        until(lambda: clients_of(other) == 1, server)
        assert other.ask([[b"XLEN", b"s"]]) == [ENTRIES]


def test_half_sent_frames_and_connections_that_drop_leave_nothing_behind(
    server: PenstockServer,
) -> None:
    whole = encode([b"XADD", b"half", b"*", b"k", b"v" * 100])
    with RawRedis(server.port) as other:
        for n in range(1000):
            client = socket.create_connection(("127.0.0.1", server.port))
            client.sendall(whole[: n % len(whole)])
            if n % 3 == 0:  # a reset instead of an end
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        until(lambda: clients_of(other) == 1, server)
        assert other.ask([[b"EXISTS", b"half"], [b"PING"]]) == [0, "PONG"]


def test_a_thousand_connections_at_once(server: PenstockServer) -> None:
    with ExitStack() as stack, RawRedis(server.port) as other:
        clients = [stack.enter_context(RawRedis(server.port)) for _ in range(1000)]
        for n, client in enumerate(clients):
            client.send([[b"ECHO", b"%d" % n]])
        assert [client.read() for client in clients] == [b"%d" % n for n in range(1000)]
        assert clients_of(other) == 1001
    with RawRedis(server.port) as other:
        until(lambda: clients_of(other) == 1, server)


def test_connections_queue_up_to_the_backlog_while_the_server_is_busy(
    server: PenstockServer,
) -> None:
    server.process.send_signal(signal.SIGSTOP)
    try:
        with ExitStack() as stack:
            clients = []
            for _ in range(400):
                place = ("127.0.0.1", server.port)
                clients.append(stack.enter_context(socket.create_connection(place, timeout=20)))
                clients[-1].sendall(b"PING\r\n")
            server.process.send_signal(signal.SIGCONT)
            assert all(client.recv(7) == b"+PONG\r\n" for client in clients)
    finally:
        server.process.send_signal(signal.SIGCONT)


def test_frames_cut_at_every_byte_boundary(server: PenstockServer) -> None:
    script = b"".join(
        [
            encode([b"HELLO", b"3"]),
            encode([b"XADD", b"cut", b"1-1", b"k", b"a\r\nb"]),
            b"XLEN cut\r\n",
            encode([b"XRANGE", b"cut", b"-", b"+"]),
            encode([b"XFOO"]) + b"\r\n" + b"ECHO 'a b'\n",
            encode([b"DEL", b"cut"]),
        ]
    )
    whole = bytes_of(server.port, script)
    after_id = whole.index(b"mode")
    with RawRedis(server.port) as other:
        for at in range(len(script)):
            with closing(socket.create_connection(("127.0.0.1", server.port))) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sendall(script[:at])
                other.ask([[b"PING"]])  # so that the server has looked at the first half
                client.sendall(script[at:] + encode([b"QUIT"]))
                said = rest_of(client)
            assert said[said.index(b"mode") :] == whole[after_id:] + b"+OK\r\n", at
    with (
        closing(socket.create_connection(("127.0.0.1", server.port))) as client,
        RawRedis(server.port) as other,
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(script)):
            client.sendall(script[at : at + 1])
            other.ask([[b"PING"]])
        client.sendall(encode([b"QUIT"]))
        said = rest_of(client)
    assert said[said.index(b"mode") :] == whole[after_id:] + b"+OK\r\n"
