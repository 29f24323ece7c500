"""INFO: values are true and have the names that tools look for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock import __version__
from penstock.build import KIND
from penstock.server.stats.info_sections import SECTIONS, human
from tests.support.engine.engines import START_MS
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.durable_bench import DurableBench
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer

TITLES = [title for title, _, _ in SECTIONS]
# Fields that redis-py, redis_exporter, RedisInsight and KEDA need.
NEEDED = {
    "redis_version",
    "redis_mode",
    "process_id",
    "tcp_port",
    "uptime_in_seconds",
    "connected_clients",
    "blocked_clients",
    "used_memory",
    "used_memory_rss",
    "used_memory_peak",
    "maxmemory",
    "total_system_memory",
    "loading",
    "rdb_changes_since_last_save",
    "rdb_last_save_time",
    "aof_enabled",
    "total_connections_received",
    "total_commands_processed",
    "instantaneous_ops_per_sec",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "rejected_connections",
    "expired_keys",
    "evicted_keys",
    "pubsub_channels",
    "role",
    "connected_slaves",
    "master_repl_offset",
    "used_cpu_sys",
    "used_cpu_user",
    "cluster_enabled",
    "total_error_replies",
}


def text_of(client: ManualClient, *sections: str) -> str:
    reply = client.reply("INFO", *sections)
    assert isinstance(reply, bytes)
    return reply.decode()


def parsed(text: str) -> dict[str, dict[str, str]]:
    """Sections by title, fields by name."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            found[line[2:]] = {}
        elif line:
            name, value = line.split(":", 1)
            found[list(found)[-1]][name] = value
    return found


def test_by_default_the_statistics_of_commands_are_left_out() -> None:
    shown = list(parsed(text_of(ServerBench().connect())))
    assert shown == [title for title in TITLES if title not in ("Commandstats", "Latencystats")]


@pytest.mark.parametrize("word", ["all", "everything", "ALL"])
def test_info_all_shows_all_sections(word: str) -> None:
    assert list(parsed(text_of(ServerBench().connect(), word))) == TITLES


def test_sections_have_a_fixed_order_and_appear_once() -> None:
    text = text_of(ServerBench().connect(), "keyspace", "nosuch", "Cluster", "cluster")
    assert text == "# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n"


def test_default_can_be_combined_with_other_sections() -> None:
    shown = list(parsed(text_of(ServerBench().connect(), "default", "commandstats")))
    assert shown == [title for title in TITLES if title != "Latencystats"]


def test_a_section_that_does_not_exist_is_empty() -> None:
    assert text_of(ServerBench().connect(), "nosuch") == ""


def test_the_fields_that_tools_need_exist() -> None:
    fields = {
        name for section in parsed(text_of(ServerBench().connect())).values() for name in section
    }
    assert NEEDED - fields == set()


@pytest.mark.parametrize(
    ("level", "shown"), [("7.0", "7.0.15"), ("7.2", "7.2.7"), ("7.4", "7.4.2")]
)
def test_the_version_is_that_of_the_compat_level(level: str, shown: str) -> None:
    server = parsed(text_of(ServerBench(level).connect(), "server"))["Server"]
    assert server["redis_version"] == shown
    assert server["process_id"] == str(os.getpid())


def test_time_passes() -> None:
    bench = ServerBench()
    bench.advance(86_400_000 + 2500)
    server = parsed(text_of(bench.connect(), "server"))["Server"]
    assert server["uptime_in_seconds"] == "86402"
    assert server["uptime_in_days"] == "1"
    assert server["server_time_usec"] == str((START_MS + 86_402_500) * 1000)


def test_connected_and_blocked_clients_are_counted() -> None:
    bench = ServerBench()
    reader, client = bench.connect(), bench.connect()
    reader.tell("XREAD BLOCK 0 STREAMS s $")
    clients = parsed(text_of(client, "clients"))["Clients"]
    assert (clients["connected_clients"], clients["blocked_clients"]) == ("2", "1")


WAITS = {"total_blocking_keys": "4", "total_blocking_keys_on_nokey": "2"}
WATCHES = {"pubsub_clients": "1", "watching_clients": "2", "total_watched_keys": "3"}


