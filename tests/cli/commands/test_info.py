"""`penstock info`."""

from __future__ import annotations

import json

import pytest

from penstock.cli.commands.info import SCAN_COUNT
from penstock.human.show import BRIEF_BYTES_MAX, BRIEF_FIELDS_MAX
from tests.support.command_line import CommandLine


def test_the_server_and_its_streams(penstock: CommandLine) -> None:
    client = penstock.server.client
    client.set("text", "x")
    client.xgroup_create("b", "g", mkstream=True)
    client.xadd("a", {"k": 1}, id="1-0")
    client.xadd("a", {"k": 1}, id="2-0")
    client.xgroup_create("a", "g", id="0")
    client.xgroup_create("c", "g", mkstream=True)
    client.xadd("c", {"k": 1}, id="1-0")
    client.xadd("c", {"k": 1}, id="2-0")
    client.xgroup_create("c", "middle", id="1-5")
    server, heading, *rows = penstock.lines("info")
    assert server.startswith(f"redis {client.info()['redis_version']} at 127.0.0.1:")
    assert heading.split() == ["stream", "length", "first", "last", "groups", "worst", "lag"]
    assert [(row.split()[0], row.split()[1], *row.split()[-2:]) for row in rows] == [
        ("a", "2", "1", "2"),
        ("b", "0", "1", "0"),
        ("c", "2", "2", "unknown"),
    ]


def test_the_server_as_json(penstock: CommandLine) -> None:
    penstock.server.client.xadd("a", {"k": 1}, id="1-0")
    penstock.server.client.xadd("a", {"k": 1}, id="2-0")
    (line,) = penstock.lines("info", "--json")
    found = json.loads(line)
    assert found["server"]["server"] == "redis"
    assert found["server"]["clients"] > 0
    assert found["streams"] == [
        {
            "stream": "a",
            "length": 2,
            "first_id": "1-0",
            "last_id": "2-0",
            "groups": 0,
            "worst_lag": None,
        }
    ]


def test_every_page_of_scan_is_read(penstock: CommandLine) -> None:
    pipeline = penstock.server.client.pipeline()
    names = [f"s{number:05}" for number in range(2 * SCAN_COUNT)]
    for name in names:
        pipeline.xadd(name, {"k": 1})
        pipeline.set(f"text{name}", "x")
    pipeline.execute()
    (line,) = penstock.lines("info", "--json")
    assert [about["stream"] for about in json.loads(line)["streams"]] == names


def test_streams_are_selected_by_name(penstock: CommandLine) -> None:
    for name in ("orders:1", "orders:2", "other"):
        penstock.server.client.xadd(name, {"k": 1})
    (line,) = penstock.lines("info", "--json", "--match", "orders:*")
    assert [about["stream"] for about in json.loads(line)["streams"]] == ["orders:1", "orders:2"]
    assert penstock.error("info", "orders:1", "--match", "x")[0] == 2


def test_one_stream(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"k": "[b]\x1b"}, id="1-0")
    lines = penstock.lines("info", "s")
    found = dict(line.split(maxsplit=1) for line in lines)
    assert (found["stream"], found["length"], found["last-generated-id"]) == ("s", "1", "1-0")
    assert found["first-entry"].endswith("k=[b]\\x1b")
    (line,) = penstock.lines("info", "s", "--json")
    about = json.loads(line)
    assert about["length"] == 1
    assert about["first_entry"] == {"id": "1-0", "fields": {"k": "[b]\x1b"}}


def test_a_large_payload_is_shortened_for_people_only(penstock: CommandLine) -> None:
    body = "x" * 1_000_000
    penstock.server.client.xadd("s", {"sku": "A1", "body": body}, id="1-0")
    lines = penstock.lines("info", "s")
    assert max(map(len, lines)) < 200
    found = dict(line.split(maxsplit=1) for line in lines)
    assert found["last-entry"].endswith(f"sku=A1 body={'x' * BRIEF_BYTES_MAX}... (1,000,000 bytes)")
    (line,) = penstock.lines("info", "s", "--json")
    assert json.loads(line)["last_entry"]["fields"] == {"sku": "A1", "body": body}


def test_an_entry_with_many_fields_is_shortened(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {f"f{number}": number for number in range(1000)}, id="1-0")
    found = dict(line.split(maxsplit=1) for line in penstock.lines("info", "s"))
    assert found["first-entry"].endswith(f"... ({1000 - BRIEF_FIELDS_MAX:,} more fields)")


def test_an_empty_stream_has_no_ends(penstock: CommandLine) -> None:
    penstock.server.client.xgroup_create("s", "g", mkstream=True)
    (line,) = penstock.lines("info", "s", "--json")
    assert json.loads(line)["first_entry"] is None
    assert penstock.lines("info")[-1].split() == ["s", "0", "-", "-", "1", "0"]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_names_are_harmless_to_the_terminal(penstock: CommandLine, form: list[str]) -> None:
    penstock.server.client.xadd(b"[red]\x1b[2J\xff\x9b", {"k": 1})
    for line in penstock.lines("info", *form):
        assert line.isprintable()


def test_a_missing_stream_is_an_error(penstock: CommandLine) -> None:
    assert penstock.error("info", "none") == (1, "none: no such key")
    penstock.server.client.set("text", "x")
    code, line = penstock.error("info", "text")
    assert code == 1
    assert line.startswith("text: WRONGTYPE ")
