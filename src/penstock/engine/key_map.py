"""The keys of a database and their values: a dictionary in segments.

Python's dictionary doubles its table at once, which takes 100 ms at a million keys and stops all clients. And
a walk over it cannot start in its middle, as SCAN has to. So each key has a fixed position out of 2 ** 48,
from its hash, and the keys of one range of positions are in a small dictionary of their own, a segment:

    position    0 ─────────────────────────────────────────────> 2 ** 48
    directory   [ . . ][ . ][ . ][ . . . . ]                      eight places, here for four segments
    segment     { b"u", b"a" } { b"x" } { } { b"s", b"t" }        depth 2, 3, 3, 1

The place in the directory is the first bits of the position. A segment of depth d has the keys that share
their first d bits, and all places that start with those bits. A segment that grows too large is split in two,
by the next bit. If it has only one place, the directory is doubled before. Two neighbours that come from one
segment and have become small are joined again. This is extendible hashing.

A cursor of SCAN is the first position not visited yet. It does not depend on the segments: whatever is added,
removed or renamed meanwhile, a key that exists all the time has one position, and each position is visited
exactly once. 48 bits, because clients may store the cursor in a signed or floating-point number. Python's
hash of bytes is keyed by a secret of the process, so nobody can choose keys with the same position, and no
cursor outlives the process (as in Redis).

Invariants
  KM1  a segment holds exactly the keys whose position is in its range; count is the number of all keys.
  KM2  a segment holds at most segment_max keys, unless its depth is DEPTH_MAX.
  KM3  a segment of depth d has 2 ** (bits - d) places in the directory, one after the other.

Up to SEGMENT_MAX keys there is one segment, and a walk returns the keys in the order in which they were
added.

Cost: a lookup is that of a dictionary, plus 5 ns. A split moves SEGMENT_MAX keys, 0.05 ms. Doubling the
directory is a copy of 8 bytes per place: 0.1 ms at ten million keys. SCAN is O(count), plus the sorting of
one segment: 0.1 ms, which is remembered until a key is added or removed.

Rejected: Redis's own way, a second table twice as large to which a few keys move with each command. Python
cannot reserve a dictionary, so the second one would have to grow as well. An index beside the dictionary for
SCAN, built on first use: that took 0.6 s for a million keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

PLACE_BITS = 48
PLACES = 1 << PLACE_BITS
SEGMENT_MAX = 512
DEPTH_MAX = 32

_HASH_SHIFT = 64 - PLACE_BITS
_DEPTH_MAX = DEPTH_MAX


def place_of(key: bytes) -> int:
    """The position of a key, constant during this process."""
    return hash(key) >> _HASH_SHIFT & PLACES - 1


class KeyMap:
    """A mapping from keys to values: get, pop, [], in, len, items, values as in a dictionary.

    In parts: scan, pick, segments. `depths` and `directory` are for inspection.
    """

    __slots__ = (
        "_bits",
        "_mask",
        "_scanned",
        "_shift",
        "_small",
        "count",
        "depths",
        "directory",
        "segment_max",
    )

    def __init__(self, segment_max: int = SEGMENT_MAX) -> None:
        self.segment_max = segment_max
        self._small = segment_max // 4  # two segments with this many keys together are joined
        self.clear()

    def clear(self) -> None:
        """Remove all keys."""
        self.count = 0
        self._bits = 0
        self._shift = 63  # any: the mask is 0
        self._mask = 0
        self.directory: list[dict[bytes, Any]] = [{}]
        self.depths = [0]
        self._scanned: tuple[dict[bytes, Any], list[tuple[int, bytes]]] | None = None

    def __len__(self) -> int:
        return self.count

    def __contains__(self, key: bytes) -> bool:
        return key in self._segment(key)

    def __getitem__(self, key: bytes) -> Any:
        return self._segment(key)[key]

    def __setitem__(self, key: bytes, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: bytes) -> None:
        if key not in self:
            raise KeyError(key)
        self.pop(key)

    def __iter__(self) -> Iterator[bytes]:
        for segment in self.segments():
            yield from segment

    def items(self) -> Iterator[tuple[bytes, Any]]:
        """All keys with their values. The mapping must not change meanwhile."""
        for segment in self.segments():
            yield from segment.items()

    def values(self) -> Iterator[Any]:
        """All values. The mapping must not change meanwhile."""
        for segment in self.segments():
            yield from segment.values()

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self._segment(key).get(key, default)

    def put(self, key: bytes, value: Any) -> None:
        """Set the value of a key."""
        segment = self._segment(key)
        before = len(segment)
        segment[key] = value
        if len(segment) != before:
            self.count += 1
            self._scanned = None
            if before >= self.segment_max:
                self._split(key)

    def pop(self, key: bytes, default: Any = None) -> Any:
        """Remove a key; return its value, or `default`."""
        segment = self._segment(key)
        before = len(segment)
        value = segment.pop(key, default)
        if len(segment) != before:
            self.count -= 1
            self._scanned = None
            if self._bits and before <= self._small:
                self._join(key)
        return value

    def _segment(self, key: bytes) -> dict[bytes, Any]:
        number = hash(key) >> self._shift & self._mask
        return self.directory[number]

    # --- Segments ----------------------------------------------------------------------------------

    def segments(self) -> list[dict[bytes, Any]]:
        """All segments, by position."""
        found = []
        number = 0
        while number < len(self.directory):
            found.append(self.directory[number])
            number += 1 << self._bits - self.depths[number]
        return found

    def _places(self, key: bytes) -> tuple[int, int]:
        """The first place of a key's segment, and the number of its places."""
        number = hash(key) >> self._shift & self._mask
        size = 1 << self._bits - self.depths[number]
        return number & -size, size

    def _split(self, key: bytes) -> None:
        """Split the segment of a key in two, until none is too large."""
        first, size = self._places(key)
        segment = self.directory[first]
        while len(segment) > self.segment_max:
            depth = self.depths[first]
            if depth == _DEPTH_MAX:
                return
            if size == 1:
                self._double()
                first, size = 2 * first, 2
            halves: tuple[dict[bytes, Any], dict[bytes, Any]] = ({}, {})
            bit = PLACE_BITS - 1 - depth
            for name, value in segment.items():
                halves[place_of(name) >> bit & 1][name] = value
            size //= 2
            for half in (0, 1):
                self._set_places(first + half * size, size, halves[half], depth + 1)
            larger = 0 if len(halves[0]) >= len(halves[1]) else 1
            first += larger * size
            segment = halves[larger]

    def _join(self, key: bytes) -> None:
        """Join the segment of a key with its other half if both are small."""
        first, size = self._places(key)
        depth = self.depths[first]
        other = first ^ size
        if (
            depth == 0
            or self.depths[other] != depth
            or len(self.directory[first]) + len(self.directory[other]) > self._small
        ):
            return
        low = min(first, other)
        joined = {**self.directory[low], **self.directory[max(first, other)]}
        self._set_places(low, 2 * size, joined, depth - 1)
        if not self.count:
            self.clear()

    def _set_places(self, first: int, size: int, segment: dict[bytes, Any], depth: int) -> None:
        self.directory[first : first + size] = [segment] * size
        self.depths[first : first + size] = [depth] * size

    def _double(self) -> None:
        """Give each segment twice as many places."""
        for places in (self.directory, self.depths):
            doubled: list[Any] = [None] * (2 * len(places))
            doubled[::2] = doubled[1::2] = places
            places[:] = doubled
        self._bits += 1
        self._shift = 64 - self._bits
        self._mask = (1 << self._bits) - 1

    # --- Walking in parts --------------------------------------------------------------------------

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About `count` keys from a cursor on, and the next cursor; 0 at the end."""
        found: list[bytes] = []
        shift = PLACE_BITS - self._bits
        number = cursor >> shift
        while number < len(self.directory):
            segment = self.directory[number]
            for place, key in self._sorted(segment):
                if place < cursor:
                    continue
                # Keys of one position must be returned together: a cursor cannot separate them.
                if len(found) >= count and place != place_of(found[-1]):
                    return place_of(found[-1]) + 1, found
                found.append(key)
            size = 1 << self._bits - self.depths[number]
            number = (number & -size) + size
            if len(found) >= count:
                break
        return (number << shift if number < len(self.directory) else 0), found

    def _sorted(self, segment: dict[bytes, Any]) -> list[tuple[int, bytes]]:
        """The keys of a segment by position; the last answer is remembered."""
        if self._scanned is None or self._scanned[0] is not segment:
            self._scanned = (segment, sorted((place_of(key), key) for key in segment))
        return self._scanned[1]

    def pick(self, dice: Callable[[int], int]) -> bytes:
        """A random key; all are nearly equally likely. There must be one."""
        segment: dict[bytes, Any] = {}
        while not segment:
            segment = self.directory[dice(len(self.directory))]
        return list(segment)[dice(len(segment))]

    def memory_bytes(self) -> int:
        """The bytes of directory and segments, without keys and values. Cost: O(segments)."""
        parts = (self.directory, self.depths, *self.segments())
        return sum(part.__sizeof__() for part in parts)
