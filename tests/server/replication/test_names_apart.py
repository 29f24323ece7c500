"""Names of producers (XADD IDMP), and replicas that do not know them: they get every entry."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.core.stream import Stream
from penstock.engine.execute import Engine
from penstock.server.replication.names_apart import may_have_names, names_apart
from penstock.wire.command import encode_command
from tests.support.campaign import cases, cells, seed
from tests.support.engine.effects import Recorder, Replay
from tests.support.replication.links import (
    QUICK,
    client_of,
    digest,
    eventually,
    follow,
    linked,
    online,
    same,
    stats,
)
from tests.support.replication.writers import until_answered, working
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


ADDED = "MULTI\nXADD a 1-1 k v"
NAME_OF_B = "XIDMPRECORD b p m 1-1"
# What a transaction does after its XADD a, and which names come behind it.
FOLLOWED = (
    ("RENAME a b", NAME_OF_B),
    ("renamenx a b", NAME_OF_B),
    ("RENAME a b\nRENAME b c\nRENAME c b", NAME_OF_B),
    ("RENAME b a", ""),
    ("MOVE a 7", "SELECT 7\nXIDMPRECORD a p m 1-1\nSELECT 3"),
    ("SWAPDB 3 7", "SELECT 7\nXIDMPRECORD a p m 1-1\nSELECT 3"),
    ("COPY a b", f"XIDMPRECORD a p m 1-1\n{NAME_OF_B}"),
    ("COPY a b REPLACE DB 7\nDEL a", f"SELECT 7\n{NAME_OF_B}\nSELECT 3"),
    ("COPY b a REPLACE", ""),
    ("DEL b a", ""),
    ("UNLINK a\nXADD a 2-2 k v", ""),
    ("SET a v", ""),
    ("SET b a\nMSET b a c a", "XIDMPRECORD a p m 1-1"),
    ("MSET b v a v", ""),
    ("XCFGSET a IDMP-MAXSIZE 7", ""),
    ("FLUSHDB", ""),
    ("SELECT 7\nFLUSHDB\nSELECT 3", "XIDMPRECORD a p m 1-1"),
    ("FLUSHALL ASYNC\nXADD a 2-2 k v", ""),
)


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
        *(
            (
                f"MULTI\nXADD a IDMP p m 1-1 k v\n{then}\nEXEC",
                f"{ADDED}\n{then}\nEXEC\n{names}".strip(),
            )
            for then, names in FOLLOWED
        ),
    ],
)
def test_each_name_follows_its_entry_or_its_transaction(effects: str, apart: str) -> None:
    assert names_apart(sent(effects), database=3) == sent(apart)
    assert not may_have_names(names_apart(sent(effects), 3)) or effects == apart


KEYS = ("a", "b", "c")


def random_line(dice: random.Random) -> str:
    """A command that adds under a name, or does something to a whole key."""
    key, other = dice.choices(KEYS, k=2)
    if dice.random() < 0.5:
        return f"XADD {key} IDMP p m{dice.randrange(40)} * k v"
    return dice.choice(
        [
            *(
                f"RENAME {key} {other}",
                f"RENAMENX {key} {other}",
                f"MOVE {key} {dice.randrange(3)}",
            ),
            *(f"COPY {key} {other} REPLACE", f"COPY {key} {other} DB {dice.randrange(3)}"),
            *(
                f"DEL {key}",
                f"UNLINK {key} {other}",
                f"SET {key} {other}",
                f"MSET {key} a {other} b",
            ),
            *(f"XCFGSET {key} IDMP-MAXSIZE {dice.randrange(5, 9)}", f"XTRIM {key} MAXLEN 3"),
            *(f"PEXPIRE {key} 100000", f"GETDEL {key}", "FLUSHDB", "FLUSHALL"),
            *("SWAPDB 0 1", "SWAPDB 1 2"),
        ]
    )


def names_of(engine: Engine) -> dict[tuple[int, bytes], list[Any]]:
    """What each stream remembers of its producers."""
    return {
        (keyspace.index, key): [
            (producer, [(name, one.text) for name, one in names.items()])
            for producer, names in value.idempotency.producers.items()
        ]
        for keyspace in engine.context.databases
        for key, value in keyspace.values.items()
        if isinstance(value, Stream)
        and value.idempotency is not None
        and value.idempotency.producers
    }


def test_after_any_transaction_both_ends_remember_the_same_names() -> None:
    name = seed()
    dice = random.Random(name)
    recorder, replay = Recorder("8.6"), Replay("8.6", ours=False)
    for _ in range(cases(5000)):
        selected = max(0, recorder.journal.database)
        recorder.select(dice.randrange(3))
        lines = [random_line(dice) for _ in range(dice.randrange(1, 7))]
        recorder.engine.begin_unit()
        for line in lines:
            recorder.ask(line)
        recorder.engine.end_unit()
        replay.feed(names_apart(recorder.take(), selected))
        assert names_of(replay.engine) == names_of(recorder.engine), f"{lines}, seed {name}"


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
        online(primary, 3)
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


def even(*clients: Any) -> None:
    """Wait until all have the same part of the stream."""
    eventually(
        lambda: len({one.info("replication")["master_repl_offset"] for one in clients}) == 1,
        "all have the same offset",
    )


def test_a_renamed_stream_keeps_its_names_on_a_promoted_replica() -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(running_penstock(*QUICK)) for _ in range(2)]
        primary, ours = (client_of(server.port) for server in servers)
        primary.set("not", "empty")
        follow(client_of(stack.enter_context(running_redis(*QUICK)).port), servers[0].port)
        follow(ours, servers[0].port)
        with primary.pipeline(transaction=True) as pipe:
            pipe.execute_command("XADD", "a", "IDMP", "producer", "m", "*", "k", "m")
            pipe.rename("a", "b")
            first, _ = pipe.execute()
        same(primary, ours)
        assert primary.execute_command("WAIT", 2, 20000) == 2
        ours.execute_command("REPLICAOF", "NO", "ONE")
        assert add(ours, "m", key="b") == first


@pytest.mark.parametrize("program", cells(OLD), ids=lambda program: program.file_name)
def test_a_replica_of_redis_continues_after_a_failover_to_a_replica_of_ours(
    program: Program,
) -> None:
    """The new primary sends the names apart from its first entry on, before that replica has asked it."""
    program.need()
    with (
        running_penstock(*QUICK, "--repl-ping-replica-period", "3600") as server,
        running_penstock(*QUICK) as second,
        running_redis(*QUICK, program=program) as theirs,
    ):
        primary, ours, old = (client_of(one.port) for one in (server, second, theirs))
        primary.set("not", "empty")
        follow(ours, server.port)
        follow(old, server.port)
        even(primary, ours, old)
        server.kill()
        ours.execute_command("REPLICAOF", "NO", "ONE")
        for number in range(5):
            add(ours, f"m{number}")
        follow(old, second.port)
        same(ours, old)
        assert stats(ours) == {"sync_full": 0, "sync_partial_ok": 1, "sync_partial_err": 0}


@pytest.mark.parametrize("program", cells(OLD), ids=lambda program: program.file_name)
def test_a_replica_of_redis_continues_after_a_restart_of_ours(
    tmp_path: Path, program: Program
) -> None:
    program.need()
    with (
        running_penstock(*QUICK, data=tmp_path) as server,
        running_redis(*QUICK, program=program) as theirs,
    ):
        primary, old = client_of(server.port), client_of(theirs.port)
        primary.set("not", "empty")
        follow(old, server.port)
        add(primary, "m")
        assert primary.execute_command("WAIT", 1, 20000) == 1
        server.kill()
        server.start()
        primary = client_of(server.port)
        for number in range(5):
            add(primary, f"m{number}")
        follow(old, server.port)
        same(primary, old)
        assert stats(primary) == {"sync_full": 0, "sync_partial_ok": 1, "sync_partial_err": 0}


def test_a_server_that_gets_a_snapshot_learns_that_names_are_apart() -> None:
    """From the snapshot: the primary has said so in the stream before."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running_penstock(*QUICK, "--repl-ping-replica-period", "3600"))
            for _ in range(2)
        ]
        primary, ours = (client_of(server.port) for server in servers)
        old = client_of(stack.enter_context(running_redis(*QUICK)).port)
        primary.set("not", "empty")
        follow(old, servers[0].port)
        follow(ours, servers[0].port)
        even(primary, ours, old)
        servers[0].kill()
        ours.execute_command("REPLICAOF", "NO", "ONE")
        add(ours, "m")
        follow(old, servers[1].port)
        same(ours, old)
        assert stats(ours)["sync_full"] == 0


@pytest.mark.parametrize("between", [1, 2])
def test_a_redis_below_a_replica_of_ours_interrupts_no_writes(between: int) -> None:
    """The links between ours stay open, although the primary must send the names apart from then on."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running_penstock(*QUICK, "--min-replicas-ack-timeout", "20000"))
            for _ in range(1 + between)
        ]
        primary, *ours = (client_of(server.port) for server in servers)
        primary.set("not", "empty")
        for one, above in zip(ours, servers, strict=False):
            follow(one, above.port)
        online(primary)
        primary.config_set("min-replicas-ack", 1)
        with working(servers[0].port) as writers:
            until_answered(writers)
            old = client_of(stack.enter_context(running_redis(*QUICK)).port)
            follow(old, servers[-1].port)
            for number in range(5):
                add(primary, f"m{number}")
            until_answered(writers)
        assert [writer.refused for writer in writers] == [0] * len(writers)
        same(primary, old)
        for one in (primary, *ours):
            found = stats(one)
            assert (found["sync_full"], found["sync_partial_ok"]) == (1, 0)


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
