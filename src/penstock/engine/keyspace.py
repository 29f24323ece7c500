"""The keys of one database and their values: streams, strings (bytes), lists.

    values    key -> value (key_map.py)
    expires   key -> its expiry time in ms since 1970, if it has one
    _due      a heap of (time, key): what expires next. Outdated items are dropped when they reach the top.

An expired key is invisible to lookups. It is removed by the first lookup (`find`) or by the engine's regular
sweep (`take_due`), whichever comes first. In the millisecond of its expiry time it still exists, as in Redis.
The engine removes it, because watchers and waiters must know: `find` calls `on_expired`.

Invariants
  K1  every key of `expires` is in `values`, and has an item in the heap.
  K2  the stream cached by `stream_at` is stored under its key, and that key has no expiry time.

Cost: a lookup is one dictionary lookup, two if any key has an expiry time. Setting a time is O(log n).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from itertools import islice
from typing import TYPE_CHECKING

from penstock.core.frame import Frame
from penstock.core.garbage import Garbage
from penstock.core.list_value import ListLimits, ListValue
from penstock.core.stream import NodeLimits, Stream
from penstock.engine.clock import Instant
from penstock.engine.key_map import KeyMap, place_of
from penstock.errors import wrong_type

if TYPE_CHECKING:
    from penstock.engine.waiters import Line

_DUE_SLACK = 64  # the heap is rebuilt when this many items, and half of all, are outdated
_WALK_KEYS_MAX = 64  # among this few keys a random one is found by walking


class Watch:
    """The keys that one client watches: broken as soon as one of them changes."""

    __slots__ = ("broken",)

    def __init__(self) -> None:
        self.broken = False


class Keyspace:
    """One database.

    Read: find, stream_or_none, stream_at, list_or_none, scan, random_key_or_none. Change: put, remove,
    discard, set_expiry, clear_expiry, clear, swap_with. Expiry: expiry_or_none, take_due. Watching: watch,
    unwatch, changed. Waiting: is_awaited_at.
    """

    __slots__ = (
        "_due",
        "_instant",
        "_last_key",
        "_last_stream",
        "awaited",
        "expires",
        "garbage",
        "index",
        "limits",
        "list_limits",
        "on_expired",
        "values",
        "watches",
    )

    def __init__(
        self,
        index: int,
        limits: NodeLimits,
        list_limits: ListLimits,
        instant: Instant,
        garbage: Garbage,
    ) -> None:
        self.index = index
        self.limits = limits
        self.list_limits = list_limits
        self.garbage = garbage  # shared by all databases of an engine
        self.values = KeyMap()
        self.expires = KeyMap()
        self.watches: dict[bytes, dict[Watch, None]] = {}
        self.awaited: dict[bytes, dict[Hashable, Line]] = {}  # see waiters.py
        self.on_expired: Callable[[Keyspace, bytes], None] | None = None
        self._due: list[tuple[int, bytes]] = []
        self._instant = instant
        self._last_key = b""
        self._last_stream: Stream | None = None

    # --- Reading -----------------------------------------------------------------------------------

    def find(self, key: bytes) -> object | None:
        """The value of a key, or None; an expired key is removed first."""
        if self.expires.count:
            when_ms = self.expires.get(key)
            if when_ms is not None and when_ms < self._instant.ms:
                if self.on_expired is not None:
                    self.on_expired(self, key)
                return None
        value: object | None = self.values.get(key)
        return value

    def stream_or_none(self, key: bytes) -> Stream | None:
        """The stream of a key. Raises: CommandError (WRONGTYPE) for a value of another type."""
        if self._last_stream is not None and key == self._last_key:
            return self._last_stream
        value = self.find(key)
        if value is None:
            return None
        if not isinstance(value, Stream):
            raise wrong_type()
        return value

    def stream_at(self, frame: Frame, index: int) -> Stream | None:
        """As stream_or_none, for a key in a frame.

        The last stream found is cached: a producer adds to the same stream again and again, and comparing a
        few bytes takes a quarter of the time of making a key and hashing it.
        """
        if self._last_stream is not None and frame.is_piece(index, self._last_key):
            return self._last_stream
        key = frame.piece(index)
        stream = self.stream_or_none(key)
        if not self.expires.count or key not in self.expires:
            self._last_stream = stream
            self._last_key = key
        return stream

    def is_awaited_at(self, frame: Frame, index: int) -> bool:
        """Tell whether a blocked reader waits for a key in a frame."""
        if not self.awaited:
            return False
        if self._last_stream is not None and frame.is_piece(index, self._last_key):
            return self._last_key in self.awaited  # its hash is known
        return frame.piece(index) in self.awaited

    def new_stream(self) -> Stream:
        """An empty stream without a key."""
        return Stream(self.limits)

    def list_or_none(self, key: bytes) -> ListValue | None:
        """The list of a key. Raises: CommandError (WRONGTYPE) for a value of another type."""
        value = self.find(key)
        if value is None:
            return None
        if not isinstance(value, ListValue):
            raise wrong_type()
        return value

    def new_list(self) -> ListValue:
        """An empty list without a key."""
        return ListValue(self.list_limits)

    # --- Changing ----------------------------------------------------------------------------------

    def put(self, key: bytes, value: object) -> None:
        """Set the value of a key. Its expiry time stays."""
        if self._last_stream is not None and key == self._last_key:
            self._last_stream = None
        self.values.put(key, value)

    def remove(self, key: bytes) -> object | None:
        """Remove a key and its expiry time; return its value, or None."""
        self._last_stream = None
        self.clear_expiry(key)
        value: object | None = self.values.pop(key)
        return value

    def discard(self, key: bytes) -> None:
        """Remove a key and its expiry time; its value is not used any more."""
        self.garbage.discard(self.remove(key))

    def clear(self) -> None:
        """Remove all keys."""
        self.clear_into(self.garbage)

    def clear_into(self, garbage: Garbage) -> None:
        """Remove all keys; `garbage` frees their values a part at a time."""
        self._last_stream = None
        for segment in (*self.values.segments(), *self.expires.segments(), self._due):
            garbage.discard(segment)
        self.values = KeyMap()
        self.expires = KeyMap()
        self._due = []

    def use_segments(self, keys_max: int) -> None:
        """Keep at most this many keys together, while there are none; for tests."""
        self.values = KeyMap(keys_max)

    def swap_with(self, other: Keyspace) -> None:
        """Exchange all keys with another database; watchers and waiters stay."""
        self._last_stream = None
        other._last_stream = None
        self.values, other.values = other.values, self.values
        self.expires, other.expires = other.expires, self.expires
        self._due, other._due = other._due, self._due

    # --- Walking over all keys ---------------------------------------------------------------------

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About `count` keys from a cursor on, and the next cursor; 0 at the end.

        Expired keys may be among them.
        """
        if len(self.values) <= count:
            return 0, [key for key in self.values if place_of(key) >= cursor]
        return self.values.scan(cursor, count)

    def random_key_or_none(self, dice: Callable[[int], int]) -> bytes | None:
        """A random key, which may be expired."""
        count = len(self.values)
        if count > _WALK_KEYS_MAX:
            return self.values.pick(dice)
        return next(islice(self.values, dice(count), None)) if count else None

    # --- Expiry ------------------------------------------------------------------------------------

    def expiry_or_none(self, key: bytes) -> int | None:
        """The expiry time of a key in ms since 1970; None if it has none."""
        when_ms: int | None = self.expires.get(key)
        return when_ms

    def set_expiry(self, key: bytes, when_ms: int) -> None:
        """Set the expiry time of an existing key."""
        self._last_stream = None
        self.expires[key] = when_ms
        heapq.heappush(self._due, (when_ms, key))
        if len(self._due) > 2 * len(self.expires) + _DUE_SLACK:
            self._due = [(when, key) for key, when in self.expires.items()]
            heapq.heapify(self._due)

    def clear_expiry(self, key: bytes) -> bool:
        """Remove the expiry time of a key; False if it had none."""
        return self.expires.count > 0 and self.expires.pop(key, None) is not None

    def take_due(self, most: int) -> list[bytes]:
        """Up to `most` expired keys; the caller removes them."""
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
        """Undo watch()."""
        watchers = self.watches.get(key)
        if watchers is not None:
            watchers.pop(watch, None)
            if not watchers:
                del self.watches[key]

    def changed(self, key: bytes) -> None:
        """Break every watch on a key."""
        for watch in self.watches.get(key, ()):
            watch.broken = True
