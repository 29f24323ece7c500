"""`penstock retention`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import redis

from tests.support.command_line import CommandLine
from tests.support.servers.penstock_server import running_penstock


@pytest.fixture
def orders() -> Iterator[CommandLine]:
    """A stream of 500 entries, of which the group g has acknowledged 250."""
    with running_penstock() as server, redis.Redis(port=server.port) as client:
        for number in range(500):
            client.xadd("orders", {"n": number})
        client.xgroup_create("orders", "g", "0")
        [(_, read)] = client.xreadgroup("g", "c", {"orders": ">"}, count=300)
        client.xack("orders", "g", *[entry_id for entry_id, _ in read[:250]])
        yield CommandLine(server)  # type: ignore[arg-type]


def test_another_server_has_no_retention(penstock: CommandLine) -> None:
    assert "it is not a penstock server" in penstock.error("retention")[1]


def test_a_rule_is_tried_without_changing_anything(orders: CommandLine) -> None:
    [line] = orders.lines("retention", "orders", "length", "100", "acked", "yes", "--json")
    found = json.loads(line)
    assert (found["length"], found["removable"], found["held_by"]) == (500, 200, "g")
    assert found["rule"] == "length 100 acked yes"
    [line] = orders.lines("retention", "orders", "length", "100", "--json")
    assert json.loads(line)["removable"] == 400


def test_the_rules_of_the_server_are_shown_for_every_stream(orders: CommandLine) -> None:
    with redis.Redis(port=orders.server.port) as client:
        client.set("a string", 1)
        client.xadd("other", {"n": 1})
        client.config_set("stream-retention", "order* age 1d acked yes idle-group 7d")
    heading, row = orders.lines("retention")
    assert heading.split()[:4] == ["stream", "length", "bytes", "removable"]
    assert row.startswith("orders")
    assert row.endswith("age 1d acked yes idle-group 1w")


def test_a_stream_without_a_rule_is_an_error(orders: CommandLine) -> None:
    assert "no rule of stream-retention matches orders" in orders.error("retention", "orders")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["length"], "length has no value"),
        (["length", "x"], "length must be a number"),
        (["bogus", "1"], "no options"),
    ],
)
def test_a_bad_rule_is_a_usage_error(orders: CommandLine, words: list[str], said: str) -> None:
    assert said in orders.error("retention", "orders", *words)[1]
