"""Appends the rows of a batch or a streaming query to streams, exactly once.

    task      rows -> text -> blobs -> staging keys; sends their names and lengths to the driver
    driver    commit: for each stream, append the staging keys of all partitions in order, record the batch

The id of a streaming query is in its checkpoint. If a batch is repeated after a crash, the record already has
its number and nothing is appended. A batch write is identified by its `writeId`. Without one it gets a random
name, and its record is deleted at the end.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from penstock.spark.connection import Servers, StreamName
from penstock.spark.runtime.query_properties import BATCH_ID, QUERY_ID
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.sink.commit import append_batch
from penstock.spark.sink.options import SinkOptions
from penstock.spark.sink.rows import SinkRows
from penstock.spark.sink.staging import SinkError, Stage, StagingKey, Write, discard

Messages = list[WriterCommitMessage | None]


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The staging keys of one task, by stream."""

    query: str
    partition: int
    keys: dict[bytes, StagingKey] = field(default_factory=dict)


@short_errors
class BatchSink(DataSourceArrowWriter):
    """The writer for `df.write`."""

    def __init__(self, options: SinkOptions, rows: SinkRows) -> None:
        self._options = options
        self._rows = rows
        self._write = batch_write(options.write_id or secrets.token_hex(16), options.write_number)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of a task. Runs in a worker."""
        return _stage(self._options, self._rows, self._write, iterator)

    def commit(self, messages: Messages) -> None:
        """Append the rows of all tasks."""
        with Servers(self._options.place) as servers:
            append_batch(servers, _by_stream(messages), self._write, self._options.trim)
            if not self._options.write_id:
                for stream in _by_stream(messages):
                    servers.ask(StreamName(stream), "DEL", self._write.record_key(stream))

    def abort(self, messages: Messages) -> None:
        """Delete the staged rows after a task has failed."""
        _discard(self._options, messages)


@short_errors
class StreamSink(DataSourceStreamArrowWriter):
    """The writer for `df.writeStream`."""

    def __init__(self, options: SinkOptions, rows: SinkRows) -> None:
        self._options = options
        self._rows = rows

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of a task. Runs in a worker."""
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY_ID)
        batch = None if context is None else context.getLocalProperty(BATCH_ID)
        if not query or batch is None:
            raise SinkError(
                "Spark has set no query id or batch id: the rows could be written twice"
            )
        return _stage(self._options, self._rows, Write(query, int(batch)), iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Append the rows of all tasks of a batch."""
        queries = {one.query for one in messages if isinstance(one, Staged)}
        if len(queries) > 1:
            raise SinkError(f"the batch has rows of several queries: {', '.join(sorted(queries))}")
        for query in queries:
            with Servers(self._options.place) as servers:
                write = Write(query, batchId)
                append_batch(servers, _by_stream(messages), write, self._options.trim)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Delete the staged rows of a batch after a task has failed."""
        _discard(self._options, messages)


def batch_write(write_id: str, number: int = 1) -> Write:
    """The write with a `writeId`, and its `writeNumber`."""
    return Write(f"write:{write_id}", number)


def _stage(
    options: SinkOptions, rows: SinkRows, write: Write, batches: Iterator[pa.RecordBatch]
) -> Staged:
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    with Servers(options.place) as servers:
        stage = Stage(servers, write, partition)
        try:
            for batch in batches:
                for stream, run in rows.routed(batch):
                    stage.add(stream, run)
            return Staged(write.name, partition, stage.finish())
        except BaseException:
            stage.discard()
            raise


def _by_stream(messages: Messages) -> dict[bytes, list[StagingKey]]:
    """The staging keys of each stream, in the order of partitions."""
    found: dict[bytes, list[StagingKey]] = {}
    staged = [one for one in messages if isinstance(one, Staged)]
    for one in sorted(staged, key=lambda one: one.partition):
        for stream, key in one.keys.items():
            found.setdefault(stream, []).append(key)
    return found


def _discard(options: SinkOptions, messages: Messages) -> None:
    with Servers(options.place) as servers:
        for one in messages:
            if isinstance(one, Staged):
                discard(servers, one.keys)
