"""Names of producers (XADD IDMP), and replicas that do not know them: they get every entry."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from penstock.server.replication.names_apart import may_have_names, names_apart
from penstock.wire.command import encode_command
from tests.support.campaign import cells
from tests.support.replication.links import (
    QUICK,
    client_of,
    digest,
    eventually,
    follow,
    linked,
    same,
    stats,
)
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import (
    REDIS_7_0,
    REDIS_8_0,
    REDIS_8_2,
    REDIS_8_6,
    VALKEY_9,
    Program,
)
from tests.support.servers.redis_server import running_redis

OLD = (REDIS_8_0, REDIS_8_2, REDIS_7_0, VALKEY_9)


def sent(text: str) -> bytes:
    """Commands, one a line, as bytes."""
    lines = [line.split() for line in text.strip().splitlines()]
    return b"".join(encode_command(*map(str.encode, words)) for words in lines)


@pytest.mark.parametrize(
    ("effects", "apart"),
    [
        ("XADD s 1-1 k IDMP", "XADD s 1-1 k IDMP"),
        ("XADD s IDMP p m 1-1 k v", "XADD s 1-1 k v\nXIDMPRECORD s p m 1-1"),
        (
            "XADD s IDMP p m MAXLEN = 7 ACKED 1-1 k v\nSET a b",
            "XADD s MAXLEN = 7 ACKED 1-1 k v\nXIDMPRECORD s p m 1-1\nSET a b",
        ),
        (
            "XADD s IDMP p m MINID = 1-0 1-1 k v",
            "XADD s MINID = 1-0 1-1 k v\nXIDMPRECORD s p m 1-1",
        ),
        ("SET a b\nXADD s IDMP p m * k v", "SET a b"),
        (
            "MULTI\nXADD s IDMP p m 1-1 k v\nSELECT 7\nXADD t IDMP p n 2-2 k v\nEXEC\nSET a b",
            (
                "MULTI\nXADD s 1-1 k v\nSELECT 7\nXADD t 2-2 k v\nEXEC\n"
                "SELECT 3\nXIDMPRECORD s p m 1-1\nSELECT 7\nXIDMPRECORD t p n 2-2\nSET a b"
            ),
        ),
        (
            "MULTI\nXADD s IDMP p m 1-1 k v\nSELECT 7\nDEL a\nEXEC\nSET a b",
            (
                "MULTI\nXADD s 1-1 k v\nSELECT 7\nDEL a\nEXEC\n"
                "SELECT 3\nXIDMPRECORD s p m 1-1\nSELECT 7\nSET a b"
            ),
        ),
    ],
)
def test_each_name_follows_its_entry_or_its_transaction(effects: str, apart: str) -> None:
    assert names_apart(sent(effects), database=3) == sent(apart)
    assert not may_have_names(names_apart(sent(effects), 3)) or effects == apart


def add(client: Any, name: str, key: str = "s") -> Any:
    """Add an entry with a name."""
    return client.execute_command("XADD", key, "IDMP", "producer", name, "*", "k", name)


def add_all_ways(client: Any, last: int) -> None:
    """Entries with names: alone, again, trimmed, in a transaction, in one that removes the stream."""
    for number in range(last - 9, last):
        add(client, f"m{number}")
    add(client, f"m{last - 1}")
    client.execute_command("XADD", "s", "IDMP", "p", f"t{last}", "MAXLEN", "1000", "*", "k", "v")
    with client.pipeline(transaction=True) as pipe:
        for words in (
            ("XADD", "s", "IDMP", "producer", f"u{last}", "*", "k", "v"),
            ("SET", f"done{last}", "1"),
            ("XADD", "gone", "IDMP", "producer", f"u{last}", "*", "k", "v"),
            ("DEL", "gone"),
        ):
            pipe.execute_command(*words)
        pipe.execute()


@pytest.mark.parametrize("program", cells(OLD), ids=lambda program: program.file_name)
def test_replicas_that_do_not_know_names_have_every_entry(program: Program) -> None:
    """Also through breaks, behind a replica of ours, and beside one that keeps the names."""
    program.need()
    with ExitStack() as stack:
        primary, middle, ours = (
            client_of(stack.enter_context(running_penstock(*QUICK)).port) for _ in range(3)
        )
        old, behind = (
            client_of(stack.enter_context(running_redis(*QUICK, program=program)).port)
            for _ in range(2)
        )
        primary.set("not", "empty")
        ours_port = primary.get_connection_kwargs()["port"]
        for one in (middle, ours, old):
            follow(one, ours_port)
        follow(behind, middle.get_connection_kwargs()["port"])
        eventually(lambda: len(primary.execute_command("ROLE")[2]) == 3, "the chain has told")
        for last in (10, 20, 30):
            add_all_ways(primary, last)
            for one in (middle, ours, old, behind):
                same(primary, one)
            primary.client_kill_filter(_type="replica")
            add(primary, f"while they are away {last}")
            for one in (middle, ours, old, behind):
                linked(one)
                same(primary, one)
        assert stats(primary)["sync_full"] == 3
        assert old.xlen("s") == primary.xlen("s") > 30
        ours.execute_command("REPLICAOF", "NO", "ONE")
        before = ours.xlen("s")
        assert add(ours, "m29") == add(primary, "m29")
        assert ours.xlen("s") == before
        assert digest(ours) == digest(primary)


def test_entries_with_names_that_are_missed_cost_a_replica_of_redis_a_snapshot() -> None:
    """They were sent with their names, because no such replica had been there."""
    with running_penstock(*QUICK) as server, running_penstock(*QUICK) as second:
        primary, ours = client_of(server.port), client_of(second.port)
        follow(ours, server.port)
        add(primary, "m")
        same(primary, ours)
        history = primary.info("replication")
        with client_of(server.port) as redis:
            connection = redis.connection_pool.get_connection()
            connection.send_command("PSYNC", history["master_replid"], 1)
            assert b"FULLRESYNC" in connection.read_response()
        assert stats(primary)["sync_full"] == 2


def test_replicas_of_two_versions_that_wait_together_get_each_its_own_snapshot() -> None:
    """A Redis 8.6 keeps the names of producers; a Redis 7.0 could not read them."""
    REDIS_8_6.need()
    with (
        running_penstock(*QUICK) as server,
        running_redis(*QUICK) as old,
        running_redis(*QUICK, program=REDIS_8_6) as new,
    ):
        primary = client_of(server.port)
        first = add(primary, "m")
        primary.config_set("repl-diskless-sync-delay", 600)
        for one in (old, new):
            client_of(one.port).execute_command("REPLICAOF", "127.0.0.1", server.port)
        eventually(lambda: waiting(primary) == ["wait_bgsave", "wait_bgsave"])
        primary.config_set("repl-diskless-sync-delay", 0)
        for one in (old, new):
            linked(one.client)
            same(primary, one.client)
        assert stats(primary)["sync_full"] == 2
        client_of(new.port).execute_command("REPLICAOF", "NO", "ONE")
        assert add(new.client, "m") == first
        assert new.client.xlen("s") == 1


def waiting(primary: Any) -> list[str]:
    """The states of the replicas."""
    info = primary.info("replication")
    return [info[name]["state"] for name in ("slave0", "slave1") if name in info]
