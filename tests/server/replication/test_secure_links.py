"""Links over TLS, and as a user with few rights."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.client.address import parse_url
from tests.support.certificates import Authority, Pair
from tests.support.replication.links import QUICK, client_of, eventually, follow, linked, same
from tests.support.replication.sentinels import running_sentinel
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_7_0
from tests.support.servers.redis_server import free_port, redis_program_or_none


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


def test_new_certificates_of_links_are_used_without_a_restart(tmp_path: Path) -> None:
    """A file that cannot be used changes nothing; the old certificate goes on working."""
    authority = Authority(tmp_path)
    port = free_port()
    own = authority.issue("own")
    files = ("--tls-client-cert-file", str(own.certificate), "--tls-client-key-file", str(own.key))
    trust = ("--tls-replication", "yes", "--tls-ca-cert-file", str(authority.file))
    with (
        running_penstock(*QUICK, *tls(authority, "first", port)) as primary,
        running_penstock(*QUICK, *trust, *files) as replica,
    ):
        client, mirror = client_of(primary.port), client_of(replica.port)
        follow(mirror, port)
        own.key.write_text("not a key")
        eventually(lambda: "the files have changed, but cannot be used" in replica.log())
        client.client_kill_filter(_type="replica", skipme=True)
        eventually(lambda: client.info("stats")["sync_partial_ok"] == 1, "the old one still works")
        linked(mirror)
        authority.issue("own", expired=True)
        eventually(lambda: "in use for new links to a primary" in replica.log())
        eventually(
            lambda: "a primary that verifies it no longer accepts this server" in replica.log()
        )
        client.client_kill_filter(_type="replica", skipme=True)
        eventually(lambda: "certificate has expired" in primary.log(), "the new one is in use")
        with pytest.raises(redis.ResponseError, match="No such file"):
            mirror.config_set("tls-client-cert-file", "/nowhere")
        authority.issue("own")
        linked(mirror)
        client.set("k", "v")
        same(client, mirror)


def test_sentinels_reach_servers_by_tls_and_fail_over(tmp_path: Path) -> None:
    program = redis_program_or_none()
    REDIS_7_0.need()
    assert program is not None
    # A program without TLS complains about its first directive, others about the second one.
    said = subprocess.run(
        [program, "--tls-replication", "no", "--port", "none"],
        capture_output=True,
        check=False,
    )
    if b"tls-replication" in said.stdout + said.stderr:
        pytest.skip("this redis-server was built without TLS")
    authority = Authority(tmp_path)
    own = authority.issue("own")
    files = {
        "ssl_ca_certs": authority.file,
        "ssl_certfile": own.certificate,
        "ssl_keyfile": own.key,
    }
    options = {name: str(file) for name, file in files.items()}
    first, second = free_port(), free_port()
    lines = (
        "port 0\ntls-replication yes\n"
        f"tls-cert-file {own.certificate}\ntls-key-file {own.key}\ntls-ca-cert-file {authority.file}\n"
        f"sentinel monitor queue 127.0.0.1 {first} 1\n"
        "sentinel down-after-milliseconds queue 1500\nsentinel failover-timeout queue 4000\n"
    )
    with (
        running_penstock(*QUICK, *tls(authority, "first", first)) as primary,
        running_penstock(*QUICK, *tls(authority, "second", second)) as replica,
    ):
        mirror = client_of(replica.port)
        client_of(primary.port).set("k", "v")
        follow(mirror, first)
        with running_sentinel(
            lines, tmp_path / "sentinel.log", "tls-port", ssl=True, **options
        ) as port:
            query = "&".join(f"{name}={file}" for name, file in options.items())
            url = f"rediss+sentinel://127.0.0.1:{port}/queue?{query}"
            with parse_url(url).connect(5, 5) as client:
                assert client.execute_command("GET", "k") == b"v"
                with redis.Redis("127.0.0.1", port, ssl=True, **options) as sentinel:  # type: ignore[arg-type]
                    eventually(lambda: sentinel.sentinel_slaves("queue"), "it knows the replica")
                primary.kill()
                eventually(lambda: client.execute_command("SET", "k", "w") == b"OK", "writes go on")
            assert mirror.get("k") == b"w"


def test_a_setting_of_tls_that_fails_changes_nothing(tmp_path: Path) -> None:
    """The files of one side cannot be used: settings of the other side can be changed, common ones cannot."""
    authority = Authority(tmp_path)
    port, other = free_port(), free_port()
    own = authority.issue("own")
    files = ("--tls-client-cert-file", str(own.certificate), "--tls-client-key-file", str(own.key))
    with (
        running_penstock(*QUICK, *tls(authority, "first", port)) as primary,
        running_penstock(*QUICK, *tls(authority, "second", other), *files) as replica,
    ):
        client, mirror = client_of(primary.port), client_of(replica.port)
        follow(mirror, port)
        own.key.write_text("not a key")
        with client_of(replica.port) as asking:
            connection = asking.client_id()
            for name, value in (("tls-protocols", "TLSv1.2"), ("tls-client-cert-file", "/nowhere")):
                before = asking.config_get(name)
                with pytest.raises(redis.ResponseError, match=f"argument '{name}'.*tls-client"):
                    asking.config_set(name, value)
                assert asking.config_get(name) == before
            again = authority.issue("again")
            asking.config_set(
                *("tls-cert-file", str(again.certificate), "tls-key-file", str(again.key)),
                *("tls-auth-clients", "optional"),
            )
            assert asking.config_get("tls-cert-file") == {"tls-cert-file": str(again.certificate)}
            assert asking.client_id() == connection
            assert asking.execute_command("REPLICAOF", "NO", "ONE")
            asking.config_set("tls-protocols", "TLSv1.2")  # there are no links any more
            assert asking.client_id() == connection
        assert client.ping()


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
