"""The keys of one database and what they hold: streams, strings (bytes), lists.

    values    key -> value
    expires   key -> when it goes, in ms since 1970; only keys that do
    _due      a heap of (when, key): what goes next. Entries that no longer hold are dropped when met.
    _index    the keys by place, while somebody scans (key_index.py)

A key whose time is over is gone for everyone who looks it up, and is removed then (`find`) or by the
engine's regular sweep (`take_due`), whichever comes first. In the very millisecond of that time it is still
there, as in Redis. Removing is the engine's business, for others must hear of it: `find` calls `on_expired`.

Invariants
  K1  every key of `expires` is in `values`, and has its entry in the heap.
  K2  the stream remembered by `stream_at` is under its key, and that key never expires.
  K3  the index, if there is one, holds the keys of `values`.

Cost: a lookup is one of a dictionary, two where any key expires. Setting a time is O(log n).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import islice

from penstock.core import memory
from penstock.core.frame import Frame
from penstock.core.list_value import ListLimits, ListValue
from penstock.core.stream import NodeLimits, Stream
from penstock.engine.clock import Instant
from penstock.engine.key_index import KeyIndex, place_of
from penstock.errors import wrong_type

_DUE_SLACK = 64  # the heap is made anew when this many entries, and half of all, no longer hold
_INDEX_IDLE_MS_MAX = 60_000  # an index that nobody has asked for so long goes
_WALK_KEYS_MAX = 64  # among so few keys a random one is found by walking


class Watch:
    """What one client watches: broken as soon as one of the keys has changed."""

    __slots__ = ("broken",)

    def __init__(self) -> None:
        self.broken = False


class Keyspace:
    """One database.

    Look: find, stream_or_none, stream_at, list_or_none, scan, random_key_or_none. Change: put, remove,
    set_expiry, clear_expiry, clear, swap_with. Expiry: expiry_or_none, take_due. Watching: watch, unwatch,
    changed.
    """

    __slots__ = (
        "_due",
        "_index",
        "_index_used_ms",
        "_instant",
        "_last_key",
        "_last_stream",
        "expires",
        "index",
        "limits",
        "list_limits",
        "on_expired",
        "values",
        "watches",
    )

    def __init__(
        self, index: int, limits: NodeLimits, list_limits: ListLimits, instant: Instant
    ) -> None:
        self.index = index
        self.limits = limits
        self.list_limits = list_limits
        self.values: dict[bytes, object] = {}
        self.expires: dict[bytes, int] = {}
        self.watches: dict[bytes, dict[Watch, None]] = {}
        self.on_expired: Callable[[Keyspace, bytes], None] | None = None
        self._due: list[tuple[int, bytes]] = []
        self._index: KeyIndex | None = None
        self._index_used_ms = 0
        self._instant = instant
        self._last_key = b""
        self._last_stream: Stream | None = None

    # --- Looking -----------------------------------------------------------------------------------

    def find(self, key: bytes) -> object | None:
        """What is under a key, or None; a key whose time has come is removed first."""
        if self.expires and self.expires.get(key, self._instant.ms) < self._instant.ms:
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

    def list_or_none(self, key: bytes) -> ListValue | None:
        """The list under a key. Raises: CommandError (WRONGTYPE) if something else is there."""
        value = self.find(key)
        if value is None:
            return None
        if not isinstance(value, ListValue):
            raise wrong_type()
        return value

    def new_list(self) -> ListValue:
        """An empty list that is under no key yet."""
        return ListValue(self.list_limits)

    # --- Changing ----------------------------------------------------------------------------------

    def put(self, key: bytes, value: object) -> None:
        """Put a value under a key, in the place of any other. A time to go stays set."""
        self._last_stream = None
        if self._index is not None and key not in self.values:
            self._index.add(key)
        self.values[key] = value

    def remove(self, key: bytes) -> object | None:
        """Take a key away with its time to go; return what was under it, or None."""
        self._last_stream = None
        self.expires.pop(key, None)
        if self._index is not None and key in self.values:
            self._index.remove(key)
        return self.values.pop(key, None)

    def clear(self) -> None:
        """Remove all keys."""
        self._last_stream = None
        self.values = {}
        self.expires = {}
        self._due = []
        self._index = None

    def swap_with(self, other: Keyspace) -> None:
        """Exchange all keys with another database; who watches or waits stays where they are."""
        self._last_stream = None
        other._last_stream = None
        self.values, other.values = other.values, self.values
        self.expires, other.expires = other.expires, self.expires
        self._due, other._due = other._due, self._due
        self._index, other._index = other._index, self._index

    # --- Going through all keys --------------------------------------------------------------------

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About `count` keys from a place on, and the place to go on from; 0 at the end.

        Keys whose time is over may be among them.
        """
        if self._index is None and len(self.values) <= count:
            return 0, [key for key in self.values if place_of(key) >= cursor]
        return self._made_index().scan(cursor, count)

    def random_key_or_none(self, dice: Callable[[int], int]) -> bytes | None:
        """Some key, by the throw of dice; its time may be over."""
        count = len(self.values)
        if count > _WALK_KEYS_MAX:
            return self._made_index().pick(dice)
        return next(islice(self.values, dice(count), None)) if count else None

    def _made_index(self) -> KeyIndex:
        if self._index is None:
            self._index = KeyIndex(self.values)
        self._index_used_ms = self._instant.ms
        return self._index

    def index_or_none(self) -> KeyIndex | None:
        """The index, while there is one; for those who want to look inside."""
        return self._index

    def drop_idle_index(self) -> None:
        """Give back the index's memory if nobody has asked for it in the last minute."""
        if self._index is not None and (
            not 0 <= self._instant.ms - self._index_used_ms <= _INDEX_IDLE_MS_MAX
        ):
            self._index = None

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
        """Up to so many keys whose time is over; the caller removes them."""
        found: list[bytes] = []
        while self._due and len(found) < most:
            when, key = self._due[0]
            if when >= self._instant.ms:
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
