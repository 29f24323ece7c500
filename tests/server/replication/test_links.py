"""Random work on a primary, with a live Redis or Valkey at the other end of the link.

A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis

from tests.support.campaign import cases, cells, seed
from tests.support.random.effects import EffectWorld
from tests.support.random.stream_commands import Words
from tests.support.replication.links import (
    QUICK,
    client_of,
    digest,
    eventually,
    follow,
    linked,
    same,
    send,
    stats,
)
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_7_0, REDIS_8_6, VALKEY_9, Program
from tests.support.servers.redis_server import running_redis

COMMANDS = 300
DATABASES = 16
FOREIGN = (REDIS_7_0, REDIS_8_6, VALKEY_9)
# One of them in each run of make test, all of them in make soak.
CHOSEN = cells(FOREIGN)
DISKLESS = cells(["yes", "no"])


@contextmanager
def penstock(*arguments: str) -> Iterator[Any]:
    """A penstock at the level of Redis 7.0, whose effects every other server knows."""
    with running_penstock(*QUICK, "--compat-version", "7.0", *arguments) as server:
        yield client_of(server.port)


@contextmanager
def foreign(program: Program, *arguments: str) -> Iterator[Any]:
    program.need()
    with running_redis(*QUICK, *arguments, program=program) as server:
        yield client_of(server.port)


def port_of(client: Any) -> int:
    return int(client.get_connection_kwargs()["port"])


def work(name: str) -> list[Words]:
    """Random commands. None blocks, and none depends on a version."""
    world = EffectWorld(random.Random(name))
    made = (world.command() for _ in range(COMMANDS))
    # LSET: newer servers use the low 32 bits of a long index (docs/compatibility.md), and we refuse it.
    banned = {b"BLOCK", b"XSETID", b"PENSTOCK", b"LSET"}
    return [words for words in made if not banned & set(map(bytes.upper, words))]


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.file_name)
@pytest.mark.parametrize("diskless", DISKLESS)
def test_a_foreign_replica_has_our_data_through_breaks_of_its_link(
    program: Program, diskless: str
) -> None:
    with (
        penstock("--repl-diskless-sync", diskless) as primary,
        foreign(program) as replica,
    ):
        send(port_of(primary), work(f"{seed()}/first"))
        follow(replica, port_of(primary))
        for n in range(cases(20)):
            send(port_of(primary), work(f"{seed()}/{n}"))
            if n % 2:
                primary.client_kill_filter(_type="replica")
                send(port_of(primary), work(f"{seed()}/{n} after the break"))
                linked(replica)
        same(primary, replica)
        assert stats(primary)["sync_full"] == 1


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.file_name)
@pytest.mark.parametrize("diskless", DISKLESS)
def test_we_have_the_data_of_a_foreign_primary_through_breaks_of_the_link(
    program: Program, diskless: str
) -> None:
    with (
        foreign(program, "--repl-diskless-sync", diskless) as primary,
        penstock() as replica,
    ):
        send(port_of(primary), work(f"{seed()}/first"))
        follow(replica, port_of(primary))
        for n in range(cases(20)):
            send(port_of(primary), work(f"{seed()}/{n}"))
            if n % 2:
                primary.execute_command("CLIENT", "KILL", "TYPE", "replica")
                send(port_of(primary), work(f"{seed()}/{n} after the break"))
                linked(replica)
        same(primary, replica)
        assert primary.info("stats")["sync_full"] == 1


def persist_all(port: int) -> None:
    """Keep all keys of all databases from expiring."""
    for number in range(DATABASES):
        with redis.Redis(port=port, db=number) as client:
            for key in client.scan_iter():
                client.persist(key)


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.file_name)
def test_the_role_goes_round_in_a_chain_of_three(program: Program) -> None:
    """After a promotion, replicas of the old primary continue without a snapshot."""
    with penstock() as first, foreign(program) as second, penstock() as third:
        send(port_of(first), work(f"{seed()}/chain"))
        # A PING, or the DEL of an expired key, would make the old primary branch off.
        first.config_set("repl-ping-replica-period", 3600)
        persist_all(port_of(first))
        follow(second, port_of(first))
        follow(third, port_of(second))
        same(first, third)
        before = stats(second)["sync_full"]
        second.execute_command("REPLICAOF", "NO", "ONE")
        send(port_of(second), work(f"{seed()}/promoted"))
        linked(third)
        same(second, third)
        follow(first, port_of(second))
        same(second, first)
        assert stats(second)["sync_full"] == before  # both have continued


def test_ours_follow_ours_at_the_newest_level_with_every_command() -> None:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running_penstock(*QUICK, *more))
            for more in ((), ("--appendonly", "no"), ())
        ]
        primary, replica, last = (client_of(server.port) for server in servers)
        world = EffectWorld(random.Random(f"{seed()}/newest"), "8.6")
        commands = [world.command() for _ in range(4 * COMMANDS)]
        commands = [words for words in commands if b"BLOCK" not in words]
        send(servers[0].port, commands[: 2 * COMMANDS])
        follow(replica, servers[0].port)
        follow(last, servers[1].port)
        send(servers[0].port, commands[2 * COMMANDS :])
        same(primary, replica)
        same(primary, last)


def test_a_replica_serves_its_blocked_readers_from_the_link() -> None:
    with penstock() as primary, penstock() as replica:
        follow(replica, port_of(primary))
        with replica.pubsub() as listener, client_of(port_of(replica)) as reader:
            listener.subscribe("news")
            listener.get_message(timeout=5)
            connection = reader.connection_pool.get_connection()
            connection.send_command("XREAD", "BLOCK", 20000, "STREAMS", "s", "$")
            eventually(lambda: replica.info("clients")["blocked_clients"] == 1)
            primary.xadd("s", {"k": "v"})
            assert b"s" in str(connection.read_response()).encode()
            primary.publish("news", "hello")
            message = listener.get_message(timeout=10)
            assert message is not None
            assert message["data"] == b"hello"


def test_expired_keys_are_gone_on_a_replica_and_removed_only_by_the_primary() -> None:
    with penstock() as primary, penstock() as replica:
        follow(replica, port_of(primary))
        primary.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        primary.set("short", "x", px=50)
        primary.execute_command("WAIT", 1, 5000)
        eventually(lambda: replica.get("short") is None)
        assert replica.dbsize() == 1  # it is still stored
        assert primary.get("short") is None  # which removes it
        eventually(lambda: replica.dbsize() == 0)
        assert digest(primary) == digest(replica)
