"""LATENCY shows how many calls stayed within how many microseconds."""

from __future__ import annotations

from penstock.server.tally import Tally
from tests.support.sessions import Hall


def tally_of(hall: Hall, name: str) -> Tally:
    return hall.server.tallies.by_name[name]


def test_calls_are_counted_up_to_powers_of_two() -> None:
    hall = Hall()
    for us in (0, 1, 2, 3, 4, 5, 1000):
        tally_of(hall, "XLEN").count(1, us)
    client = hall.client()
    client.session.output.resp3 = True
    within = {1: 2, 2: 3, 4: 5, 8: 6, 1024: 7}
    wanted = {b"xlen": {b"calls": 7, b"histogram_usec": within}}
    assert client.ask("LATENCY HISTOGRAM xlen nosuch xadd") == wanted


def test_a_container_stands_for_its_subcommands() -> None:
    hall = Hall()
    tally_of(hall, "XGROUP CREATE").count(1, 1)
    tally_of(hall, "XGROUP DESTROY").count(1, 1)
    client = hall.client()
    client.session.output.resp3 = True
    assert list(client.ask("LATENCY HISTOGRAM XGROUP")) == [b"xgroup|create", b"xgroup|destroy"]
    assert list(client.ask("LATENCY HISTOGRAM xgroup|create")) == [b"xgroup|create"]


def test_events_are_not_noted() -> None:
    client = Hall().client()
    assert client.ask("LATENCY LATEST") == []
    assert client.ask("LATENCY HISTORY command") == []
    assert client.ask("LATENCY RESET command") == 0
