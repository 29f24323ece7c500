"""Redis and penstock have the same bytes, tree and maps after the same commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import RedisServer

MAX = 2**64 - 1
ENTRIES = 230


@pytest.fixture(scope="module")
def penstock_server() -> Iterator[PenstockServer]:
    with running_penstock() as server:
        yield server


def fill(client: redis.Redis) -> None:
    """Several nodes, tombstones, different names, the largest id, values with control characters."""
    client.delete("orders")
    start = 1_700_000_000_000
    for number in range(ENTRIES):
        fields: dict[Any, Any] = {"sku": f"A{number}", "qty": number % 7}
        if number % 50 == 9:
            fields = {"note": "\x1b[31m<script>", b"\xff\x00": b"\x80"}
        client.xadd("orders", fields, id=f"{start + 13 * number}-{number % 3}")
    for number in range(0, ENTRIES, 11):
        client.xdel("orders", f"{start + 13 * number}-{number % 3}")
    client.xadd("orders", {"sku": "last"}, id=f"{MAX}-{MAX}")


def run(port: int, *words: str) -> Result:
    url = f"redis://127.0.0.1:{port}/0"
    return CliRunner().invoke(
        app, ["inspect", *words, "--url", url], catch_exceptions=False, prog_name="penstock"
    )


def looked_at(port: int, *words: str) -> dict[str, Any]:
    result = run(port, *words, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    about: dict[str, Any] = json.loads(result.stdout)
    return about


def test_both_servers_have_the_same_maps(
    redis_server: RedisServer, penstock_server: PenstockServer
) -> None:
    ours = penstock_server.client()
    fill(ours)
    fill(redis_server.client)
    found = [
        looked_at(port, "orders", "--what", "all")
        for port in (penstock_server.port, redis_server.port)
    ]
    for about in found:
        about.pop("source")
        assert about["damaged"] is False
        assert about["entries"] == redis_server.client.xlen("orders")
        # The tree rebuilt from the keys is the server's tree.
        assert about["tree"]["keys"] == about["nodes_total"]
        assert about["tree"]["nodes"] == about["tree_nodes"]
        assert about["memory"]["entries"] == about["entries"]
        assert about["nodes"][-1]["items"][-1]["id"] == f"{MAX}-{MAX}"
    assert found[0] == found[1]
    text = [
        run(port, "orders", "--what", "bytes").stdout
        for port in (penstock_server.port, redis_server.port)
    ]
    bodies = [printed.partition("\n")[2] for printed in text]
    assert bodies[0] == bodies[1]
    assert "\x1b" not in text[0]
    assert '"\\x1b[31m<script>"' in text[0]


def test_a_planned_trim_matches_what_redis_does(redis_server: RedisServer) -> None:
    client = redis_server.client
    for words, option in (("=", False), ("~", True)):
        fill(client)
        plan = looked_at(redis_server.port, "orders", "--trim", "100", "--what", "memory")["trims"]
        (foretold,) = [trim for trim in plan if trim["approximate"] == option]
        before = looked_at(redis_server.port, "orders", "--what", "memory")["memory"]
        removed = client.execute_command("XTRIM", "orders", "MAXLEN", words, 100)  # type: ignore[no-untyped-call]
        after = looked_at(redis_server.port, "orders", "--what", "memory")["memory"]
        assert removed == foretold["entries_removed"]
        assert client.xlen("orders") == foretold["entries_left"]
        assert before["nodes"] - after["nodes"] == foretold["nodes_dropped"]
        assert before["total_bytes"] - after["total_bytes"] == foretold["bytes_freed"]


@pytest.mark.parametrize("native", [True, False])
def test_one_node_by_number_and_by_id(
    native: bool, redis_server: RedisServer, penstock_server: PenstockServer
) -> None:
    client = penstock_server.client() if native else redis_server.client
    port = penstock_server.port if native else redis_server.port
    fill(client)
    every = looked_at(port, "orders")["nodes"]
    assert len(every) == 3
    for words, place in (("1", 0), ("3", 2), ("-1", 2), ("-3", 0)):
        (node,) = looked_at(port, "orders", "--node", words)["nodes"]
        assert (node["number"], node["id"]) == (place + 1, every[place]["id"])
    held = f"{1_700_000_000_000 + 13 * 110}-{110 % 3}"  # a tombstone of the second node
    (node,) = looked_at(port, "orders", "--node", held)["nodes"]
    assert node["id"] == every[1]["id"]
    for words in ("4", "-4", "1-0"):
        result = run(port, "orders", "--node", words)
        assert result.exit_code == 2
        assert "node" in result.stderr


def test_a_limit_reads_the_first_nodes_only(
    redis_server: RedisServer, penstock_server: PenstockServer
) -> None:
    ours = penstock_server.client()
    fill(ours)
    fill(redis_server.client)
    for port in (penstock_server.port, redis_server.port):
        about = looked_at(port, "orders", "--limit", "2")
        assert [node["number"] for node in about["nodes"]] == [1, 2]
        assert about["nodes_total"] == 3
        assert about["trims"] == []
        printed = run(port, "orders", "--limit", "2").stdout
        assert "shown: nodes 1 to 2" in printed
        assert "--limit 0" in printed
        assert len(looked_at(port, "orders", "--limit", "0")["nodes"]) == 3


def test_pages_of_nodes_are_combined(penstock_server: PenstockServer) -> None:
    client = penstock_server.client()
    client.delete("many")
    client.config_set("stream-node-max-entries", 1)
    with client.pipeline() as pipeline:
        for number in range(1, 601):
            pipeline.xadd("many", {"k": "v"}, id=f"{number}-0")
        pipeline.execute()
    client.config_set("stream-node-max-entries", 100)
    about = looked_at(penstock_server.port, "many", "--limit", "0", "--what", "nodes")
    assert [node["id"] for node in about["nodes"]] == [f"{n}-0" for n in range(1, 601)]
    assert len(looked_at(penstock_server.port, "many", "--limit", "300")["nodes"]) == 300
    (node,) = looked_at(penstock_server.port, "many", "--node", "599")["nodes"]
    assert node["id"] == "599-0"


def test_a_large_stream_of_another_server_is_not_dumped(redis_server: RedisServer) -> None:
    redis_server.client.xadd("big", {"k": b"x" * (2 << 20)})
    result = run(redis_server.port, "big", "--dump-max", "1")
    assert result.exit_code == 1
    assert "big: about 2." in result.stderr
    assert "--dump-max" in result.stderr
    assert run(redis_server.port, "big", "--what", "nodes").exit_code == 0


def test_a_missing_key_and_a_wrong_type_are_the_servers_refusal(
    redis_server: RedisServer, penstock_server: PenstockServer
) -> None:
    penstock_server.client().set("text", "hello")
    redis_server.client.set("text", "hello")
    for port in (penstock_server.port, redis_server.port):
        missing = run(port, "none")
        assert (missing.exit_code, missing.stderr) == (1, "penstock: none: no such key\n")
        wrong = run(port, "text")
        assert wrong.exit_code == 1
        assert "WRONGTYPE" in wrong.stderr


def test_an_empty_stream_has_nothing_to_show(
    redis_server: RedisServer, penstock_server: PenstockServer
) -> None:
    for client, port in (
        (penstock_server.client(), penstock_server.port),
        (redis_server.client, redis_server.port),
    ):
        client.delete("empty")
        client.xgroup_create("empty", "g", mkstream=True)
        about = looked_at(port, "empty", "--what", "all")
        assert (about["nodes"], about["memory"]["total_bytes"]) == ([], 0)
        assert run(port, "empty", "--what", "all").exit_code == 0
