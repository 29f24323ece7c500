"""Ten thousand blocked clients: all are served, and other clients are not delayed."""

from __future__ import annotations

import resource
from contextlib import ExitStack

import pytest

from tests.support.campaign import cases
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.raw_redis import RawRedis

READ = [b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]
READ_GROUP = [
    b"XREADGROUP",
    b"GROUP",
    b"g",
    b"c",
    b"BLOCK",
    b"0",
    b"COUNT",
    b"1",
    b"STREAMS",
    b"t",
    b">",
]
SPARE_FILES = 200


def test_ten_thousand_blocked_clients() -> None:
    count = cases(10_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + SPARE_FILES:
        pytest.skip(f"ulimit -Hn is {hard}: not enough for {count} clients")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + SPARE_FILES)), hard))
    with running_penstock("--maxclients", str(count + 10)) as server, ExitStack() as stack:
        other = stack.enter_context(RawRedis(server.port))
        other.ask([[b"XGROUP", b"CREATE", b"t", b"g", b"$", b"MKSTREAM"]])
        clients = [stack.enter_context(RawRedis(server.port)) for _ in range(count)]
        readers, consumers = clients[::2], clients[1::2]
        for reader in readers:
            reader.send([READ])
        for consumer in consumers:
            consumer.send([READ_GROUP])
        while blocked(other) < count:
            pass
        assert other.ask([[b"PING"], [b"XADD", b"s", b"1-1", b"k", b"v"]]) == ["PONG", b"1-1"]
        assert all(reader.read() == [[b"s", [[b"1-1", [b"k", b"v"]]]]] for reader in readers)
        other.ask([[b"XADD", b"t", b"%d-0" % n, b"k", b"v"] for n in range(1, len(consumers) + 1)])
        # In the order of arrival, one each.
        for n, consumer in enumerate(consumers, 1):
            assert consumer.read() == [[b"t", [[b"%d-0" % n, [b"k", b"v"]]]]]
        assert blocked(other) == 0
        for client in clients[::10]:
            client.send([READ])
        while blocked(other) < len(clients[::10]):
            pass
        stack.pop_all().close()  # closes all connections at once, including the blocked ones
        with RawRedis(server.port) as last:
            while blocked(last):
                pass
            assert last.ask([[b"XADD", b"s", b"2-1", b"k", b"v"]]) == [b"2-1"]
        assert "Traceback" not in server.log()


def blocked(client: RawRedis) -> int:
    [found] = client.ask([[b"INFO", b"clients"]])
    return int(found.partition(b"blocked_clients:")[2].split(b"\r")[0])
