"""What is made of INFO, SLOWLOG, CLIENT LIST and CONFIG GET."""

from __future__ import annotations

import pytest

from penstock.client.replies import Reply, UnexpectedReply
from penstock.web.admin import clients, configuration
from penstock.web.admin.clients import clients_of, parse_client
from penstock.web.admin.configuration import HIDDEN, settings_of, shown_setting
from penstock.web.admin.replication import describe, replication_of
from penstock.web.admin.slow_log import parse_slow, slow_commands
from penstock.web.watch.info import parse_info
from tests.support.replication.links import eventually
from tests.support.servers.penstock_server import running_penstock
from tests.web.conftest import Live


def test_a_primary_with_replicas() -> None:
    found = describe(
        parse_info(
            b"role:master\r\nmaster_repl_offset:1000\r\nrepl_backlog_size:2048\r\nrepl_backlog_histlen:9\r\n"
            b"slave0:ip=10.0.0.7,port=6379,state=online,offset=900,lag=1\r\nslave1:broken\r\n"
        )
    )
    assert found.role == "primary"
    assert ("offset", "1,000") in found.facts
    assert [(one.address, one.state, one.behind) for one in found.replicas] == [
        ("10.0.0.7:6379", "online", 100),
        ("?:?", "unknown", None),
    ]


def test_a_replica_whose_link_is_down() -> None:
    info = parse_info(
        b"role:slave\r\nmaster_host:h\r\nmaster_port:1\r\nmaster_link_status:down\r\n"
    )
    found = describe(info, "connect")
    assert (found.role, found.link_is_down) == ("replica", True)
    assert ("link", "down (connect)") in found.facts
    assert describe({}).role == "unknown"


def test_a_live_replica_and_its_primary(live_penstock: Live) -> None:
    with running_penstock() as second, second.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", live_penstock.port)
        replica = Live("penstock", second.port, client)
        eventually(lambda: not replica.ask(replication_of).link_is_down)
        eventually(lambda: live_penstock.ask(replication_of).replicas)
        found = live_penstock.ask(replication_of)
        assert (found.role, len(found.replicas)) == ("primary", 1)
        assert replica.ask(replication_of).role == "replica"


def test_slow_commands_of_a_live_server(live: Live) -> None:
    live.client.config_set("slowlog-log-slower-than", 0)
    live.client.xadd("s", {"a": b"\x1b[2J"})
    live.client.config_set("slowlog-log-slower-than", 10_000)
    found = live.ask(slow_commands)
    assert any("XADD s * a \\x1b[2J" in one.command for one in found)


@pytest.mark.parametrize(
    "row", [[], [1], [1, 2, 3, [b"GET"]], [1, 2, 3, [b"x" * 9000], b"a", b"b"]]
)
def test_a_short_or_long_slow_command(row: list[Reply]) -> None:
    assert len(parse_slow(row).command) < 400


def test_a_slow_command_of_another_type_is_refused() -> None:
    with pytest.raises(UnexpectedReply):
        parse_slow([b"x", 2, 3, 4])


def test_clients_of_a_live_server(live: Live) -> None:
    live.client.client_setname("tester")
    found = live.ask(clients_of)
    (me,) = clients.pick(found, "TESTER", "age", True)
    assert me["name"] == "tester"
    assert len(clients.pick(found, "", "addr", False)) == len(found) >= 2
    assert clients.pick([{"age": "x"}, {"age": "10"}, {"age": "9"}], "", "age", True)[0] == {
        "age": "10"
    }
    assert parse_client("id=1 name= x") == {"id": "1", "name": ""}


def test_settings_of_a_live_server_without_secrets(live: Live) -> None:
    found = live.ask(settings_of)
    assert ("maxclients", "10000") in configuration.pick(found, "MAXCLIENTS")
    assert found == sorted(found)
    assert shown_setting("masterauth", b"hunter2") == ("masterauth", HIDDEN)
    assert shown_setting("requirepass", b"") == ("requirepass", "")
    assert shown_setting("tls-auth-clients", b"yes") == ("tls-auth-clients", "yes")


@pytest.mark.parametrize("name", ["requirepass", "masterauth", "tls-key-file-pass", "primaryauth"])
def test_a_secret_is_not_shown(name: str) -> None:
    assert "hunter2" not in shown_setting(name, b"hunter2")[1]
