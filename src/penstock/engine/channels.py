"""Pub/sub: subscriptions by channel, by pattern and by shard channel. A message without a subscriber is lost.

Shard channels (SSUBSCRIBE, SPUBLISH) are a namespace of their own, without patterns. In a cluster of Redis
each belongs to one shard; here there is one shard.

Cost: publishing is O(subscribers of the channel + patterns).
"""

from __future__ import annotations

from typing import Protocol

from penstock.core.glob import Glob


class Listener(Protocol):
    """A subscriber."""

    def message(self, channel: bytes, text: bytes) -> None:
        """A message on a channel that was subscribed by name."""

    def pattern_message(self, pattern: bytes, channel: bytes, text: bytes) -> None:
        """A message on a channel that a pattern matched."""

    def shard_message(self, channel: bytes, text: bytes) -> None:
        """A message on a shard channel."""


Listeners = dict[bytes, dict[Listener, None]]
"""The subscribers of each name, in the order in which they subscribed."""


class Channels:
    """Subscriptions of each kind, in the order in which they were made."""

    __slots__ = ("_globs", "by_name", "by_pattern", "by_shard_name")

    def __init__(self) -> None:
        self.by_name: Listeners = {}
        self.by_pattern: Listeners = {}
        self.by_shard_name: Listeners = {}
        self._globs: dict[bytes, Glob] = {}

    def publish(self, channel: bytes, text: bytes) -> int:
        """Send a message to all subscribers; return how many received it."""
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

    def publish_in_shard(self, channel: bytes, text: bytes) -> int:
        """Send a message to all subscribers of a shard channel; return how many received it."""
        listeners = self.by_shard_name.get(channel, {})
        for listener in listeners:
            listener.shard_message(channel, text)
        return len(listeners)

    def _glob(self, pattern: bytes) -> Glob:
        """The parsed pattern, cached from the first message on."""
        glob = self._globs.get(pattern)
        if glob is None:
            if len(self._globs) > 2 * len(
                self.by_pattern
            ):  # most of them belong to subscriptions that ended
                self._globs.clear()
            glob = self._globs[pattern] = Glob(pattern)
        return glob

    @staticmethod
    def add(table: Listeners, name: bytes, listener: Listener) -> None:
        """Add a subscription to one of the three tables."""
        table.setdefault(name, {})[listener] = None

    @staticmethod
    def drop(table: Listeners, name: bytes, listener: Listener) -> None:
        """Remove a subscription."""
        listeners = table.get(name)
        if listeners is not None:
            listeners.pop(listener, None)
            if not listeners:
                del table[name]
