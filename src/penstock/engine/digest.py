"""A digest of all data, the same as Redis's for the same data (DEBUG DIGEST).

Equal values have equal digests, whatever their nodes look like; of a stream only the entries count. Two files
or two servers with equal digests hold the same data, except for groups, producers and counters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.keyspace import Keyspace

DIGEST_BYTES = 20
_STRING, _LIST, _STREAM = 0, 1, 6  # Redis's type numbers
_EXPIRES = b"!!expire!!"


def data_digest(databases: Iterable[Keyspace]) -> str:
    """The digest of all keys of all databases, as 40 hexadecimal digits. Cost: O(bytes)."""
    total = _Digest()
    for keyspace in databases:
        if keyspace.values:
            total.mix(keyspace.index.to_bytes(4, "big"))
            for key, value in keyspace.values.items():
                total.add(_key_digest(keyspace, key, value))
    return total.text


def _key_digest(keyspace: Keyspace, key: bytes, value: object) -> bytes:
    digest = _Digest()
    digest.mix(key)
    if isinstance(value, Stream):
        digest.mix(_STREAM.to_bytes(4, "big"))
        cursor = value.cursor()
        while cursor.advance():
            digest.mix(b"%d.%d" % (cursor.id.ms, cursor.id.seq))
            for piece in cursor.entry.fields():
                digest.mix(piece)
    elif isinstance(value, ListValue):
        digest.mix(_LIST.to_bytes(4, "big"))
        for element in value.range(0, value.length - 1):
            digest.mix(element)
    elif isinstance(value, bytes):
        digest.mix(_STRING.to_bytes(4, "big"))
        digest.mix(value)
    if keyspace.expiry_or_none(key) is not None:
        digest.add(_EXPIRES)
    return digest.value


class _Digest:
    """`add` ignores the order, `mix` depends on it."""

    def __init__(self) -> None:
        self.value = bytes(DIGEST_BYTES)

    def add(self, data: bytes) -> None:
        """Combine with some bytes, by exclusive or of their hash."""
        other = _hash(data)
        self.value = bytes(a ^ b for a, b in zip(self.value, other, strict=True))

    def mix(self, data: bytes) -> None:
        """As add, and make the result depend on the order."""
        self.add(data)
        self.value = _hash(self.value)

    @property
    def text(self) -> str:
        """The digest as hexadecimal text."""
        return self.value.hex()


def _hash(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
