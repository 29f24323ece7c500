"""Records keyspace events: those of an engine, and those of a real Redis.

    recorder = EventRecorder(engine, "KEA")
    recorder.take_messages()     -> [(b"__keyspace@0__:s", b"xadd"), (b"__keyevent@0__:xadd", b"s")]
    recorder.take_events()       -> ["0:s xadd"], from the channels of keys
    recorder.take()              -> ["xadd s"], from the channels of events

Each of these forgets all messages so far. `RedisEvents` is a connection to Redis that reads the same lines as
`take`.
"""

from __future__ import annotations

import re

from penstock.engine import events
from penstock.engine.execute import Engine
from tests.support.servers.raw_redis import RawRedis

EVENT_KINDS = "EAn"  # all events except misses, on the channels of events
SWITCH_ON = [b"CONFIG", b"SET", b"notify-keyspace-events", EVENT_KINDS.encode()]
COUNT_CHANGES = [b"INFO", b"persistence"]
MARK = [b"PUBLISH", b"__keyevent@0__:mark", b""]


class EventRecorder:
    """Subscribes to all channels of an engine, and switches on events of the given kinds."""

    def __init__(self, engine: Engine, kinds: str = EVENT_KINDS) -> None:
        self._messages: list[tuple[bytes, bytes]] = []
        parsed = events.parse_kinds_or_none(kinds)
        assert parsed is not None
        engine.context.event_kinds = parsed
        channels = engine.context.channels
        channels.add(channels.by_pattern, b"*", self)

    def message(self, channel: bytes, text: bytes) -> None:
        raise AssertionError(f"no subscription to {channel!r} by name, but got {text!r}")

    def shard_message(self, channel: bytes, text: bytes) -> None:
        raise AssertionError("events are not sent to shard channels")

    def pattern_message(self, _pattern: bytes, channel: bytes, text: bytes) -> None:
        self._messages.append((channel, text))

    def take_messages(self) -> list[tuple[bytes, bytes]]:
        """All messages as channel and text."""
        messages, self._messages = self._messages, []
        return messages

    def take_events(self) -> list[str]:
        """The messages on the channels of keys, as `database:key event`."""
        found = []
        for channel, event in self.take_messages():
            place, _, key = channel.partition(b"__:")
            if place.startswith(b"__keyspace@"):
                found.append(f"{place[11:].decode()}:{key.decode()} {event.decode()}")
        return found

    def take(self) -> list[str]:
        """The messages on the channels of events, as `event key`."""
        return [
            event_line(channel, key)
            for channel, key in self.take_messages()
            if channel.startswith(b"__keyevent@")
        ]


class RedisEvents(RawRedis):
    """A connection that receives every event. The server must have been sent SWITCH_ON."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.ask([[b"PSUBSCRIBE", b"__keyevent@*"]])

    def __enter__(self) -> RedisEvents:
        return self

    def until_mark(self) -> list[str]:
        """The events before the next MARK, as `event key`."""
        lines = []
        while (message := self.read())[2] != MARK[1]:
            lines.append(event_line(message[2], message[3]))
        return lines


def event_line(channel: bytes, key: bytes) -> str:
    """`__keyevent@0__:xadd` about the key s, as `xadd s`."""
    event = channel.partition(b":")[2].decode()
    return f"{event} {key.decode('utf-8', 'backslashreplace')}"


def changes_of(info: bytes) -> int:
    """The number of changes in the reply to COUNT_CHANGES."""
    found = re.search(rb"rdb_changes_since_last_save:(\d+)", info)
    assert found is not None
    return int(found[1])
