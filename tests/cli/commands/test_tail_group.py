"""`penstock tail --group`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command_line import CommandLine


@pytest.fixture
def orders(penstock: CommandLine) -> CommandLine:
    """A stream with three entries and a group that has seen none."""
    for number in (1, 2, 3):
        penstock.server.client.xadd("orders", {"sku": f"A{number}"}, id=f"{number}-0")
    penstock.server.client.xgroup_create("orders", "g", id="0")
    return penstock


def read(penstock: CommandLine, *words: str) -> list[str]:
    return penstock.lines("tail", *words, "--no-follow", "--format", "{stream} {id}")


def pending(penstock: CommandLine, stream: str = "orders") -> list[str]:
    rows: Any = penstock.server.client.xpending_range(stream, "g", "-", "+", 100)
    return [row["message_id"].decode() for row in rows]


def test_shown_entries_are_acknowledged(orders: CommandLine) -> None:
    assert read(orders, "orders", "--group", "g") == ["orders 1-0", "orders 2-0", "orders 3-0"]
    assert pending(orders) == []
    assert read(orders, "orders", "--group", "g") == []


def test_no_ack_leaves_it_pending_for_the_consumer(orders: CommandLine) -> None:
    read(orders, "orders", "--group", "g", "--consumer", "ann", "--no-ack")
    rows = orders.server.client.xpending_range("orders", "g", "-", "+", 9)
    assert [(row["message_id"], row["consumer"]) for row in rows] == [
        (b"1-0", b"ann"),
        (b"2-0", b"ann"),
        (b"3-0", b"ann"),
    ]


def test_count_takes_no_more_than_it_shows(orders: CommandLine) -> None:
    assert read(orders, "orders", "--group", "g", "-n", "2") == ["orders 1-0", "orders 2-0"]
    assert pending(orders) == []
    assert read(orders, "orders", "--group", "g", "-n", "2") == ["orders 3-0"]


def test_entries_that_do_not_match_stay_pending(orders: CommandLine) -> None:
    assert read(orders, "orders", "--group", "g", "--where", "sku!=A2") == [
        "orders 1-0",
        "orders 3-0",
    ]
    assert pending(orders) == ["2-0"]


def test_a_group_is_created_only_on_request(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": 1}, id="1-0")
    code, line = penstock.error("tail", "s", "--group", "g", "--no-follow")
    assert code == 1
    assert line.startswith("NOGROUP ")
    assert line.endswith("--create-group creates it")
    assert read(penstock, "s", "--group", "g", "--create-group") == []
    assert penstock.server.client.xinfo_groups("s")[0]["last-delivered-id"] == b"1-0"


def test_a_new_group_starts_at_from(penstock: CommandLine) -> None:
    for number in (1, 2, 3):
        penstock.server.client.xadd("s", {"a": 1}, id=f"{number}-0")
    words = ["s", "--group", "g", "--create-group", "--from"]
    assert read(penstock, *words, "2") == ["s 2-0", "s 3-0"]
    result = penstock.run("tail", *words, "start", "--no-follow")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "exists already" in result.stderr


def test_create_group_also_creates_the_stream(penstock: CommandLine) -> None:
    assert read(penstock, "new", "--group", "g", "--create-group", "--from", "start") == []
    assert penstock.server.client.type("new") == b"stream"


def test_create_group_does_not_hide_other_errors(penstock: CommandLine) -> None:
    penstock.server.client.set("text", "x")
    code, line = penstock.error("tail", "text", "--group", "g", "--create-group")
    assert code == 1
    assert line.startswith("text: WRONGTYPE ")


def test_entries_of_several_streams_are_acknowledged(orders: CommandLine) -> None:
    orders.server.client.xadd("more", {"sku": "B"}, id="2-5")
    orders.server.client.xgroup_create("more", "g", id="0")
    shown = read(orders, "orders", "more", "--group", "g")
    assert shown == ["orders 1-0", "orders 2-0", "more 2-5", "orders 3-0"]
    assert pending(orders) == pending(orders, "more") == []


@pytest.mark.parametrize(
    "words",
    [
        ["s", "--group", "g", "--until", "5"],
        ["s", "--group", "g", "--from", "5"],
        ["s", "t", "--group", "g", "-n", "1"],
    ],
)
def test_options_that_conflict_with_a_group(penstock: CommandLine, words: list[str]) -> None:
    code, _ = penstock.error("tail", *words)
    assert code == 2
