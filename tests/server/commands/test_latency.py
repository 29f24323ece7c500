"""LATENCY HISTOGRAM counts calls per latency."""

from __future__ import annotations

from penstock.server.stats.tally import Tally
from tests.support.servers.connections import ServerBench


def tally_of(bench: ServerBench, name: str) -> Tally:
    return bench.server.tallies.by_name[name]


def test_calls_are_counted_up_to_powers_of_two() -> None:
    bench = ServerBench()
    for us in (0, 1, 2, 3, 4, 5, 1000):
        tally_of(bench, "XLEN").count(1, us)
    client = bench.connect()
    client.session.output.resp3 = True
    within = {1: 2, 2: 3, 4: 5, 8: 6, 1024: 7}
    wanted = {b"xlen": {b"calls": 7, b"histogram_usec": within}}
    assert client.reply("LATENCY HISTOGRAM xlen nosuch xadd") == wanted


def test_a_container_includes_its_subcommands() -> None:
    bench = ServerBench()
    tally_of(bench, "XGROUP CREATE").count(1, 1)
    tally_of(bench, "XGROUP DESTROY").count(1, 1)
    client = bench.connect()
    client.session.output.resp3 = True
    assert list(client.reply("LATENCY HISTOGRAM XGROUP")) == [b"xgroup|create", b"xgroup|destroy"]
    assert list(client.reply("LATENCY HISTOGRAM xgroup|create")) == [b"xgroup|create"]


def test_there_are_no_latency_events() -> None:
    client = ServerBench().connect()
    assert client.reply("LATENCY LATEST") == []
    assert client.reply("LATENCY HISTORY command") == []
    assert client.reply("LATENCY RESET command") == 0
