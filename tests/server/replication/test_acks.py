"""min-replicas-ack: a reply leaves when enough replicas have the changes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.replication.links import QUICK, client_of, eventually, follow, linked, online
from tests.support.servers.connections import encoded
from tests.support.servers.durable_bench import DurableBench
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.raw_redis import Refusal
from tests.support.servers.redis_server import running_redis

Pair = tuple[PenstockServer, PenstockServer]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with running_penstock(*QUICK) as primary, running_penstock(*QUICK) as replica:
        follow(client_of(replica.port), primary.port)
        online(client_of(primary.port))
        client_of(primary.port).config_set("min-replicas-ack", 1)
        yield primary, replica


@pytest.fixture
def stopped(pair: Pair) -> Iterator[Pair]:
    """The replica is there, but does nothing."""
    pair[1].process.send_signal(signal.SIGSTOP)
    yield pair
    pair[1].process.send_signal(signal.SIGCONT)


def online_none(primary: Any) -> None:
    """Wait until a primary has noticed that its replica is gone."""
    eventually(lambda: primary.info("replication")["connected_slaves"] == 0)


def test_a_write_that_was_answered_is_on_the_replica(pair: Pair) -> None:
    primary, replica = (client_of(server.port) for server in pair)
    for number in range(100):
        entry = primary.xadd("s", {"n": number})
        assert replica.xrevrange("s", count=1)[0][0] == entry


def test_with_fsync_it_is_on_the_replicas_disk(tmp_path: Path) -> None:
    with (
        running_penstock(*QUICK) as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as replica,
    ):
        follow(client_of(replica.port), primary.port)
        client = client_of(primary.port)
        online(client)
        client.config_set("min-replicas-ack", 1)
        client.config_set("min-replicas-ack-fsync", "yes")
        for number in range(50):
            client.xadd("s", {"n": number})
        replica.kill()
        replica.start()
        assert client_of(replica.port).xlen("s") == 50


def test_a_redis_replica_acks_too() -> None:
    with running_penstock(*QUICK, "--compat-version", "7.0") as primary, running_redis() as replica:
        client = client_of(primary.port)
        client.set("not", "empty")
        follow(replica.client, primary.port)
        online(client)
        client.config_set("min-replicas-ack", 1)
        for number in range(20):
            entry = client.xadd("s", {"n": number})
            assert client_of(replica.port).xrevrange("s", count=1)[0][0] == entry


def test_a_write_without_acks_becomes_an_error_and_other_commands_do_not_wait(
    stopped: Pair,
) -> None:
    client = client_of(stopped[0].port)
    with client_of(stopped[0].port) as writer:
        connection = writer.connection_pool.get_connection()
        connection.send_command("XADD", "s", "*", "k", "v")
        eventually(lambda: client.info("replication")["master_repl_offset"] > 0)
        assert client.ping()
        assert client.config_get("port")
        assert client.publish("x", "y") == 0
        with pytest.raises(redis.RedisError, match="Not enough good replicas"):
            connection.read_response()
    # From now on writes are refused before they run, and reads are answered.
    eventually(lambda: client.xlen("s") == 1)
    with pytest.raises(redis.RedisError, match="Not enough good replicas"):
        client.xadd("s", {"k": "v"})
    assert client.xlen("s") == 1
    stopped[1].process.send_signal(signal.SIGCONT)
    eventually(lambda: client.xadd("s", {"k": "v"}))


def test_reads_wait_too_if_stale_reads_are_not_allowed(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(primary.port)
    client.config_set("min-replicas-stale-reads", "no")
    client.set("a", "1")
    assert client.get("a") == b"1"
    replica.kill()
    online_none(client)
    with pytest.raises(redis.RedisError, match="Not enough good replicas"):
        client.get("a")
    assert client.ping()


def test_writes_go_on_when_the_replica_is_back(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(primary.port)
    client.set("a", "1")
    replica.kill()
    online_none(client)
    with pytest.raises(redis.RedisError, match="Not enough good replicas"):
        client.set("a", "2")
    assert client.get("a") == b"1"
    replica.start()
    replica_client = client_of(replica.port)
    replica_client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
    linked(replica_client)
    eventually(lambda: client.set("a", "3"))
    assert replica_client.get("a") == b"3"


def test_pipelines_and_transactions_wait_as_a_whole(pair: Pair) -> None:
    primary, replica = (client_of(server.port) for server in pair)
    steps = primary.pipeline(transaction=True)
    for number in range(200):
        steps.xadd("s", {"n": number})
    assert len(steps.execute()) == 200
    assert replica.xlen("s") == 200
    with primary.pipeline(transaction=False) as many:
        for number in range(500):
            many.xadd("s", {"n": number})
            many.ping()
        many.execute()
    assert replica.xlen("s") == 700


def test_a_blocked_reader_is_answered_when_the_replica_has_the_delivery(pair: Pair) -> None:
    primary, replica = (client_of(server.port) for server in pair)
    primary.xgroup_create("s", "g", mkstream=True)
    with client_of(pair[0].port) as reader:
        connection = reader.connection_pool.get_connection()
        connection.send_command(
            "XREADGROUP", "GROUP", "g", "c", "BLOCK", 20000, "STREAMS", "s", ">"
        )
        eventually(lambda: primary.info("clients")["blocked_clients"] == 1)
        primary.xadd("s", {"k": "v"})
        assert connection.read_response()
    assert replica.xpending("s", "g")["pending"] == 1


def test_replies_keep_their_order_when_acks_are_not_needed_any_more(stopped: Pair) -> None:
    client = client_of(stopped[0].port)
    client.config_set("min-replicas-ack-timeout", 60000)
    with client_of(stopped[0].port) as writer:
        connection = writer.connection_pool.get_connection()
        connection.send_command("XADD", "s", "1-1", "k", "v")
        eventually(lambda: client.info("replication")["master_repl_offset"] > 0)
        connection.send_command("PING")
        client.config_set("min-replicas-ack", 0)
        connection.send_command("XLEN", "s")
        assert [connection.read_response() for _ in range(3)] == [b"1-1", b"PONG", 1]


def read_lines(connection: Any, count: int) -> list[str]:
    """The next lines that a server sends."""
    file = connection._sock.makefile("rb")
    return [file.readline().decode().strip() for _ in range(count)]


def test_a_write_without_acks_is_refused_when_the_role_changes_in_the_same_turn(
    stopped: Pair,
) -> None:
    with client_of(stopped[0].port) as writer:
        connection = writer.connection_pool.get_connection()
        connection.send_packed_command(
            connection.pack_commands(
                [("XADD", "s", "1-1", "k", "v"), ("REPLICAOF", "127.0.0.1", 1), ("PING",)]
            )
        )
        assert read_lines(connection, 3) == [
            "-NOREPLICAS Not enough good replicas to write.",
            "+OK",
            "+PONG",
        ]


def test_a_transaction_cannot_write_and_then_change_the_role(stopped: Pair) -> None:
    with client_of(stopped[0].port) as writer:
        connection = writer.connection_pool.get_connection()
        connection.send_packed_command(
            connection.pack_commands(
                [
                    ("MULTI",),
                    ("XADD", "s", "1-1", "k", "v"),
                    ("REPLICAOF", "127.0.0.1", 1),
                    ("EXEC",),
                ]
            )
        )
        last = read_lines(connection, 4)[-1]
        assert last == "-NOREPLICAS Not enough good replicas to write."
    assert client_of(stopped[0].port).info("replication")["role"] == "master"


def test_with_a_slow_disk_a_write_without_acks_is_refused_when_the_role_changes(
    tmp_path: Path,
) -> None:
    """Its reply waits for the disk while the role changes, that of the other client is of the same turn."""

    async def run() -> None:
        bench = DurableBench(tmp_path, min_replicas_ack="1")
        replication = bench.server.replication
        replication.feed.begin()
        replica, first, second, admin = (bench.connect() for _ in range(4))
        history = replication.feed.history
        replica.tell(f"PSYNC {history.id} {history.offset + 1}")
        assert replica.heard().startswith(b"+CONTINUE")
        replication.require_acks()
        first.tell("XADD s 1-1 k v")
        first.tell("PING")
        second.put(encoded("XADD", "s", "2-1", "k", "v"))
        admin.tell("REPLICAOF 127.0.0.1 1")
        bench.sync()
        refused = Refusal("NOREPLICAS Not enough good replicas to write.")
        assert first.replies() == [refused, "PONG"]
        assert second.replies() == [refused]
        assert admin.replies() == ["OK"]
        assert replication.link is not None
        replication.link.stop()

    asyncio.run(run())


def test_a_write_with_acks_keeps_its_reply_when_the_role_changes(tmp_path: Path) -> None:
    """It waits for the disk only."""

    async def run() -> None:
        bench = DurableBench(tmp_path, min_replicas_ack="1")
        replication = bench.server.replication
        replication.feed.begin()
        replica, client, admin = (bench.connect() for _ in range(3))
        history = replication.feed.history
        replica.tell(f"PSYNC {history.id} {history.offset + 1}")
        replication.require_acks()
        client.tell("XADD s 1-1 k v")
        replica.tell(f"REPLCONF ACK {history.offset}")
        admin.tell("REPLICAOF 127.0.0.1 1")
        bench.sync()
        assert client.replies() == [b"1-1"]
        assert replication.link is not None
        replication.link.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    "command", ["SPUBLISH channel message", "SSUBSCRIBE channel", "SUNSUBSCRIBE channel"]
)
def test_shard_channels_wait_for_no_replica(tmp_path: Path, command: str) -> None:
    bench = DurableBench(tmp_path, appendonly="no", min_replicas_ack="1")
    replication = bench.server.replication
    replication.feed.begin()
    history = replication.feed.history
    replica, writer, other = (bench.connect() for _ in range(3))
    replica.tell(f"PSYNC {history.id} {history.offset + 1}")
    replication.require_acks()
    writer.tell("SET a 1")
    other.tell(command)
    assert writer.replies() == []
    assert len(other.replies()) == 1


@pytest.mark.parametrize("acks", ["0", "1"])
def test_quick_forms_stay_in_use_with_a_replica(tmp_path: Path, acks: str) -> None:
    bench = DurableBench(tmp_path, appendonly="no", min_replicas_ack=acks)
    replication = bench.server.replication
    replication.feed.begin()
    history = replication.feed.history
    replica, client = bench.connect(), bench.connect()
    replica.tell(f"PSYNC {history.id} {history.offset + 1}")
    replication.require_acks()
    for number in range(3):
        client.tell(f"XADD s 1-{number + 1} k v")
        assert client.replies() == ([] if acks == "1" else [b"1-%d" % (number + 1)])
        replica.tell(f"REPLCONF ACK {history.offset}")
        assert client.replies() == ([b"1-%d" % (number + 1)] if acks == "1" else [])
    tally = bench.server.tallies.by_name["XADD"]
    assert (tally.calls, tally.quick_calls) == (3, 3)


def test_replies_leave_when_acks_need_not_be_on_disk_any_more(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no", min_replicas_ack="1")
    replication = bench.server.replication
    replication.feed.begin()
    history = replication.feed.history
    replica, client, admin = (bench.connect() for _ in range(3))
    replica.tell(f"PSYNC {history.id} {history.offset + 1}")
    admin.tell("CONFIG SET min-replicas-ack-fsync yes")
    replication.require_acks()
    client.tell("SET a 1")
    replica.tell(f"REPLCONF ACK {history.offset}")
    assert client.replies() == []
    admin.tell("CONFIG SET min-replicas-ack-fsync no")
    assert client.replies() == ["OK"]
