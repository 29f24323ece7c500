"""Tables in the format Delta, by the library deltalake. Spark writes the data files, this commits them.

    TABLE/_delta_log/00000000000000000007.json    one file for each version
    TABLE/data/0000000007-9b2e4d10/day=2026-11-16/part-00000-....parquet

A commit of Delta can carry application transactions: pairs of a name and a signed 64-bit number. They are
part of the version, and stay when files are compacted and old log files are deleted. So they hold the
position:

    penstock:commits           the number of commits of penstock
    penstock:batch             the number of the newest batch
    penstock:fence             the number of the newest commit that is a fence
    penstock:ms:"orders"       the two halves of the last id of a stream, which are unsigned: the numbers from
    penstock:seq:"orders"      2**63 on are stored as negative ones

The library looks up a transaction by its name only. The names of the streams are in the table property
`penstock.streams`, the query in `penstock.query`. A stream is added to the property before its first batch.

A commit is tried once, on the version that was loaded. If it were repeated, two drivers could commit the same
batch: appending files does not conflict in Delta.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from penstock.spark.lake.formats import DELTA, DELTA_LOG
from penstock.spark.lake.manifest import ArchiveError, DataFile, Manifest
from penstock.spark.lake.table_formats.table_log import (
    NO_BATCH,
    Conflict,
    Rewrite,
    TableFile,
    TableState,
    first_line,
    not_ours,
    plain_path,
)

QUERY, STREAMS = "penstock.query", "penstock.streams"
COMMITS, BATCH, FENCE = "penstock:commits", "penstock:batch", "penstock:fence"

_NULL = "__HIVE_DEFAULT_PARTITION__"  # the directory that Spark writes for null
_SIGNED_MAX, _RANGE = 2**63, 2**64


class DeltaLog:
    """The log of one table. `root` is a path, or a URL that deltalake knows."""

    format = DELTA
    own_names = frozenset({DELTA_LOG})
    keeps_partitions = False

    def __init__(self, root: str) -> None:
        # Hadoop's names of a local path and of S3.
        self.root = plain_path(root).replace("s3a://", "s3://", 1)

    def load(self) -> TableState | None:
        """The newest version, or None."""
        try:
            if not DeltaTable.is_deltatable(self.root):
                return None
            table = DeltaTable(self.root)
            return self._state(table)
        except DeltaError as error:
            raise self._failed(error) from error

    def create(self, first: Manifest) -> None:
        """Create a table without rows."""
        try:
            DeltaTable.create(
                self.root,
                Schema.from_json(json.dumps(first.schema)),
                partition_by=list(first.partition_by),
                configuration={QUERY: first.query, STREAMS: "[]"},
                commit_properties=_once({COMMITS: 0, BATCH: NO_BATCH}),
                raise_if_key_not_exists=False,
            )
        except DeltaError as error:
            if DeltaTable.is_deltatable(self.root):
                raise Conflict(f"{self.root}: another driver has created the table") from error
            raise self._failed(error) from error

    def commit(self, before: TableState, after: Manifest, files: Sequence[DataFile]) -> list[str]:
        """Add files, batch and position to the version `before`."""
        table: DeltaTable = before.version
        first = table.version() + 1
        adds: list[Any] = [_add(file, after.partition_by) for file in files]
        try:
            self._add_columns(table, after.schema)
            self._add_streams(table, after.position)
            numbers = {COMMITS: before.commits + 1, BATCH: after.batch}
            numbers |= {FENCE: before.fence_after(after), **_numbers_of(after.position)}
            table.create_write_transaction(
                adds,
                "append",
                table.schema(),
                partition_by=list(after.partition_by),
                commit_properties=_once(numbers),
            )
        except CommitFailedError as error:
            raise Conflict(f"{self.root}: {first_line(error)}") from error
        except DeltaError as error:
            raise self._failed(error) from error
        last = table.version() + 1  # the object stays at the version that it was loaded with
        return [f"{DELTA_LOG}/{version:020d}.json" for version in range(first, last + 1)]

    def files(self, state: TableState) -> list[TableFile]:
        """The data files of a version."""
        table: DeltaTable = state.version
        try:
            deleted = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all()
            rows = pa.table(table.get_add_actions()).to_pylist()
        except DeltaError as error:
            raise self._failed(error) from error
        if len(deleted):
            raise ArchiveError(
                f"{self.root}: rows are marked as deleted by deletion vectors, which penstock cannot read."
                " Rewrite the files first: REORG TABLE ... APPLY (PURGE)"
            )
        return [
            TableFile(
                self._path(unquote(row["path"])),
                row.get("partition") or {},
                int(row["num_records"] or 0),
                int(row["size_bytes"]),
            )
            for row in rows
        ]

    def compact(self, state: TableState, target_bytes: int, rewrite: Rewrite) -> None:
        """Merge small files by deltalake itself. The old ones stay for older versions, until a VACUUM."""
        table: DeltaTable = state.version
        try:
            table.optimize.compact(target_size=target_bytes)
        except DeltaError as error:
            raise self._failed(error) from error

    def _state(self, table: DeltaTable) -> TableState:
        metadata = table.metadata()
        query = metadata.configuration.get(QUERY)
        if query is None:
            raise not_ours(self.root, f"it has no property {QUERY}")
        commits = table.transaction_version(COMMITS)
        if commits is None:
            raise ArchiveError(
                f"{self.root}: the application transaction {COMMITS} is missing, so the position in the"
                " source is unknown. Another program has rewritten the log, or the property"
                " delta.setTransactionRetentionDuration is set: archive into another directory"
            )
        batch = table.transaction_version(BATCH)
        newest = Manifest(
            query,
            NO_BATCH if batch is None else batch,
            tuple(metadata.partition_columns),
            json.loads(table.schema().to_json()),
            position=_position_of(table, json.loads(metadata.configuration.get(STREAMS, "[]"))),
        )
        return TableState(newest, commits, table, table.transaction_version(FENCE) or 0)

    def _add_columns(self, table: DeltaTable, schema: Mapping[str, Any]) -> None:
        """Add new columns, and new fields of structs, to the table. Older rows have nulls there."""
        known = {one["name"]: one["type"] for one in json.loads(table.schema().to_json())["fields"]}
        new = [one for one in schema["fields"] if known.get(one["name"]) != one["type"]]
        if new:
            fields = [Field.from_json(json.dumps(one)) for one in new]
            table.alter.add_columns(fields, commit_properties=_once({}))

    def _add_streams(self, table: DeltaTable, position: Mapping[str, str]) -> None:
        known = json.loads(table.metadata().configuration.get(STREAMS, "[]"))
        new = [name for name in position if name not in known]
        if new:
            table.alter.set_table_properties(
                {STREAMS: json.dumps([*known, *new])},
                raise_if_not_exists=False,
                commit_properties=_once({}),
            )

    def _path(self, path: str) -> str:
        return path if "://" in path else f"{self.root}/{path}"

    def _failed(self, error: DeltaError) -> ArchiveError:
        return ArchiveError(f"{self.root}: deltalake refuses this table: {first_line(error)}")


def _once(numbers: Mapping[str, int]) -> CommitProperties:
    """The properties of a commit that is tried once."""
    return CommitProperties(
        max_commit_retries=0,
        app_transactions=[Transaction(name, number) for name, number in numbers.items()],
    )


def _add(file: DataFile, partition_by: Sequence[str]) -> AddAction:
    values = {}
    for part in file.partition.split("/"):
        name, _, value = part.partition("=")
        values[unquote(name)] = None if value == _NULL else unquote(value)
    return AddAction(
        path=file.path,
        size=file.bytes,
        partition_values={name: values[name] for name in partition_by},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


def _names_of(stream: str) -> tuple[str, str]:
    name = json.dumps(stream)  # a name that is not UTF-8 has surrogates, which Rust refuses
    return f"penstock:ms:{name}", f"penstock:seq:{name}"


def _numbers_of(position: Mapping[str, str]) -> dict[str, int]:
    """The application transactions of a position."""
    found = {}
    for stream, entry_id in position.items():
        for name, half in zip(_names_of(stream), entry_id.split("-"), strict=True):
            found[name] = (int(half) + _SIGNED_MAX) % _RANGE - _SIGNED_MAX
    return found


def _position_of(table: DeltaTable, streams: Iterable[str]) -> dict[str, str]:
    """The reverse of `_numbers_of`."""
    found = {}
    for stream in streams:
        halves = [table.transaction_version(name) for name in _names_of(stream)]
        if None not in halves:
            found[stream] = "-".join(str((half or 0) % _RANGE) for half in halves)
    return found
