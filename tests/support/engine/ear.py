"""Hears the keyspace events that an engine tells."""

from __future__ import annotations

from penstock.engine import events
from penstock.engine.execute import Engine


class Ear:
    """Listens to all channels of an engine, with events of the given kinds turned on."""

    def __init__(self, engine: Engine, kinds: str) -> None:
        self.heard: list[tuple[bytes, bytes]] = []
        parsed = events.parse_kinds_or_none(kinds)
        assert parsed is not None
        engine.context.event_kinds = parsed
        engine.context.channels.by_pattern[b"*"] = {self: None}

    def message(self, channel: bytes, text: bytes) -> None:
        self.heard.append((channel, text))

    def pattern_message(self, _pattern: bytes, channel: bytes, text: bytes) -> None:
        self.heard.append((channel, text))

    def take(self) -> list[tuple[bytes, bytes]]:
        """What was heard since the last time."""
        heard, self.heard = self.heard, []
        return heard

    def take_events(self) -> list[str]:
        """What was heard on the channels of keys, as `database:key event`."""
        found = []
        for channel, event in self.take():
            place, _, key = channel.partition(b"__:")
            if place.startswith(b"__keyspace@"):
                found.append(f"{place[11:].decode()}:{key.decode()} {event.decode()}")
        return found
