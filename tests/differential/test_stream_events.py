"""A real Redis tells of its changes what the engine's tests say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.engines import EVENT_KINDS, event_line
from tests.support.raw_redis import RawRedis
from tests.support.redis_server import RedisServer
from tests.support.stream_changes import CHANGES, WOKEN, Change, commands

MARK = b"__keyevent@0__:mark"
CHANGED = re.compile(rb"rdb_changes_since_last_save:(\d+)")


class Observer:
    """Connections to one server: one acts, one watches, one listens, one waits."""

    def __init__(self, server: RedisServer) -> None:
        self.actor, self.watcher, self.listener, self.reader = (
            RawRedis(server.port) for _ in range(4)
        )
        self.server = server
        kinds = EVENT_KINDS.encode()
        self.actor.ask([[b"CONFIG", b"SET", b"notify-keyspace-events", kinds]])
        self.listener.ask([[b"PSUBSCRIBE", b"__keyevent@*"]])

    def close(self) -> None:
        for connection in (self.actor, self.watcher, self.listener, self.reader):
            connection.__exit__()

    def do(self, lines: list[str]) -> None:
        self.actor.ask([line.encode().split() for line in lines])

    def changes(self) -> int:
        found = CHANGED.search(self.actor.ask([[b"INFO", b"persistence"]])[0])
        assert found is not None
        return int(found[1])

    def events(self) -> tuple[str, ...]:
        """What was told up to now."""
        self.actor.ask([[b"PUBLISH", MARK, b""]])
        told = []
        while (message := self.listener.read())[2] != MARK:
            told.append(event_line(message[2], message[3]))
        return tuple(told)

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
    observer = Observer(redis_server)
    yield observer
    observer.close()


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_command_tells_what_it_did(observer: Observer, change: Change) -> None:
    observer.do(commands(change.before))
    expected = (change.events, change.dirty, change.breaks_watch)
    assert observer.outcome(change.line) == expected


@pytest.mark.parametrize(("before", "blocked", "change"), WOKEN, ids=str)
def test_a_reader_that_is_woken_tells_after_what_woke_it(
    observer: Observer, before: str, blocked: str, change: Change
) -> None:
    observer.do(commands(before))
    observer.reader.send([blocked.encode().split()])
    while observer.server.client.info("clients")["blocked_clients"] == 0:
        pass
    assert observer.outcome(change.line) == (change.events, change.dirty, change.breaks_watch)
