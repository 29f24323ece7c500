"""PENSTOCK SPLITS and PENSTOCK NODES on an engine."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import stream_id
from penstock.core.listpack import total_bytes
from penstock.core.stream_node import NodeCursor
from tests.support.engine.engines import (
    INVALID_ID,
    NOT_A_NUMBER,
    SYNTAX,
    WRONG_TYPE,
    Bench,
    assert_refused,
)
from tests.support.engine.streams import nodes_of

PARTS = "ERR number of parts must be between 1 and 65536"


@pytest.fixture
def bench() -> Bench:
    """Ten entries, three per node; 4-0 and 6-0 are deleted."""
    bench = Bench()
    bench.engine.limits.entries_max = 3
    for n in range(1, 11):
        bench.ask(f"XADD s {n}-0 k {n}")
    bench.ask("XDEL s 4-0 6-0")
    return bench


def live_ids(nodes: list[Any]) -> list[str]:
    """The entries that a reader finds in the nodes of a reply."""
    ids = []
    for master_text, listpack in nodes:
        master = stream_id.parse(master_text)
        node = bytearray(listpack)
        assert total_bytes(node) == len(node)
        entry = NodeCursor()
        entry.open(node, master.ms, master.seq)
        found = entry.first()
        while found:
            if not entry.deleted:
                ids.append(f"{entry.ms}-{entry.seq}")
            found = entry.next()
    return ids


# --- Splits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("- + 2", [[b"1-0", b"5-0", 4], [b"7-0", b"10-0", 4]]),
        ("- + 1", [[b"1-0", b"10-0", 8]]),
        ("(1-0 (9-0 2", [[b"2-0", b"3-0", 2], [b"5-0", b"8-0", 3]]),
        ("5 5 9", [[b"5-0", b"5-0", 1]]),
        ("4 4 9", []),
        ("+ - 3", []),
    ],
)
def test_a_range_is_cut_into_equal_parts(bench: Bench, words: str, found: list[Any]) -> None:
    assert bench.ask(f"PENSTOCK SPLITS s {words}") == found


def test_nothing_is_cut_into_nothing(bench: Bench) -> None:
    assert bench.ask("PENSTOCK SPLITS missing - + 4") == []
    bench.ask("XGROUP CREATE empty g 0 MKSTREAM")
    assert bench.ask("PENSTOCK SPLITS empty - + 65536") == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("PENSTOCK SPLITS s - +", "ERR wrong number of arguments for 'penstock|splits' command"),
        ("PENSTOCK SPLITS s - + 0", PARTS),
        ("PENSTOCK SPLITS s - + -1", PARTS),
        ("PENSTOCK SPLITS s - + 65537", PARTS),
        ("PENSTOCK SPLITS s - + many", NOT_A_NUMBER),
        ("PENSTOCK SPLITS s oops + many", INVALID_ID),
        ("PENSTOCK SPLITS string - (0-0 1", "ERR invalid end ID for the interval"),
        ("PENSTOCK SPLITS string - + 1", WRONG_TYPE),
    ],
)
def test_an_invalid_splits_call_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


# --- Nodes ----------------------------------------------------------------------------------------


def test_nodes_are_the_bytes_of_the_stream(bench: Bench) -> None:
    more, nodes = bench.ask("PENSTOCK NODES s - +")
    assert more is None
    assert [(master.decode(), node) for master, node in nodes] == nodes_of(bench.stream())


def test_nodes_hold_the_range_and_whatever_else_is_in_them(bench: Bench) -> None:
    [more, nodes] = bench.ask("PENSTOCK NODES s 3 5")
    assert more is None
    assert live_ids(nodes) == ["1-0", "2-0", "3-0", "5-0"]


def test_a_reader_continues_where_the_last_reply_says(bench: Bench) -> None:
    start: bytes | None = b"-"
    seen = []
    while start is not None:
        start, nodes = bench.run("PENSTOCK", "NODES", "s", start, "+", "COUNT", 1)
        assert len(nodes) == 1
        seen.append((start, live_ids(nodes)))
    assert seen == [
        (b"(3-0", ["1-0", "2-0", "3-0"]),
        (b"(6-0", ["5-0"]),  # 6-0 is a tombstone: the position counts, not the entry
        (b"(9-0", ["7-0", "8-0", "9-0"]),
        (None, ["10-0"]),
    ]


def test_an_entry_added_between_two_calls_is_in_the_next_one(bench: Bench) -> None:
    start, _ = bench.ask("PENSTOCK NODES s - + COUNT 3")
    bench.ask("XADD s 11-0 k 11")
    more, nodes = bench.ask(f"PENSTOCK NODES s {start.decode()} +")
    assert (more, live_ids(nodes)) == (None, ["10-0", "11-0"])


def test_a_node_that_has_grown_since_comes_whole_and_is_filtered_by_id(bench: Bench) -> None:
    """A reader at the tail asks for entries after its last id, in the middle of a node."""
    bench.ask("XADD s 11-0 k 11")
    _, nodes = bench.ask("PENSTOCK NODES s (10-0 +")
    assert live_ids(nodes) == ["10-0", "11-0"]


def test_a_missing_stream_has_no_nodes(bench: Bench) -> None:
    assert bench.ask("PENSTOCK NODES missing - +") == [None, []]
    assert bench.ask("PENSTOCK NODES s 20 +") == [None, []]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("PENSTOCK NODES s -", "ERR wrong number of arguments for 'penstock|nodes' command"),
        ("PENSTOCK NODES s - + COUNT", SYNTAX),
        ("PENSTOCK NODES s - + LIMIT 1", SYNTAX),
        ("PENSTOCK NODES s - + COUNT 1 more", SYNTAX),
        ("PENSTOCK NODES s - + COUNT 0", "ERR COUNT must be > 0"),
        ("PENSTOCK NODES s - + COUNT many", "ERR COUNT must be > 0"),
        ("PENSTOCK NODES s oops + COUNT 0", INVALID_ID),
        ("PENSTOCK NODES string - +", WRONG_TYPE),
    ],
)
def test_an_invalid_nodes_call_is_refused(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


def test_help_names_every_subcommand(bench: Bench) -> None:
    lines = bench.ask("penstock help")
    assert lines[0] == "PENSTOCK <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    assert [line.split()[0] for line in lines[1:] if line[0] != " "] == [
        *("SPLITS", "NODES", "APPENDBATCH", "TAKE", "ADOPT", "RENEW", "SETTLE", "SEND"),
        *("OWN", "REAP", "GROUPS", "RETENTION", "HELP"),
    ]
