"""The keys of one database and what they hold: streams, strings (bytes), lists.

    values    key -> value
    expires   key -> when it goes, in ms since 1970; only keys that do
    _due      a heap of (when, key): what goes next. Entries that no longer hold are dropped when met.

A key whose time has come is gone for everyone who looks it up, and is removed then (`find`) or by the
engine's regular sweep (`take_due`), whichever comes first. Removing is the engine's business, for others
must hear of it: `find` calls `on_expired`.

Invariants
  K1  every key of `expires` is in `values`, and has its entry in the heap.
  K2  the stream remembered by `stream_at` is under its key, and that key never expires.

Cost: a lookup is one of a dictionary, two where any key expires. Setting a time is O(log n).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from penstock.core import memory
from penstock.core.frame import Frame
from penstock.core.stream import NodeLimits, Stream
from penstock.engine.clock import Instant
from penstock.errors import wrong_type

_DUE_SLACK = 64  # the heap is made anew when this many entries, and half of all, no longer hold


class Watch:
    """What one client watches: broken as soon as one of the keys has changed."""

    __slots__ = ("broken",)

    def __init__(self) -> None:
        self.broken = False


class Keyspace:
    """One database.

    Look: find, exists, stream_or_none, stream_at. Change: put, remove, set_expiry, clear_expiry, clear,
    swap_with. Expiry: expiry_or_none, take_due. Watching: watch, unwatch, changed.
    """

    __slots__ = (
        "_due",
        "_instant",
        "_last_key",
        "_last_stream",
        "expires",
        "index",
        "limits",
        "on_expired",
        "values",
        "watches",
    )

    def __init__(self, index: int, limits: NodeLimits, instant: Instant) -> None:
        self.index = index
        self.limits = limits
        self.values: dict[bytes, object] = {}
        self.expires: dict[bytes, int] = {}
        self.watches: dict[bytes, dict[Watch, None]] = {}
        self.on_expired: Callable[[Keyspace, bytes], None] | None = None
        self._due: list[tuple[int, bytes]] = []
        self._instant = instant
        self._last_key = b""
        self._last_stream: Stream | None = None

    # --- Looking -----------------------------------------------------------------------------------

    def find(self, key: bytes) -> object | None:
        """What is under a key, or None; a key whose time has come is removed first."""
        if self.expires and self.expires.get(key, self._instant.ms + 1) <= self._instant.ms:
            if self.on_expired is not None:
                self.on_expired(self, key)
            return None
        return self.values.get(key)

    def stream_or_none(self, key: bytes) -> Stream | None:
        """The stream under a key. Raises: CommandError (WRONGTYPE) if something else is there."""
        value = self.find(key)
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
        stream = self.stream_or_none(key)
        if key not in self.expires:
            self._last_stream = stream
            self._last_key = key
        return stream

    def new_stream(self) -> Stream:
        """An empty stream that is under no key yet."""
        return Stream(self.limits)

    # --- Changing ----------------------------------------------------------------------------------

    def put(self, key: bytes, value: object) -> None:
        """Put a value under a key, in the place of any other. A time to go stays set."""
        self._last_stream = None
        self.values[key] = value

    def remove(self, key: bytes) -> object | None:
        """Take a key away with its time to go; return what was under it, or None."""
        self._last_stream = None
        self.expires.pop(key, None)
        return self.values.pop(key, None)

    def clear(self) -> None:
        """Remove all keys."""
        self._last_stream = None
        self.values = {}
        self.expires = {}
        self._due = []

    def swap_with(self, other: Keyspace) -> None:
        """Exchange all keys with another database; who watches or waits stays where they are."""
        self._last_stream = None
        other._last_stream = None
        self.values, other.values = other.values, self.values
        self.expires, other.expires = other.expires, self.expires
        self._due, other._due = other._due, self._due

    # --- Expiry ------------------------------------------------------------------------------------

    def expiry_or_none(self, key: bytes) -> int | None:
        """When a key goes, in ms since 1970; None if it stays."""
        return self.expires.get(key)

    def set_expiry(self, key: bytes, when_ms: int) -> None:
        """Let a key that exists go at a time."""
        self._last_stream = None
        self.expires[key] = when_ms
        heapq.heappush(self._due, (when_ms, key))
        if len(self._due) > 2 * len(self.expires) + _DUE_SLACK:
            self._due = [(when, key) for key, when in self.expires.items()]
            heapq.heapify(self._due)

    def clear_expiry(self, key: bytes) -> bool:
        """Let a key stay; False if it would have stayed anyway."""
        return self.expires.pop(key, None) is not None

    def take_due(self, most: int) -> list[bytes]:
        """Up to so many keys whose time has come; the caller removes them."""
        found: list[bytes] = []
        while self._due and len(found) < most:
            when, key = self._due[0]
            if when > self._instant.ms:
                break
            heapq.heappop(self._due)
            if self.expires.get(key) == when:
                found.append(key)
        return found

    # --- Watching ----------------------------------------------------------------------------------

    def watch(self, key: bytes, watch: Watch) -> None:
        """Break a watch when this key changes."""
        self.watches.setdefault(key, {})[watch] = None

    def unwatch(self, key: bytes, watch: Watch) -> None:
        """Forget what watch() noted."""
        watchers = self.watches.get(key)
        if watchers is not None:
            watchers.pop(watch, None)
            if not watchers:
                del self.watches[key]

    def changed(self, key: bytes) -> None:
        """Break every watch on a key."""
        for watch in self.watches.get(key, ()):
            watch.broken = True
