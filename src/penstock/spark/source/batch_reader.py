"""Batch reads: the entries of every stream between two positions.

`FilteringReader` also takes filters from Spark. Spark refuses such a reader unless filter push-down is on, so
there is one without them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from penstock.spark.connection import Servers, StreamName
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.source.bounds import EARLIEST, LATEST, end_position, start_position, streams_of
from penstock.spark.source.filters import kept, narrowed, takes, wants_stream
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.partitions import RangePartition, read_batches
from penstock.spark.source.planning import StreamState, range_between
from penstock.spark.source.reader_base import split_ranges
from penstock.spark.source.schema import EntrySchema
from penstock.spark.source.stream_state import state_of

log = logging.getLogger(__name__)


@short_errors
class BatchReader(DataSourceReader):
    """Reads from `startingOffsets` to `endingOffsets`, as they are when Spark plans the job."""

    def __init__(self, options: SourceOptions, schema: EntrySchema) -> None:
        self._options = options
        self._schema = schema
        self._filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of ids that tasks read in parallel."""
        options = self._options
        with Servers(options.place) as servers:
            streams = streams_of(servers, options)
            states = {stream: state_of(servers, stream) for stream in streams.values()}
            for text in missing_streams(options, states):
                log.warning("%s", text)  # to the driver's stderr
            ranges = []
            for name, stream in streams.items():
                if not wants_stream(stream.key, self._filters):
                    continue
                state = states[stream]
                start = start_position(options.starting or EARLIEST, name, stream, state)
                end = end_position(options.ending or LATEST, name, stream, state)
                whole = range_between(start, end)
                ranges += [(stream, one) for one in narrowed(whole, self._filters)]
            return split_ranges(servers, ranges, options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a partition. Runs in a worker."""
        if not isinstance(partition, RangePartition):
            return  # without partitions Spark still calls this once, with one of its own
        for batch in read_batches(partition, self._options, self._schema):
            left = kept(batch, self._filters)
            if left.num_rows:
                yield left


@short_errors
class FilteringReader(BatchReader):
    """A batch read that takes filters on _stream, _id and _timestamp."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take the filters that make the read shorter. Returns the others, which Spark applies."""
        self._filters = [one for one in filters if takes(one)]
        return [one for one in filters if not takes(one)]


def missing_streams(options: SourceOptions, states: Mapping[StreamName, StreamState]) -> list[str]:
    """A warning for each stream that no server has: the name may be misspelt."""
    where = ", ".join(server.label for server in options.place.servers)
    if options.pattern and not states:
        return [f"no stream on {where} matches the pattern {options.pattern}: the read has no rows"]
    there = {stream.key for stream, state in states.items() if not state.is_missing}
    gone = {stream.text: None for stream in states if stream.key not in there}
    return [f"the stream {name} does not exist on {where}: it has no rows" for name in gone]