@pytest.mark.parametrize(
    ("level", "counted"), [("7.0", {}), ("7.2", WAITS), ("7.4", WAITS | WATCHES)]
)
def test_the_keys_that_clients_wait_for_and_watch_are_counted(
    level: str, counted: dict[str, str]
) -> None:
    """The same numbers as of live 7.0, 8.0 and 8.6."""
    bench = ServerBench(level)
    client = bench.connect()
    for key in ("s", "t"):
        client.reply(f"XGROUP CREATE {key} g $ MKSTREAM")
    bench.connect().tell("XREADGROUP GROUP g a BLOCK 0 STREAMS s t > >")
    bench.connect().tell("XREAD BLOCK 0 STREAMS s u $ $")
    bench.connect().tell("BLPOP list 0")
    watcher, subscriber = bench.connect(), bench.connect()
    for line in ("WATCH a b a", "SELECT 1", "WATCH a"):
        watcher.reply(line)
    subscriber.reply("WATCH a")
    subscriber.tell("SUBSCRIBE news")
    clients = parsed(text_of(client, "clients"))["Clients"]
    assert clients["blocked_clients"] == "3"
    assert {name: clients[name] for name in {**WAITS, **WATCHES} if name in clients} == counted


def test_memory_adds_up() -> None:
    memory = parsed(text_of(ServerBench().connect(), "memory"))["Memory"]
    used = int(memory["used_memory"])
    assert 0 < used <= int(memory["used_memory_peak"])
    assert int(memory["used_memory_overhead"]) + int(memory["used_memory_dataset"]) == used
    assert memory["maxmemory_human"] == "0B"


def test_changes_since_the_last_save_are_counted(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no")
    client = bench.connect()
    for line in ("SET a 1", "SET b 1", "SET c 1", "SAVE", "SET a 2", "SET b 2"):
        client.ask(line)
    saved = parsed(text_of(client, "persistence"))["Persistence"]
    assert saved["rdb_changes_since_last_save"] == "2"
    assert saved["rdb_last_save_time"] == str(START_MS // 1000)


def test_commands_and_errors_are_counted_by_name() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("XADD s 1-1 k v")
    client.reply("XADD s 1-1 k v")
    client.reply("XLEN")
    client.reply("XGROUP CREATE s g 0")
    client.reply("XREADGROUP GROUP nosuch c STREAMS s >")
    shown = parsed(text_of(client, "commandstats", "errorstats", "latencystats", "stats"))
    commands = shown["Commandstats"]
    tail = "usec=0,usec_per_call=0.00"
    assert (
        commands["cmdstat_xadd"] == f"calls=2,{tail},rejected_calls=0,failed_calls=1,quick_calls=1"
    )
    assert (
        commands["cmdstat_xlen"] == f"calls=0,{tail},rejected_calls=1,failed_calls=0,quick_calls=0"
    )
    assert "cmdstat_xgroup|create" in commands
    assert shown["Errorstats"] == {"errorstat_ERR": "count=2", "errorstat_NOGROUP": "count=1"}
    assert shown["Stats"]["total_error_replies"] == "3"
    assert shown["Stats"]["total_commands_processed"] == "4"
    times = shown["Latencystats"]["latency_percentiles_usec_xadd"]
    assert [part.split("=")[0] for part in times.split(",")] == ["p50", "p99", "p99.9"]


def test_each_database_with_keys_is_shown() -> None:
    bench = ServerBench()
    client = bench.connect()
    client.reply("XADD a 1-1 k v")
    client.reply("XADD b 1-1 k v")
    client.reply("SELECT 3")
    client.reply("XADD a 1-1 k v")
    bench.engine.context.databases[0].set_expiry(b"a", START_MS + 5000)
    assert parsed(text_of(client, "keyspace"))["Keyspace"] == {
        "db0": "keys=2,expires=1,avg_ttl=5000",
        "db3": "keys=1,expires=0,avg_ttl=0",
    }


def test_the_penstock_section_exists() -> None:
    assert parsed(text_of(ServerBench().connect(), "penstock"))["Penstock"] == {
        "penstock_version": __version__,
        "penstock_build": KIND,
    }


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.00K"),
        (916456, "894.98K"),
        (1 << 50, "1.00P"),
        (1 << 60, "1152921504606846976B"),
    ],
)
def test_sizes_are_shown_with_units(size: int, text: str) -> None:
    assert human(size) == text


def test_fields_have_the_order_of_redis(redis_server: RedisServer) -> None:
    with RawRedis(redis_server.port) as client:
        [text] = client.ask([[b"INFO", b"all"]])
    theirs = parsed(text.decode())
    ours = parsed(text_of(ServerBench("7.0").connect(), "all"))
    assert [title for title in ours if title != "Penstock"] == list(theirs)
    for title in (
        "Server",
        "Clients",
        "Memory",
        "Persistence",
        "Stats",
        "Replication",
        "CPU",
        "Cluster",
    ):
        known = [name for name in theirs[title] if name in ours[title]]
        assert list(ours[title]) == known, title
