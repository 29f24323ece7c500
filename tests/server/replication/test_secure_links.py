"""Links over TLS, and as a user with few rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.certificates import Authority, Pair
from tests.support.replication.links import QUICK, client_of, eventually, follow, linked, same
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port


def tls(authority: Authority, name: str, port: int) -> list[str]:
    """The settings of a server whose links use TLS."""
    return with_certificate(authority, authority.issue(name), port)


def with_certificate(trusted: Authority, pair: Pair, port: int) -> list[str]:
    """The same, with any certificate."""
    return [
        *("--tls-port", str(port), "--tls-replication", "yes"),
        *("--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key)),
        *("--tls-ca-cert-file", str(trusted.file)),
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


def test_a_link_needs_valid_certificates_on_both_sides(tmp_path: Path) -> None:
    """Nobody follows a primary that cannot be trusted, and a primary sends nothing to such a replica."""
    authority = Authority(tmp_path)
    stranger = Authority(tmp_path, "stranger")
    bad = {
        "certificate has expired": authority.issue("expired", expired=True),
        "unable to get local issuer": stranger.issue("strange"),
    }
    port = free_port()
    with running_penstock(*QUICK, *tls(authority, "good", port)) as good:
        client = client_of(good.port)
        client.set("kept", "1")
        for said, pair in bad.items():
            other_port = free_port()
            with running_penstock(*QUICK, *with_certificate(authority, pair, other_port)) as other:
                client_of(other.port).set("not trusted", "1")
                client.execute_command("REPLICAOF", "127.0.0.1", other_port)
                eventually(lambda: said in problem(client), said)  # noqa: B023
                assert client.get("kept") == b"1"
                client.execute_command("REPLICAOF", "NO", "ONE")
                client_of(other.port).execute_command("REPLICAOF", "127.0.0.1", port)
                eventually(lambda: problem(client_of(other.port)), "not let in")
                eventually(lambda: said in good.log(), f"{said} in the log")  # noqa: B023
                assert client.info("replication")["connected_slaves"] == 0


def problem(client: Any) -> str:
    """Why the link of a replica is down."""
    return str(client.info("replication").get("master_link_problem", ""))


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
