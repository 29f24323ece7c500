"""`penstock dead`."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from penstock.work import App, Dead
from tests.support.command_line import CommandLine


@pytest.fixture
def orders(penstock: CommandLine) -> CommandLine:
    """A stream with three entries, of which the first two are dead."""
    app = App(penstock.environment["PENSTOCK_URL"], group="g")

    @app.on("orders")
    def charge(number: int) -> None:
        if number < 3:
            raise Dead(f"number\x1b {number}")

    worker = app.worker()
    for number in (1, 2, 3):
        charge.send(number)
    worker.start()
    deadline = time.monotonic() + 60
    while app.backend.ask("XLEN", "orders:dead") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert worker.stop()
    app.close()
    return penstock


def ids(orders: CommandLine) -> list[str]:
    lines = orders.lines("dead", "orders", "ls", "--json")
    return [json.loads(line)["id"] for line in lines]


def values(entries: Any) -> list[bytes]:
    return [fields[b"data"] for _, fields in entries]


def test_dead_letters_are_listed_with_their_reason(orders: CommandLine) -> None:
    heading, *rows = orders.lines("dead", "orders", "ls")
    assert heading.split() == ["id", "source", "id", "group", "attempts", "reason"]
    assert sorted(row.split(maxsplit=4)[2:] for row in rows) == [
        ["g", "1", "number\\x1b 1"],
        ["g", "1", "number\\x1b 2"],
    ]


def test_one_is_shown_with_its_traceback(orders: CommandLine) -> None:
    shown = orders.lines("dead", "orders", "show", ids(orders)[0])
    assert "  source_stream: orders" in shown
    assert any("raise Dead" in line for line in shown)
    [line] = orders.lines("dead", "orders", "show", ids(orders)[0], "--json")
    assert json.loads(line)["fields"]["_group"] == "g"


def test_a_redriven_entry_is_due_in_its_group(orders: CommandLine) -> None:
    first, second = ids(orders)
    assert orders.lines("dead", "orders", "redrive", first) == [f"redriven {first} to orders"]
    assert ids(orders) == [second]
    client = orders.server.client
    [row] = client.xpending_range("orders", "g", "-", "+", 10)
    assert (row["consumer"], row["times_delivered"]) == (b"waiting", 0)
    assert client.xlen("orders") == 3


def test_an_entry_that_is_gone_is_added_again(orders: CommandLine) -> None:
    client = orders.server.client
    client.xtrim("orders", maxlen=0, approximate=False)
    orders.lines("dead", "orders", "redrive", "--all")
    assert sorted(values(client.xrange("orders"))) == [b"1", b"2"]
    assert client.xlen("orders:dead") == 0


@pytest.mark.parametrize("is_there", [True, False])
def test_a_letter_stays_if_it_cannot_be_given_back(orders: CommandLine, is_there: bool) -> None:
    first, second = ids(orders)
    client = orders.server.client
    client.xgroup_destroy("orders", "g")
    if not is_there:
        client.delete("orders")
        client.set("orders", "no stream")
    code, said = orders.error("dead", "orders", "redrive", first)
    assert code == 1
    assert said.startswith("orders: " + ("NOGROUP" if is_there else "WRONGTYPE"))
    assert ids(orders) == [first, second]


def test_dead_letters_are_dropped(orders: CommandLine) -> None:
    first, second = ids(orders)
    assert orders.lines("dead", "orders", "drop", second) == [f"dropped {second}"]
    assert ids(orders) == [first]


def test_bad_calls(penstock: CommandLine) -> None:
    assert penstock.error("dead", "orders", "show")[0] == 2
    assert penstock.error("dead", "orders", "bury")[0] == 2
    assert penstock.error("dead", "orders", "show", "1-1") == (1, "orders:dead has no entry 1-1")
    penstock.server.client.xadd("orders:dead", {"k": "v"}, id="1-1")
    assert (
        penstock.error("dead", "orders", "redrive", "1-1")[1] == "1-1 has no field _source_stream"
    )
