"""Staging: stores the rows of a batch in list keys on the server until the batch is complete.

    penstock:staging:{orders}:QUERY:BATCH:PARTITION:TOKEN:N    a list of blobs; expires after a day
    penstock:sink:{orders}:QUERY:orders                        the record: the last batch appended

Each attempt of a task has its own token, so the keys of a dead attempt are never used and expire. In a
cluster the hash tag puts all these keys into the stream's slot.
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
# A worker may buffer up to PUSH_BLOBS blobs per stream. With more streams than this, each batch of rows ends
# the blobs it has started: there are as many, but small ones.
STREAMS_MANY = 256
SLOTS = 16_384
# A script unpacks a row onto Lua's stack of 8000 values. penstock's server has no such limit.
SCRIPT_FIELDS_MAX = 3_900
FIELDS_MAX = 2**31 - 1


class SinkError(PenstockError):
    """A batch that could not be written."""


@dataclass(frozen=True, slots=True)
class Write:
    """Identifies a write: the name of the query or batch, and the number of the batch."""

    name: str
    batch: int

    def record_key(self, stream: bytes) -> bytes:
        """The key of the record: the last batch of this write."""
        return b"penstock:sink:{%b}:%b:%b" % (hash_tag(stream), self.name.encode(), stream)


@dataclass(frozen=True, slots=True)
class StagingKey:
    """A list of blobs, and its length. A server that has lost writes may have fewer."""

    name: bytes
    blobs: int


class Stage:
    """The staging of one task: `add` rows, then `finish`, or `discard` on failure."""

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
        """Stage the remaining rows. Returns the staging key of each stream."""
        for stream, blobs in self._blobs.items():
            blobs.close()
            self._full[stream] += blobs.take()
            self._push(stream)
        return self._staged()

    def discard(self) -> None:
        """Delete the staged rows if the server can be reached; otherwise they expire."""
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
            # The slot moved between the two commands, so the first one was sent twice.
            raise SinkError(
                f"staging key {shown(key)} has {length} blobs, but {self._pushed[stream]} were sent"
            )


def discard(servers: Servers, keys: Mapping[bytes, StagingKey]) -> None:
    """Delete the staging keys of all streams."""
    for stream, key in keys.items():
        servers.ask(StreamName(stream), "DEL", key.name)


def shown(key: bytes) -> str:
    """A key in messages."""
    return repr(key.decode("utf-8", "backslashreplace"))


def hash_tag(key: bytes) -> bytes:
    """The hash tag that puts another key into the slot of this one."""
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        return key[start + 1 : end]
    if key and b"}" not in key:
        return key
    # A tag cannot contain a closing brace, so use some number that hashes to the same slot.
    slot = crc_hqx(key, 0) % SLOTS
    return next(tag for n in range(2**63) if crc_hqx(tag := b"%d" % n, 0) % SLOTS == slot)
