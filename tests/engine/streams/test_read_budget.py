"""MAXCOUNT and MAXSIZE of XREAD and XREADGROUP on an engine. By the documents of Redis 8.10."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine.engines import SYNTAX, Bench, assert_refused
from tests.support.servers.raw_redis import Refusal

KEYS = ("s", "t", "u")


@pytest.fixture
def bench() -> Bench:
    """Three streams of three entries, each with 10 bytes in its field; a group g in each."""
    bench = Bench("8.10")
    for key in KEYS:
        for n in (1, 2, 3):
            bench.ask(f"XADD {key} {n}-0 k 123456789")
        bench.ask(f"XGROUP CREATE {key} g 0")
    return bench


def found(reply: Any) -> dict[str, int]:
    """The number of entries from each stream."""
    return {key.decode(): len(entries) for key, entries in reply}


READS = ["XREAD {} STREAMS s t u 0 0 0", "XREADGROUP GROUP g a {} STREAMS s t u > > >"]


@pytest.mark.parametrize("line", READS)
@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ("MAXCOUNT 4", {"s": 3, "t": 1}),
        ("MAXCOUNT 9", {"s": 3, "t": 3, "u": 3}),
        ("MAXCOUNT 1", {"s": 1}),
        ("COUNT 2 MAXCOUNT 5", {"s": 2, "t": 2, "u": 1}),
        ("MAXSIZE 40", {"s": 3, "t": 1}),
        ("MAXSIZE 41", {"s": 3, "t": 2}),
        ("MAXSIZE 1", {"s": 1}),
        ("maxsize 1000 maxcount 2", {"s": 2}),
        ("MAXSIZE 15 MAXCOUNT 9 COUNT 1", {"s": 1, "t": 1}),
        (f"MAXCOUNT {2**63 - 1} MAXSIZE {2**63 - 1}", {"s": 3, "t": 3, "u": 3}),
    ],
)
def test_a_budget_is_spent_in_the_order_of_the_streams(
    bench: Bench, line: str, options: str, counts: dict[str, int]
) -> None:
    assert found(bench.ask(line.format(options))) == counts


def test_what_is_not_returned_stays_new(bench: Bench) -> None:
    line = READS[1].format("MAXCOUNT 4")
    replies = [found(bench.ask(line)) for _ in range(3)]
    assert replies == [{"s": 3, "t": 1}, {"t": 2, "u": 2}, {"u": 1}]


def test_claimed_entries_and_history_count_too(bench: Bench) -> None:
    bench.ask("XREADGROUP GROUP g a COUNT 2 STREAMS s t > >")
    bench.clock.at_ms += 10
    line = "XREADGROUP GROUP g b MAXCOUNT 4 CLAIM 5 STREAMS s t > >"
    assert found(bench.ask(line)) == {"s": 3, "t": 1}
    line = "XREADGROUP GROUP g b MAXSIZE 15 STREAMS s t 0 0"
    assert found(bench.ask(line))["s"] == 2


def test_a_claim_of_all_entries_ends(bench: Bench) -> None:
    """Each claim makes an entry idle for 0 ms again: with CLAIM 0 none is claimed twice."""
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    reply = bench.ask("XREADGROUP GROUP g b MAXCOUNT 100 CLAIM 0 STREAMS s >")
    assert isinstance(reply, list) or reply is not None
    ids = [] if not isinstance(reply, list) else [row[0] for row in reply[0][1]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("line", READS)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("MAXCOUNT 0", "ERR MAXCOUNT must be a positive integer"),
        ("MAXCOUNT -1", "ERR MAXCOUNT must be a positive integer"),
        ("MAXCOUNT x", "ERR MAXCOUNT must be a positive integer"),
        ("MAXSIZE 0", "ERR MAXSIZE must be a positive integer"),
        ("MAXSIZE 9223372036854775808", "ERR MAXSIZE must be a positive integer"),
        ("COUNT 5 MAXCOUNT 4", "ERR MAXCOUNT must be greater than or equal to COUNT"),
    ],
)
def test_an_invalid_budget_changes_nothing(
    bench: Bench, line: str, options: str, text: str
) -> None:
    assert_refused(bench, line.format(options), text)


def test_a_waiting_reader_keeps_its_budget(bench: Bench) -> None:
    reader = bench.park("XREAD BLOCK 0 MAXCOUNT 1 STREAMS s t $ $")
    bench.ask("XADD t 9-0 k v")
    assert found(reader.got) == {"t": 1}


def test_older_levels_do_not_know_the_options() -> None:
    bench = Bench("8.8")
    bench.ask("XADD s 1-0 k v")
    assert bench.ask("XREAD MAXCOUNT 1 STREAMS s 0") == Refusal(SYNTAX)
