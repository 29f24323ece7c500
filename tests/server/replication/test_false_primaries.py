"""A replica keeps its data and says why, whatever its primary sends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.replication.false_primary import HANDSHAKE, SOME_ID, FalsePrimary
from tests.support.replication.links import (
    QUICK,
    client_of,
    eventually,
    follow,
    linked,
    online,
    same,
)
from tests.support.servers.durable_bench import DurableBench
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.raw_redis import Refusal, encode
from tests.support.servers.redis_server import running_redis

FULL = b"+FULLRESYNC %s 100\r\n" % SOME_ID
EMPTY_SNAPSHOT = b"REDIS0010\xff" + bytes(8)  # without a checksum
PING = b"*1\r\n$4\r\nPING\r\n"

# What the primary sends, and what the replica then says.
FALSE: dict[str, tuple[list[bytes | None], str]] = {
    "garbage at once": ([b"\xff\xfe\x00garbage\r\n"] * 6, "PSYNC"),
    "an endless line": ([b"x" * 10_000], "does not end"),
    "an error to PING": ([b"-ERR go away\r\n"], "go away"),
    "a wrong password": (
        [b"-NOAUTH Authentication required.\r\n", *HANDSHAKE[1:], b"-NOAUTH no\r\n"],
        "NOAUTH",
    ),
    "not now": ([*HANDSHAKE, b"-NOMASTERLINK not now\r\n"], "not now"),
    "a line of spaces": ([*HANDSHAKE, b"   \r\n"], "PSYNC"),
    "a short id": ([*HANDSHAKE, b"+FULLRESYNC abc 1\r\n"], "wrong length"),
    "a long id": ([*HANDSHAKE, b"+FULLRESYNC %s 1\r\n" % (b"a" * 41)], "wrong length"),
    "an id that is no number": (
        [*HANDSHAKE, b"+FULLRESYNC %s 1\r\n" % (b"g" * 40)],
        "not hexadecimal",
    ),
    "an id to continue with that is no number": (
        [*HANDSHAKE, b"+CONTINUE %s\r\n" % (b"\xe4" * 40)],
        "not hexadecimal",
    ),
    "an id to continue with that is none": ([*HANDSHAKE, b"+CONTINUE abc\r\n"], "wrong length"),
    "an offset that is none": ([*HANDSHAKE, b"+FULLRESYNC %s x\r\n" % SOME_ID], "PSYNC"),
    "an offset that is too large": (
        [*HANDSHAKE, b"+FULLRESYNC %s %s\r\n" % (SOME_ID, b"9" * 19)],
        "PSYNC",
    ),
    "no snapshot": ([*HANDSHAKE, FULL + b"+OK\r\n"], "instead of a snapshot"),
    "a snapshot of a negative size": ([*HANDSHAKE, FULL + b"$-5\r\n"], "instead of a snapshot"),
    "a snapshot that is none": ([*HANDSHAKE, FULL + b"$5\r\nhello"], "cannot be loaded"),
    "a damaged snapshot": (
        [*HANDSHAKE, FULL + b"$18\r\nREDIS0010\xff" + b"\x01" * 8],
        "cannot be loaded",
    ),
    "half a snapshot with its mark": (
        [*HANDSHAKE, FULL + b"$EOF:" + b"m" * 40 + b"\r\nREDIS0010" + b"m" * 40],
        "cannot be loaded",
    ),
    "a stream that is no protocol": (
        [*HANDSHAKE, FULL + b"$18\r\n" + EMPTY_SNAPSHOT + b"HELLO\r\n"],
        "where a command should begin",
    ),
    "an unknown command": (
        [*HANDSHAKE, FULL + b"$18\r\n" + EMPTY_SNAPSHOT + b"*2\r\n$5\r\nFUDGE\r\n$1\r\nk\r\n"],
        "unknown command",
    ),
    "EXEC without MULTI": (
        [*HANDSHAKE, FULL + b"$18\r\n" + EMPTY_SNAPSHOT + b"*1\r\n$4\r\nEXEC\r\n"],
        "EXEC without MULTI",
    ),
    "a database that there is not": (
        [*HANDSHAKE, FULL + b"$18\r\n" + EMPTY_SNAPSHOT + b"*2\r\n$6\r\nSELECT\r\n$2\r\n99\r\n"],
        "SELECT 99",
    ),
}
LOADED = {
    "a stream that is no protocol",
    "an unknown command",
    "EXEC without MULTI",
    "a database that there is not",
}


def problem(server: PenstockServer) -> str:
    """Why the link of a replica is down."""
    return str(client_of(server.port).info("replication").get("master_link_problem", ""))


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockServer]:
    folder: Path = tmp_path_factory.mktemp("replica")
    with running_penstock(*QUICK, data=folder) as server:
        yield server


@pytest.mark.parametrize("name", FALSE)
def test_the_data_stays_and_the_reason_is_shown(replica: PenstockServer, name: str) -> None:
    replies, said = FALSE[name]
    client = client_of(replica.port)
    client.execute_command("REPLICAOF", "NO", "ONE")
    eventually(lambda: client.set("kept", "1"), "writes are taken")
    with FalsePrimary(replies) as primary:
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: said in problem(replica), f"{said!r} in the problem")
        assert client.ping()
        if name not in LOADED:
            assert client.get("kept") == b"1"
    client.execute_command("REPLICAOF", "NO", "ONE")
    eventually(lambda: client.set("kept", "2"), "writes are taken")
    assert "Traceback" not in replica.log()


def test_a_reply_of_spaces_does_not_make_a_replica_forget_its_place(tmp_path: Path) -> None:
    with running_penstock(*QUICK) as primary, running_penstock(*QUICK, data=tmp_path) as replica:
        client = client_of(replica.port)
        follow(client, primary.port)
        client_of(primary.port).set("a", "1")
        same(client_of(primary.port), client)
        with FalsePrimary([*HANDSHAKE, b"   \r\n"]) as false:
            client.execute_command("REPLICAOF", "127.0.0.1", false.port)
            eventually(lambda: problem(replica))
        follow(client, primary.port)
        assert client_of(primary.port).info("stats")["sync_partial_ok"] == 1
        assert client_of(primary.port).info("stats")["sync_full"] == 1


def test_a_link_that_stalls_in_any_state_is_opened_again(replica: PenstockServer) -> None:
    client = client_of(replica.port)
    client.execute_command("REPLICAOF", "NO", "ONE")
    eventually(lambda: client.set("kept", "1"), "writes are taken")
    client.config_set("repl-timeout", 1)
    stalls: list[list[bytes | None]] = [
        [None],
        [*HANDSHAKE[:2], None],
        [*HANDSHAKE, None],
        [*HANDSHAKE, FULL],
        [*HANDSHAKE, FULL + b"$100\r\nREDIS0010"],
    ]
    for replies in stalls:
        with FalsePrimary(replies) as primary:
            client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
            eventually(lambda: primary.connections >= 2, f"a second attempt after {replies[-1]!r}")
            assert client.get("kept") == b"1"
    with FalsePrimary([*HANDSHAKE, FULL + b"$18\r\n" + EMPTY_SNAPSHOT]) as primary:
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: primary.connections >= 2, "a second attempt after the snapshot")
        assert "nothing was received for 1 s" in replica.log()
    client.config_set("repl-timeout", 60)
    client.execute_command("REPLICAOF", "NO", "ONE")


def test_a_connection_that_is_never_accepted_is_given_up(replica: PenstockServer) -> None:
    client = client_of(replica.port)
    client.config_set("repl-timeout", 1)
    with socket.socket() as listener, ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(2):  # the queue of the listener is full then
            stranger = waiting.enter_context(socket.socket())
            stranger.setblocking(False)
            stranger.connect_ex(address)
        client.execute_command("REPLICAOF", *address)
        eventually(lambda: "nothing was received" in problem(replica), "the attempt is given up")
        assert client.ping()
    client.config_set("repl-timeout", 60)
    client.execute_command("REPLICAOF", "NO", "ONE")


@pytest.mark.parametrize("acks", [0, 1])
def test_a_replica_that_falls_silent_is_cut_off(acks: int) -> None:
    """It has its snapshot, and acks it or not."""
    with (
        running_penstock(*QUICK, "--repl-timeout", "1") as primary,
        socket.create_connection(("127.0.0.1", primary.port)) as silent,
    ):
        client = client_of(primary.port)
        silent.sendall(b"REPLCONF capa eof\r\n")
        assert silent.recv(5) == b"+OK\r\n"
        silent.sendall(b"PSYNC ? -1\r\n")
        eventually(lambda: client.info("replication")["connected_slaves"] == 1)
        silent.sendall(encode([b"REPLCONF", b"ACK", b"0"]) * acks)
        eventually(lambda: client.info("replication")["connected_slaves"] == 0)
        assert "this replica has said nothing for 1 s" in primary.log()
        assert client.set("a", "1")


@pytest.mark.parametrize("asked", ["abc", "a" * 41, "g" * 40, "\xff" * 20])
def test_a_replica_with_an_id_that_is_none_gets_a_snapshot(asked: str) -> None:
    with running_penstock(*QUICK) as primary:
        client = client_of(primary.port)
        client.set("a", "1")
        with socket.create_connection(("127.0.0.1", primary.port)) as replica:
            replica.sendall(encode([b"PSYNC", asked.encode(), b"1"]))
            replica.settimeout(20)
            assert replica.makefile("rb").readline().startswith(b"+FULLRESYNC ")
        assert client.get("a") == b"1"


def test_a_stream_is_applied_at_every_cut_of_its_bytes(replica: PenstockServer) -> None:
    """Commands, a transaction and empty lines, sent byte by byte; the offset counts all of them."""
    client = client_of(replica.port)
    stream = (
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n\n"
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
        b"*1\r\n$5\r\nMULTI\r\n*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1\r\nx\r\n*1\r\n$4\r\nEXEC\r\n"
        + PING
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client.execute_command("REPLICAOF", "127.0.0.1", port)
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for reply in (*HANDSHAKE, FULL + b"$18\r\n" + EMPTY_SNAPSHOT):
            connection.recv(65536)
            connection.sendall(reply or b"")
        for at in range(len(stream)):
            connection.sendall(stream[at : at + 1])
        eventually(
            lambda: client.info("replication")["slave_repl_offset"] == 100 + len(stream),
            "every byte counts",
        )
        assert client.get("a") == b"1"
        assert client.lrange("l", 0, -1) == [b"x"]
        connection.close()
    client.execute_command("REPLICAOF", "NO", "ONE")


def test_a_replica_that_lies_about_its_offset_counts_for_no_more_than_there_is() -> None:
    with running_penstock(*QUICK) as primary:
        client = client_of(primary.port)
        client.set("a", "1")
        with socket.create_connection(("127.0.0.1", primary.port)) as liar:
            liar.sendall(b"*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n")
            eventually(lambda: client.info("replication")["connected_slaves"] == 1)
            liar.sendall(b"*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$19\r\n9000000000000000000\r\n")
            eventually(lambda: client.info("replication")["slave0"]["state"] == "online")
            client.set("a", "2")
            info = client.info("replication")
            assert info["slave0"]["offset"] <= info["master_repl_offset"]
            for words in (
                b"REPLCONF ACK x\r\n",
                b"REPLCONF listening-port 99999999\r\n",
                b"SET a 3\r\n",
            ):
                liar.sendall(words)
            assert client.get("a") == b"2"
        eventually(lambda: client.info("replication")["connected_slaves"] == 0)


def test_psync_keeps_the_order_of_replies_that_wait_for_the_disk(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path)
    replication = bench.server.replication
    replication.feed.begin()
    client, replica = bench.connect(), bench.connect()
    client.tell("SET a 1")  # REPLCONF waits behind it
    replica.tell("REPLCONF listening-port 7000")
    history = replication.feed.history
    asking = f"PSYNC {history.id} {history.offset + 1}"
    replica.tell(asking)
    bench.sync()
    refused = Refusal("ERR SYNC and PSYNC are invalid with pending output")
    assert replica.replies() == ["OK", refused]
    replica.tell(asking)
    assert replica.heard().startswith(b"+CONTINUE")


def test_a_second_psync_is_ignored(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no")
    feed = bench.server.replication.feed
    feed.begin()
    replica = bench.connect()
    asking = f"PSYNC {feed.history.id} {feed.history.offset + 1}"
    replica.tell(asking)
    assert replica.heard().startswith(b"+CONTINUE")
    replica.tell(asking)
    replica.tell("PSYNC ? -1")
    assert replica.heard() == b""
    assert [one.is_online for one in bench.server.replication.replicas.all()] == [True]


def test_psync_with_bad_arguments_is_an_error() -> None:
    with running_penstock(*QUICK) as primary, client_of(primary.port) as client:
        for words in (("PSYNC", "?"), ("PSYNC", "?", "x"), ("SYNC",), ("REPLCONF", "fudge", "1")):
            with pytest.raises(
                Exception, match=r"wrong number|not an integer|not supported|Unrecognized"
            ):
                client.execute_command(*words)
        assert client.ping()


def test_foreign_types_are_refused_by_key_and_type_or_skipped_if_asked() -> None:
    with running_redis() as primary, running_penstock(*QUICK) as server:
        theirs, ours = primary.client, client_of(server.port)
        theirs.hset("a hash", "f", "v")
        theirs.xadd("s", {"k": "v"})
        ours.set("kept", "1")
        ours.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: "a hash" in problem(server), "the key is named")
        assert theirs.info("stats")["sync_full"] == 1
        assert ours.get("kept") == b"1"
        ours.config_set("replica-foreign-types", "skip")
        follow(ours, primary.port)
        theirs.hset("another", "f", "v")
        theirs.rename("a hash", "moved")
        theirs.xadd("s", {"k": "v2"})
        eventually(lambda: ours.xlen("s") == 2)
        theirs.client_kill_filter(_type="replica")
        linked(ours)
        info = ours.info("replication")
        assert info["replica_foreign_commands_skipped"] >= 2
        assert info["slave_priority"] == 0


def test_a_replica_that_may_skip_is_never_promoted(tmp_path: Path) -> None:
    """What it skipped before a restart is not known any more."""
    with (
        running_penstock(*QUICK) as primary,
        running_penstock(*QUICK, "--replica-foreign-types", "skip", data=tmp_path) as replica,
    ):
        follow(client_of(replica.port), primary.port)
        assert client_of(replica.port).info("replication")["slave_priority"] == 0
        replica.kill()
        replica.start("--replicaof", "127.0.0.1", str(primary.port))
        linked(client_of(replica.port))
        assert client_of(replica.port).info("replication")["slave_priority"] == 0


def test_a_foreign_write_in_the_stream_ends_the_link(replica: PenstockServer) -> None:
    client = client_of(replica.port)
    with running_redis() as primary:
        follow(client, primary.port)
        primary.client.xadd("s", {"k": "v"})
        eventually(lambda: client.xlen("s") == 1)
        primary.client.hset("a hash", "f", "v")
        eventually(lambda: "hset" in problem(replica).lower(), "the command is named")
        assert client.xlen("s") == 1
        assert client.info("replication")["master_link_status"] == "down"
    client.execute_command("REPLICAOF", "NO", "ONE")


def test_a_backlog_that_is_too_small_leads_to_a_snapshot() -> None:
    with (
        running_penstock(*QUICK, "--repl-backlog-size", "16kb") as primary,
        running_penstock(*QUICK) as replica,
    ):
        ours, theirs = client_of(primary.port), client_of(replica.port)
        follow(theirs, primary.port)
        online(ours)
        replica.process.send_signal(19)  # SIGSTOP
        ours.client_kill_filter(_type="replica")
        for number in range(40):
            ours.set(f"k{number}", "x" * 1000)
        replica.process.send_signal(18)  # SIGCONT
        eventually(lambda: ours.info("stats")["sync_full"] == 2)
        linked(theirs)
        same(ours, theirs)


def test_what_was_applied_before_a_transaction_is_not_asked_for_again(
    replica: PenstockServer,
) -> None:
    """The link breaks within MULTI: the next PSYNC begins there."""
    client = client_of(replica.port)
    before = b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"
    cut = b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"
    with FalsePrimary([*HANDSHAKE, FULL + b"$18\r\n" + EMPTY_SNAPSHOT + before + cut]) as primary:
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        eventually(lambda: client.get("n") == b"1")
        primary.drop()
        eventually(lambda: [words for words in primary.heard() if words[0] == b"PSYNC"][1:])
        asked = [words for words in primary.heard() if words[0] == b"PSYNC"][1]
        assert asked[1:] == [SOME_ID, b"%d" % (100 + len(before) + 1)]
    client.execute_command("REPLICAOF", "NO", "ONE")
