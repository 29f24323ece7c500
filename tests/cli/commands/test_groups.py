"""`penstock groups`."""

from __future__ import annotations

import json

import pytest

from penstock.cli.commands.groups import _since
from tests.support.command_line import CommandLine


@pytest.fixture
def orders(penstock: CommandLine) -> CommandLine:
    """Two groups: one with a known lag, and one set to an id in the middle."""
    client = penstock.server.client
    for number in (1, 2, 3):
        client.xadd("orders", {"a": 1}, id=f"{number}-0")
    client.xgroup_create("orders", "packers", id="0")
    client.xreadgroup("packers", "ann", {"orders": ">"}, count=2)
    client.xgroup_create("orders", "auditors of things", id="2-0")
    return penstock


def test_groups_are_an_aligned_table(orders: CommandLine) -> None:
    assert orders.lines("groups", "orders") == [
        "group               consumers  pending  last delivered     read      lag",
        "auditors of things          0        0  2-0             unknown  unknown",
        "packers                     1        2  2-0                   2        1",
    ]


def test_groups_as_json(orders: CommandLine) -> None:
    assert [json.loads(line) for line in orders.lines("groups", "orders", "--json")] == [
        {
            "name": "auditors of things",
            "consumers": 0,
            "pending": 0,
            "last_delivered_id": "2-0",
            "entries_read": None,
            "lag": None,
        },
        {
            "name": "packers",
            "consumers": 1,
            "pending": 2,
            "last_delivered_id": "2-0",
            "entries_read": 2,
            "lag": 1,
        },
    ]


def test_consumers_of_a_group(orders: CommandLine) -> None:
    heading, row = orders.lines("groups", "orders", "packers")
    assert heading.split() == ["consumer", "pending", "idle", "inactive"]
    assert row.split()[:2] == ["ann", "2"]
    (line,) = orders.lines("groups", "orders", "packers", "--json")
    consumer = json.loads(line)
    assert list(consumer) == ["name", "pending", "idle_ms", "inactive_ms"]
    assert (consumer["name"], consumer["pending"]) == ("ann", 2)


def test_missing_values_are_shown_as_unknown() -> None:
    assert [_since(None), _since(-1), _since(1500)] == ["unknown", "never", "1s"]


def test_no_groups_are_an_empty_table(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": 1})
    assert len(penstock.lines("groups", "s")) == 1
    assert penstock.lines("groups", "s", "--json") == []


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_names_are_harmless_to_the_terminal(penstock: CommandLine, form: list[str]) -> None:
    penstock.server.client.xgroup_create("s", b"[red]g[/]\x1b[2J\xff", mkstream=True)
    for line in penstock.lines("groups", "s", *form):
        assert line.isprintable()
    assert "[red]g[/]" in line


def test_a_missing_stream_is_an_error(penstock: CommandLine) -> None:
    assert penstock.error("groups", "none") == (1, "none: no such key")
    penstock.server.client.xadd("s", {"a": 1})
    code, line = penstock.error("groups", "s", "none")
    assert code == 1
    assert line.startswith("s: NOGROUP ")
    penstock.server.client.set("text", "x")
    code, line = penstock.error("groups", "text")
    assert code == 1
    assert line.startswith("text: WRONGTYPE ")
