"""Channels: who listens to what, and telling them. What is said to nobody is lost; streams are for the rest.

Cost: publishing is O(listeners of the channel + patterns).
"""

from __future__ import annotations

from typing import Protocol

from penstock.core.glob import Glob


class Listener(Protocol):
    """Whoever subscribes."""

    def message(self, channel: bytes, text: bytes) -> None:
        """A message on a channel that was asked for by name."""

    def pattern_message(self, pattern: bytes, channel: bytes, text: bytes) -> None:
        """A message on a channel that a pattern matched."""


Listeners = dict[bytes, dict[Listener, None]]
"""Who listens to what, in the order in which they began."""


class Channels:
    """Subscriptions by name and by pattern; each keeps the order in which they were made."""

    __slots__ = ("_globs", "by_name", "by_pattern")

    def __init__(self) -> None:
        self.by_name: Listeners = {}
        self.by_pattern: Listeners = {}
        self._globs: dict[bytes, Glob] = {}

    def publish(self, channel: bytes, text: bytes) -> int:
        """Tell everyone who listens; return how many were told."""
        told = 0
        for listener in self.by_name.get(channel, ()):
            listener.message(channel, text)
            told += 1
        for pattern, listeners in self.by_pattern.items():
            if self._glob(pattern).matches(channel):
                for listener in listeners:
                    listener.pattern_message(pattern, channel, text)
                    told += 1
        return told

    def _glob(self, pattern: bytes) -> Glob:
        """The pattern, parsed when it is first published to."""
        glob = self._globs.get(pattern)
        if glob is None:
            if len(self._globs) > 2 * len(
                self.by_pattern
            ):  # most of them are of subscriptions that ended
                self._globs.clear()
            glob = self._globs[pattern] = Glob(pattern)
        return glob

    @staticmethod
    def add(table: Listeners, name: bytes, listener: Listener) -> None:
        """Note a subscription in by_name or by_pattern."""
        table.setdefault(name, {})[listener] = None

    @staticmethod
    def drop(table: Listeners, name: bytes, listener: Listener) -> None:
        """Forget a subscription."""
        listeners = table.get(name)
        if listeners is not None:
            listeners.pop(listener, None)
            if not listeners:
                del table[name]
