"""Errors of any type in every operation of the disk, and clocks that are set.

The disk raises any exception, not only OSError: out of memory, a bug, an interrupt.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.engine.execute import Engine
from penstock.persist.aof.commit import Commit, Policy
from penstock.persist.aof.increment import Increment
from penstock.persist.aof.journal import Journal
from penstock.persist.aof.sync_thread import SyncThread
from tests.crash.test_faults import KINDS, begin_afresh, fail_somewhere
from tests.support.campaign import cases
from tests.support.disk.durable_work import Work
from tests.support.disk.fake_disk import FakeDisk, Fault
from tests.support.disk.power_cuts import WORST
from tests.support.servers import durable_bench
from tests.support.servers.connections import ManualClient
from tests.support.servers.durable_bench import DurableBench, synced
from tests.support.servers.raw_redis import Refusal

bench = durable_bench.bench
client = durable_bench.client

TIMEOUT = 30
ODD: list[Callable[[], BaseException]] = [
    lambda: MemoryError("no room"),
    lambda: ValueError("a bug"),
    lambda: RecursionError("too deep"),
    KeyboardInterrupt,
    lambda: SystemExit(1),
]


class OddFault(Fault):
    """A fault that raises another exception than OSError."""

    odd: Callable[[], BaseException]

    def error(self, path: str) -> BaseException:  # type: ignore[override]
        return self.odd()


def odd_fault(kind: str, number: int, odd: Callable[[], BaseException], part: float) -> OddFault:
    fault = OddFault(kind, number, part=part)
    fault.odd = odd
    return fault


@pytest.mark.parametrize("policy", [Policy.ALWAYS, Policy.EVERY_SECOND])
@pytest.mark.parametrize("kind", KINDS)
def test_after_an_odd_error_nothing_is_promised_and_a_fresh_base_has_everything(
    kind: str, policy: Policy
) -> None:
    for number in range(cases(250)):
        work = Work(FakeDisk(), random.Random(number), policy)
        work.start()
        odd = ODD[number % len(ODD)]
        work.disk.fail(odd_fault(kind, number // 2, odd, part=(number % 3) / 2))
        with suppress(OSError, type(odd())):
            fail_somewhere(work)
        commit = work.commit
        if commit.failure is None:
            continue  # nothing failed, or only a new base: the log continues
        promised = work.note_promised()
        work.do("XADD s * never promised")
        assert not commit.hand_over()
        assert commit.released < commit.position
        assert work.note_promised() == promised
        left = Work(work.disk.after_cut(WORST, work.dice), random.Random(1))
        left.start()
        assert left.states[1] in work.states[promised:]
        work.disk.heal()
        begin_afresh(work)
        work.do("XADD s * after all")
        work.sync()
        again = Work(work.disk.after_cut(WORST, work.dice), random.Random(1))
        again.start()
        assert again.states[1] == work.states[-1]


class OddFile:
    """A file whose sync breaks."""

    size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)

    def sync(self) -> None:
        raise ZeroDivisionError("a bug")

    def close(self) -> None:
        """Nothing is held."""


def test_an_odd_error_in_the_sync_thread_is_reported_and_the_thread_continues() -> None:
    """The thread ended, and every client waited forever, even for PING."""
    commit = Commit(Journal(), Increment(OddFile()), Policy.ALWAYS)
    told: list[OSError | None] = []
    thread = SyncThread(commit, lambda: told.append(commit.failure))
    commit.journal.words(0, [b"SET", b"k", b"v"])
    commit.hand_over()
    thread.stop()
    assert told
    assert told[-1] is not None
    assert "ZeroDivisionError: a bug" in str(told[-1])


def test_an_odd_error_outside_of_a_sync_is_a_failure_too() -> None:
    commit = Commit(Journal(), Increment(OddFile()), Policy.ALWAYS)

    def clock() -> float:
        raise ZeroDivisionError("a bug")

    thread = SyncThread(commit, lambda: None, clock)
    commit.journal.words(0, [b"SET", b"k", b"v"])
    commit.hand_over()
    thread._thread.join(TIMEOUT)
    assert commit.failure is not None


# --- A server --------------------------------------------------------------------------------------


class OddIncrement(Increment):
    """A file of batches that cannot be appended to."""

    def append(self, data: bytes) -> None:
        raise MemoryError


def test_an_odd_error_at_the_end_of_a_turn_shows_nobody_what_is_in_no_log(tmp_path: Path) -> None:
    """Readers saw an entry that was gone after a restart, without any error."""
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    synced(bench, client, "XADD s 1-1 a 1")
    commit = bench.store.commit
    assert commit is not None
    commit.file.close()
    commit.file = OddIncrement(OddFile())
    told = client.reply("XADD s 1-2 a 1")
    assert isinstance(told, Refusal)
    assert "MemoryError" in str(told)
    assert "unknown" in str(told)
    assert isinstance(client.reply("XADD s 1-3 a 1"), Refusal)
    assert client.reply("PING") == "PONG"
    bench.tick(1000)
    bench.wait_for_child()
    assert client.reply("XADD s 1-4 a 1") == b"1-4"
    ids = [entry[0] for entry in bench.abandon().connect().reply("XRANGE s - +")]
    assert ids == [b"1-1", b"1-2", b"1-4"]


def test_a_command_that_breaks_half_way_leaves_nothing_in_the_log(bench: DurableBench) -> None:
    client = bench.connect()
    synced(bench, client, "XADD s 1-1 a 1")
    engine: Engine = bench.engine
    journal = bench.store.journal
    engine.begin_unit()
    journal.words(0, [b"DEL", b"s"])
    engine.abandon_unit()
    assert engine.unfinished
    assert journal.size == 0
    engine.forget_broken()
    synced(bench, client, "XADD s 1-2 a 1")
    assert bench.abandon().connect().reply("XLEN s") == 2


# --- Clocks that are set ---------------------------------------------------------------------------


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000, -(10**12)])
def test_everysec_syncs_though_the_clock_was_set(tmp_path: Path, step_ms: int) -> None:
    """With the clock set back by an hour, there was no sync for an hour."""
    bench = DurableBench(tmp_path, appendfsync="everysec")
    client = bench.connect()
    client.reply("XADD s 1-1 a 1")
    bench.tick(1000)
    bench.sync()
    bench.clock.step(step_ms)
    client.reply("XADD s 1-2 a 1")
    bench.tick(1000)
    assert bench.woken
    bench.sync()
    assert bench.store.commit is not None
    assert bench.store.commit.synced == bench.store.commit.position


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_writes_resume_although_the_clock_was_set(
    bench: DurableBench, client: ManualClient, step_ms: int
) -> None:
    client.tell("XADD s 1-1 a 1")
    bench.fail()
    bench.sync()
    client.replies()
    bench.clock.step(step_ms)
    bench.heal()
    bench.tick(1000)
    bench.wait_for_child()
    assert synced(bench, client, "XADD s 1-2 a 1") == [b"1-2"]


def test_a_clock_that_was_set_makes_no_client_idle_and_no_command_slow(
    bench: DurableBench, client: ManualClient
) -> None:
    client.ask("CONFIG SET timeout 10 slowlog-log-slower-than 1000000")
    bench.clock.step(10**9)
    bench.tick(1000)
    assert client.reply("PING") == "PONG"
    assert client.reply("SLOWLOG LEN") == 0
    assert b"uptime_in_seconds:1\r" in client.ask("INFO server")


def test_ids_rise_though_the_clock_was_set_back(bench: DurableBench, client: ManualClient) -> None:
    first = synced(bench, client, "XADD s * a 1")[0]
    bench.clock.step(-3_600_000)
    second = synced(bench, client, "XADD s * a 1")[0]
    assert second.partition(b"-")[0] == first.partition(b"-")[0]
    assert second > first


# --- Rewrites that fail ----------------------------------------------------------------------------


def test_a_failed_rewrite_is_not_retried_on_every_tick(
    bench: DurableBench, client: ManualClient
) -> None:
    """There were 9.5 forks per second, each with a new increment, until the manifest was too large."""
    client.ask("CONFIG SET auto-aof-rewrite-min-size 1 auto-aof-rewrite-percentage 1")
    synced(bench, client, "XADD s 1-1 a 1")
    bench.disk.faulty_name = "temp-rewrite"
    bench.fail()

    def seconds(count: int) -> int:
        before = bench.durability.child.forks
        for _ in range(count):
            bench.tick(1000)
            if bench.durability.rewrites.is_running:
                bench.sync()
                bench.wait_for_child()
        return bench.durability.child.forks - before

    assert seconds(10) == 3, "two more at once, then a pause of a minute"
    assert seconds(50) == 0
    assert seconds(10) == 1
    assert seconds(105) == 0, "then two minutes, and so on"
    assert client.reply("BGREWRITEAOF") == "Background append only file rewriting started"
    bench.sync()
    bench.wait_for_child()
    bench.heal()
    assert seconds(3600) == 1, "an hour at most"
    assert seconds(1) == 0


def test_a_fresh_base_that_cannot_take_its_place_is_not_retried_on_every_tick(
    bench: DurableBench, client: ManualClient
) -> None:
    """The child writes the base, but the manifest cannot be saved: every tick forked another child."""
    synced(bench, client, "XADD s 1-1 a 1")
    client.tell("XADD s 1-2 a 1")
    bench.fail()
    bench.sync()
    client.replies()
    bench.disk.faulty_name = "manifest"
    for _ in range(200):
        bench.tick(100)
        if bench.durability.rewrites.is_running:
            bench.wait_for_child()
    assert bench.durability.child.forks == 4, "after 1, 2, 4 and 8 seconds"
    bench.heal()
    bench.tick(10_000)
    bench.wait_for_child()
    assert synced(bench, client, "XADD s 1-3 a 1") == [b"1-3"]
