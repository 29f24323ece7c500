"""The periodic work of a server: expiry, rates, and continuing after an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.core.garbage import OBJECTS_AT_ONCE
from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.server import cron as cron_module
from penstock.server.command_table import ROWS
from penstock.server.config import directives
from penstock.server.cron import EXPIRE_AT_ONCE, MORE_SECONDS, Cron
from penstock.server.server import Server
from penstock.server.session.states import PAUSED_WRITES


class Timers:
    """A loop with one timer that the test runs."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.callback: Callable[[], None] | None = None

    def call_soon(self, callback: Callable[[], None]) -> object:
        raise AssertionError("there are no clients to reply to")

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timers:
        self.delay, self.callback = delay, callback
        return self

    def cancel(self) -> None:
        self.callback = None

    def run(self) -> None:
        assert self.callback is not None
        self.callback()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def server(clock: ManualClock, timers: Timers) -> Server:
    server = Server(Engine(clock), ROWS, timers)
    directives.default_config().attach(server)
    return server


def cron_of(server: Server) -> Cron:
    assert server.config is not None
    return Cron(server, server.config)


def test_expired_keys_are_removed_in_batches(
    server: Server, clock: ManualClock, timers: Timers
) -> None:
    keyspace = server.engine.context.databases[3]
    for number in range(EXPIRE_AT_ONCE + 1):
        key = b"k%d" % number
        keyspace.put(key, b"value")
        keyspace.set_expiry(key, clock.at_ms + 5)
    cron = cron_of(server)
    cron.start()
    assert (len(keyspace.values), timers.delay) == (EXPIRE_AT_ONCE + 1, 0.1)
    clock.at_ms += 6  # a key still exists in the millisecond of its expiry
    timers.run()
    assert (len(keyspace.values), timers.delay) == (1, MORE_SECONDS)
    timers.run()
    assert (len(keyspace.values), timers.delay) == (0, 0.1)
    assert server.engine.expired_keys == EXPIRE_AT_ONCE + 1
    cron.stop()
    assert timers.callback is None


def test_keys_stay_while_debug_has_disabled_expiry(
    server: Server, clock: ManualClock, timers: Timers
) -> None:
    keyspace = server.engine.context.databases[0]
    keyspace.put(b"k", b"value")
    keyspace.set_expiry(b"k", clock.at_ms - 1)
    server.active_expire = False
    cron_of(server).start()
    assert len(keyspace.values) == 1


def test_keys_stay_while_writes_are_paused(
    server: Server, clock: ManualClock, timers: Timers
) -> None:
    keyspace = server.engine.context.databases[0]
    keyspace.put(b"k", b"value")
    keyspace.set_expiry(b"k", clock.at_ms - 1)
    server.state |= PAUSED_WRITES
    cron_of(server).start()
    assert len(keyspace.values) == 1
    server.state &= ~PAUSED_WRITES
    timers.run()
    assert len(keyspace.values) == 0


def test_rates_are_those_of_the_last_samples(server: Server, clock: ManualClock) -> None:
    cron = cron_of(server)
    for _ in range(5):
        cron.work()
        clock.at_ms += 100
        server.tallies.by_name["XADD"].count(1, 1)
        server.bytes_in += 1024
        server.bytes_out += 2048
    assert server.rates.ops_per_sec == 10
    assert server.rates.in_kbps == pytest.approx(10)
    assert server.rates.out_kbps == pytest.approx(20)


def test_a_run_that_fails_is_followed_by_the_next(
    server: Server, clock: ManualClock, timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    cron = cron_of(server)

    def fail() -> bool:
        raise RuntimeError("broken")

    monkeypatch.setattr(cron, "work", fail)
    with pytest.raises(RuntimeError):
        cron.start()
    assert timers.delay == 0.1
    monkeypatch.undo()
    timers.run()


def test_deleted_data_is_freed_a_part_at_a_time(
    server: Server, timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cron_module, "FREE_US_MAX", 0)  # each run frees one part
    cron = cron_of(server)
    cron.start()
    garbage = server.engine.context.garbage
    items = [bytearray(1) for _ in range(3 * OBJECTS_AT_ONCE)]
    garbage.discard(items)
    left = []
    while items:
        assert timers.delay == MORE_SECONDS
        timers.run()
        left.append(len(items))
    assert left == [2 * OBJECTS_AT_ONCE, OBJECTS_AT_ONCE, 0]
    assert len(garbage) == 0


def test_a_server_that_stops_frees_the_rest_and_what_comes_later_at_once(
    server: Server, timers: Timers
) -> None:
    cron = cron_of(server)
    cron.start()
    garbage = server.engine.context.garbage
    garbage.discard([b"a", b"b"])
    assert len(garbage) == 1
    cron.stop()
    assert len(garbage) == 0
    garbage.discard([b"a", b"b"])
    assert len(garbage) == 0
