"""The keys and what they hold."""

from __future__ import annotations

from penstock.core.stream import NodeLimits, Stream
from penstock.errors import wrong_type


class Keyspace:
    """One database: key to value. Looking a key up as a stream checks that it is one."""

    __slots__ = ("limits", "values")

    def __init__(self, limits: NodeLimits) -> None:
        self.limits = limits
        self.values: dict[bytes, object] = {}

    def stream_or_none(self, key: bytes) -> Stream | None:
        """The stream under a key. Raises: CommandError (WRONGTYPE) if something else is there."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, Stream):
            raise wrong_type()
        return value

    def add_stream(self, key: bytes) -> Stream:
        """A new, empty stream under a key that is free."""
        stream = Stream(self.limits)
        self.values[key] = stream
        return stream
