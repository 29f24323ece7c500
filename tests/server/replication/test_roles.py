"""What a primary and a replica accept and refuse, with Redis's texts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.persist.replication_point import ReplicationPoint
from penstock.server.replication.feed import GETACK
from tests.support.replication.links import (
    QUICK,
    client_of,
    digest,
    eventually,
    follow,
    linked,
    online,
    role,
    same,
)
from tests.support.replication.proxy import Proxy
from tests.support.servers.durable_bench import DurableBench, synced
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.raw_redis import Refusal

Pair = tuple[PenstockServer, PenstockServer]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A primary and its replica, in memory."""
    with running_penstock(*QUICK) as primary, running_penstock(*QUICK) as replica:
        follow(client_of(replica.port), primary.port)
        yield primary, replica


def ask(client: Any, *words: object) -> object:
    """The reply of a command, or the text of its error."""
    try:
        return client.execute_command(*words)
    except redis.RedisError as error:
        return str(error)


def raw_error(server: PenstockServer, *words: str) -> str:
    """The error of a command, with its code."""
    with client_of(server.port) as client:
        connection = client.connection_pool.get_connection()
        connection.send_packed_command(connection.pack_command(*words))
        return str(connection._sock.recv(4096).decode().strip())


def test_a_replica_refuses_writes_and_shows_its_role(pair: Pair) -> None:
    primary, replica = pair
    refusal = "-READONLY You can't write against a read only replica."
    assert raw_error(replica, "SET", "a", "1") == refusal
    assert raw_error(replica, "XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">") == refusal
    client_of(primary.port).set("a", "1")
    eventually(lambda: client_of(replica.port).get("a") == b"1")
    ours, theirs = role(client_of(primary.port)), role(client_of(replica.port))
    assert ours[0] == b"master"
    assert [entry[:2] for entry in ours[2]] == [[b"127.0.0.1", b"%d" % replica.port]]
    assert theirs[:4] == [b"slave", b"127.0.0.1", primary.port, b"connected"]
    assert b"replica" in str(ask(client_of(replica.port), "HELLO", "2")).encode()


def test_replica_read_only_no_accepts_writes(pair: Pair) -> None:
    client = client_of(pair[1].port)
    client.config_set("replica-read-only", "no")
    assert client.set("own", "1")
    client.config_set("replica-read-only", "yes")
    assert "read only" in str(ask(client, "SET", "own", "2"))


def test_replicaof_the_same_primary_again_changes_nothing(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(replica.port)
    reply = ask(client, "REPLICAOF", "127.0.0.1", primary.port)
    assert reply == b"OK Already connected to specified master"
    assert ask(client, "REPLICAOF", "127.0.0.1", "x") == "Invalid master port"
    assert ask(client, "REPLICAOF", "127.0.0.1", "70000") == "Invalid master port"
    linked(client)


def test_a_server_that_follows_itself_keeps_its_data_and_says_why_the_link_is_down() -> None:
    with running_penstock(*QUICK) as server:
        client = client_of(server.port)
        client.set("kept", "1")
        ask(client, "REPLICAOF", "127.0.0.1", server.port)
        eventually(
            lambda: (
                "not connected with my master"
                in str(client.info("replication").get("master_link_problem"))
            )
        )
        assert client.get("kept") == b"1"
        ask(client, "REPLICAOF", "NO", "ONE")
        assert client.set("kept", "2")


def test_a_ring_of_replicas_keeps_its_data(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(primary.port)
    client.set("kept", "1")
    same(client, client_of(replica.port))
    ask(client, "REPLICAOF", "127.0.0.1", replica.port)
    eventually(lambda: client.info("replication").get("master_link_problem"))
    assert client.get("kept") == b"1"
    assert client_of(replica.port).get("kept") == b"1"


def test_stale_data_is_refused_if_the_directive_says_so(pair: Pair) -> None:
    primary, replica = pair
    client_of(primary.port).set("a", "1")
    same(client_of(primary.port), client_of(replica.port))
    primary.kill()
    client = client_of(replica.port)
    eventually(lambda: client.info("replication")["master_link_status"] == "down")
    assert client.get("a") == b"1"
    client.config_set("replica-serve-stale-data", "no")
    text = "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
    assert raw_error(replica, "GET", "a") == text
    assert client.info("replication")["role"] == "slave"


def test_writes_need_good_replicas_if_the_directive_says_so(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(primary.port)
    client.config_set("min-replicas-to-write", 1)
    assert client.set("a", "1")
    assert client.info("replication")["min_slaves_good_slaves"] == 1
    replica.kill()
    text = "-NOREPLICAS Not enough good replicas to write."
    eventually(lambda: raw_error(primary, "SET", "a", "2") == text)
    assert client.get("a") == b"1"
    client.config_set("min-replicas-to-write", 0)
    assert client.set("a", "3")


def test_wait_counts_the_replicas_that_have_the_changes(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(primary.port)
    client.set("a", "1")
    assert ask(client, "WAIT", 1, 20000) == 1
    assert ask(client, "WAIT", 2, 10) == 1
    assert "WAIT cannot be used with replica" in str(ask(client_of(replica.port), "WAIT", 1, 1))


def test_waitaof_counts_the_logs_that_have_the_changes(tmp_path: Path) -> None:
    """The own log, and those of replicas; one of these has no log, and one does not answer."""
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as logging,
        running_penstock(*QUICK) as other,
    ):
        client = client_of(primary.port)
        for replica in (logging, other):
            follow(client_of(replica.port), primary.port)
        online(client, 2)
        client.set("a", "1")
        assert ask(client, "WAITAOF", 1, 1, 20000) == [1, 1]
        assert ask(client, "WAITAOF", 1, 2, 10) == [1, 1]
        assert ask(client, "WAIT", 2, 20000) == 2
        logging.process.send_signal(19)  # SIGSTOP
        try:
            client.set("a", "2")
            assert ask(client, "WAITAOF", 1, 1, 10) == [1, 0]
            assert ask(client, "WAITAOF", 1, 0, 10) == [1, 0]
        finally:
            logging.process.send_signal(18)  # SIGCONT
        assert ask(client, "WAITAOF", 1, 1, 20000) == [1, 1]
        text = str(ask(client_of(logging.port), "WAITAOF", 0, 1, 1))
        assert "WAITAOF cannot be used with replica instances" in text


def test_the_primary_of_a_replica_is_no_client(pair: Pair) -> None:
    """A documented difference: in Redis it is one, with the flag M."""
    primary, replica = pair
    client = client_of(replica.port)
    assert not [one for one in client.client_list() if "M" in one["flags"]]
    assert ask(client, "CLIENT", "KILL", "TYPE", "master") == 0
    linked(client)
    assert client_of(primary.port).info("stats")["sync_partial_ok"] == 0


def test_blocked_writes_end_when_their_server_becomes_a_replica(pair: Pair) -> None:
    primary, _ = pair
    with running_penstock(*QUICK) as other:
        client = client_of(other.port)
        with client_of(other.port) as blocked:
            connection = blocked.connection_pool.get_connection()
            connection.send_command("BLPOP", "list", 0)
            eventually(lambda: client.info("clients")["blocked_clients"] == 1)
            ask(client, "REPLICAOF", "127.0.0.1", primary.port)
            with pytest.raises(redis.RedisError, match="force unblock from blocking operation"):
                connection.read_response()


def test_sentinels_transaction_changes_the_role_and_the_file() -> None:
    """SLAVEOF acts inside EXEC, CONFIG REWRITE writes it, the kills spare the caller."""
    with (
        running_penstock(*QUICK) as primary,
        running_penstock(*QUICK, file="timeout 0\n") as replica,
    ):
        client = client_of(replica.port)
        bystander = client_of(replica.port)
        bystander.ping()
        file = replica.folder / "penstock.conf"
        for words, line in (
            (("SLAVEOF", "127.0.0.1", primary.port), f"replicaof 127.0.0.1 {primary.port}"),
            (("SLAVEOF", "NO", "ONE"), ""),
        ):
            steps = client.pipeline(transaction=True)
            steps.execute_command(*words)
            steps.execute_command("CONFIG", "REWRITE")
            steps.execute_command("CLIENT", "KILL", "TYPE", "normal")
            steps.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            replies = steps.execute()
            assert replies[0] in (b"OK", True)
            if line:
                assert line in file.read_text()
                linked(client)
            else:
                assert "replicaof" not in file.read_text()
                assert role(client)[0] == b"master"


def test_failover_hands_the_role_over_without_a_snapshot(pair: Pair) -> None:
    primary, replica = pair
    old, new = client_of(primary.port), client_of(replica.port)
    for number in range(100):
        old.xadd("s", {"n": number})
    assert ask(old, "FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 20000) == b"OK"
    eventually(lambda: role(new)[0] == b"master")
    linked(old)
    new.xadd("s", {"n": "after"})
    same(new, old)
    assert new.xlen("s") == 101
    assert new.info("stats")["sync_full"] == 0


def is_primary(client: Any) -> bool:
    return bool(role(client)[0] == b"master")


def test_the_role_can_be_handed_back_before_the_next_periodic_work() -> None:
    """Both servers then refused each other for ever: the first failover ended only in the periodic work."""
    with (
        running_penstock(*QUICK, "--hz", "1") as first,
        running_penstock(*QUICK, "--hz", "1") as second,
    ):
        old, new = client_of(first.port), client_of(second.port)
        follow(new, first.port)
        online(old)
        for source, target, port in ((old, new, second.port), (new, old, first.port)) * 2:
            assert ask(source, "FAILOVER", "TO", "127.0.0.1", port) == b"OK"
            eventually(partial(is_primary, target), "it has taken over")
            linked(source)
            online(target)


def test_a_failover_whose_answer_is_lost_leaves_one_primary() -> None:
    """The target takes over, but its +CONTINUE does not arrive."""
    with (
        Proxy() as proxy,
        running_penstock(*QUICK) as primary,
        running_penstock(
            *QUICK, "--replica-announce-ip", "127.0.0.1", "--replica-announce-port", str(proxy.port)
        ) as replica,
    ):
        old, new = client_of(primary.port), client_of(replica.port)
        proxy.target = replica.port
        follow(new, primary.port)
        old.set("a", "1")
        same(old, new)
        proxy.bytes_max = [len(b"+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+")]
        assert ask(old, "FAILOVER", "TO", "127.0.0.1", proxy.port) == b"OK"
        eventually(lambda: role(old)[0] == b"slave")
        linked(old)
        assert [role(old)[0], role(new)[0]] == [b"slave", b"master"]
        eventually(lambda: old.info("replication")["master_failover_state"] == "no-failover")
        new.set("a", "2")
        same(old, new)


def test_a_failover_waits_for_every_byte_and_asks_once_a_second(tmp_path: Path) -> None:
    async def run() -> None:
        bench = DurableBench(tmp_path, appendonly="no")
        replication = bench.server.replication
        replication.feed.begin()
        history = replication.feed.history
        replica, client = bench.connect(), bench.connect()
        replica.tell(f"PSYNC {history.id} {history.offset + 1}")
        client.tell("SET a 1")
        changed = history.offset
        client.tell("PUBLISH a message")  # counts, and is no change of data
        before = history.offset
        client.tell("FAILOVER")
        for _ in range(9):
            bench.advance(100)
            replication.tick()
            bench.loop.run()
        assert history.offset == before + len(GETACK)
        replica.tell(f"REPLCONF ACK {changed}")
        assert replication.failover.state == "waiting-for-sync"
        replica.tell(f"REPLCONF ACK {before}")
        assert replication.failover.state == "failover-in-progress"
        assert replication.link is not None
        replication.link.stop()

    asyncio.run(run())


def test_a_replica_whose_log_has_no_base_yet_refuses_to_take_over(tmp_path: Path) -> None:
    """It would refuse every write."""

    async def run() -> None:
        bench = DurableBench(tmp_path)
        replication = bench.server.replication
        primary = bench.connect()
        primary.tell("REPLICAOF 127.0.0.1 1")
        bench.sync()
        primary.replies()
        point = ReplicationPoint("ab" * 20, 100)
        replication.replace_data(bench.engine.spare(), point, set())
        asking = f"PSYNC {point.id} {point.offset + 1} FAILOVER"
        primary.tell(asking)
        refused = "PSYNC FAILOVER refused: this server could not keep writes in its log."
        assert primary.replies() == [Refusal(f"ERR {refused}")]
        assert replication.link is not None
        bench.wait_for_child()
        primary.tell(asking)
        assert primary.heard().startswith(b"+CONTINUE")
        assert synced(bench, bench.connect(), "SET a 1") == ["OK"]

    asyncio.run(run())


def test_a_failover_waits_for_a_replica_whose_log_has_a_base(tmp_path: Path) -> None:
    """A replica without one says that nothing is on its disk."""

    async def run() -> None:
        bench = DurableBench(tmp_path, appendonly="no")
        replication = bench.server.replication
        replication.feed.begin()
        history = replication.feed.history
        replica, client = bench.connect(), bench.connect()
        replica.tell(f"PSYNC {history.id} {history.offset + 1}")
        client.tell("SET a 1")
        client.replies()
        replica.tell(f"REPLCONF ACK {history.offset} FACK 0")
        assert "FAILOVER must wait" in str(client.reply("FAILOVER"))
        replica.tell(f"REPLCONF ACK {history.offset} FACK 1")
        assert client.reply("FAILOVER") == "OK"
        acked = history.offset - len(GETACK)
        replica.tell(f"REPLCONF ACK {acked} FACK 0")
        assert replication.failover.state == "waiting-for-sync"
        replica.tell(f"REPLCONF ACK {acked} FACK {acked}")
        assert replication.failover.state == "failover-in-progress"
        assert replication.link is not None
        replication.link.stop()

    asyncio.run(run())


def test_failover_says_why_it_cannot_begin(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(primary.port)
    cases = {
        ("FAILOVER", "ABORT"): "No failover in progress.",
        ("FAILOVER", "TO", "127.0.0.1", "1"): "FAILOVER target HOST and PORT is not a replica.",
        ("FAILOVER", "TIMEOUT", "0"): "FAILOVER timeout must be greater than 0",
        (
            "FAILOVER",
            "FORCE",
        ): "FAILOVER with force option requires both a timeout and target HOST and IP.",
        ("FAILOVER", "TO", "127.0.0.1"): "syntax error",
    }
    for words, text in cases.items():
        assert ask(client, *words) == text
    text = "FAILOVER is not valid when server is a replica."
    assert ask(client_of(replica.port), "FAILOVER") == text
    with running_penstock(*QUICK) as alone:
        assert ask(client_of(alone.port), "FAILOVER") == "FAILOVER requires connected replicas."


def test_a_failover_to_a_replica_that_does_not_ack_times_out_and_writes_go_on(pair: Pair) -> None:
    primary, replica = pair
    client = client_of(primary.port)
    replica.process.send_signal(19)  # SIGSTOP
    try:
        assert ask(client, "FAILOVER", "TIMEOUT", 300) == b"OK"
        assert client.info("replication")["master_failover_state"] == "waiting-for-sync"
        eventually(lambda: client.info("replication")["master_failover_state"] == "no-failover")
        assert client.set("a", "1")
    finally:
        replica.process.send_signal(18)  # SIGCONT
    same(client, client_of(replica.port))


def test_the_digest_is_equal_after_a_sync_with_keys_in_many_databases(pair: Pair) -> None:
    primary, replica = pair
    for database in (0, 3, 15):
        with redis.Redis(port=primary.port, db=database) as client:
            client.set(f"in {database}", database)
            client.xadd("s", {"k": database})
    same(client_of(primary.port), client_of(replica.port))
    assert digest(client_of(replica.port)) != b"0" * 40
