"""Retention on a running server: settings, the log, replicas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.replication.links import QUICK, client_of, digest, eventually, follow, same
from tests.support.servers.penstock_server import running_penstock

SMALL_NODES = ("--stream-node-max-entries", "10")


def fill(client: Any, name: str, count: int) -> None:
    with client.pipeline(transaction=False) as pipeline:
        for number in range(count):
            pipeline.xadd(name, {"n": number})
        pipeline.execute()


def test_streams_are_trimmed_by_their_rule_and_stay_so_after_a_restart(tmp_path: Path) -> None:
    settings = (*QUICK, *SMALL_NODES)
    rule = ("--stream-retention", "logs:* length 100")
    with running_penstock(*settings, *rule, data=tmp_path) as server:
        client = client_of(server.port)
        fill(client, "logs:a", 5000)
        fill(client, "other", 500)
        eventually(lambda: client.xlen("logs:a") == 100, "logs:a is trimmed")
        assert client.xlen("other") == 500
        client.config_set("stream-retention", "other length 50 logs:* length 10")
        assert client.config_get("stream-retention") == {
            "stream-retention": "other length 50 logs:* length 10"
        }
        eventually(
            lambda: (client.xlen("other"), client.xlen("logs:a")) == (50, 10), "the new rules"
        )
        client.config_set("stream-retention", "")
        before = digest(client)
    with running_penstock(*settings, data=tmp_path) as server:
        assert digest(client_of(server.port)) == before


def test_a_replica_waits_for_its_primary() -> None:
    rule = ("--stream-retention", "s acked yes", "--consumer-idle-timeout", "1ms")
    with (
        running_penstock(*QUICK, *SMALL_NODES, *rule) as first,
        running_penstock(*QUICK, *SMALL_NODES, *rule) as second,
    ):
        primary, replica = client_of(first.port), client_of(second.port)
        follow(replica, first.port)
        fill(primary, "s", 300)
        primary.xgroup_create("s", "g", "0")
        [(_, read)] = primary.xreadgroup("g", "c", {"s": ">"})
        primary.xack("s", "g", *[entry_id for entry_id, _ in read[:200]])
        eventually(lambda: primary.xlen("s") == 100, "what was acknowledged is gone")
        same(primary, replica)
        primary.xack("s", "g", *[entry_id for entry_id, _ in read[200:]])
        eventually(lambda: primary.xinfo_consumers("s", "g") == [], "the consumer is gone")
        eventually(lambda: primary.xlen("s") == 0, "everything was acknowledged")
        same(primary, replica)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("stream-retention", "s", "retention of s: no options"),
        ("stream-retention", "s length 1 t", "retention of t: no options"),
        ("consumer-idle-timeout", "1", "must be 0 or a time"),
        ("consumer-idle-timeout", "-1d", "must be 0 or a time"),
    ],
)
def test_bad_settings_are_refused(name: str, value: str, said: str) -> None:
    with running_penstock() as server:
        client = client_of(server.port)
        with pytest.raises(redis.ResponseError, match=said):
            client.config_set(name, value)
        assert client.config_get(name)[name] in ("", "0")


def test_rules_survive_config_rewrite() -> None:
    rules = "stream-retention a* age 1d\nstream-retention b* length 5 force yes\n"
    with running_penstock(file=rules) as server:
        client = client_of(server.port)
        client.config_set("consumer-idle-timeout", "1d")
        client.config_rewrite()
        text = Path(client.info("server")["config_file"]).read_text()
    assert rules in text
    assert "consumer-idle-timeout 1d\n" in text
