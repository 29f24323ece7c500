"""The keys and what they hold."""

from __future__ import annotations

from penstock.core import memory
from penstock.core.frame import Frame
from penstock.core.stream import NodeLimits, Stream
from penstock.errors import wrong_type


class Keyspace:
    """One database: key to value. Looking a key up as a stream checks that it is one."""

    __slots__ = ("_last_key", "_last_stream", "limits", "values")

    def __init__(self, limits: NodeLimits) -> None:
        self.limits = limits
        self.values: dict[bytes, object] = {}
        self._last_key = b""
        self._last_stream: Stream | None = None

    def stream_or_none(self, key: bytes) -> Stream | None:
        """The stream under a key. Raises: CommandError (WRONGTYPE) if something else is there."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, Stream):
            raise wrong_type()
        return value

    def stream_at(self, frame: Frame, index: int) -> Stream | None:
        """As stream_or_none, for a key that lies in a frame.

        The last one found is remembered: a producer adds to the same stream again and again, and
        comparing a few bytes is a quarter of the cost of making a key and hashing it.
        """
        start = frame.start(index)
        size = frame.size(index)
        if self._last_stream is not None and memory.is_bytes(
            frame.buffer, start, size, self._last_key
        ):
            return self._last_stream
        key = memory.cut(frame.buffer, start, size)
        self._last_stream = self.stream_or_none(key)
        self._last_key = key
        return self._last_stream

    def new_stream(self) -> Stream:
        """An empty stream that is under no key yet."""
        return Stream(self.limits)

    def put(self, key: bytes, stream: Stream) -> None:
        """Put a stream under a key that is free."""
        self.values[key] = stream
