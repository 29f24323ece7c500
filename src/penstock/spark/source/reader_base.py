"""Code that the batch reader and both streaming readers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from penstock.spark.connection import Servers, StreamName
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.partitions import Partition, RangePartition, read_batches
from penstock.spark.source.planning import IdRange, plan_parts
from penstock.spark.source.schema import EntrySchema
from penstock.spark.source.stream_state import count_or_none, cut


@short_errors
class StreamReaderBase(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Options, schema and connections of a streaming reader. Pickling leaves the connections out."""

    def __init__(self, options: SourceOptions, schema: EntrySchema) -> None:
        self._options = options
        self._schema = schema
        self._servers: Servers | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_servers": None}

    @property
    def servers(self) -> Servers:
        """The driver's connections."""
        if self._servers is None:
            self._servers = Servers(self._options.place)
        return self._servers

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a partition. Runs in a worker."""
        assert isinstance(partition, Partition)
        return read_batches(partition, self._options, self._schema)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`maxEntriesPerTrigger`, or no limit."""
        if self._options.entries_max is None:
            return ReadAllAvailable()
        return ReadMaxRows(self._options.entries_max)

    def stop(self) -> None:
        """Close the connections. Spark may never call this."""
        if self._servers is not None:
            self._servers.close()


def split_ranges(
    servers: Servers, ranges: Iterable[tuple[StreamName, IdRange]], options: SourceOptions
) -> list[RangePartition]:
    """Split ranges into partitions: at least `minPartitions`, or by size."""
    ranges = [(stream, ids) for stream, ids in ranges if not ids.is_empty]
    counts = {one: count_or_none(servers, *one) for one in ranges}
    parts = plan_parts(counts, options.partitions_min)
    made = []
    for stream, ids in ranges:
        is_native = servers.is_native(stream)
        for part in cut(servers, stream, ids, parts[stream, ids]):
            made.append(RangePartition(stream, part, is_native))
    return made
