"""metrics-port on a real server, read by Prometheus's own parser."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families

from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port

SECONDS_MAX = 30.0
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def get(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    connection.request("GET", path)
    found = connection.getresponse()
    status, text = found.status, found.read().decode()
    connection.close()
    return status, text


def scrape(port: int) -> Samples:
    """All samples by name and labels."""
    status, text = get(port, "/metrics")
    assert status == 200, text
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    found = {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}
    assert len(found) == len(samples), "a sample twice"
    return found


def labels(**given: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(given.items()))


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def test_a_scrape_shows_commands_streams_groups_and_disk(tmp_path: Path) -> None:
    port = free_port()
    with running_penstock("--metrics-port", str(port), data=tmp_path / "data") as server:
        client = server.client()
        for number in range(5):
            client.xadd('or"ders\n', {"n": number})
        client.xadd(b"\xff", {"n": 1})
        client.xgroup_create('or"ders\n', "g", "0")
        client.xreadgroup("g", "c", {'or"ders\n': ">"}, count=2)
        client.set("text", "no stream")
        found = scrape(port)
        stream = {"db": "0", "stream": 'or"ders\n'}
        group = labels(**stream, group="g")
        assert found["penstock_stream_length", labels(**stream)] == 5
        assert found["penstock_stream_bytes", labels(**stream)] > 100
        assert found["penstock_stream_length", labels(db="0", stream="\\xff")] == 1
        assert found["penstock_group_lag", group] == 3
        assert found["penstock_group_pending", group] == 2
        assert found["penstock_group_consumers", group] == 1
        assert 0 <= found["penstock_group_oldest_pending_seconds", group] < 3600
        assert found["penstock_streams", ()] == 2
        assert found["penstock_streams_omitted", ()] == 0
        assert found["penstock_keys", labels(db="0")] == 3
        assert found["penstock_commands_total", labels(command="xadd")] == 6
        assert found["penstock_command_seconds_count", labels(command="xadd")] == 6
        assert found["penstock_fsync_seconds_count", ()] > 0
        assert found["penstock_log_enabled", ()] == found["penstock_log_ok", ()] == 1
        assert found["penstock_log_bytes", ()] > 100
        assert found["penstock_disk_free_bytes", ()] > 0
        assert found["penstock_memory_bytes", ()] > 1_000_000
        assert found["penstock_replication_primary", ()] == found["penstock_ready", ()] == 1
        wait_until(lambda: scrape(port)["penstock_loop_delay_seconds_count", ()] > 0)
        assert get(port, "/healthz") == (200, "ok\n")
        assert get(port, "/readyz") == (200, "ready\n")


def test_the_number_of_streams_is_limited_and_failures_are_counted() -> None:
    port = free_port()
    with running_penstock("--metrics-port", str(port), "--metrics-streams-max", "3") as server:
        client = server.client()
        for number in range(10):
            client.xadd(f"s{number}", {"n": number})
        found = scrape(port)
        assert sum(name == "penstock_stream_length" for name, _ in found) == 3
        assert found["penstock_streams", ()] == 10
        assert found["penstock_streams_omitted", ()] == 7
        client.config_set("metrics-streams-max", 100)
        assert scrape(port)["penstock_streams_omitted", ()] == 0
        client.set("text", "1")
        for words in (("XLEN", "text"), ("XLEN",)):
            with pytest.raises(redis.ResponseError):
                client.execute_command(*words)  # type: ignore[no-untyped-call]
        found = scrape(port)
        assert found["penstock_command_failures_total", labels(command="xlen")] == 1
        assert found["penstock_command_rejections_total", labels(command="xlen")] == 1
        assert found["penstock_errors_total", labels(code="WRONGTYPE")] == 1


def test_a_replica_is_ready_while_it_has_its_primary() -> None:
    ports = free_port(), free_port()
    with running_penstock(
        "--metrics-port", str(ports[0]), "--repl-diskless-sync-delay", "0"
    ) as one:
        primary = f"127.0.0.1 {one.port}"
        with running_penstock("--metrics-port", str(ports[1]), "--replicaof", primary) as two:
            wait_until(lambda: get(ports[1], "/readyz")[0] == 200)
            one.client().xadd("s", {"n": 1})
            wait_until(lambda: scrape(ports[0])["penstock_replicas", ()] == 1)
            name = labels(replica=f"127.0.0.1:{two.port}")
            wait_until(lambda: scrape(ports[0]).get(("penstock_replica_lag_bytes", name)) == 0)
            found = scrape(ports[1])
            assert found["penstock_replication_primary", ()] == 0
            assert found["penstock_replication_link_up", ()] == 1
            one.kill()
            wait_until(lambda: get(ports[1], "/readyz")[0] == 503)
            assert "no link to its primary" in get(ports[1], "/readyz")[1]
            assert scrape(ports[1])["penstock_ready", ()] == 0
            assert get(ports[1], "/healthz")[0] == 200


def test_a_port_in_use_ends_the_start() -> None:
    with (
        running_penstock() as first,
        running_penstock("--metrics-port", str(first.port), wait=False) as second,
    ):
        assert second.wait() != 0
        text = f"cannot listen on 127.0.0.1:{first.port}: Address already in use"
        assert text in second.log()
