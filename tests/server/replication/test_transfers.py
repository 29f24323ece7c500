"""A snapshot on its way to replicas, and what a replica says about its disk after a demotion."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from pathlib import Path

import pytest
import redis

from penstock.server.replication.full_sync import TEMP_NAME
from tests.support.replication.links import QUICK, client_of, eventually, follow, linked, same
from tests.support.servers.durable_bench import DurableBench
from tests.support.servers.penstock_server import running_penstock

PSYNC = b"*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n"
MARKED = b"*3\r\n$8\r\nREPLCONF\r\n$4\r\ncapa\r\n$3\r\neof\r\n"


def new_replica(port: int) -> socket.socket:
    """A replica that takes a snapshot with a mark at its end, and reads when the test says so."""
    replica = socket.socket()
    replica.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    replica.settimeout(30)
    replica.connect(("127.0.0.1", port))
    replica.sendall(MARKED)
    assert replica.recv(5) == b"+OK\r\n"
    replica.sendall(PSYNC)
    return replica


def read_snapshot(replica: socket.socket) -> int:
    """Read until the mark at the end; return how many bytes came."""
    taken = b""
    while b"$EOF:" not in taken or taken.endswith(b"$EOF:"):
        taken += replica.recv(65536)
    while b"\r\n" not in taken.partition(b"$EOF:")[2]:
        taken += replica.recv(65536)
    mark = taken.partition(b"$EOF:")[2][:40]
    size, end = len(taken), taken[-40:]
    while end != mark:
        piece = replica.recv(65536)
        assert piece, f"closed after {size} bytes"
        size += len(piece)
        end = (end + piece)[-40:]
    return size


def test_a_replica_that_is_stuck_does_not_cut_off_its_neighbour() -> None:
    """Both get the same snapshot. One reads nothing, so the other must wait until it is cut off."""
    with running_penstock("--repl-diskless-sync-delay", "1", "--repl-timeout", "2") as primary:
        client = client_of(primary.port)
        for number in range(64):
            client.set(f"k{number}", os.urandom(256 * 1024))
        with new_replica(primary.port) as stuck, new_replica(primary.port) as reader:
            size = read_snapshot(reader)
            assert size > 16 << 20
            assert client.info("stats")["sync_full"] == 1
            eventually(lambda: client.info("replication")["connected_slaves"] == 1)
            assert "this replica has said nothing" in primary.log()
            assert stuck.fileno() >= 0


def test_a_full_disk_on_the_replica_leaves_its_data(tmp_path: Path) -> None:
    """No file may become larger than a megabyte there, until the limit is lifted."""
    with (
        running_penstock(*QUICK) as primary,
        running_penstock(*QUICK, data=tmp_path) as replica,
    ):
        theirs, ours = client_of(primary.port), client_of(replica.port)
        theirs.set("large", os.urandom(3 << 20))
        ours.set("kept", "1")
        no_limit = resource.RLIM_INFINITY
        resource.prlimit(replica.pid, resource.RLIMIT_FSIZE, (1 << 20, no_limit))
        ours.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(
            lambda: (
                "cannot keep the snapshot: File too large"
                in str(ours.info("replication").get("master_link_problem"))
            )
        )
        assert ours.get("kept") == b"1"
        eventually(lambda: not list(tmp_path.glob("temp-*")), "the part is removed")
        resource.prlimit(replica.pid, resource.RLIMIT_FSIZE, (no_limit, no_limit))
        linked(ours)
        same(theirs, ours)


def test_a_replica_whose_own_disk_is_full_acks_no_fsync_until_it_has_a_new_base(
    tmp_path: Path,
) -> None:
    """It follows on in memory. No file may grow there, until the limit is lifted."""
    with (
        running_penstock(*QUICK) as primary,
        running_penstock(*QUICK, data=tmp_path) as replica,
    ):
        theirs, ours = client_of(primary.port), client_of(replica.port)
        follow(ours, primary.port)
        theirs.config_set("min-replicas-ack", 1)
        theirs.config_set("min-replicas-ack-fsync", "yes")
        eventually(lambda: theirs.set("a", "1"), "the log of the replica has a base")
        no_limit = resource.RLIM_INFINITY
        resource.prlimit(replica.pid, resource.RLIMIT_FSIZE, (1 << 16, no_limit))
        with pytest.raises(redis.RedisError, match="Not enough good replicas"):
            theirs.set("large", os.urandom(1 << 18))
        eventually(lambda: ours.exists("large"), "it is applied")
        assert ours.info("persistence")["aof_last_write_status"] == "err"
        assert theirs.execute_command("WAITAOF", 0, 1, 10)[1] == 0
        with pytest.raises(redis.RedisError, match="Not enough good replicas"):
            theirs.set("b", "1")
        resource.prlimit(replica.pid, resource.RLIMIT_FSIZE, (no_limit, no_limit))
        eventually(lambda: theirs.set("b", "1"), "writes are taken again")
        replica.kill()
        replica.start()
        same(theirs, client_of(replica.port))
        assert client_of(replica.port).get("b") == b"1"


def test_a_stop_while_the_file_is_being_sent_removes_it(tmp_path: Path) -> None:
    async def run() -> None:
        bench = DurableBench(tmp_path, appendonly="no", repl_diskless_sync="no")
        client, replica = bench.connect(), bench.connect()
        client.reply(b"SET", b"large", os.urandom(8 << 20))
        replica.transport.reads = False
        replica.tell("PSYNC ? -1")
        file = tmp_path / TEMP_NAME
        bench.wait_for_child()
        assert file.stat().st_size > 8 << 20
        bench.server.replication.stop()
        assert not file.exists()
        bench.loop.run()
        assert replica.closed

    asyncio.run(run())


def test_a_start_removes_the_file_of_a_killed_process(tmp_path: Path) -> None:
    tmp_path.joinpath(TEMP_NAME).write_bytes(b"REDIS0010")
    with running_penstock(data=tmp_path):
        assert not tmp_path.joinpath(TEMP_NAME).exists()


def test_after_a_demotion_nothing_counts_as_synced_before_it_is(tmp_path: Path) -> None:
    async def run() -> None:
        bench = DurableBench(tmp_path)
        replication = bench.server.replication
        replication.feed.begin()
        client = bench.connect()
        client.tell("SET a 1")
        client.tell("REPLICAOF 127.0.0.1 1")
        offset = replication.feed.history.offset
        assert replication.synced_offset_or_none() == 0
        bench.sync()
        assert replication.synced_offset_or_none() == offset > 0
        assert replication.link is not None
        replication.link.stop()

    asyncio.run(run())
