"""When replies are sent: never before a crash could undo their changes; and the errors if the disk fails.

The test starts each sync (tests/support/servers/durable_bench), so no test has to wait.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers import durable_bench
from tests.support.servers.connections import ManualClient, encoded
from tests.support.servers.durable_bench import DurableBench, synced
from tests.support.servers.raw_redis import Push, Refusal

bench = durable_bench.bench
client = durable_bench.client

UNKNOWN = Refusal(
    "MISCONF Errors writing to the AOF file: No space left on device. Whether this command will be there"
    " after a restart is unknown"
)
REFUSED = Refusal("MISCONF Errors writing to the AOF file: No space left on device")


@pytest.fixture
def other(bench: DurableBench) -> ManualClient:
    return bench.connect()


# --- Replies wait for the disk -----------------------------------------------------------------------


def test_a_write_gets_its_reply_when_it_is_on_disk(
    bench: DurableBench, client: ManualClient
) -> None:
    client.tell("XADD s 1-1 a 1")
    assert client.heard() == b""
    syncs = bench.disk.syncs
    bench.sync()
    assert bench.disk.syncs == syncs + 1
    assert client.replies() == [b"1-1"]


def test_one_sync_serves_all_waiting_clients(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    for seq in range(1, 6):
        client.tell(f"XADD s 1-{seq} a 1")
        other.tell(f"XADD t 1-{seq} a 1")
    syncs = bench.disk.syncs
    bench.sync()
    assert bench.disk.syncs == syncs + 1
    assert client.replies() == other.replies() == [b"1-%d" % seq for seq in range(1, 6)]


def test_reads_before_any_write_are_answered_at_once(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    assert client.reply("XLEN s") == 0
    synced(bench, other, "XADD s 1-1 a 1")
    assert client.reply("XLEN s") == 1
    assert client.reply("PING") == "PONG"


def test_a_read_after_a_write_waits_with_it_and_keeps_its_order(
    bench: DurableBench, client: ManualClient
) -> None:
    for line in ("XLEN s", "XADD s 1-1 a 1", "XLEN s", "PING"):
        client.tell(line)
    assert client.replies() == [0]
    bench.sync()
    assert client.replies() == [b"1-1", 1, "PONG"]


def test_another_client_does_not_see_changes_that_a_crash_could_undo(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    client.tell("XADD s 1-1 a 1")
    other.tell("XRANGE s - +")
    assert other.heard() == b""
    bench.sync()
    assert other.replies() == [[[b"1-1", [b"a", b"1"]]]]


def test_commands_during_a_sync_wait_for_the_next_one(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    client.tell("XADD s 1-1 a 1")
    commit = bench.store.commit
    assert commit is not None
    commit.sync()  # the thread is done, and the loop does not know yet
    other.put(encoded("XADD", "s", "1-2", "a", "2"))
    bench.loop.run()
    assert client.replies() == [b"1-1"]
    assert other.replies() == []
    bench.sync()
    assert other.replies() == [b"1-2"]


def test_a_woken_reader_waits_for_the_write_that_woke_it(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    synced(bench, client, "XGROUP CREATE s g 0 MKSTREAM")
    client.tell("XREAD BLOCK 0 STREAMS s $")
    other.tell("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    bench.sync()  # the consumer is new
    third = bench.connect()
    third.tell("XADD s 1-1 a 1")
    assert client.heard() == other.heard() == b""
    bench.sync()
    expected = [[[b"s", [[b"1-1", [b"a", b"1"]]]]]]
    assert client.replies() == other.replies() == expected


def test_messages_and_monitor_lines_wait_as_well(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    client.ask("CONFIG SET notify-keyspace-events Kt")
    other.ask("PSUBSCRIBE __key*__:*")
    monitor = bench.connect()
    monitor.ask("MONITOR")
    client.tell("XADD s 1-1 a 1")
    assert other.heard() == monitor.heard() == b""
    bench.sync()
    assert other.replies() == [[b"pmessage", b"__key*__:*", b"__keyspace@0__:s", b"xadd"]]
    assert b'"XADD" "s"' in monitor.heard()


def test_a_transaction_is_answered_when_it_is_on_disk(
    bench: DurableBench, client: ManualClient
) -> None:
    client.tell("MULTI")
    client.tell("XADD s 1-1 a 1")
    client.tell("XLEN s")
    assert client.replies() == ["OK", "QUEUED", "QUEUED"]
    client.tell("EXEC")
    assert client.heard() == b""
    bench.sync()
    assert client.replies() == [[b"1-1", 1]]


def test_an_error_waits_only_behind_a_write(bench: DurableBench, client: ManualClient) -> None:
    assert client.reply("XADD s") == Refusal("ERR wrong number of arguments for 'xadd' command")
    client.tell("XADD s 1-1 a 1")
    client.tell("XADD s 1-1 a 1")
    assert client.heard() == b""
    bench.sync()
    first, second = client.replies()
    assert first == b"1-1"
    assert isinstance(second, Refusal)


def test_an_expiry_is_visible_only_when_it_is_logged(
    bench: DurableBench, client: ManualClient
) -> None:
    synced(bench, client, "SET k v PX 100")
    bench.advance(200)
    client.tell("GET k")
    assert client.heard() == b""
    bench.sync()
    assert client.replies() == [None]


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_with_other_policies_replies_are_sent_at_once(tmp_path: Path, policy: str) -> None:
    bench = DurableBench(tmp_path, appendfsync=policy)
    client = bench.connect()
    syncs = bench.disk.syncs
    assert client.reply("XADD s 1-1 a 1") == b"1-1"
    assert bench.disk.syncs == syncs
    bench.tick(1000)
    assert bench.woken == (policy == "everysec")
    after = bench.abandon()  # it is written: killing the process loses nothing
    assert after.connect().reply("XLEN s") == 1


def test_everysec_syncs_once_a_second_and_only_what_is_new(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    bench.connect().tell("XADD s 1-1 a 1")
    bench.tick(1000)
    bench.sync()
    bench.tick(500)
    assert not bench.woken
    bench.connect().tell("XADD s 1-2 a 1")
    bench.tick(100)
    assert not bench.woken
    bench.tick(400)
    assert bench.woken


def test_the_policy_can_change_while_replies_wait(
    bench: DurableBench, client: ManualClient
) -> None:
    client.tell("XADD s 1-1 a 1")
    client.tell("CONFIG SET appendfsync everysec")
    client.tell("XADD s 1-2 a 1")
    assert client.heard() == b""  # all of it waits for a write that must be synced
    bench.sync()
    assert client.replies() == [b"1-1", "OK", b"1-2"]
    assert client.reply("XADD s 1-3 a 1") == b"1-3"
    client.tell("CONFIG SET appendfsync always")
    client.tell("XADD s 1-4 a 1")
    bench.sync()
    assert client.replies() == ["OK", b"1-4"]
    assert bench.abandon().connect().reply("XLEN s") == 4


def test_writes_of_a_client_without_replies_are_logged(
    bench: DurableBench, client: ManualClient
) -> None:
    client.tell("CLIENT REPLY OFF")
    client.tell("XADD s 1-1 a 1")
    assert bench.woken
    bench.sync()
    assert client.heard() == b""
    assert bench.abandon().connect().reply("XLEN s") == 1


def test_writes_of_a_client_that_disconnects_are_logged(
    bench: DurableBench, client: ManualClient
) -> None:
    client.put(encoded("XADD", "s", "1-1", "a", "1"))
    client.vanish()
    bench.sync()
    assert bench.abandon().connect().reply("XLEN s") == 1


def test_no_confirmed_write_is_lost_and_no_write_is_half_there(
    bench: DurableBench, client: ManualClient
) -> None:
    assert synced(bench, client, "XADD s 1-1 a 1") == [b"1-1"]
    client.tell("XADD s 1-2 a 1")  # never synced, no reply
    assert bench.abandon().connect().reply("XRANGE s - +") == [[b"1-1", [b"a", b"1"]]]


# --- A disk that fails -------------------------------------------------------------------------------


def test_every_waiting_command_gets_the_error_that_its_outcome_is_unknown(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    client.put(b"".join(encoded("XADD", "s", f"1-{n}", "a", "1") for n in range(1, 11)))
    bench.loop.run()
    other.tell("XLEN s")
    bench.fail()
    bench.sync()
    assert client.replies() == [UNKNOWN] * 10
    assert other.replies() == [UNKNOWN]


def test_reads_continue_and_writes_are_refused(bench: DurableBench, client: ManualClient) -> None:
    synced(bench, client, "XADD s 1-1 a 1")
    client.tell("XADD s 1-2 a 1")
    bench.fail()
    bench.sync()
    client.replies()
    assert client.reply("XADD s 1-3 a 1") == REFUSED
    assert client.reply("XLEN s") == 2
    assert client.reply("PING") == "PONG"
    client.tell("MULTI")
    client.tell("XADD s 1-3 a 1")
    client.tell("EXEC")
    assert client.replies()[0] == "OK"
    assert client.reply("XLEN s") == 2
    assert b"aof_last_write_status:err" in client.ask("INFO persistence")


def test_ping_reports_the_failure_if_the_directive_says_so(tmp_path: Path) -> None:
    """Sentinel takes any other reply than PONG, LOADING and MASTERDOWN for a server that is down."""
    for setting in ("no", "yes"):
        bench = DurableBench(tmp_path / setting, ping_fails_without_disk=setting)
        client = bench.connect()
        synced(bench, client, "SET a 1")
        bench.fail()
        assert synced(bench, client, "SET a 2") == [UNKNOWN]
        assert client.reply("PING") == ("PONG" if setting == "no" else REFUSED)
        assert client.reply("GET a") == b"2"
        bench.heal()
        bench.tick(1000)
        bench.wait_for_child()
        assert client.reply("PING") == "PONG"


def test_ping_works_while_a_new_primary_writes_its_first_base(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, ping_fails_without_disk="yes")
    client = bench.connect()
    bench.server.disk_failure.wait_for_base()
    assert client.reply("SET a 1") == Refusal(
        "MISCONF Errors writing to the AOF file: the base of the log is not on disk yet"
    )
    assert client.reply("PING") == "PONG"


def test_a_turn_that_detects_the_failure_is_refused_as_well(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    """Its writes are in no log: the thread had failed before they were handed over."""
    client.tell("XADD s 1-1 a 1")
    bench.fail()
    assert bench.store.commit is not None
    bench.store.commit.sync()
    other.tell("XADD s 1-2 a 1")
    assert client.replies() == [UNKNOWN]
    assert other.replies() == [UNKNOWN]


def test_a_write_before_the_loop_hears_of_the_failure_is_refused_as_well(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    client.tell("XADD s 1-1 a 1")
    bench.fail()
    other.put(encoded("XADD", "s", "1-2", "a", "1"))  # the turn has not ended
    bench.sync()
    assert client.replies() == [UNKNOWN]
    assert other.replies() == [UNKNOWN]


def test_with_everysec_a_failed_write_is_refused(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    assert client.reply("XADD s 1-1 a 1") == b"1-1"
    bench.fail()
    assert client.reply("XADD s 1-2 a 1") == UNKNOWN
    assert client.reply("XADD s 1-3 a 1") == REFUSED
    assert client.reply("XLEN s") == 2


def test_with_everysec_a_failed_sync_refuses_the_writes_that_follow(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    assert client.reply("XADD s 1-1 a 1") == b"1-1"
    bench.fail()
    bench.tick(1000)
    bench.sync()
    assert client.reply("XADD s 1-2 a 1") == REFUSED


def test_subscribers_and_monitors_do_not_get_the_errors_of_others(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    newer, monitor = bench.connect(), bench.connect()
    other.ask("SUBSCRIBE news")
    newer.ask("HELLO 3")
    newer.ask("SUBSCRIBE news")
    monitor.ask("MONITOR")
    client.tell("XADD s 1-1 a 1")
    client.tell("PUBLISH news x")
    bench.fail()
    bench.sync()
    assert client.replies() == [UNKNOWN, UNKNOWN]
    assert other.replies() == [[b"message", b"news", b"x"]]
    assert newer.replies() == [Push([b"message", b"news", b"x"])]
    assert all(isinstance(line, str) and "[0 " in line for line in monitor.replies())


def test_writes_are_accepted_again_when_a_fresh_base_is_on_disk(
    bench: DurableBench, client: ManualClient
) -> None:
    synced(bench, client, "XADD s 1-1 a 1")
    client.tell("XADD s 1-2 a 1")
    bench.fail()
    bench.sync()
    client.replies()
    bench.tick(1000)  # too early
    assert client.reply("XADD s 1-3 a 1") == REFUSED
    bench.heal()
    assert client.reply("XADD s 1-3 a 1") == REFUSED
    bench.tick(2000)
    assert client.reply("XADD s 1-3 a 1") == REFUSED
    bench.wait_for_child()
    assert synced(bench, client, "XADD s 1-4 a 1") == [b"1-4"]
    assert b"aof_last_write_status:ok" in client.ask("INFO persistence")
    ids = [entry[0] for entry in bench.abandon().connect().reply("XRANGE s - +")]
    assert ids == [b"1-1", b"1-2", b"1-4"]


def test_a_disk_that_stays_full_is_retried(bench: DurableBench, client: ManualClient) -> None:
    synced(bench, client, "XADD s 1-1 a 1")
    client.tell("XADD s 1-2 a 1")
    bench.fail()
    bench.sync()
    client.replies()
    for _ in range(3):
        bench.tick(1000)
    bench.disk.faulty_name = (
        "temp-rewrite"  # an increment can be made, but the child cannot fill a base
    )
    for operations in ({"create"}, {"write"}, {"sync"}):
        bench.disk.faulty = operations
        bench.tick(10_000)
        bench.wait_for_child()
        assert client.reply("XADD s 1-3 a 1") == REFUSED
    before = bench.abandon().connect().reply("XRANGE s - +")
    assert before[0] == [b"1-1", [b"a", b"1"]]


def test_a_failure_while_a_base_is_put_in_place_is_survived(
    bench: DurableBench, client: ManualClient
) -> None:
    synced(bench, client, "XADD s 1-1 a 1")
    client.tell("BGREWRITEAOF")
    bench.sync()
    bench.loop.wait_for_files()  # the child is done, the rest is to be finished
    bench.fail()
    bench.sync()
    client.replies()
    assert client.reply("XADD s 1-2 a 1") == REFUSED
    bench.heal()
    bench.tick(1000)
    bench.wait_for_child()
    assert synced(bench, client, "XADD s 1-3 a 1") == [b"1-3"]
    ids = [entry[0] for entry in bench.abandon().connect().reply("XRANGE s - +")]
    assert ids == [b"1-1", b"1-3"]


def test_a_failure_while_a_rewrite_begins_is_survived(
    bench: DurableBench, client: ManualClient
) -> None:
    synced(bench, client, "XADD s 1-1 a 1")
    client.tell("BGREWRITEAOF")
    client.tell("XADD s 1-2 a 1")
    bench.fail()
    bench.sync()
    assert client.replies() == ["Background append only file rewriting started", UNKNOWN]
    bench.heal()
    bench.tick(1000)
    bench.wait_for_child()
    assert synced(bench, client, "XADD s 1-3 a 1") == [b"1-3"]
    ids = [entry[0] for entry in bench.abandon().connect().reply("XRANGE s - +")]
    assert ids == [b"1-1", b"1-2", b"1-3"]


def test_switching_the_log_off_ends_the_failure(bench: DurableBench, client: ManualClient) -> None:
    client.tell("XADD s 1-1 a 1")
    bench.fail()
    bench.sync()
    client.replies()
    assert client.reply("CONFIG SET appendonly no") == "OK"
    assert client.reply("XADD s 1-2 a 1") == b"1-2"


def test_waitaof_returns_when_the_fresh_base_is_on_disk(
    bench: DurableBench, client: ManualClient, other: ManualClient
) -> None:
    client.tell("XADD s 1-1 a 1")
    bench.fail()
    bench.sync()
    assert client.replies() == [UNKNOWN]
    client.tell("WAITAOF 1 0 0")
    bench.sync()
    bench.heal()
    bench.tick(1000)
    bench.sync()
    assert client.heard() == b""
    bench.wait_for_child()
    assert client.replies() == [[1, 0]]
