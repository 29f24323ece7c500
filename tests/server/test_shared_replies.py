"""Readers that get the same reply: all are served at once, and get it over several turns."""

from __future__ import annotations

import pytest

from penstock.server.turn import SHARED_BYTES_MAX, SHARED_CLIENTS_MAX
from tests.support.servers.connections import ManualClient, ServerBench, encoded

READ = encoded("XREAD", "BLOCK", "100", "STREAMS", "s", "$")
READ_GROUP = encoded("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
ADD = encoded("XADD", "s", "1-1", "k", "v")
ENTRIES = b"*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n"
REPLY = b"*1\r\n*2\r\n$1\r\ns\r\n" + ENTRIES


def blocked_readers(server: ServerBench, count: int, read: bytes = READ) -> list[ManualClient]:
    clients = [server.connect() for _ in range(count)]
    for client in clients:
        assert client.send(read) == b""
    return clients


def received(clients: list[ManualClient]) -> list[bytes]:
    """What each client has received, without another turn."""
    return [bytes(client.transport.taken) for client in clients]


def test_one_turn_hands_out_a_limited_number() -> None:
    server = ServerBench()
    producer = server.connect()
    clients = blocked_readers(server, 2 * SHARED_CLIENTS_MAX + 10)
    producer.put(ADD)
    assert server.engine.waiters.count == 0
    counts: list[int] = []
    while len(counts) < 4:
        server.loop.step()
        counts.append(sum(map(bool, received(clients))))
    assert counts == [256, 512, 522, 522]
    assert set(received(clients)) == {REPLY}
    assert producer.heard() == b"$3\r\n1-1\r\n"


def test_one_turn_hands_out_a_limited_number_of_bytes() -> None:
    server = ServerBench()
    producer = server.connect()
    clients = blocked_readers(server, 5)
    producer.put(encoded("XADD", "s", "1-1", "k", bytes(SHARED_BYTES_MAX // 2)))
    while not any(received(clients)):
        server.loop.step()
    assert sum(map(bool, received(clients))) == 1
    server.loop.run()
    assert {len(data) for data in received(clients)} == {len(received(clients)[0])}


def test_a_reply_shows_the_stream_as_it_was_when_the_reader_was_served() -> None:
    server = ServerBench()
    producer = server.connect()
    clients = blocked_readers(server, SHARED_CLIENTS_MAX + 1)
    producer.put(ADD)
    server.loop.step()
    producer.put(encoded("XADD", "s", "2-1", "k", "v") + encoded("XTRIM", "s", "MAXLEN", "0"))
    server.loop.run()
    assert set(received(clients)) == {REPLY}


def test_both_protocols_get_the_reply() -> None:
    server = ServerBench()
    producer = server.connect()
    clients = [server.connect() for _ in range(4)]
    for client in clients[1:3]:
        client.ask("HELLO 3")
    for client in clients:
        client.send(READ)
    producer.put(ADD)
    resp3 = b"%1\r\n$1\r\ns\r\n" + ENTRIES
    assert [client.heard() for client in clients] == [REPLY, resp3, resp3, REPLY]


def test_a_served_reader_can_no_longer_time_out_or_be_unblocked() -> None:
    server = ServerBench()
    producer = server.connect()
    clients = blocked_readers(server, SHARED_CLIENTS_MAX + 2)
    last, doomed = clients[-1], clients[-2]
    producer.put(ADD + encoded("CLIENT", "UNBLOCK", str(last.session.id)))
    server.loop.step()
    assert last.session.waiter is not None
    last.session.waiter.time_out()
    doomed.transport.abort()
    server.advance(100)
    assert producer.heard() == b"$3\r\n1-1\r\n:0\r\n"
    assert last.heard() == REPLY
    assert received([doomed]) == [b""]


def test_commands_behind_the_read_run_after_it() -> None:
    server = ServerBench()
    producer = server.connect()
    clients = blocked_readers(server, SHARED_CLIENTS_MAX + 1, READ + encoded("PING"))
    producer.put(ADD)
    server.loop.run()
    assert set(received(clients)) == {REPLY + b"+PONG\r\n"}


def test_a_stop_sends_all_replies() -> None:
    server = ServerBench()
    clients = blocked_readers(server, 3 * SHARED_CLIENTS_MAX)
    server.connect().put(ADD)
    server.server.turn.end_all()
    assert set(received(clients)) == {REPLY}


@pytest.mark.parametrize("line", ["XGROUP DESTROY s g", "DEL s"])
def test_readers_of_a_group_share_an_error(line: str) -> None:
    server = ServerBench()
    producer = server.connect()
    producer.ask("XGROUP CREATE s g $ MKSTREAM")
    clients = blocked_readers(server, SHARED_CLIENTS_MAX + 1, READ_GROUP)
    other = server.connect()
    other.send(
        encoded("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", "s", ">", ">")
    )
    producer.put(encoded(*line.split()))
    assert server.engine.waiters.count == 0
    server.loop.step()
    assert sum(map(bool, received(clients))) < len(clients)
    server.loop.run()
    [error] = set(received(clients))
    assert error.startswith(b"-NOGROUP ")
    assert other.heard() == error
    assert server.server.errors["NOGROUP"] == len(clients) + 1
