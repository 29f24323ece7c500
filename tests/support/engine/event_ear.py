"""What a real Redis tells of its changes: events, and how many changes it counts."""

from __future__ import annotations

import re

from tests.support.engine.engines import EVENT_KINDS, event_line
from tests.support.servers.raw_redis import RawRedis

TELL = [b"CONFIG", b"SET", b"notify-keyspace-events", EVENT_KINDS.encode()]
COUNT_CHANGES = [b"INFO", b"persistence"]
MARK = [b"PUBLISH", b"__keyevent@0__:mark", b""]


class EventEar(RawRedis):
    """A connection that hears every event. The server must be asked to TELL them."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.ask([[b"PSUBSCRIBE", b"__keyevent@*"]])

    def __enter__(self) -> EventEar:
        return self

    def until_mark(self) -> list[str]:
        """What was told up to the next MARK."""
        told = []
        while (message := self.read())[2] != MARK[1]:
            told.append(event_line(message[2], message[3]))
        return told


def changes_of(info: bytes) -> int:
    """How many changes a server says it has counted, asked to COUNT_CHANGES."""
    found = re.search(rb"rdb_changes_since_last_save:(\d+)", info)
    assert found is not None
    return int(found[1])
