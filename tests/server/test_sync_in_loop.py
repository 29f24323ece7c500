"""With `always`, the loop itself syncs for one client alone, if the disk is quick; else the thread does.

The disk of a bench takes as long as the test says, on a clock of the test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.persist.aof.commit import Commit
from tests.support.servers.connections import ManualClient, encoded
from tests.support.servers.durable_bench import DurableBench
from tests.support.servers.raw_redis import Refusal

LIMIT_MS = 1.0
QUICK_MS = 0.2


class TimedBench(DurableBench):
    """A bench whose loop may sync. `sync_ms`: how long a sync takes."""

    def __init__(self, folder: Path, sync_ms: float) -> None:
        super().__init__(folder)
        self.sync_ms = sync_ms
        self.now_ms = 0.0
        self.commit.quick_seconds = LIMIT_MS / 1000
        self.commit.steady_s = lambda: self.now_ms / 1000
        check = self.disk.check

        def take_time(what: str, path: str) -> None:
            self.now_ms += self.sync_ms if what == "sync" else 0
            check(what, path)

        self.disk.check = take_time  # type: ignore[method-assign]

    @property
    def commit(self) -> Commit:
        assert self.store.commit is not None
        return self.store.commit

    def is_synced_by_loop(self, client: ManualClient) -> bool:
        """Let a client write; whether the loop synced it. Otherwise the thread does it now."""
        syncs = self.disk.syncs
        client.tell("XADD s * a 1")
        by_loop = self.disk.syncs > syncs
        assert by_loop != self.woken
        assert len(client.replies()) == int(by_loop)
        self.sync()
        assert len(client.replies()) == int(not by_loop)
        return by_loop


def test_one_client_alone_gets_its_reply_in_the_same_turn(tmp_path: Path) -> None:
    bench = TimedBench(tmp_path, QUICK_MS)
    client = bench.connect()
    assert not bench.is_synced_by_loop(client), "how long a sync takes is not known yet"
    assert [bench.is_synced_by_loop(client) for _ in range(5)] == [True] * 5
    assert bench.commit.synced == bench.commit.position == 6
    assert bench.abandon().connect().reply("XLEN s") == 6


def test_several_clients_are_left_to_the_thread(tmp_path: Path) -> None:
    bench = TimedBench(tmp_path, QUICK_MS)
    client, other = bench.connect(), bench.connect()
    bench.is_synced_by_loop(client)
    assert bench.is_synced_by_loop(client)
    for who in (client, other):
        who.put(encoded("XADD", "s", "*", "a", "1"))
    bench.loop.run()
    assert bench.woken
    assert client.heard() == other.heard() == b""
    bench.sync()
    client.replies()
    assert not bench.is_synced_by_loop(client), "the others may be about to send their next command"
    assert bench.is_synced_by_loop(client)


def test_a_client_that_only_reads_counts_as_well(tmp_path: Path) -> None:
    bench = TimedBench(tmp_path, QUICK_MS)
    client, other = bench.connect(), bench.connect()
    bench.is_synced_by_loop(client)
    client.put(encoded("XADD", "s", "*", "a", "1"))
    other.put(encoded("PING"))
    bench.loop.run()
    assert bench.woken


@pytest.mark.parametrize("slower_ms", [1, 5, 50])
def test_a_slow_disk_never_stops_the_loop(tmp_path: Path, slower_ms: float) -> None:
    bench = TimedBench(tmp_path, QUICK_MS + slower_ms)
    client = bench.connect()
    assert not any(bench.is_synced_by_loop(client) for _ in range(100))


@pytest.mark.parametrize("slower_ms", [1, 5, 50])
def test_one_slow_sync_sends_the_next_ones_to_the_thread(tmp_path: Path, slower_ms: float) -> None:
    bench = TimedBench(tmp_path, QUICK_MS)
    client = bench.connect()
    bench.is_synced_by_loop(client)
    bench.sync_ms = QUICK_MS + slower_ms
    assert bench.is_synced_by_loop(client)
    bench.sync_ms = QUICK_MS
    by_thread = 0
    while not bench.is_synced_by_loop(client):
        by_thread += 1
        assert by_thread < 100, "it never returns to the loop"
    assert by_thread > 0


def test_a_disk_that_fails_in_the_loop_fails_the_log(tmp_path: Path) -> None:
    bench = TimedBench(tmp_path, QUICK_MS)
    client, other = bench.connect(), bench.connect()
    bench.is_synced_by_loop(client)
    bench.fail()
    [unknown] = [client.reply("XADD s * a 1")]
    assert isinstance(unknown, Refusal)
    assert "unknown" in str(unknown)
    assert isinstance(client.reply("XADD s * a 1"), Refusal)
    assert other.reply("XLEN s") == 2, "reads continue"
    bench.heal()
    bench.tick(2000)
    bench.wait_for_child()
    client.tell("XADD s * a 1")
    bench.sync()
    assert len(client.replies()) == 1
    assert bench.abandon().connect().reply("XLEN s") == 3


def test_an_interrupt_in_the_loop_is_a_failure(tmp_path: Path) -> None:
    """docs/decisions/0006: whatever ends a sync early, nothing is appended to that file again."""
    bench = TimedBench(tmp_path, QUICK_MS)
    client = bench.connect()
    bench.is_synced_by_loop(client)
    check = bench.disk.check

    def interrupt(what: str, path: str) -> None:
        bench.disk.check = check  # type: ignore[method-assign]
        raise KeyboardInterrupt

    bench.disk.check = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        client.tell("XADD s * a 1")
    assert bench.commit.failure is not None
    assert bench.commit.released < bench.commit.position
