"""Builds RDB files by hand, and reads and writes whole files."""

from __future__ import annotations

import io
from collections.abc import Iterable

from penstock.core.check import check_list, check_stream
from penstock.core.list_value import ListValue
from penstock.core.stream import Stream
from penstock.engine.keyspace import Keyspace
from penstock.persist.rdb import crc64
from penstock.persist.rdb.reader import RdbItem, RdbReader
from penstock.persist.rdb.value import Value
from penstock.persist.rdb.writer import RdbWriter, aux_fields, write_databases
from tests.support.engine.engine_state import producers_state
from tests.support.engine.streams import keys_of, pending_of, state_of

END = 0xFF
SELECT = 0xFE


def crc_of(data: bytes) -> int:
    return crc64.update(0, bytearray(data), 0, len(data))


def rdb_file(*parts: bytes, version: int = 10, checksum: bool = True) -> bytes:
    """A file with these operations, a header and an end."""
    data = b"REDIS%04d" % version + b"".join(parts) + bytes([END])
    if version < 5:
        return data
    return data + (crc_of(data) if checksum else 0).to_bytes(8, "little")


def length(number: int) -> bytes:
    if number < 0x40:
        return bytes([number])
    if number < 0x4000:
        return (0x4000 | number).to_bytes(2, "big")
    if number < 2**32:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")


def string(data: bytes) -> bytes:
    return length(len(data)) + data


def key(kind: int, name: bytes, value: bytes) -> bytes:
    """A key with the bytes of its value."""
    return bytes([kind]) + string(name) + value


class Dribble:
    """A file that returns at most `size` bytes per read."""

    def __init__(self, data: bytes, most: int) -> None:
        self._file = io.BytesIO(data)
        self._most = most

    def readinto(self, buffer: memoryview) -> int:
        piece = self._file.read(min(self._most, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


def reader_of(data: bytes, deep: bool = False) -> RdbReader:
    return RdbReader(io.BytesIO(data), "test.rdb", deep=deep)


def read_all(data: bytes, deep: bool = False) -> list[RdbItem]:
    """All keys of a file, with an integrity check of each value."""
    items = list(reader_of(data, deep).items())
    for item in items:
        check_value(item.value)
    return items


def read_one(data: bytes, deep: bool = True) -> Value:
    """The value of the only key."""
    (item,) = read_all(data, deep)
    return item.value


def check_value(value: Value) -> None:
    if isinstance(value, Stream):
        check_stream(value)
    elif isinstance(value, ListValue):
        check_list(value)


def write_all(databases: Iterable[Keyspace], version: int = 10, compress: bool = True) -> bytes:
    """All keys of some databases as a file."""
    chunks: list[bytes] = []
    writer = RdbWriter(chunks.append, version, compress)
    writer.begin(aux_fields("7.0.15", 1_700_000_000_000, 1 << 20))
    write_databases(writer, databases)
    writer.end()
    return b"".join(chunks)


def write_items(items: Iterable[RdbItem], version: int = 10, compress: bool = True) -> bytes:
    """Some keys as a file."""
    chunks: list[bytes] = []
    writer = RdbWriter(chunks.append, version, compress)
    writer.begin({})
    for item in items:
        writer.database(item.database, 1, 0)
        writer.key(item.key, item.value, item.expiry_ms)
    writer.end()
    return b"".join(chunks)


def look(value: Value) -> object:
    """The complete contents of a value, for comparison."""
    if isinstance(value, ListValue):
        return [bytes(node) for node in value.nodes()]
    if not isinstance(value, Stream):
        return value
    groups = []
    if value.groups is not None:
        walk = value.groups.iterator()
        walk.seek("^")
        while walk.next():
            group = walk.value
            consumers = [group.consumer_or_none(name) for name in keys_of(group.consumers)]
            groups.append(
                (
                    walk.key,
                    str(group.last_id),
                    group.entries_read,
                    pending_of(group),
                    [(c.name, c.seen_ms, c.active_ms, c.pending.count) for c in consumers],
                    list(group.returned),
                )
            )
    return (*state_of(value), groups, producers_state(value))


def looks(items: Iterable[RdbItem]) -> list[object]:
    return [(item.database, item.key, item.expiry_ms, look(item.value)) for item in items]
