"""Random work on a primary, with a live Redis or Valkey at the other end of the link.

A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
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
    streams_of,
)
from tests.support.replication.writers import hand_over
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_7_0, REDIS_8_6, VALKEY_9, Program
from tests.support.servers.redis_server import running_redis

COMMANDS = 300
INDEX_BYTES_MAX = 9  # fits in 32 bits
DATABASES = 16
FOREIGN = (REDIS_7_0, REDIS_8_6, VALKEY_9)
# One of them in each run of make test, all of them in make soak.
CHOSEN = cells(FOREIGN)
DISKLESS = cells(["yes", "no"])


@contextmanager
def penstock(level: str, *arguments: str) -> Iterator[Any]:
    """A penstock with the commands of a version, whose effects a server of this version knows."""
    with running_penstock(*QUICK, "--compat-version", level, *arguments) as server:
        yield client_of(server.port)


@contextmanager
def foreign(program: Program, *arguments: str) -> Iterator[Any]:
    program.need()
    with running_redis(*QUICK, *arguments, program=program) as server:
        yield client_of(server.port)


def port_of(client: Any) -> int:
    return int(client.get_connection_kwargs()["port"])


def work(name: str, level: str, count: int = COMMANDS) -> list[Words]:
    """Random commands of a version. None blocks."""
    world = EffectWorld(random.Random(name), level)
    made = (world.command() for _ in range(count))
    return [words for words in made if b"BLOCK" not in map(bytes.upper, words) and is_equal(words)]


def is_equal(words: Words) -> bool:
    """Tell whether a command does the same in every server of its version.

    Newer servers use the low 32 bits of a long index of LSET (docs/compatibility.md), and we refuse it.
    """
    is_lset = words[0].upper() == b"LSET"
    return not is_lset or all(len(index) <= INDEX_BYTES_MAX for index in words[2:3])


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.file_name)
@pytest.mark.parametrize("diskless", DISKLESS)
def test_a_foreign_replica_has_our_data_through_breaks_of_its_link(
    program: Program, diskless: str
) -> None:
    with (
        penstock(program.level, "--repl-diskless-sync", diskless) as primary,
        foreign(program) as replica,
    ):
        send(port_of(primary), work(f"{seed()}/first", program.level))
        follow(replica, port_of(primary))
        for n in range(cases(20)):
            send(port_of(primary), work(f"{seed()}/{n}", program.level))
            if n % 2:
                primary.client_kill_filter(_type="replica")
                again = work(f"{seed()}/{n} after the break", program.level)
                send(port_of(primary), again)
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
        penstock(program.level) as replica,
    ):
        send(port_of(primary), work(f"{seed()}/first", program.level))
        follow(replica, port_of(primary))
        for n in range(cases(20)):
            send(port_of(primary), work(f"{seed()}/{n}", program.level))
            if n % 2:
                primary.execute_command("CLIENT", "KILL", "TYPE", "replica")
                again = work(f"{seed()}/{n} after the break", program.level)
                send(port_of(primary), again)
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
    level = program.level
    with penstock(level) as first, foreign(program) as second, penstock(level) as third:
        send(port_of(first), work(f"{seed()}/chain", level))
        # A PING, or the DEL of an expired key, would make the old primary branch off.
        first.config_set("repl-ping-replica-period", 3600)
        persist_all(port_of(first))
        follow(second, port_of(first))
        follow(third, port_of(second))
        same(first, third)
        before = stats(second)["sync_full"]
        second.execute_command("REPLICAOF", "NO", "ONE")
        send(port_of(second), work(f"{seed()}/promoted", level))
        linked(third)
        same(second, third)
        follow(first, port_of(second))
        same(second, first)
        assert stats(second)["sync_full"] == before  # both have continued


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.file_name)
def test_a_foreign_replica_of_ours_continues_when_ours_is_promoted(program: Program) -> None:
    level = program.level
    with foreign(program) as first, penstock(level) as second, foreign(program) as third:
        send(port_of(first), work(f"{seed()}/chain", level))
        follow(second, port_of(first))
        follow(third, port_of(second))
        send(port_of(first), work(f"{seed()}/through", level))
        same(first, third)
        second.execute_command("REPLICAOF", "NO", "ONE")
        send(port_of(second), work(f"{seed()}/promoted", level))
        same(second, third)
        assert stats(second)["sync_full"] == 1
        follow(first, port_of(second))
        send(port_of(second), work(f"{seed()}/again", level))
        same(second, first)
        same(second, third)


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.file_name)
@pytest.mark.parametrize("how", cells([signal.SIGKILL, signal.SIGTERM]))
def test_ours_continues_behind_a_foreign_primary_after_its_restart(
    tmp_path: Path, program: Program, how: int
) -> None:
    level = ("--compat-version", program.level)
    with foreign(program) as primary, running_penstock(*QUICK, *level, data=tmp_path) as replica:
        port = port_of(primary)
        send(port, work(f"{seed()}/before", program.level))
        follow(client_of(replica.port), port)
        send(port, work(f"{seed()}/with it", program.level))
        same(primary, client_of(replica.port))
        eventually(lambda: "log rewritten" in replica.log(), "its log has a base")
        replica.end(how)
        send(port, work(f"{seed()}/without it", program.level))
        replica.start("--replicaof", "127.0.0.1", str(port))
        linked(client_of(replica.port))
        same(primary, client_of(replica.port))
        found = primary.info("stats")
        assert (found["sync_full"], found["sync_partial_ok"]) == (1, 1)


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.file_name)
def test_expired_keys_that_a_foreign_primary_has_not_removed_are_held_at_both_ends(
    tmp_path: Path, program: Program
) -> None:
    """By a replica that was there, one that got a snapshot later, and one that was started again."""
    level = ("--compat-version", program.level)
    with (
        foreign(program) as primary,
        running_penstock(*QUICK, *level, data=tmp_path) as server,
        penstock(program.level) as late,
    ):
        port = port_of(primary)
        primary.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        follow(client_of(server.port), port)
        send(port, work(f"{seed()}/expired", program.level))
        primary.set("last", "x", px=50)
        kept = primary.dbsize()
        eventually(lambda: client_of(server.port).get("last") is None, "it has expired")
        follow(late, port)
        same(primary, late)
        same(primary, client_of(server.port))
        eventually(lambda: "log rewritten" in server.log(), "its log has a base")
        server.kill()
        server.start("--replicaof", "127.0.0.1", str(port))
        linked(client_of(server.port))
        same(primary, client_of(server.port))
        assert primary.dbsize() == client_of(server.port).dbsize() == late.dbsize() == kept
        assert primary.get("last") is None  # which removes it
        for one in (late, client_of(server.port)):
            eventually(lambda: one.dbsize() == kept - 1, "removed there too")  # noqa: B023
            same(primary, one)


@pytest.mark.parametrize("diskless", DISKLESS)
def test_a_redis_replica_knows_the_names_of_producers_from_before_its_snapshot(
    diskless: str,
) -> None:
    """Redis 8.6 does not announce that it can read them."""
    with penstock("8.6", "--repl-diskless-sync", diskless) as primary, foreign(REDIS_8_6) as last:
        add = ("XADD", "s", "IDMP", "producer", "name", "*", "k", "v")
        first = primary.execute_command(*add)
        follow(last, port_of(primary))
        assert primary.execute_command(*add) == first
        same(primary, last)
        assert primary.execute_command("WAIT", 1, 20000) == 1
        assert last.xlen("s") == 1


def test_ours_follow_ours_at_the_newest_level_with_every_command() -> None:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running_penstock(*QUICK, *more))
            for more in ((), ("--appendonly", "no"), ())
        ]
        primary, replica, last = (client_of(server.port) for server in servers)
        send(servers[0].port, work(f"{seed()}/newest", "8.6", 2 * COMMANDS))
        follow(replica, servers[0].port)
        follow(last, servers[1].port)
        send(servers[0].port, work(f"{seed()}/newest, with replicas", "8.6", 2 * COMMANDS))
        same(primary, replica)
        same(primary, last)


def test_groups_producers_and_counters_are_the_same_through_breaks_restarts_and_promotions(
    tmp_path: Path,
) -> None:
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as first,
        running_penstock(*QUICK, data=tmp_path / "b") as second,
    ):
        primary, replica = client_of(first.port), client_of(second.port)
        send(first.port, work(f"{seed()}/before", "8.6"))
        follow(replica, first.port)
        send(first.port, work(f"{seed()}/with it", "8.6"))
        same(primary, replica)
        primary.client_kill_filter(_type="replica")
        send(first.port, work(f"{seed()}/after a break", "8.6"))
        linked(replica)
        same(primary, replica)
        eventually(lambda: "log rewritten" in second.log(), "its log has a base")
        second.kill()
        send(first.port, work(f"{seed()}/without it", "8.6"))
        second.start("--replicaof", "127.0.0.1", str(first.port))
        replica = client_of(second.port)
        linked(replica)
        same(primary, replica)
        hand_over(primary, replica)
        send(second.port, work(f"{seed()}/promoted", "8.6"))
        for _ in range(3):
            replica.execute_command("XADD", "twice", "IDMP", "producer", "name", "*", "k", "v")
        replica.xgroup_create("twice", "g", 0)
        replica.xreadgroup("g", "c", {"twice": ">"})
        same(replica, primary)
        about = streams_of(primary)["db0", b"twice"]
        assert (about[b"iids-tracked"], len(about[b"groups"][0][b"pending"])) == (1, 1)
        assert [one.xinfo_stream("twice")["iids-duplicates"] for one in (primary, replica)] == [
            2,
            2,
        ]
        assert stats(primary)["sync_full"] == 1
        assert stats(replica)["sync_full"] == 0


def test_a_replica_serves_its_blocked_readers_from_the_link() -> None:
    with penstock("7.0") as primary, penstock("7.0") as replica:
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
    with penstock("7.0") as primary, penstock("7.0") as replica:
        follow(replica, port_of(primary))
        primary.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        primary.set("short", "x", px=50)
        primary.execute_command("WAIT", 1, 5000)
        eventually(lambda: replica.get("short") is None)
        assert replica.dbsize() == 1  # it is still stored
        assert primary.get("short") is None  # which removes it
        eventually(lambda: replica.dbsize() == 0)
        assert digest(primary) == digest(replica)
