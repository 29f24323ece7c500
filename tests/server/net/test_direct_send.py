"""Replies that are sent without the event loop are complete and in order, whatever the socket takes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from penstock.server.session.reply_buffer import ReplyBuffer
from tests.support.servers.connections import ServerBench
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.raw_redis import encode

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two connected sockets; the first one does not block."""
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right:
        yield left, right


def received(client: socket.socket, size: int) -> bytes:
    """Exactly this many bytes."""
    data = bytearray()
    while len(data) < size:
        part = client.recv(size - len(data))
        assert part, bytes(data)
        data += part
    return bytes(data)


def test_the_socket_gets_the_replies_and_nothing_is_left(pair: Pair) -> None:
    replies = ReplyBuffer()
    replies.output.put_raw(b"+OK\r\n")
    assert replies.send(pair[0].fileno()) == 5
    assert replies.is_empty()
    assert pair[1].recv(100) == b"+OK\r\n"


def test_what_a_full_socket_does_not_take_stays_in_order(pair: Pair) -> None:
    whole = b"".join(b"%09d\n" % number for number in range(200_000))
    replies = ReplyBuffer()
    replies.output.put_raw(whole)
    sent = replies.send(pair[0].fileno())
    assert 0 < sent < len(whole)
    assert replies.send(pair[0].fileno()) == 0  # full
    assert replies.output.take() == whole[sent:]
    assert received(pair[1], sent) == whole[:sent]


def test_a_closed_socket_takes_nothing_and_raises_nothing(pair: Pair) -> None:
    pair[1].close()
    replies = ReplyBuffer()
    replies.output.put_raw(b"+OK\r\n")
    assert replies.send(pair[0].fileno()) == 0
    assert replies.output.take() == b"+OK\r\n"


def test_a_session_sends_to_its_socket_and_the_rest_through_the_loop(pair: Pair) -> None:
    bench = ServerBench()
    client = bench.connect()
    client.session.fd = pair[0].fileno()
    assert client.ask("PING") == b""
    assert pair[1].recv(100) == b"+PONG\r\n"
    value = "x" * 900_000
    assert client.run("SET", "big", value) == b""
    assert pair[1].recv(100) == b"+OK\r\n"
    rest = client.ask("GET big")  # what the socket had no room for
    expected = b"$%d\r\n%s\r\n" % (len(value), value.encode())
    assert 0 < len(rest) < len(expected)
    assert received(pair[1], len(expected) - len(rest)) + rest == expected
    assert bench.server.bytes_out == 7 + 5 + len(expected)


def test_replies_wait_behind_those_that_the_loop_has_not_sent_yet(pair: Pair) -> None:
    bench = ServerBench()
    client = bench.connect()
    client.session.fd = pair[0].fileno()
    client.transport.reads = False
    client.session.deliver([b""])
    client.transport.unsent += b"+before\r\n"
    client.ask("PING")
    assert bytes(client.transport.unsent) == b"+before\r\n+PONG\r\n"
    client.transport.unsent.clear()
    client.ask("PING")
    assert pair[1].recv(100) == b"+PONG\r\n"
    assert not client.transport.unsent


def test_a_session_that_has_ended_does_not_write_to_its_old_socket() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.session.fd = 12345
    client.vanish()
    assert client.session.fd == -1


@pytest.fixture(scope="module")
def server() -> Iterator[PenstockServer]:
    with running_penstock("--appendonly", "no") as running:
        yield running
        assert "Traceback" not in running.log()


def test_small_and_large_replies_of_a_client_that_reads_late_stay_in_order(
    server: PenstockServer,
) -> None:
    """Large replies fill the socket and go through the loop; small ones must not overtake them."""
    rounds = 30
    value = b"v" * 700_000
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(encode([b"SET", b"large", value]))
        assert received(client, 5) == b"+OK\r\n"
        for number in range(rounds):
            client.sendall(encode([b"GET", b"large"]) + encode([b"ECHO", b"%04d" % number]))
        large = b"$%d\r\n%s\r\n" % (len(value), value)
        for number in range(rounds):
            assert received(client, len(large)) == large
            assert received(client, 10) == b"$4\r\n%04d\r\n" % number
