"""The table of events and changes in the engine's tests agrees with a real Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.engine.keyspace_events import (
    COUNT_CHANGES,
    MARK,
    SWITCH_ON,
    RedisEvents,
    changes_of,
)
from tests.support.engine.stream_changes import CHANGES, CHANGES_8_6, WOKEN, Change, commands
from tests.support.servers.programs import REDIS_8_6
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer, running_redis

PARK_SECONDS_MAX = 20.0


class Observer:
    """Four connections to one server: one acts, one watches, one waits, one receives events."""

    def __init__(self, port: int) -> None:
        self.actor, self.watcher, self.reader = (RawRedis(port) for _ in range(3))
        self.ear = RedisEvents(port)
        self.actor.ask([SWITCH_ON])

    def close(self) -> None:
        for connection in (self.actor, self.watcher, self.reader, self.ear):
            connection.__exit__()

    def do(self, lines: list[str]) -> None:
        self.actor.ask([line.encode().split() for line in lines])

    def wait_for_reader(self) -> None:
        """Wait until the reader is blocked."""
        deadline = time.monotonic() + PARK_SECONDS_MAX
        while b"blocked_clients:1\r" not in self.actor.ask([[b"INFO", b"clients"]])[0]:
            assert time.monotonic() < deadline

    def changes(self) -> int:
        return changes_of(self.actor.ask([COUNT_CHANGES])[0])

    def events(self) -> tuple[str, ...]:
        """The events so far."""
        self.actor.ask([MARK])
        return tuple(self.ear.until_mark())

    def outcome(self, line: str) -> tuple[tuple[str, ...], int, bool]:
        self.events()
        self.watcher.ask([[b"WATCH", b"s"]])
        before = self.changes()
        self.do([line])
        dirty = self.changes() - before
        [*_, replies] = self.watcher.ask([[b"MULTI"], [b"PING"], [b"EXEC"]])
        return self.events(), dirty, not isinstance(replies, list)


@pytest.fixture
def observer(redis_server: RedisServer) -> Iterator[Observer]:
    observer = Observer(redis_server.port)
    yield observer
    observer.close()


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_command_causes_the_listed_events(observer: Observer, change: Change) -> None:
    observer.do(commands(change.before))
    expected = (change.events, change.dirty, change.breaks_watch)
    assert observer.outcome(change.line) == expected


@pytest.fixture(scope="module")
def observer_8_6() -> Iterator[Observer]:
    REDIS_8_6.need()
    with running_redis(program=REDIS_8_6) as server:
        observer = Observer(server.port)
        yield observer
        observer.close()


@pytest.mark.parametrize("change", CHANGES_8_6, ids=str)
def test_a_command_of_redis_8_causes_the_listed_events(
    observer_8_6: Observer, change: Change
) -> None:
    observer_8_6.do(["FLUSHALL", *commands(change.before)])
    expected = (change.events, change.dirty, change.breaks_watch)
    assert observer_8_6.outcome(change.line) == expected


@pytest.mark.parametrize(("before", "blocked", "change"), WOKEN, ids=str)
def test_events_of_a_served_reader_follow_those_of_the_command(
    observer: Observer, before: str, blocked: str, change: Change
) -> None:
    observer.do(commands(before))
    observer.reader.send([blocked.encode().split()])
    observer.wait_for_reader()
    assert observer.outcome(change.line) == (change.events, change.dirty, change.breaks_watch)
