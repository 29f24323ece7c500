"""Partitions, and reading one: from a server's replies to Arrow batches.

`read_batches` runs in Spark's workers; every entry from a server goes through it. A partition says which
entries to read. The server and the login are in the options.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from penstock.client.bulk import BulkOptions, BulkReader
from penstock.client.rows import RowLimits
from penstock.core.stream_id import LARGEST
from penstock.spark.connection import Servers, StreamName
from penstock.spark.source.offsets import Claim, Position
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.planning import DataLoss, IdRange, loss_text, lost_or_none
from penstock.spark.source.schema import EntrySchema, Page
from penstock.spark.source.stream_state import state_of

CLAIM_PAGE_IDS = 1_000


@dataclass(frozen=True)
class RangePartition(InputPartition):
    """A range of ids of one stream."""

    stream: StreamName
    ids: IdRange
    is_native: bool = False


@dataclass(frozen=True)
class ClaimPartition(InputPartition):
    """Entries of one stream that are pending for the query's consumer."""

    stream: StreamName
    claim: Claim


Partition = RangePartition | ClaimPartition


def read_batches(
    partition: Partition, options: SourceOptions, schema: EntrySchema
) -> Iterator[pa.RecordBatch]:
    """The entries of a partition. Raises: ParseError, DataLoss."""
    with Servers(options.place) as servers:
        if schema.is_bulk:
            for batch in _bulk_batches(servers, partition, options, schema):
                yield schema.finished(batch)
            return
        if isinstance(partition, ClaimPartition):
            pages = _claimed_pages(servers, partition)
        else:
            pages = _range_pages(servers, partition, options)
        for page in pages:
            if page.entries:
                yield schema.finished(schema.batch(page))


def _bulk_batches(
    servers: Servers, partition: Partition, options: SourceOptions, schema: EntrySchema
) -> Iterator[pa.RecordBatch]:
    """Read with the compiled decoders: they know most types and create no object per row."""
    stream = partition.stream
    settings = BulkOptions(
        options.fetch_size,
        isinstance(partition, RangePartition) and partition.is_native,
        RowLimits(fail_on_error=schema.fail_on_parse_error),
    )
    if options.place.cluster:
        # Finds the node again if the stream has moved: BulkReader does not follow redirections.
        servers.ask(stream, "XLEN", stream.key)
    with BulkReader(servers.client(stream), schema.arrow, settings) as reader:
        if isinstance(partition, ClaimPartition):
            yield from reader.batches_of(stream.key, [one.encode() for one in partition.claim.ids])
            return
        yield from reader.batches(stream.key, *partition.ids.words)
        seen = reader.rows
    _check_nothing_lost(servers, partition, options, seen)


def _range_pages(
    servers: Servers, partition: RangePartition, options: SourceOptions
) -> Iterator[Page]:
    stream, ids = partition.stream, partition.ids
    start, end = ids.words
    seen = 0
    while True:
        words = ("XRANGE", stream.key, start, end, "COUNT", options.fetch_size)
        entries = servers.ask(stream, *words)
        seen += len(entries)
        yield Page(stream.key, entries)
        if len(entries) < options.fetch_size or entries[-1][0] == LARGEST.text:
            break
        start = f"({entries[-1][0].decode()}"
    _check_nothing_lost(servers, partition, options, seen)


def _check_nothing_lost(
    servers: Servers, partition: RangePartition, options: SourceOptions, seen: int
) -> None:
    stream, ids = partition.stream, partition.ids
    if options.fail_on_data_loss and ids.count is not None and seen < ids.count:
        # Fewer entries than planned. XDEL is allowed; a trim since planning is a loss.
        lost = lost_or_none(stream.text, Position(ids.after, ids.n), state_of(servers, stream))
        if lost is not None:
            raise DataLoss(loss_text(lost))


def _claimed_pages(servers: Servers, partition: ClaimPartition) -> Iterator[Page]:
    stream, claim = partition.stream, partition.claim
    for at in range(0, len(claim.ids), CLAIM_PAGE_IDS):
        ids = claim.ids[at : at + CLAIM_PAGE_IDS]
        # A deleted entry gives an empty reply. Its id is acknowledged like the others.
        replies = servers.ask_all(stream, [("XRANGE", stream.key, one, one) for one in ids])
        entries = [entry for reply in replies for entry in reply]
        counts = {entry[0]: claim.deliveries.get(entry[0].decode(), 1) for entry in entries}
        yield Page(stream.key, entries, counts)
