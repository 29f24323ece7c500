"""Transactions among other things: watched keys that go, memory that runs out, the slow log."""

from __future__ import annotations

from penstock.server.states import OUT_OF_MEMORY
from tests.support.connections import ServerBench
from tests.support.raw_redis import Refusal

OOM = "OOM command not allowed when used memory > 'maxmemory'."


def test_a_key_that_expires_while_it_is_watched_breaks_the_watch() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("SET k 1 PX 5")
    client.reply("WATCH k")
    bench.clock.at_ms += 30
    client.reply("MULTI")
    assert client.ask("EXEC") == b"*-1\r\n"


def test_without_memory_nothing_is_queued_and_what_needs_memory_is_not_executed() -> None:
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


def test_commands_of_a_transaction_reach_the_slow_log() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("MULTI")
    client.reply("SET a 1")
    bench.server.slow_us = 0
    client.reply("EXEC")
    assert [b"SET", b"a", b"1"] in [entry.words for entry in bench.server.slow_log.entries]
