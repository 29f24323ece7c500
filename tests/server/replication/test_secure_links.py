"""Links over TLS, and as a user with few rights."""

from __future__ import annotations

from pathlib import Path

from tests.support.certificates import Authority
from tests.support.replication.links import QUICK, client_of, eventually, follow, linked, same
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port


def tls(authority: Authority, name: str, port: int) -> list[str]:
    """The settings of a server whose links use TLS."""
    pair = authority.issue(name)
    return [
        *("--tls-port", str(port), "--tls-replication", "yes"),
        *("--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key)),
        *("--tls-ca-cert-file", str(authority.file)),
    ]


def test_a_replica_follows_over_tls_and_only_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    port, other = free_port(), free_port()
    with (
        running_penstock(*QUICK, *tls(authority, "first", port)) as primary,
        running_penstock(*QUICK, *tls(authority, "second", other)) as replica,
        running_penstock(*QUICK) as plain,
    ):
        client, mirror = client_of(primary.port), client_of(replica.port)
        client.xadd("s", {"k": "v"})
        follow(mirror, port)
        client.xadd("s", {"k": "v2"})
        same(client, mirror)
        info = client.info("replication")
        assert info["slave0"]["port"] == other
        stranger = client_of(plain.port)
        stranger.set("kept", "1")
        stranger.execute_command("REPLICAOF", "127.0.0.1", port)
        eventually(lambda: stranger.info("replication").get("master_link_problem"))
        assert stranger.get("kept") == b"1"
        mirror.execute_command("REPLICAOF", "127.0.0.1", primary.port)  # the port without TLS
        eventually(
            lambda: "cannot connect" in str(mirror.info("replication").get("master_link_problem"))
        )
        assert mirror.xlen("s") == 2


def test_a_replica_logs_in_as_a_user_that_may_do_nothing_else() -> None:
    rights = ("user", "sync", "on", ">secret", "+psync", "+replconf", "+ping")
    with (
        running_penstock(*QUICK, file=" ".join(rights) + "\n") as primary,
        running_penstock(*QUICK) as replica,
    ):
        client, mirror = client_of(primary.port), client_of(replica.port)
        client.config_set("requirepass", "other")
        client.set("a", "1")
        mirror.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(
            lambda: mirror.info("replication").get("master_link_problem"), "it is not let in"
        )
        mirror.config_set("masteruser", "sync")
        mirror.config_set("masterauth", "secret")
        linked(mirror)
        same(client, mirror)
        mirror.config_set("masterauth", "wrong")
        client.client_kill_filter(_type="replica", skipme=True)
        eventually(
            lambda: "WRONGPASS" in str(mirror.info("replication").get("master_link_problem"))
        )
