"""Reads streams from files: snapshots, logs, DUMP payloads, raw listpacks.

    kind        recognized by
    listpack    its first four bytes are its size, its last byte is ff
    rdb         REDIS, and a name that does not end with .aof
    aof         a directory; commands (`*`), annotations (`#`) or REDIS in a file named *.aof
    dump        its footer: a version and the checksum of everything before

A snapshot is read without decoding its nodes, so that damaged nodes can be shown. Damage outside of nodes is
noted, and the streams before it are returned. A log is replayed from its start and must be sound, except for
a torn end.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from penstock.core import memory
from penstock.core.stream import Stream
from penstock.core.stream_id import SMALLEST
from penstock.errors import CorruptData
from penstock.inspect import stored
from penstock.inspect.stored import RawNode, RawStream
from penstock.persist import offline
from penstock.persist.rdb import dump
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.reader import RdbReader

_LISTPACK_END = b"\xff"
_LISTPACK_BYTES_MIN = 7
_LOG_SUFFIX = ".aof"
WHOLE_BYTES_MAX = 1 << 30  # DUMP payloads and listpacks are read in one piece


class FileKind(StrEnum):
    """The kinds of files."""

    RDB = "rdb"
    AOF = "aof"
    LISTPACK = "listpack"
    DUMP = "dump"


class FoundStream(NamedTuple):
    """A stream in a file."""

    database: int
    key: bytes
    stream: Stream


class Contents(NamedTuple):
    """The streams of a file, and notes about damage."""

    streams: list[FoundStream]
    notes: list[str]


def kind_or_none(path: str) -> FileKind | None:
    """The kind of a file, or None if it is not recognized. Raises: OSError."""
    place = Path(path)
    if place.is_dir():
        return FileKind.AOF
    size = place.stat().st_size
    with place.open("rb") as file:
        first = file.read(8)
        file.seek(max(size - 1, 0))
        last = file.read(1)
    if rdb_format.is_snapshot(first):
        return FileKind.AOF if place.suffix == _LOG_SUFFIX else FileKind.RDB
    is_sized = size >= _LISTPACK_BYTES_MIN and memory.load32(bytearray(first), 0) == size
    if is_sized and last == _LISTPACK_END:
        return FileKind.LISTPACK
    if first[:1] in (b"*", b"#") or place.suffix == _LOG_SUFFIX:
        return FileKind.AOF
    if size <= WHOLE_BYTES_MAX and dump.is_sealed(place.read_bytes(), rdb_format.VERSION_MAX):
        return FileKind.DUMP
    return None


def streams_of(path: str, kind: FileKind) -> Contents:
    """The streams of a snapshot or log. Raises: OSError, CorruptData if nothing can be read."""
    if kind is FileKind.AOF:
        return Contents([FoundStream(*found) for found in offline.streams_in(path)], [])
    contents = Contents([], [])
    try:
        contents.streams.extend(_in_snapshot(path))
    except CorruptData as error:
        if not contents.streams:
            raise
        contents.notes.append(f"the file is damaged: {error}")
    return contents


def _in_snapshot(path: str) -> Iterator[FoundStream]:
    with Path(path).open("rb", buffering=0) as file:
        reader = RdbReader(file, path, deep=False, skip_foreign=True)
        try:
            for item in reader.items():
                if isinstance(item.value, Stream):
                    yield FoundStream(item.database, item.key, item.value)
        except IndexError:
            # Ids out of order make the reader append all entries again, from unchecked nodes.
            raise reader.corrupt("a node ends inside an entry") from None


def read_dump(path: str) -> RawStream:
    """The stream in a DUMP payload. Raises: OSError, CorruptData."""
    nodes, notes = stored.dump_nodes(_whole(path))
    return RawStream(path, b"", nodes, len(nodes), notes=notes)


def read_listpack(path: str) -> RawNode:
    """A file with one listpack. Its id is unknown and set to 0-0. Raises: OSError, CorruptData."""
    return RawNode(SMALLEST, _whole(path))


def raw_stream(source: str, found: FoundStream, limit: int) -> RawStream:
    """The first `limit` nodes (0: all) of a stream in a file."""
    stream = found.stream
    nodes = stored.stream_of(stream, limit)
    count = stream.nodes.count
    return RawStream(source, found.key, nodes, count, stream.length, stream.nodes.node_count)


def _whole(path: str) -> bytes:
    place = Path(path)
    size = place.stat().st_size
    if size > WHOLE_BYTES_MAX:
        raise CorruptData(f"{path}: {size} bytes are too large for one value", 0)
    return place.read_bytes()
