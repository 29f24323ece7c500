"""The keys of a database by place, for SCAN and RANDOMKEY; made when first asked for, and dropped again.

A dictionary cannot be entered in its middle. So a key gets a fixed place out of 2 ** 48, by its hash, and
SCAN goes through the places in order:

    cursor    0 ──────────────────────────────────────────────> 2 ** 48
    bucket   [ b"u", b"a" ][ b"x" ][ ][ b"s", b"t" ] ...          all keys of one stretch of places

A cursor is the first place that was not looked at yet. It says nothing of the index: whatever is added,
removed or renamed meanwhile, and even if the index is made anew with other buckets, a key that is there all
the time lies at one place, and each place is looked at exactly once. 48 bits, because a client may hold the
cursor in a signed or in a floating-point number. Python's hash of bytes is keyed by a secret of the process,
so nobody can choose keys that fall into one place, and no cursor outlives the process (nor in Redis).

Invariants
  I1  the buckets hold exactly the keys of the database, each in the bucket of its place.
  I2  a bucket holds 2 to 32 keys on average, or there is only one bucket.

Cost: making it is one pass over all keys (0.6 s for a million); then O(count) a call (16 us for ten keys).
While there is an index, each key takes 20 bytes more, and making or removing one 1 to 3 us. A walk over the
dictionary for each call was rejected (O(n) a call), and so was a list of keys for each cursor: nobody tells
us when a client has lost interest.
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
    """Where a key lies, for as long as this process lives."""
    return hash(key) >> _HASH_SHIFT & PLACES - 1


class KeyIndex:
    """Buckets of keys. Change: add, remove. Look: scan, pick."""

    __slots__ = ("_buckets", "_shift", "count")

    def __init__(self, keys: Collection[bytes]) -> None:
        self._spread(keys)

    def _spread(self, keys: Collection[bytes]) -> None:
        self.count = len(keys)
        bits = (self.count // _LOAD).bit_length()
        self._shift = PLACE_BITS - bits
        self._buckets: list[list[bytes]] = [[] for _ in range(1 << bits)]
        # As place_of(key) >> self._shift, in one go: half of the time of a pass was that call.
        buckets, shift, mask = self._buckets, _HASH_SHIFT + self._shift, (1 << bits) - 1
        for key in keys:
            buckets[hash(key) >> shift & mask].append(key)

    def add(self, key: bytes) -> None:
        """Note a key that is new."""
        self._buckets[place_of(key) >> self._shift].append(key)
        self.count += 1
        if self.count > LOAD_MAX * len(self._buckets):
            self._spread(self._all())

    def remove(self, key: bytes) -> None:
        """Forget a key that was there."""
        self._buckets[place_of(key) >> self._shift].remove(key)
        self.count -= 1
        if self.count < LOAD_MIN * len(self._buckets) and len(self._buckets) > 1:
            self._spread(self._all())

    def _all(self) -> list[bytes]:
        return [key for bucket in self._buckets for key in bucket]

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About `count` keys from a place on, and the place to go on from; 0 at the end."""
        found: list[bytes] = []
        number = cursor >> self._shift
        while number < len(self._buckets):
            bucket = [key for key in self._buckets[number] if place_of(key) >= cursor]
            if len(found) + len(bucket) > count:
                bucket.sort(key=place_of)
                last = place_of(bucket[count - len(found) - 1])
                # Those that share the last place must come along: the cursor cannot part them.
                found += [key for key in bucket if place_of(key) <= last]
                return (last + 1) % PLACES, found
            found += bucket
            number += 1
            if len(found) == count:
                break
        return (number << self._shift if number < len(self._buckets) else 0), found

    def pick(self, dice: Callable[[int], int]) -> bytes:
        """One of the keys (there is one), nearly as likely as any other."""
        bucket: list[bytes] = []
        while not bucket:
            bucket = self._buckets[dice(len(self._buckets))]
        return bucket[dice(len(bucket))]
