"""A batch read: every stream between two positions, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from penstock.spark.connection import Servers, StreamName
from penstock.spark.source.bounds import EARLIEST, LATEST, end_position, start_position, streams_of
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.partitions import RangePartition, read_batches
from penstock.spark.source.planning import IdRange, plan_parts, range_between
from penstock.spark.source.schema import Columns
from penstock.spark.source.stream_state import count_or_none, cut, state_of


class BatchReader(DataSourceReader):
    """From `startingOffsets` to `endingOffsets` as they are when the job is planned."""

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of ids, cut so that there is work for everyone."""
        options = self._options
        with Servers(options.place) as servers:
            ranges = {}
            for name, stream in streams_of(servers, options).items():
                state = state_of(servers, stream)
                start = start_position(options.starting or EARLIEST, name, stream, state)
                end = end_position(options.ending or LATEST, name, stream, state)
                ranges[stream] = range_between(start, end)
            return partitions_of(servers, ranges, options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a worker."""
        if not isinstance(partition, RangePartition):
            return iter(
                ()
            )  # there was nothing to plan: Spark asks once all the same, for no partition of ours
        return read_batches(partition, self._options, self._columns)


def partitions_of(
    servers: Servers, ranges: Mapping[StreamName, IdRange], options: SourceOptions
) -> list[RangePartition]:
    """Ranges cut into at least `minPartitions`, or by size."""
    ranges = {stream: ids for stream, ids in ranges.items() if not ids.is_empty}
    counts = {stream: count_or_none(servers, stream, ids) for stream, ids in ranges.items()}
    parts = plan_parts(counts, options.partitions_min)
    made = []
    for stream, ids in ranges.items():
        is_native = servers.is_native(stream)
        for part in cut(servers, stream, ids, parts[stream]):
            made.append(RangePartition(stream, part, is_native))
    return made
