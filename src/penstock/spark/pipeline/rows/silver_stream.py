"""Silver as a streaming source, for the aggregates of a pipeline with [dedup] or [[lookup]].

There `main` decides which rows are kept and which columns they get, so an aggregate must not decide again: it
reads what `main` has written. The offset has the same form as that of the stream, the last id of each source
stream, so an aggregate can change from one source to the other and continue.

    latestOffset    the position of the newest manifest, or of an earlier one if there are too many rows
    partitions      the files of the manifests between two positions
    read            the rows; of a file that also has rows outside of the two positions, only those between

A file that a compaction has merged has rows of several batches. If a compaction deletes a file before it is
read, the query fails with TABLE_CHANGED, and starts again (run.py).

Silver that was computed again from a large bronze consists of several batches with one position, each with
rows from anywhere before it (rebuild/). They are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.core.stream_id import StreamID, parse
from penstock.spark.lake.local_files import local_path
from penstock.spark.lake.manifest import (
    MANIFESTS,
    TRIES_MAX,
    ArchiveError,
    Manifest,
    order_names,
    parse_manifest,
    parse_versioned,
)
from penstock.spark.pipeline.positions import Ids, furthest, has_all, ids_of
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.source.offsets import Offset, Position, parse_offset
from penstock.spark.source.values import parser_of

NAME = "penstock_silver"
TABLE_CHANGED = "was replaced by a compaction while it was to be read"
PARTITIONS_MAX = 16
ROWS_MAX = 100_000  # of one Arrow batch


def read_silver(
    spark: SparkSession, path: str, schema: StructType, rows_max: str | None
) -> DataFrame:
    """The rows of silver as a streaming DataFrame. `rows_max` limits a batch, in whole batches of silver."""
    spark.dataSource.register(SilverSource)
    reader = spark.readStream.format(NAME).schema(schema).option("path", path)
    if rows_max is not None:
        reader = reader.option("maxRows", rows_max)
    return reader.load()


@short_errors
class SilverSource(DataSource):
    """The class that Spark loads."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a streaming query."""
        rows_max = self.options.get("maxRows")
        arrow = to_arrow_schema(schema, timezone="UTC")
        return SilverReader(
            self.options["path"], arrow, None if rows_max is None else int(rows_max)
        )


@dataclass(frozen=True)
class Piece:
    """One file. `is_whole`: all its rows are between the two positions."""

    path: str
    is_whole: bool


@dataclass(frozen=True)
class SilverPartition(InputPartition):
    """Files to read, and the positions after and up to which rows are wanted."""

    pieces: tuple[Piece, ...]
    since: Mapping[str, str]
    until: Mapping[str, str]


@short_errors
class SilverReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads silver by its manifests."""

    def __init__(self, path: str, schema: pa.Schema, rows_max: int | None) -> None:
        self._path = str(local_path(path))
        self._schema = schema
        self._rows_max = rows_max
        self._known: dict[str, Manifest] = {}
        self._last_batch: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """A new aggregate starts with the first row of silver."""
        return Offset({}).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember the newest batch: this run stops there."""
        self._last_batch = max((one.batch for one in self._manifests()), default=-1)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`maxRows`, or no limit."""
        return ReadAllAvailable() if self._rows_max is None else ReadMaxRows(self._rows_max)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch."""
        end, rows = ids_of(parse_offset(start)), 0
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        for position, manifests in self._by_position():
            if self._last_batch is not None and manifests[-1].batch > self._last_batch:
                break
            if not position or has_all(end, _offset(position)):
                continue
            count = sum(one.rows for one in manifests)
            rows += count
            if most is not None and rows > most and rows > count:
                break
            end = furthest([end, position])
        return _offset(end).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files with rows between two offsets."""
        since, until = ids_of(parse_offset(start)), ids_of(parse_offset(end))
        pieces = []
        before: Ids = {}
        for position, manifests in self._by_position():
            if before and has_all(before, _offset(until)):
                break
            if not position or not has_all(since, _offset(position)):
                is_between = (
                    bool(position)
                    and has_all(before, _offset(since))
                    and has_all(until, _offset(position))
                )
                pieces += [
                    Piece(file.path, is_between and one.generation == 0)
                    for one in manifests
                    for file in one.files
                ]
            before = position or before
        count = min(len(pieces), PARTITIONS_MAX)
        return [SilverPartition(tuple(pieces[at::count]), since, until) for at in range(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files. Runs in a worker, which must see the same directory."""
        assert isinstance(partition, SilverPartition)
        for piece in partition.pieces:
            try:
                with pq.ParquetFile(f"{self._path}/{piece.path}") as file:
                    for batch in file.iter_batches(ROWS_MAX):
                        rows = _fitted(batch, self._schema, _directories(piece.path))
                        yield rows if piece.is_whole else _between(rows, partition)
            except FileNotFoundError:
                raise ArchiveError(f"{self._path}/{piece.path} {TABLE_CHANGED}") from None

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: silver is not changed."""

    def stop(self) -> None:
        """Nothing to close."""

    def _by_position(self) -> Iterator[tuple[Ids, list[Manifest]]]:
        """The manifests of each position, oldest first."""
        for position, manifests in groupby(self._manifests(), lambda one: one.position):
            yield position, list(manifests)

    def _manifests(self) -> list[Manifest]:
        """All manifests, oldest first. Only new ones are read."""
        folder = Path(self._path, MANIFESTS)
        for _ in range(TRIES_MAX):
            names = [one.name for one in folder.iterdir()] if folder.is_dir() else []
            base, batches = order_names(names)
            try:
                self._known = {
                    name: self._known.get(name) or _manifest(folder / name)
                    for name in ([base] if base else []) + batches
                }
            except FileNotFoundError:  # a compaction has replaced it
                continue
            return list(self._known.values())
        raise ArchiveError(f"{self._path} {TABLE_CHANGED}")


def _manifest(path: Path) -> Manifest:
    return parse_manifest(parse_versioned(path.read_text(), str(path)), str(path))


def _offset(ids: Ids) -> Offset:
    return Offset({name: Position(parse(one.encode())) for name, one in ids.items()})


def _directories(path: str) -> dict[str, str]:
    """The partition values in a path."""
    parts = (part.partition("=") for part in path.split("/")[:-1])
    return {unquote(name): unquote(value) for name, _, value in parts}


def _fitted(batch: pa.RecordBatch, schema: pa.Schema, values: Mapping[str, str]) -> pa.RecordBatch:
    """The columns of a schema. A column that the file lacks is in its path, or null."""
    columns = []
    for field in schema:
        if field.name in batch.schema.names:
            columns.append(batch[field.name].cast(field.type))
        elif field.name in values:
            value = parser_of(field.type)(values[field.name].encode())
            columns.append(pa.array([value] * batch.num_rows, field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _between(rows: pa.RecordBatch, partition: SilverPartition) -> pa.RecordBatch:
    """The rows after one position, up to another."""
    since, until = (
        {n: _id(t) for n, t in one.items()} for one in (partition.since, partition.until)
    )
    wanted = []
    names = rows["_stream"].to_pylist()
    for name, text in zip(names, rows["_id"].to_pylist(), strict=True):
        at = _id(text)
        is_new = name not in since or at > since[name]
        wanted.append(is_new and name in until and at <= until[name])
    return rows.filter(pa.array(wanted, pa.bool_()))


def _id(text: str) -> StreamID:
    return parse(text.encode())
