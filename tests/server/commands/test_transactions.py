"""Transactions with expiring keys, maxmemory, the slow log and the log."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from penstock.core.frame import Frame
from penstock.engine.context import Context
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.persist.aof.journal import Journal
from penstock.server.command_table import ROWS
from penstock.server.session.states import (
    DISK_FAILED,
    NO_REPLICAS,
    OUT_OF_MEMORY,
    READ_ONLY,
    SAVE_FAILED,
)
from tests.support.engine.effects import texts_of
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Refusal

OOM = "OOM command not allowed when used memory > 'maxmemory'."


def test_a_key_that_expires_while_it_is_watched_breaks_the_watch() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("SET k 1 PX 5")
    client.reply("WATCH k")
    bench.clock.at_ms += 30
    client.reply("MULTI")
    assert client.ask("EXEC") == b"*-1\r\n"


def test_exec_removes_no_watched_key_that_had_expired_already() -> None:
    # Found by the random sessions, seed 1974043633/76: Redis logs no expired key here.
    bench = ServerBench()
    client = bench.connect()
    client.reply("SET k 1 PXAT 1")
    client.reply("WATCH k")
    client.reply("MULTI")
    client.reply("PING")
    assert client.reply("EXEC") == ["PONG"]
    assert b"k" in bench.server.engine.context.databases[0].values


def test_above_maxmemory_nothing_is_queued_and_exec_is_refused() -> None:
    bench = ServerBench()
    client, other = bench.connect(), bench.connect()
    client.reply("MULTI")
    client.reply("SET q 1")
    bench.server.state |= OUT_OF_MEMORY
    assert client.reply("GET q") == Refusal(OOM)
    assert client.reply("EXEC") == Refusal(f"EXECABORT Transaction discarded because of: {OOM}")
    assert other.reply("MULTI") == "OK"
    assert other.reply("DISCARD") == "OK"
    assert other.reply("GET q") is None


@pytest.mark.parametrize("state", [READ_ONLY, NO_REPLICAS, DISK_FAILED, SAVE_FAILED])
def test_a_transaction_that_only_publishes_runs_where_writes_are_refused(state: int) -> None:
    bench = ServerBench()
    client = bench.connect()
    bench.server.state |= state
    for command in ("MULTI", "PUBLISH channel message"):
        assert isinstance(client.reply(command), str)
    assert client.reply("EXEC") == [0]
    client.reply("MULTI")
    assert isinstance(client.reply("SET a 1"), Refusal)


def test_a_pause_of_writes_holds_a_transaction_that_only_publishes() -> None:
    bench = ServerBench()
    client, admin = bench.connect(), bench.connect()
    client.reply("MULTI")
    client.reply("PUBLISH channel message")
    admin.reply("CLIENT PAUSE 1000 WRITE")
    client.tell("EXEC")
    assert client.replies() == []
    bench.advance(1000)
    assert client.replies() == [[0]]


def test_commands_of_a_transaction_reach_the_slow_log() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("MULTI")
    client.reply("SET a 1")
    bench.server.slow_us = 0
    client.reply("EXEC")
    assert [b"SET", b"a", b"1"] in [entry.words for entry in bench.server.slow_log.entries]


# --- Effects ----------------------------------------------------------------------------------------


def recorded(rows: Iterable[Command] = ROWS) -> tuple[ServerBench, Journal]:
    """A server that records the effects of its commands; database 0 is selected."""
    bench = ServerBench(rows=rows)
    journal = Journal()
    bench.engine.context.effects = journal
    bench.connect().reply("SET z z")
    journal.take()
    return bench, journal


def run_all(client: ManualClient, *lines: str) -> None:
    for line in ("MULTI", *lines, "EXEC"):
        client.tell(line)


def test_a_transaction_is_one_unit_of_effects_whatever_is_refused_in_it() -> None:
    bench, journal = recorded()
    run_all(bench.connect(), "SET a 1 EX 1", "INCR z", "SELECT 2", "GET a", "SET a 2")
    expires = f"SET a 1 PXAT {bench.clock.at_ms + 1000}"
    effects = ["MULTI", expires, "SELECT 2", "SET a 2", "EXEC"]
    assert texts_of(journal.take()) == effects


def test_a_transaction_of_one_effect_needs_no_multi_and_one_of_none_leaves_nothing() -> None:
    bench, journal = recorded()
    client = bench.connect()
    run_all(client, "GET a", "SET a 1", "LPOP a")
    assert texts_of(journal.take()) == ["SET a 1"]
    run_all(client, "GET a")
    run_all(client)
    assert journal.take() == b""


def test_a_transaction_that_a_watch_or_an_error_forbids_leaves_nothing() -> None:
    bench, journal = recorded()
    client, other = bench.connect(), bench.connect()
    client.tell("WATCH a")
    other.tell("SET a 1")
    journal.take()
    run_all(client, "SET a 2", "SET b 2")
    run_all(client, "SET a 2", "NONSENSE")
    assert journal.take() == b""


def test_who_waited_for_a_transaction_is_served_behind_its_unit() -> None:
    bench, journal = recorded()
    bench.connect().tell("BLPOP l 0")
    run_all(bench.connect(), "RPUSH l a", "RPUSH l b")
    effects = ["MULTI", "RPUSH l a", "RPUSH l b", "EXEC", "LPOP l"]
    assert texts_of(journal.take()) == effects


def test_a_transaction_that_breaks_is_in_the_log_as_a_whole_or_not_at_all() -> None:
    def broken(_context: Context, _frame: Frame) -> None:
        raise ZeroDivisionError

    row = Command("BREAK", broken, 1, Flags.READ, NO_KEYS, "Break.", group="generic")
    bench, journal = recorded([*ROWS, row])
    run_all(bench.connect(), "SET a 1", "SET b 1", "BREAK", "SET c 1")
    assert texts_of(journal.take()) == []
    bench.connect().tell("SET d 1")
    assert texts_of(journal.take()) == ["SELECT 0", "SET d 1"]


def test_no_key_expires_in_the_middle_of_a_transaction() -> None:
    def later(_context: Context, _frame: Frame) -> None:
        bench.clock.at_ms += 60_000

    row = Command("LATER", later, 1, Flags.READ, NO_KEYS, "Let a minute pass.", group="generic")
    bench, _ = recorded([*ROWS, row])
    client = bench.connect()
    replies = [
        client.ask(line) for line in ("MULTI", "SET k v PX 1000", "LATER", "EXISTS k", "EXEC")
    ]
    assert replies[-1] == b"*3\r\n+OK\r\n$-1\r\n:1\r\n"
    assert client.ask("EXISTS k") == b":0\r\n"
