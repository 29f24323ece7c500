"""maxmemory-clients: the largest clients are evicted first, and no more than necessary."""

from __future__ import annotations

import logging

import pytest

from penstock.server.config.directives import default_config
from penstock.server.cron import Cron
from tests.support.servers.connections import ManualClient, ServerBench, encoded
from tests.support.servers.raw_redis import Refusal

MB = 1 << 20


def limited(setting: str = "4mb") -> tuple[ServerBench, ManualClient]:
    """A server with a limit, and a client."""
    bench = ServerBench()
    config = default_config()
    config.set_at_start("maxmemory-clients", setting)
    config.attach(bench.server)
    return bench, bench.connect()


def half_command(client: ManualClient, size: int) -> None:
    """Send the first bytes of a command."""
    client.send(b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (2 * size) + bytes(size))


def field(client: ManualClient, section: str, name: str) -> int:
    text = client.reply(f"INFO {section}")
    return int(text.partition(b"%b:" % name.encode())[2].split(b"\r")[0])


def check_total(bench: ServerBench) -> None:
    sessions = bench.server.sessions.values()
    assert bench.server.client_memory.total == sum(one.counted_bytes for one in sessions)


def test_the_largest_client_is_evicted_first(caplog: pytest.LogCaptureFixture) -> None:
    bench, owner = limited("8mb")
    clients = [bench.connect() for _ in range(3)]
    for client, size in zip(clients, (MB, 2 * MB, MB // 2), strict=True):
        half_command(client, size)
    with caplog.at_level(logging.INFO):
        half_command(bench.connect(), MB)
    assert [client.closed for client in clients] == [False, True, False]
    assert "client 127.0.0.1:50003 is evicted: it uses" in caplog.text
    assert field(owner, "stats", "evicted_clients") == 1
    check_total(bench)
    owner.ask("CONFIG RESETSTAT")
    assert field(owner, "stats", "evicted_clients") == 0


def test_unread_replies_count() -> None:
    bench, owner = limited()
    slow, calm = bench.connect(), bench.connect()
    slow.transport.reads = False
    for _ in range(6):
        slow.send(encoded("ECHO", bytes(MB)))
    assert slow.closed
    assert not calm.closed
    assert field(owner, "stats", "evicted_clients") == 1
    check_total(bench)


def test_a_subscriber_that_does_not_read_is_evicted() -> None:
    bench, owner = limited()
    listener = bench.connect()
    listener.ask("SUBSCRIBE c")
    listener.transport.reads = False
    for _ in range(6):
        owner.run("PUBLISH", "c", bytes(MB))
    assert listener.closed


def test_queued_commands_count_at_the_next_check() -> None:
    bench, owner = limited()
    client = bench.connect()
    client.ask("MULTI")
    for _ in range(700):
        assert client.run("SET", "k", bytes(10_000)) == b"+QUEUED\r\n"
    assert bench.server.config is not None
    Cron(bench.server, bench.server.config).work()
    bench.loop.run()
    assert client.closed
    assert owner.ask("PING") == b"+PONG\r\n"


def test_no_evict_exempts_a_client_but_its_memory_counts(caplog: pytest.LogCaptureFixture) -> None:
    bench, owner = limited()
    owner.ask("CLIENT NO-EVICT ON")
    spared, other = bench.connect(), bench.connect()
    spared.ask("CLIENT NO-EVICT ON")
    with caplog.at_level(logging.INFO):
        half_command(spared, 5 * MB)
        half_command(spared, 5 * MB)
    assert not spared.closed
    assert other.closed
    assert caplog.text.count("clients with NO-EVICT use more memory") == 1
    spared.vanish()
    assert not bench.connect().closed
    check_total(bench)


def test_a_percentage_is_of_maxmemory() -> None:
    bench, owner = limited("50%")
    assert owner.reply("CONFIG GET maxmemory-clients") == [b"maxmemory-clients", b"50%"]
    assert bench.server.client_memory.limit == 0
    bench.server.max_memory = 10 * MB
    assert bench.server.client_memory.limit == 5 * MB
    client = bench.connect()
    half_command(client, 6 * MB)
    assert client.closed


def test_a_limit_is_never_too_low_to_be_raised() -> None:
    bench, owner = limited("1")
    assert bench.server.client_memory.limit == 128 * 1024
    assert owner.reply("CONFIG SET maxmemory-clients 0") == "OK"
    client = bench.connect()
    half_command(client, 10 * MB)
    assert not client.closed


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x", "argument must be a memory or percent value"),
        ("-5%", "argument must be a memory or percent value"),
        ("101%", "percentage argument must be less or equal to 100"),
    ],
)
def test_an_invalid_value_is_refused_as_in_redis(value: str, why: str) -> None:
    _, owner = limited()
    head = "ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - "
    assert owner.reply("CONFIG", "SET", "maxmemory-clients", value) == Refusal(head + why)


def test_a_new_limit_takes_effect_at_once() -> None:
    bench, owner = limited("0")
    client = bench.connect()
    half_command(client, 3 * MB)
    assert owner.reply("CONFIG SET maxmemory-clients 1mb") == "OK"
    assert client.closed


def test_memory_of_clients_is_shown() -> None:
    bench, owner = limited("0")
    before = field(owner, "memory", "mem_clients_normal")
    client = bench.connect()
    half_command(client, 3 * MB)
    assert field(owner, "memory", "mem_clients_normal") >= before + 3 * MB
    assert (
        dict(zip(*[iter(owner.reply("MEMORY STATS"))] * 2, strict=True))[b"clients.normal"]
        >= 3 * MB
    )
    client.vanish()
    assert field(owner, "memory", "mem_clients_normal") == before
    check_total(bench)
