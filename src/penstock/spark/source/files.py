"""Reads entries, pending entries and groups from RDB files and AOFs into Arrow batches, without a server.

    what=entries   the columns of the schema, as from a server
    what=pending   PENDING: entries that were delivered and not acknowledged
    what=groups    GROUPS: the position of each group

Each path is one partition: a file must be read from its start, so splitting it would read it several times.
Stream nodes are decoded by the same code as nodes from a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any

import pyarrow as pa

from penstock.client.arrow_batch import BatchBuilder
from penstock.client.node_rows import NodeRows
from penstock.client.rows import RowLimits, escaped
from penstock.core import listpack, stream_id
from penstock.core.groups.group import Group
from penstock.core.stream import Stream
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import ConfigError
from penstock.persist.offline import StoredStream, streams_in
from penstock.spark.source.schema import TIMESTAMP_MS_MAX

WHATS = ("entries", "pending", "groups")
_MOMENT = pa.timestamp("us", tz="UTC")
PENDING = pa.schema(
    [
        ("_stream", pa.string()),
        ("_database", pa.int32()),
        ("group", pa.string()),
        ("consumer", pa.string()),
        ("_id", pa.string()),
        ("delivered", _MOMENT),
        ("deliveries", pa.int64()),
    ]
)
GROUPS = pa.schema(
    [
        ("_stream", pa.string()),
        ("_database", pa.int32()),
        ("group", pa.string()),
        ("last_id", pa.string()),
        ("entries_read", pa.int64()),
        ("lag", pa.int64()),
        ("pending", pa.int64()),
        ("consumers", pa.int64()),
    ]
)


@dataclass(frozen=True)
class OfflineQuery:
    """What to read from files. `streams` are keys or globs; empty means all. `database` -1 means all."""

    what: str = "entries"
    streams: tuple[str, ...] = ()
    database: int = -1
    start: StreamID = SMALLEST
    end: StreamID = LARGEST
    limits: RowLimits = field(default_factory=RowLimits)

    def __post_init__(self) -> None:
        if self.what not in WHATS:
            raise ConfigError(f"what is {self.what!r}; allowed are {', '.join(WHATS)}")


def batches_in(path: str, schema: pa.Schema, query: OfflineQuery) -> Iterator[pa.RecordBatch]:
    """Read one file or directory. Raises: CorruptData, OSError, ConfigError."""
    globs = [re.compile(translate(text).encode()) for text in query.streams]
    for found in streams_in(path):
        if query.database not in (-1, found.database):
            continue
        if globs and not any(glob.fullmatch(found.key) for glob in globs):
            continue
        if query.what == "entries":
            yield from _entries(found, schema, query)
        else:
            rows = _pending(found) if query.what == "pending" else _groups(found)
            yield from _rows(rows, schema, query.limits.rows_max)


def _entries(
    found: StoredStream, schema: pa.Schema, query: OfflineQuery
) -> Iterator[pa.RecordBatch]:
    builder = BatchBuilder(schema, found.key, query.limits)
    nodes = NodeRows(builder.rows, query.start, query.end)
    for master, node in _nodes(found.stream):
        nodes.open(node, 0, listpack.total_bytes(node), master)
        while not nodes.run():
            yield builder.take()
    if builder.rows.count:
        yield builder.take()


def _nodes(stream: Stream) -> Iterator[tuple[StreamID, bytearray]]:
    walk = stream.nodes.iterator()
    walk.seek("^")
    while walk.next():
        yield stream_id.from_key(walk.key), walk.value


def _text(name: bytes) -> str:
    return escaped(name).decode()


def _group_pairs(stream: Stream) -> list[tuple[bytes, Group]]:
    return [] if stream.groups is None else list(stream.groups.pairs())


def _pending(found: StoredStream) -> Iterator[dict[str, Any]]:
    for name, group in _group_pairs(found.stream):
        for row in group.pending_rows(SMALLEST, LARGEST, group.pending.count):
            delivered = row.delivery_ms * 1000 if row.delivery_ms <= TIMESTAMP_MS_MAX else None
            yield {
                "_stream": _text(found.key),
                "_database": found.database,
                "group": _text(name),
                "consumer": _text(row.consumer),
                "_id": str(row.id),
                "delivered": delivered,
                "deliveries": row.delivery_count,
            }


def _groups(found: StoredStream) -> Iterator[dict[str, Any]]:
    for name, group in _group_pairs(found.stream):
        yield {
            "_stream": _text(found.key),
            "_database": found.database,
            "group": _text(name),
            "last_id": str(StreamID(group.last_ms, group.last_seq)),
            "entries_read": None if group.entries_read < 0 else group.entries_read,
            "lag": group.lag_or_none(found.stream),
            "pending": group.pending.count,
            "consumers": group.consumers.count,
        }


def _rows(
    rows: Iterator[dict[str, Any]], schema: pa.Schema, rows_max: int
) -> Iterator[pa.RecordBatch]:
    """Batches made from Python objects, for results with few rows."""
    page: list[dict[str, Any]] = []
    for row in rows:
        page.append(row)
        if len(page) == rows_max:
            yield pa.RecordBatch.from_pylist(page, schema=schema)
            page = []
    if page:
        yield pa.RecordBatch.from_pylist(page, schema=schema)
