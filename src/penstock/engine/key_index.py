"""The keys of a database by position, for SCAN and RANDOMKEY; built on first use and dropped when idle.

A walk over a dictionary cannot start in its middle. So each key has a fixed position out of 2 ** 48, from its
hash, and SCAN visits the positions in order:

    cursor    0 ──────────────────────────────────────────────> 2 ** 48
    bucket   [ b"u", b"a" ][ b"x" ][ ][ b"s", b"t" ] ...          all keys of one range of positions

A cursor is the first position not visited yet. It does not depend on the index: whatever is added, removed or
renamed meanwhile, and even if the index is rebuilt with other buckets, a key that exists all the time has one
position, and each position is visited exactly once. 48 bits, because clients may store the cursor in a signed
or floating-point number. Python's hash of bytes is keyed by a secret of the process, so nobody can choose
keys with the same position, and no cursor outlives the process (as in Redis).

Invariants
  KI1  the buckets hold exactly the keys of the database, each in the bucket of its position.
  KI2  a bucket holds 2 to 32 keys on average, or there is only one bucket.

Cost: building it is one pass over all keys (0.6 s for a million); then O(count) per call (16 us for ten
keys). While there is an index, each key takes 20 more bytes, and adding or removing one 1 to 3 us.

Rejected: a walk over the dictionary for each call (O(n) per call), and a list of keys for each cursor: a
client never says that it has stopped scanning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

PLACE_BITS = 48
PLACES = 1 << PLACE_BITS
LOAD_MIN = 2
LOAD_MAX = 32

_LOAD = 8
_HASH_SHIFT = 64 - PLACE_BITS


def place_of(key: bytes) -> int:
    """The position of a key, constant during this process."""
    return hash(key) >> _HASH_SHIFT & PLACES - 1


class KeyIndex:
    """Buckets of keys. Change: add, remove. Read: scan, pick."""

    __slots__ = ("_buckets", "_shift", "count")

    def __init__(self, keys: Collection[bytes]) -> None:
        self._spread(keys)

    def _spread(self, keys: Collection[bytes]) -> None:
        self.count = len(keys)
        bits = (self.count // _LOAD).bit_length()
        self._shift = PLACE_BITS - bits
        self._buckets: list[list[bytes]] = [[] for _ in range(1 << bits)]
        # As place_of(key) >> self._shift, inlined: the call took half of the time of a pass.
        buckets, shift, mask = self._buckets, _HASH_SHIFT + self._shift, (1 << bits) - 1
        for key in keys:
            buckets[hash(key) >> shift & mask].append(key)

    def add(self, key: bytes) -> None:
        """Add a new key."""
        self._buckets[place_of(key) >> self._shift].append(key)
        self.count += 1
        if self.count > LOAD_MAX * len(self._buckets):
            self._spread(self._all())

    def remove(self, key: bytes) -> None:
        """Remove an existing key."""
        self._buckets[place_of(key) >> self._shift].remove(key)
        self.count -= 1
        if self.count < LOAD_MIN * len(self._buckets) and len(self._buckets) > 1:
            self._spread(self._all())

    def _all(self) -> list[bytes]:
        return [key for bucket in self._buckets for key in bucket]

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About `count` keys from a cursor on, and the next cursor; 0 at the end."""
        found: list[bytes] = []
        number = cursor >> self._shift
        while number < len(self._buckets):
            bucket = [key for key in self._buckets[number] if place_of(key) >= cursor]
            if len(found) + len(bucket) > count:
                bucket.sort(key=place_of)
                last = place_of(bucket[count - len(found) - 1])
                # Keys with the same last position must be included: a cursor cannot separate them.
                found += [key for key in bucket if place_of(key) <= last]
                return (last + 1) % PLACES, found
            found += bucket
            number += 1
            if len(found) == count:
                break
        return (number << self._shift if number < len(self._buckets) else 0), found

    def pick(self, dice: Callable[[int], int]) -> bytes:
        """A random key; all are nearly equally likely. There must be one."""
        bucket: list[bytes] = []
        while not bucket:
            bucket = self._buckets[dice(len(self._buckets))]
        return bucket[dice(len(bucket))]
