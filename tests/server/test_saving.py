"""Rewrites, snapshots, switching the log on and off, WAITAOF, and commands while data is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import DirectoryInUse
from penstock.server.session.states import LOADING
from tests.support.servers import durable_bench
from tests.support.servers.connections import ManualClient
from tests.support.servers.durable_bench import DurableBench, synced
from tests.support.servers.raw_redis import Refusal

bench = durable_bench.bench
client = durable_bench.client


# --- Rewrites and snapshots --------------------------------------------------------------------------


def manifest(bench: DurableBench) -> list[str]:
    text = Path(bench.store.layout.manifest).read_text()
    return [line.split()[1] for line in text.splitlines() if not line.startswith("#")]


def test_a_rewrite_replaces_the_old_files(bench: DurableBench, client: ManualClient) -> None:
    synced(bench, client, "XADD s 1-1 a 1")
    assert client.reply("BGREWRITEAOF") == "Background append only file rewriting started"
    assert client.reply("BGREWRITEAOF") == Refusal(
        "ERR Background append only file rewriting already in progress"
    )
    synced(bench, client, "XADD s 1-2 a 1")
    bench.wait_for_child()
    assert manifest(bench) == ["appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"]
    folder = Path(bench.store.layout.log_dir)
    assert {path.name for path in folder.iterdir()} == {
        "appendonly.aof.2.base.rdb",
        "appendonly.aof.2.incr.aof",
        "appendonly.aof.manifest",
    }
    assert bench.abandon().connect().reply("XLEN s") == 2


def test_a_rewrite_first_syncs_what_was_written(tmp_path: Path) -> None:
    """Replies wait while the log changes to a new file, so little may be left to sync by then."""
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    assert client.reply("XADD s 1-1 a 1") == b"1-1"
    assert client.reply("BGREWRITEAOF") == "Background append only file rewriting started"
    assert client.reply("BGREWRITEAOF") == Refusal(
        "ERR Background append only file rewriting already in progress"
    )
    assert bench.durability.child.forks == 0
    assert client.reply("XADD s 1-2 a 1") == b"1-2", "replies do not wait for this sync"
    bench.sync()
    assert bench.durability.child.forks == 1
    client.tell("XADD s 1-3 a 1")
    assert client.heard() == b"", "the new file is not listed yet"
    bench.sync()
    assert client.replies() == [b"1-3"]
    bench.wait_for_child()
    assert manifest(bench) == ["appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"]
    assert bench.abandon().connect().reply("XLEN s") == 3


def test_a_snapshot_that_begins_before_a_rewrite_delays_it(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    client.ask("XADD s 1-1 a 1")
    client.ask("BGREWRITEAOF")
    client.ask("BGSAVE")
    bench.sync()
    bench.wait_for_child()
    assert manifest(bench) == ["appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof"]
    bench.tick(1000)
    bench.wait_for_child()
    if bench.woken:
        bench.sync()
    assert manifest(bench) == ["appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"]


def test_a_log_that_is_switched_off_before_a_rewrite_begins(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    client.ask("XADD s 1-1 a 1")
    client.ask("BGREWRITEAOF")
    client.ask("CONFIG SET appendonly no")
    assert not bench.durability.rewrites.is_running
    assert not bench.durability.child.is_busy
    assert bench.abandon().connect().reply("XLEN s") == 1


def test_no_rewrite_starts_before_the_last_is_finished(
    bench: DurableBench, client: ManualClient
) -> None:
    """It would start from files that the last rewrite is about to remove (found by tests/crash)."""
    synced(bench, client, "XADD s 1-1 a 1")
    client.ask("CONFIG SET auto-aof-rewrite-min-size 1 auto-aof-rewrite-percentage 1")
    client.tell("BGREWRITEAOF")
    client.tell("XADD s 1-2 a 1")
    bench.sync()
    client.replies()
    bench.loop.wait_for_files()
    bench.tick(1000)  # the child has ended, the base is not in place yet
    assert client.reply("BGREWRITEAOF") == Refusal(
        "ERR Background append only file rewriting already in progress"
    )
    bench.sync()
    assert bench.abandon().connect().reply("XLEN s") == 2


def test_a_log_that_has_grown_is_rewritten_automatically(
    bench: DurableBench, client: ManualClient
) -> None:
    client.ask("CONFIG SET auto-aof-rewrite-min-size 1kb")
    synced(bench, client, *[f"XADD s 1-{n} a {'x' * 100}" for n in range(1, 20)])
    bench.tick(100)
    assert b"aof_rewrite_in_progress:1" in client.ask("INFO persistence")
    bench.wait_for_child()
    assert b"aof_rewrite_in_progress:0" in client.ask("INFO persistence")
    assert manifest(bench)[0] == "appendonly.aof.2.base.rdb"


def test_a_rewrite_requested_during_a_snapshot_follows_it(
    bench: DurableBench, client: ManualClient
) -> None:
    assert client.reply("BGSAVE") == "Background saving started"
    assert client.reply("BGSAVE") == Refusal("ERR Background save already in progress")
    assert client.reply("BGREWRITEAOF") == "Background append only file rewriting scheduled"
    bench.wait_for_child()
    bench.tick(100)
    assert b"aof_rewrite_in_progress:1" in client.ask("INFO persistence")
    bench.wait_for_child()
    assert manifest(bench)[0] == "appendonly.aof.2.base.rdb"
    assert b"total_forks:2\r\n" in client.ask("INFO stats")
    client.ask("CONFIG RESETSTAT")
    assert b"latest_fork_usec:0\r\ntotal_forks:0\r\n" in client.ask("INFO stats")


def test_a_snapshot_requested_during_a_rewrite_must_be_scheduled(
    bench: DurableBench, client: ManualClient
) -> None:
    client.tell("BGREWRITEAOF")
    client.replies()
    refusal = client.reply("BGSAVE")
    assert isinstance(refusal, Refusal)
    assert refusal.line.startswith("ERR Another child process is active (AOF?)")
    assert client.reply("BGSAVE SCHEDULE") == "Background saving scheduled"
    bench.wait_for_child()
    bench.tick(100)
    assert b"rdb_bgsave_in_progress:1" in client.ask("INFO persistence")
    bench.wait_for_child()
    assert Path(bench.store.layout.snapshot).exists()


def test_within_a_transaction_both_are_scheduled(bench: DurableBench, client: ManualClient) -> None:
    for line in ("MULTI", "XADD s 1-1 a 1", "BGREWRITEAOF", "BGSAVE", "XADD s 1-2 a 1", "EXEC"):
        client.tell(line)
    bench.sync()
    [*_, replies] = client.replies()
    assert replies == [
        b"1-1",
        "Background append only file rewriting scheduled",
        "Background saving scheduled",
        b"1-2",
    ]
    bench.tick(100)
    bench.wait_for_child()
    bench.tick(100)
    bench.wait_for_child()
    assert Path(bench.store.layout.snapshot).exists()
    assert bench.abandon().connect().reply("XLEN s") == 2


def test_the_log_cannot_be_switched_within_a_transaction(
    bench: DurableBench, client: ManualClient
) -> None:
    for line in ("MULTI", "XADD s 1-1 a 1", "CONFIG SET appendonly no", "EXEC"):
        client.tell(line)
    bench.sync()
    [*_, replies] = client.replies()
    assert replies[0] == b"1-1"
    assert isinstance(replies[1], Refusal)
    assert bench.abandon().connect().reply("XLEN s") == 1


def test_save_writes_a_snapshot_and_lastsave_tells_when(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no")
    client = bench.connect()
    client.ask("XADD s 1-1 a 1")
    before = client.reply("LASTSAVE")
    bench.advance(5000)
    assert client.reply("SAVE") == "OK"
    assert client.reply("LASTSAVE") == before + 5
    assert b"rdb_changes_since_last_save:0" in client.ask("INFO persistence")
    client.ask("XADD s 1-2 a 1")
    assert bench.abandon().connect().reply("XLEN s") == 1


def test_save_points_start_snapshots(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no", save="1 1")
    client = bench.connect()
    bench.tick(2000)
    assert not Path(bench.store.layout.snapshot).exists()
    client.ask("XADD s 1-1 a 1")
    bench.tick(2000)
    bench.wait_for_child()
    assert Path(bench.store.layout.snapshot).exists()
    bench.tick(2000)
    assert b"rdb_bgsave_in_progress:0" in client.ask("INFO persistence")
    assert bench.abandon().connect().reply("XLEN s") == 1


def test_a_failed_snapshot_stops_writes_if_there_are_save_points(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no", save="1 1")
    client = bench.connect()
    client.ask("XADD s 1-1 a 1")
    bench.fail()
    assert isinstance(client.reply("SAVE"), Refusal)
    bench.tick(2000)
    bench.wait_for_child()
    refusal = client.reply("XADD s 1-2 a 1")
    assert isinstance(refusal, Refusal)
    assert refusal.line.startswith("MISCONF Redis is configured to save RDB snapshots")
    assert client.reply("XLEN s") == 1
    bench.heal()
    bench.tick(5000)
    bench.wait_for_child()
    assert client.reply("XADD s 1-2 a 1") == b"1-2"


@pytest.mark.parametrize(
    ("points", "asked", "kept"),
    [("", None, 0), ("", True, 1), ("900 1", None, 1), ("900 1", False, 0)],
)
def test_what_shutdown_saves(tmp_path: Path, points: str, asked: bool | None, kept: int) -> None:
    bench = DurableBench(tmp_path, appendonly="no", save=points)
    bench.connect().ask("XADD s 1-1 a 1")
    assert bench.end(asked)
    assert DurableBench(tmp_path, appendonly="no").connect().reply("XLEN s") == kept


# --- The log on and off ------------------------------------------------------------------------------


def test_a_log_that_is_switched_on_has_all_data(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no")
    client = bench.connect()
    client.ask("XADD s 1-1 a 1")
    client.tell("CONFIG SET appendonly yes")
    client.tell("XADD s 1-2 a 1")
    bench.sync()
    bench.wait_for_child()
    assert client.replies() == ["OK", b"1-2"]
    assert synced(bench, client, "XADD s 1-3 a 1") == [b"1-3"]
    bench.store.release_lock()
    assert DurableBench(tmp_path).connect().reply("XLEN s") == 3


def test_a_log_that_is_switched_off_and_on_has_the_changes_between(
    bench: DurableBench, client: ManualClient
) -> None:
    client.tell("XADD s 1-1 a 1")
    client.tell("CONFIG SET appendonly no")
    assert client.replies() == [b"1-1", "OK"]
    assert client.reply("XADD s 1-2 a 1") == b"1-2"
    client.tell("CONFIG SET appendonly yes")
    bench.sync()
    client.replies()
    bench.wait_for_child()
    assert synced(bench, client, "XADD s 1-3 a 1") == [b"1-3"]
    assert bench.restarted().connect().reply("XLEN s") == 3


def test_a_log_switched_off_and_on_without_a_new_base_is_the_old_log(
    bench: DurableBench, client: ManualClient
) -> None:
    synced(bench, client, "XADD s 1-1 a 1")
    client.ask("CONFIG SET appendonly no")
    client.tell("CONFIG SET appendonly yes")
    bench.sync()
    after = bench.abandon()  # the child is not waited for
    assert after.connect().reply("XLEN s") == 1


def test_a_log_cannot_be_started_while_a_snapshot_is_written(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendonly="no")
    client = bench.connect()
    client.ask("BGSAVE")
    assert isinstance(client.reply("CONFIG SET appendonly yes"), Refusal)
    bench.wait_for_child()
    assert bench.connect().reply("CONFIG GET appendonly") == [b"appendonly", b"no"]


def test_a_directory_has_one_user(bench: DurableBench, tmp_path: Path) -> None:
    with pytest.raises(DirectoryInUse, match="in use"):
        DurableBench(tmp_path)
    bench.end()
    DurableBench(tmp_path).end()


# --- WAITAOF -----------------------------------------------------------------------------------------


def test_waitaof_with_nothing_to_wait_for(bench: DurableBench, client: ManualClient) -> None:
    assert client.reply("WAITAOF 1 0 0") == [1, 0]
    assert client.reply("WAITAOF 0 0 0") == [1, 0]


def test_waitaof_waits_for_the_sync(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    assert client.reply("XADD s 1-1 a 1") == b"1-1"
    client.tell("WAITAOF 1 0 0")
    assert client.heard() == b""
    bench.sync()
    assert client.replies() == [[1, 0]]


def test_waitaof_without_the_local_disk_does_not_wait(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    client.ask("XADD s 1-1 a 1")
    assert client.reply("WAITAOF 0 0 0") == [0, 0]


def test_waitaof_times_out_and_gets_no_later_reply(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    client.ask("XADD s 1-1 a 1")
    client.tell("WAITAOF 1 0 100")
    bench.advance(100)
    assert client.replies() == [[0, 0]]
    client.tell("WAITAOF 1 1 100")
    bench.sync()
    assert client.heard() == b""  # there are no replicas
    bench.advance(100)
    assert client.replies() == [[1, 0]]


def test_waitaof_within_a_transaction_does_not_wait(tmp_path: Path) -> None:
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    for line in ("MULTI", "XADD s 1-1 a 1", "WAITAOF 1 0 0", "XADD s 1-2 a 1", "EXEC"):
        client.tell(line)
    assert client.replies()[-1] == [b"1-1", [0, 0], b"1-2"]
    assert bench.abandon().connect().reply("XLEN s") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("WAITAOF 2 0 0", "ERR value is out of range, must be between 0 and 1"),
        ("WAITAOF -1 0 0", "ERR value is out of range, must be between 0 and 1"),
        ("WAITAOF 0 -1 0", "ERR value is out of range, must be positive"),
        ("WAITAOF 0 0 -1", "ERR timeout is negative"),
        ("WAITAOF 0 0 x", "ERR timeout is not an integer or out of range"),
        ("WAITAOF 0 x 0", "ERR value is not an integer or out of range"),
    ],
)
def test_waitaof_refuses_invalid_arguments(client: ManualClient, words: str, said: str) -> None:
    assert client.reply(words) == Refusal(said)


def test_waitaof_without_a_log_is_refused(tmp_path: Path) -> None:
    client = DurableBench(tmp_path, appendonly="no").connect()
    said = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
    assert client.reply("WAITAOF 1 0 0") == Refusal(said)
    assert client.reply("WAITAOF 0 0 0") == [0, 0]


def test_a_redis_7_0_has_no_waitaof(tmp_path: Path) -> None:
    reply = DurableBench(tmp_path, "7.0").connect().reply("WAITAOF 1 0 0")
    assert isinstance(reply, Refusal)
    assert reply.line.startswith("ERR unknown command 'WAITAOF'")


# --- Loading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["XADD s * a 1", "XLEN s", "PING", "SAVE", "BGSAVE", "DBSIZE", "KEYS *", "WAITAOF 0 0 0"],
)
def test_while_loading_most_commands_are_refused_as_in_redis(
    bench: DurableBench, client: ManualClient, line: str
) -> None:
    bench.server.state |= LOADING
    assert client.reply(line) == Refusal("LOADING Redis is loading the dataset in memory")


def test_nothing_is_queued_while_loading(bench: DurableBench, client: ManualClient) -> None:
    bench.server.state |= LOADING
    for line in ("MULTI", "XADD s * a 1", "EXEC"):
        client.tell(line)
    refused = "EXECABORT Transaction discarded because of previous errors."
    assert client.replies()[::2] == ["OK", Refusal(refused)]


@pytest.mark.parametrize(
    "line",
    [
        "INFO",
        "HELLO",
        "CLIENT ID",
        "CONFIG GET dir",
        "COMMAND COUNT",
        "MULTI",
        "SUBSCRIBE a",
        "ECHO a",
    ],
)
def test_while_loading_some_commands_work(
    bench: DurableBench, client: ManualClient, line: str
) -> None:
    bench.server.state |= LOADING
    client.tell(line)
    assert b"LOADING" not in client.heard()


def test_info_works_while_the_sync_thread_removes_old_files(
    bench: DurableBench, client: ManualClient
) -> None:
    """Found by tests/differential/bytes/test_exchange: a file was removed before its size was read."""
    Path(bench.store.layout.log_dir, manifest(bench)[0]).unlink()
    assert b"aof_current_size:" in client.ask("INFO persistence")
