"""A restarted server knows where its data stands: it continues, and no snapshot is sent."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
import redis

from tests.support.campaign import SOAK, cells, seed
from tests.support.replication.links import (
    QUICK,
    client_of,
    eventually,
    follow,
    linked,
    online,
    same,
    stats,
)
from tests.support.replication.proxy import Proxy
from tests.support.servers.penstock_server import PenstockServer, penstock_command, running_penstock
from tests.support.servers.redis_server import free_port, running_redis

# make soak cuts a sync at every 17th byte, from a random one on; make test at three of these.
CUT_BYTES_MAX = 1600
CUT_STEP = 17
CUT_IN_STREAM = 2400
# One of them in each run of make test, both in make soak.
HOW = cells([signal.SIGKILL, signal.SIGTERM])


def penstock(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(penstock_command(*words), capture_output=True, text=True, check=False)


def fill(server: PenstockServer, name: str, count: int = 50) -> None:
    with client_of(server.port) as client:
        for number in range(count):
            client.xadd("s", {name: number})


@pytest.mark.parametrize("how", HOW)
def test_a_replica_that_was_away_continues(tmp_path: Path, how: int) -> None:
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as replica,
    ):
        fill(primary, "before")
        follow(client_of(replica.port), primary.port)
        fill(primary, "with it")
        client = client_of(primary.port)
        assert client.execute_command("WAITAOF", 1, 1, 20000) == [1, 1]
        replica.end(how)
        fill(primary, "without it")
        replica.start("--replicaof", "127.0.0.1", str(primary.port))
        linked(client_of(replica.port))
        same(client, client_of(replica.port))
        assert stats(client)["sync_full"] == 1
        assert stats(client)["sync_partial_ok"] == 1


@pytest.mark.parametrize("how", HOW)
def test_a_primary_that_was_away_has_its_replicas_again(tmp_path: Path, how: int) -> None:
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as ours,
        running_redis("--enable-debug-command", "yes") as theirs,
    ):
        replicas = [client_of(ours.port), client_of(theirs.port)]
        fill(primary, "before")
        for replica in replicas:
            follow(replica, primary.port)
        fill(primary, "with them")
        client = client_of(primary.port)
        assert client.execute_command("WAIT", 2, 20000) == 2
        primary.end(how)
        primary.start()
        for replica in replicas:
            follow(replica, primary.port)
        fill(primary, "again")
        client = client_of(primary.port)
        for replica in replicas:
            same(client, replica)
        assert stats(client) == {"sync_full": 0, "sync_partial_ok": 2, "sync_partial_err": 0}


def test_a_replica_that_is_ahead_gets_a_snapshot(tmp_path: Path) -> None:
    """The primary comes back with an older log: what the replica has beyond it was never promised."""
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as replica,
    ):
        follow(client_of(replica.port), primary.port)
        fill(primary, "kept")
        client = client_of(primary.port)
        assert client.execute_command("WAITAOF", 1, 1, 20000) == [1, 1]
        primary.kill()
        [log] = (tmp_path / "a" / "appendonlydir").glob("*.incr.aof")
        kept = log.read_bytes()
        primary.start()
        follow(client_of(replica.port), primary.port)
        fill(primary, "lost")
        primary.kill()
        for file in (tmp_path / "a" / "appendonlydir").glob("*.incr.aof"):
            file.write_bytes(kept)
        primary.start()
        client = client_of(primary.port)
        assert client.xlen("s") == 50
        follow(client_of(replica.port), primary.port)
        same(client, client_of(replica.port))
        assert stats(client)["sync_full"] == 1


def test_a_replica_with_a_snapshot_only_continues_too(tmp_path: Path) -> None:
    with (
        running_penstock(*QUICK) as primary,
        running_penstock(*QUICK, "--appendonly", "no", data=tmp_path / "b") as replica,
    ):
        fill(primary, "before")
        follow(client_of(replica.port), primary.port)
        fill(primary, "with it")
        client = client_of(primary.port)
        assert client.execute_command("WAIT", 1, 20000) == 1
        client_of(replica.port).save()
        replica.end(signal.SIGTERM)
        fill(primary, "without it")
        replica.start("--replicaof", "127.0.0.1", str(primary.port))
        linked(client_of(replica.port))
        same(client, client_of(replica.port))
        assert stats(client)["sync_full"] == 1


def test_an_empty_primary_does_not_wipe_out_its_replica(tmp_path: Path) -> None:
    with (
        running_penstock(*QUICK) as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as replica,
    ):
        fill(primary, "before")
        mirror = client_of(replica.port)
        follow(mirror, primary.port)
        fill(primary, "with it")
        assert client_of(primary.port).execute_command("WAIT", 1, 20000) == 1
        primary.kill()
        primary.start()  # without a log: it has lost everything
        mirror.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: "empty" in str(mirror.info("replication").get("master_link_problem")))
        assert mirror.xlen("s") == 100
        assert "replica-allow-empty-primary" in primary.log()
        client_of(primary.port).config_set("replica-allow-empty-primary", "yes")
        linked(mirror)
        assert mirror.dbsize() == 0


def test_an_empty_primary_does_not_wipe_out_a_server_that_never_followed_anybody(
    tmp_path: Path,
) -> None:
    with running_penstock(*QUICK) as primary, running_penstock(*QUICK, data=tmp_path) as server:
        fill(server, "own")
        client = client_of(server.port)
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: "empty" in str(client.info("replication").get("master_link_problem")))
        assert client.xlen("s") == 50


def test_an_empty_primary_does_not_wipe_out_a_redis_that_never_followed_anybody() -> None:
    """Such a Redis asks in the same way with and without data, so it waits until there is a key."""
    with running_penstock(*QUICK) as primary, running_redis(*QUICK) as theirs:
        client, mirror = client_of(primary.port), client_of(theirs.port)
        mirror.set("own", "1")
        mirror.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: "replica-allow-empty-primary" in primary.log())
        assert mirror.get("own") == b"1"
        client.set("first", "1")
        linked(mirror)
        same(client, mirror)


@pytest.mark.parametrize("setting", ["min-replicas-ack", "min-replicas-to-write"])
def test_an_empty_primary_that_needs_replicas_says_how_to_begin_with_a_new_redis(
    setting: str,
) -> None:
    """The first key waits for the replica, and the replica for the first key."""
    with running_penstock(*QUICK, f"--{setting}", "1") as primary, running_redis(*QUICK) as theirs:
        client, mirror = client_of(primary.port), client_of(theirs.port)
        mirror.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: f"no client can add a key: {setting}" in primary.log())
        with pytest.raises(redis.RedisError, match="Not enough good replicas"):
            client.set("first", "1")
        client.config_set("replica-allow-empty-primary", "yes")
        linked(mirror)
        eventually(lambda: client.set("first", "1"), "the replica counts")
        same(client, mirror)
        client.config_set("replica-allow-empty-primary", "no")
        mirror.execute_command("CLIENT", "KILL", "TYPE", "master")
        linked(mirror)


def test_a_server_without_data_follows_an_empty_primary_also_after_its_restart() -> None:
    with running_penstock(*QUICK) as primary, running_penstock(*QUICK) as replica:
        client = client_of(replica.port)
        follow(client, primary.port)
        assert stats(client_of(primary.port))["sync_partial_err"] == 0
        client_of(primary.port).publish("moves", "the offset")
        eventually(lambda: client.info("replication")["slave_repl_offset"] > 0)
        primary.kill()
        primary.start()
        follow(client, primary.port)
        fill(primary, "first")
        same(client_of(primary.port), client)


def test_a_demoted_primary_keeps_what_only_it_has_in_a_file(tmp_path: Path) -> None:
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as first,
        running_penstock(*QUICK, data=tmp_path / "b") as second,
    ):
        ours, theirs = client_of(first.port), client_of(second.port)
        follow(theirs, first.port)
        fill(first, "shared")
        assert ours.execute_command("WAIT", 1, 20000) == 1
        theirs.execute_command("REPLICAOF", "NO", "ONE")
        fill(first, "only here", 3)
        fill(second, "there", 5)
        follow(ours, second.port)
        same(ours, theirs)
        [kept] = (tmp_path / "a").glob("dropped-*.aof")
        assert kept.read_bytes().count(b"only here") == 3
        assert str(kept) in first.log()


@pytest.mark.parametrize("restarted_as", ["a primary", "a replica"])
def test_a_killed_primary_that_comes_back_keeps_its_data_in_a_directory(
    tmp_path: Path, restarted_as: str
) -> None:
    """After the restart it does not know what the others have, and its backlog is empty."""
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as first,
        running_penstock(*QUICK, data=tmp_path / "b") as second,
    ):
        theirs = client_of(second.port)
        follow(theirs, first.port)
        fill(first, "shared")
        assert client_of(first.port).execute_command("WAIT", 1, 20000) == 1
        theirs.execute_command("REPLICAOF", "NO", "ONE")
        fill(first, "only here", 3)
        first.kill()
        fill(second, "there", 5)
        if restarted_as == "a primary":
            first.start()
            follow(client_of(first.port), second.port)
        else:
            first.start("--replicaof", "127.0.0.1", str(free_port()))
            first.kill()  # it has reached nobody: its changes are still nowhere else
            first.start("--replicaof", "127.0.0.1", str(second.port))
            linked(client_of(first.port))
        ours = client_of(first.port)
        same(ours, theirs)
        [kept] = (tmp_path / "a").glob("dropped-*")
        assert f"kept in {kept}" in first.log()
    assert str(kept) in penstock("doctor", str(tmp_path / "a")).stdout
    assert penstock("check", str(kept)).returncode == 0
    with running_penstock(*QUICK, data=kept) as found:
        assert client_of(found.port).xlen("s") == 53


def test_a_replica_that_was_away_for_too_long_keeps_no_copy(tmp_path: Path) -> None:
    """Its primary has everything that it had."""
    with (
        running_penstock(*QUICK, "--repl-backlog-size", "16kb", data=tmp_path / "a") as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as replica,
    ):
        follow(client_of(replica.port), primary.port)
        fill(primary, "shared")
        client = client_of(primary.port)
        assert client.execute_command("WAITAOF", 1, 1, 20000) == [1, 1]
        for _ in range(2):
            replica.kill()
            for number in range(20):
                client.set(f"k{number}", "x" * 1000)
            replica.start("--replicaof", "127.0.0.1", str(primary.port))
            linked(client_of(replica.port))
            same(client, client_of(replica.port))
        assert stats(client)["sync_full"] == 3
        assert list((tmp_path / "b").glob("dropped-*")) == []


def test_a_primary_whose_replica_has_all_keeps_only_its_last_changes(tmp_path: Path) -> None:
    """The replica has acked everything that was there after the restart."""
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as first,
        running_penstock(*QUICK, data=tmp_path / "b") as second,
    ):
        fill(first, "shared")
        first.kill()
        first.start()
        ours, theirs = client_of(first.port), client_of(second.port)
        follow(theirs, first.port)
        online(ours)
        assert ours.execute_command("WAIT", 1, 20000) == 1
        theirs.execute_command("REPLICAOF", "NO", "ONE")
        fill(first, "only here", 3)
        eventually(lambda: theirs.xadd("s", {"there": 1}), "its log has a base")
        follow(ours, second.port)
        [kept] = (tmp_path / "a").glob("dropped-*")
        assert kept.read_bytes().count(b"only here") == 3


def test_if_the_last_changes_cannot_be_kept_the_data_stays(tmp_path: Path) -> None:
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as first,
        running_penstock(*QUICK, data=tmp_path / "b") as second,
    ):
        ours, theirs = client_of(first.port), client_of(second.port)
        follow(theirs, first.port)
        fill(first, "shared")
        assert ours.execute_command("WAIT", 1, 20000) == 1
        theirs.execute_command("REPLICAOF", "NO", "ONE")
        fill(first, "only here", 3)
        history = ours.info("replication")
        # A directory of this name: the file cannot be made.
        blocked = tmp_path / "a" / f"dropped-{history['master_replid'][:8]}-1.aof"
        blocked.mkdir()
        ours.execute_command("REPLICAOF", "127.0.0.1", second.port)
        eventually(lambda: "cannot keep" in ours.info("replication").get("master_link_problem", ""))
        assert ours.xlen("s") == 53
        blocked.rmdir()
        linked(ours)
        same(ours, theirs)
        assert blocked.read_bytes().count(b"only here") == 3


def test_a_sync_that_is_cut_after_any_number_of_bytes_is_completed(tmp_path: Path) -> None:
    """The link breaks in the handshake, in the snapshot and in the stream; then it holds."""
    with (
        Proxy() as proxy,
        running_penstock(*QUICK, data=tmp_path / "a") as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as replica,
    ):
        proxy.target = primary.port
        fill(primary, "before")
        client_of(primary.port).set(
            "large", os.urandom(CUT_BYTES_MAX)
        )  # each cut is in the snapshot
        dice = random.Random(seed())
        cuts = range(1 + dice.randrange(CUT_STEP), CUT_BYTES_MAX, CUT_STEP)
        proxy.bytes_max = [*(cuts if SOAK else sorted(dice.sample(cuts, 3))), CUT_IN_STREAM]
        mirror = client_of(replica.port)
        mirror.set("own", "1")
        mirror.execute_command("REPLICAOF", "127.0.0.1", proxy.port)
        while left := len(proxy.bytes_max):
            eventually(lambda: len(proxy.bytes_max) < left, f"{left} cuts are left")
        fill(primary, "after")
        linked(mirror)
        same(client_of(primary.port), mirror)
        replica.kill()
        replica.start("--replicaof", "127.0.0.1", str(primary.port))
        linked(client_of(replica.port))
        same(client_of(primary.port), client_of(replica.port))


def test_the_selected_database_survives_breaks_and_restarts(tmp_path: Path) -> None:
    with (
        running_penstock(*QUICK, data=tmp_path / "a") as primary,
        running_penstock(*QUICK, data=tmp_path / "b") as replica,
        running_redis("--enable-debug-command", "yes") as last,
    ):
        ours, mirror = client_of(primary.port), client_of(replica.port)
        fifth = redis.Redis(port=primary.port, db=5)
        follow(mirror, primary.port)
        fifth.set("first", "1")
        assert ours.execute_command("WAITAOF", 1, 1, 20000) == [1, 1]
        ours.client_kill_filter(_type="replica")
        fifth.set("after the break", "1")
        same(ours, mirror)
        assert ours.execute_command("WAITAOF", 1, 1, 20000) == [1, 1]
        replica.kill()
        fifth.set("without it", "1")
        replica.start("--replicaof", "127.0.0.1", str(primary.port))
        mirror = client_of(replica.port)
        linked(mirror)
        follow(client_of(last.port), replica.port)  # from a snapshot of the replica
        fifth.set("for all", "1")
        same(ours, mirror)
        same(ours, client_of(last.port))
        assert mirror.info("keyspace") == {"db5": mirror.info("keyspace")["db5"]}
        assert stats(ours)["sync_full"] == 1


def test_a_stop_without_time_for_replicas_is_clean(tmp_path: Path) -> None:
    with (
        running_penstock(*QUICK, "--shutdown-timeout", "0", data=tmp_path / "a") as primary,
        running_penstock(*QUICK) as replica,
    ):
        follow(client_of(replica.port), primary.port)
        online(client_of(primary.port))
        replica.process.send_signal(signal.SIGSTOP)
        fill(primary, "unseen")
        assert primary.end(signal.SIGTERM) == 0
        replica.process.send_signal(signal.SIGCONT)
        primary.start()
        assert client_of(primary.port).xlen("s") == 50
