"""`penstock pending`."""

from __future__ import annotations

import json

import pytest

from penstock.cli.commands.pending import PAGE
from tests.support.command_line import CommandLine

LARGEST = "18446744073709551615-18446744073709551615"


@pytest.fixture
def orders(penstock: CommandLine) -> CommandLine:
    """Three pending entries: two of ann, one of them deleted, and one of bob, an hour old."""
    client = penstock.server.client
    for id_ in ("1-0", "2-0", LARGEST):
        client.xadd("orders", {"sku": id_, "note": "[b]x\x1b"}, id=id_)
    client.xgroup_create("orders", "g", id="0")
    client.xreadgroup("g", "ann", {"orders": ">"}, count=2)
    client.xreadgroup("g", "bob", {"orders": ">"})
    client.xclaim("orders", "g", "bob", 0, [LARGEST], idle=3_600_000, retrycount=7)
    client.xdel("orders", "2-0")
    return penstock


def rows(penstock: CommandLine, *words: str) -> list[list[str]]:
    """The first, second and fourth column; the third is a time."""
    lines = penstock.lines("pending", "orders", "g", *words)[2:]
    return [[line.split()[0], line.split()[1], line.split()[-1]] for line in lines]


def test_summary_and_rows(orders: CommandLine) -> None:
    summary, heading, *_ = orders.lines("pending", "orders", "g")
    assert summary == f"3 pending, 1-0 to {LARGEST}: ann 2, bob 1"
    assert heading.split() == ["id", "consumer", "idle", "deliveries"]
    assert rows(orders) == [["1-0", "ann", "1"], ["2-0", "ann", "1"], [LARGEST, "bob", "7"]]


def test_rows_are_selected(orders: CommandLine) -> None:
    assert rows(orders, "--consumer", "bob") == [[LARGEST, "bob", "7"]]
    assert rows(orders, "--min-idle", "30m") == [[LARGEST, "bob", "7"]]
    assert rows(orders, "-n", "1") == [["1-0", "ann", "1"]]
    assert len(rows(orders, "--count", str(2**70))) == 3
    assert rows(orders, "--consumer", "nobody") == []


def test_payload_shows_the_entry_or_that_it_is_deleted(orders: CommandLine) -> None:
    lines = orders.lines("pending", "orders", "g", "--payload")
    assert lines[2].endswith("  sku=1-0 note=[b]x\\x1b")
    assert lines[3].endswith("  (deleted)")


def test_json_rows(orders: CommandLine) -> None:
    lines = orders.lines("pending", "orders", "g", "--payload", "--json")
    found = [json.loads(line) for line in lines]
    assert [row["id"] for row in found] == ["1-0", "2-0", LARGEST]
    assert [row["consumer"] for row in found] == ["ann", "ann", "bob"]
    assert [row["deliveries"] for row in found] == [1, 1, 7]
    assert found[0]["fields"] == {"sku": "1-0", "note": "[b]x\x1b"}
    assert found[1]["fields"] is None
    assert "fields" not in json.loads(orders.lines("pending", "orders", "g", "--json")[0])


def test_rows_beyond_a_page(penstock: CommandLine) -> None:
    client = penstock.server.client
    pipeline = client.pipeline()
    for number in range(1, 2 * PAGE + 2):
        pipeline.xadd("orders", {"a": 1}, id=f"{number}-0")
    pipeline.execute()
    client.xgroup_create("orders", "g", id="0")
    client.xreadgroup("g", "c", {"orders": ">"})
    lines = penstock.lines("pending", "orders", "g", "--json", "--count", "9999", "--payload")
    assert [json.loads(line)["id"] for line in lines] == [
        f"{number}-0" for number in range(1, 2 * PAGE + 2)
    ]
    assert len(penstock.lines("pending", "orders", "g", "--json", "-n", str(PAGE + 1))) == PAGE + 1


def test_nothing_pending(penstock: CommandLine) -> None:
    penstock.server.client.xgroup_create("s", "g", mkstream=True)
    assert penstock.lines("pending", "s", "g") == ["0 pending"]
    assert penstock.lines("pending", "s", "g", "--json") == []


def test_a_missing_stream_is_an_error(penstock: CommandLine) -> None:
    code, line = penstock.error("pending", "none", "g")
    assert code == 1
    assert line.startswith("none: NOGROUP ")


@pytest.mark.parametrize("words", [["s"], ["s", "g", "--min-idle", "5"], ["s", "g", "-n", "0"]])
def test_a_wrong_command_line_is_refused(penstock: CommandLine, words: list[str]) -> None:
    code, _ = penstock.error("pending", *words)
    assert code == 2
