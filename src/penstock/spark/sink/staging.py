"""Where rows wait until their batch is complete: list keys beside the stream that they are for.

    penstock:staging:{orders}:QUERY:BATCH:PARTITION:TOKEN:N    a list of blobs; gone after a day
    penstock:sink:{orders}:QUERY:orders                        the last batch that was appended

Every attempt of a task has a token of its own, so what a dead one has left is never taken for anybody's, and
expires. In a cluster all of these keys share the stream's slot, through its hash tag.
"""

from __future__ import annotations

import secrets
from binascii import crc_hqx
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import redis

from penstock.client.row_blobs import RowBlobs
from penstock.errors import PenstockError
from penstock.spark.connection import Servers, StreamName, Word
from penstock.spark.sink.rows import Rows

BLOB_BYTES = 128 * 1024
PUSH_BLOBS = 8
EXPIRE_SECONDS = 86_400
# Nearly PUSH_BLOBS blobs of every stream may wait in a worker. With more streams than this a batch of rows
# ends each blob that it has begun: just as many wait, but small ones.
STREAMS_MANY = 256
SLOTS = 16_384
# A script unpacks a row onto a stack of 8000 places; our own server has no such limit.
SCRIPT_FIELDS_MAX = 3_900
FIELDS_MAX = 2**31 - 1


class SinkError(PenstockError):
    """A batch that could not be written."""


@dataclass(frozen=True, slots=True)
class Write:
    """Which write this is: a query's or a batch's own name, and the number of the batch."""

    name: str
    batch: int

    def record_key(self, stream: bytes) -> bytes:
        """Where the last batch of this write is noted."""
        return b"penstock:sink:{%b}:%b:%b" % (hash_tag(stream), self.name.encode(), stream)


@dataclass(frozen=True, slots=True)
class StagingKey:
    """A list of blobs, and how many it must have: a server that lost writes may have fewer."""

    name: bytes
    blobs: int


class Stage:
    """What one task writes: `add` rows, then `finish`, or `discard` if it fails."""

    def __init__(self, servers: Servers, write: Write, partition: int) -> None:
        self._servers = servers
        self._place = f"{write.name}:{write.batch}:{partition}:{secrets.token_hex(8)}"
        self._blobs: dict[bytes, RowBlobs] = {}
        self._keys: dict[bytes, bytes] = {}
        self._full: dict[bytes, list[bytes]] = {}
        self._pushed: dict[bytes, int] = {}

    def add(self, stream: bytes, rows: Rows) -> None:
        """Stage rows for a stream. Raises: RowError, SinkError."""
        if stream not in self._blobs:
            native = self._servers.is_native(StreamName(stream))
            self._blobs[stream] = RowBlobs(BLOB_BYTES, FIELDS_MAX if native else SCRIPT_FIELDS_MAX)
            place = f"{self._place}:{len(self._keys)}".encode()
            self._keys[stream] = b"penstock:staging:{%b}:%b" % (hash_tag(stream), place)
            self._full[stream] = []
            self._pushed[stream] = 0
        blobs = self._blobs[stream]
        rows.put(blobs)
        if len(self._blobs) > STREAMS_MANY:
            blobs.close()
        self._full[stream] += blobs.take()
        if len(self._full[stream]) >= PUSH_BLOBS:
            self._push(stream)

    def finish(self) -> dict[bytes, StagingKey]:
        """Stage what is left; the staging key of every stream."""
        for stream, blobs in self._blobs.items():
            blobs.close()
            self._full[stream] += blobs.take()
            self._push(stream)
        return self._staged()

    def discard(self) -> None:
        """Remove what was staged, as far as that can be done: what stays will expire."""
        with suppress(redis.RedisError, OSError):
            discard(self._servers, self._staged())

    def _staged(self) -> dict[bytes, StagingKey]:
        pushed = self._pushed
        return {one: StagingKey(key, pushed[one]) for one, key in self._keys.items() if pushed[one]}

    def _push(self, stream: bytes) -> None:
        blobs, self._full[stream] = self._full[stream], []
        if not blobs:
            return
        key = self._keys[stream]
        self._pushed[stream] += len(blobs)
        commands: list[tuple[Word, ...]] = [("RPUSH", key, *blobs), ("EXPIRE", key, EXPIRE_SECONDS)]
        length = self._servers.ask_all(StreamName(stream), commands)[0]
        if length != self._pushed[stream]:
            # The slot moved between the two commands, and the first was sent again.
            raise SinkError(
                f"staging key {shown(key)} has {length} blobs, not those that were sent"
            )


def discard(servers: Servers, keys: Mapping[bytes, StagingKey]) -> None:
    """Remove the staging key of every stream."""
    for stream, key in keys.items():
        servers.ask(StreamName(stream), "DEL", key.name)


def shown(key: bytes) -> str:
    """A key for people."""
    return repr(key.decode("utf-8", "backslashreplace"))


def hash_tag(key: bytes) -> bytes:
    """What another key must have between braces, to be in the slot of this one."""
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        return key[start + 1 : end]
    if key and b"}" not in key:
        return key
    # No tag can hold a closing brace: any other text of the same slot does.
    slot = crc_hqx(key, 0) % SLOTS
    return next(tag for n in range(2**63) if crc_hqx(tag := b"%d" % n, 0) % SLOTS == slot)
