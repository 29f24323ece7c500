"""MEMORY: the size of keys and of the process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine.engines import NOT_A_NUMBER, SYNTAX
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Refusal


def usage(client: ManualClient, key: str = "s", samples: int = 0) -> int:
    reply = client.reply(f"MEMORY USAGE {key} SAMPLES {samples}")
    assert isinstance(reply, int)
    return reply


def test_a_missing_key_has_no_size() -> None:
    assert ServerBench().connect().reply("MEMORY USAGE s") is None


def test_a_stream_costs_at_least_its_bytes() -> None:
    client = ServerBench().connect()
    client.reply("XADD", "s", "*", "k", "v" * 1000)
    small = usage(client)
    for _ in range(9):
        client.reply("XADD", "s", "*", "k", "v" * 1000)
    assert small > 1000
    assert usage(client) > 10_000


def test_groups_consumers_and_pending_entries_cost_memory() -> None:
    client = ServerBench().connect()
    for _ in range(50):
        client.reply("XADD s * k v")
    sizes = [usage(client)]
    for line in (
        "XGROUP CREATE s g 0",
        "XGROUP CREATECONSUMER s g c",
        "XREADGROUP GROUP g c COUNT 50 STREAMS s >",
    ):
        client.reply(line)
        sizes.append(usage(client))
    assert sizes == sorted(set(sizes))


def test_producers_returned_entries_and_indexes_cost_memory() -> None:
    client = ServerBench("8.8").connect()
    for number in range(50):
        client.reply(f"XADD s {number + 1}-0 k v")
    for name in ("g", "h"):
        client.reply(f"XGROUP CREATE s {name} 0")
        client.reply(f"XREADGROUP GROUP {name} c STREAMS s >")
    sizes = [usage(client)]
    for lines in (
        [f"XNACK s g FAIL IDS 1 {number}-0" for number in range(1, 21)],
        [
            "XREADGROUP GROUP h c CLAIM 999999 STREAMS s >"
        ],  # keeps the records by their times from now on
        ["XTRIM s MAXLEN 40 ACKED"],  # counts the groups of each pending entry from now on
        [f"XADD s IDMP p {number} * k v" for number in range(20)],
        [f"XADD s IDMP p{number} name * k v" for number in range(20)],
    ):
        for line in lines:
            client.reply(line)
        sizes.append(usage(client))
    assert sizes == sorted(set(sizes))


def test_names_are_estimated_from_a_few() -> None:
    client = ServerBench("8.6").connect()
    client.reply("XADD s * k v")
    client.reply("XCFGSET s IDMP-MAXSIZE 10000")
    for number in range(2000):
        client.reply(f"XADD s IDMP p message:{number:09} * k v")
    exact = usage(client)
    assert 0.8 * exact < client.reply("MEMORY USAGE s") < 1.2 * exact


def test_a_few_samples_are_enough_for_an_estimate() -> None:
    client = ServerBench().connect()
    for _ in range(3000):
        client.reply("XADD", "s", "*", "k", "v" * 20)
    exact = usage(client)
    assert 0.8 * exact < usage(client, samples=3) < 1.2 * exact
    assert 0.8 * exact < client.reply("MEMORY USAGE s") < 1.2 * exact


def test_one_large_consumer_does_not_inflate_the_others() -> None:
    client = ServerBench().connect()
    for _ in range(1000):
        client.reply("XADD", "s", "*", "k", "v")
    client.reply("XGROUP CREATE s g 0")
    client.reply("XREADGROUP GROUP g a COUNT 1000 STREAMS s >")
    for number in range(500):
        client.reply(f"XGROUP CREATECONSUMER s g c{number}")
    exact = usage(client)
    assert 0.8 * exact < client.reply("MEMORY USAGE s") < 1.2 * exact


def test_other_values_cost_memory_too() -> None:
    bench = ServerBench()
    bench.engine.context.databases[0].put(b"text", b"x" * 5000)
    assert usage(bench.connect(), "text") > 5000


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("SAMPLES", SYNTAX),
        ("SAMPLES -1", SYNTAX),
        ("SAMPLES x", NOT_A_NUMBER),
        ("NOSUCH 1", SYNTAX),
    ],
)
def test_invalid_options_are_refused(words: str, text: str) -> None:
    client = ServerBench().connect()
    client.reply("XADD s * k v")
    assert client.reply(f"MEMORY USAGE s {words}") == Refusal(text)


def test_stats_add_up() -> None:
    client = ServerBench().connect()
    client.reply("XADD s * k v")
    client.session.output.resp3 = True
    stats: dict[bytes, Any] = client.reply("MEMORY STATS")
    assert stats[b"keys.count"] == 1
    assert b"overhead.hashtable.main" in stats[b"db.0"]
    assert stats[b"overhead.total"] + stats[b"dataset.bytes"] == stats[b"total.allocated"]
    assert isinstance(stats[b"dataset.percentage"], float)


def test_the_doctor_warns_when_memory_is_nearly_full() -> None:
    bench = ServerBench()
    client = bench.connect()
    assert b"maxmemory" not in client.reply("MEMORY DOCTOR")
    bench.server.max_memory = 1000
    assert b"maxmemory" in client.reply("MEMORY DOCTOR")


def test_the_allocator_can_be_asked() -> None:
    client = ServerBench().connect()
    assert client.reply("MEMORY PURGE") == "OK"
    assert b"blocks allocated" in client.reply("MEMORY MALLOC-STATS")
