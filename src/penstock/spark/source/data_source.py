"""The data source "penstock": what Spark asks for, answered by the other modules.

A batch is batch_reader.py's; a stream is exclusive_reader.py's, or with mode=shared that of
shared_reader.py. Both are written by spark/sink/writer.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from penstock.spark.option_words import OptionError
from penstock.spark.runtime.worker_python import use_driver_python
from penstock.spark.sink.options import SinkOptions, parse_sink_options
from penstock.spark.sink.rows import SinkRows
from penstock.spark.sink.staging import SinkError
from penstock.spark.sink.writer import BatchSink, StreamSink
from penstock.spark.source.batch_reader import BatchReader
from penstock.spark.source.exclusive_reader import ExclusiveReader
from penstock.spark.source.file_reader import OfflineReader, is_offline, offline_schema
from penstock.spark.source.options import SourceOptions, parse_options
from penstock.spark.source.schema import DEFAULT_SCHEMAS, Columns
from penstock.spark.source.shared_reader import SharedReader

NAME = "penstock"


def register(spark: SparkSession) -> None:
    """Make the source known to a session. On a local master, workers then run the Python of this process."""
    use_driver_python(spark)
    spark.dataSource.register(PenstockSource)


def read_stream(spark: SparkSession, **options: Any) -> DataFrame:
    """A streaming DataFrame; `schema` is a DDL text or a StructType, all else are the source's options."""
    register(spark)
    reader = spark.readStream.format(NAME)
    schema = options.pop("schema", None)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.options(**options).load()


def write_stream(
    frame: DataFrame,
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None = None,
    name: str = "",
    **options: Any,
) -> StreamingQuery:
    """Start a query that appends a streaming DataFrame to a stream, each row once.

    `trigger` is what DataStreamWriter.trigger takes, as {"availableNow": True}; all else are the sink's
    options.
    """
    register(frame.sparkSession)
    writer = frame.writeStream.format(NAME).option("checkpointLocation", checkpoint)
    if trigger:
        writer = writer.trigger(**trigger)
    if name:
        writer = writer.queryName(name)
    return writer.options(**options).start()


class PenstockSource(DataSource):
    """Streams of penstock, of Redis and of a Redis Cluster as tables."""

    @classmethod
    def name(cls) -> str:
        """The word behind `format`."""
        return NAME

    def schema(self) -> StructType | str:
        """The columns where the user names none."""
        if is_offline(self.options):
            return offline_schema(self.options)
        return DEFAULT_SCHEMAS[parse_options(self.options).fields_type]

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch."""
        if is_offline(self.options):
            return OfflineReader(self.options, to_arrow_schema(schema, timezone="UTC"))
        options = parse_options(self.options)
        if options.shared:
            raise OptionError(
                "mode", "shared", "exclusive for a batch: only a stream can acknowledge"
            )
        if options.entries_max is not None:
            limit = str(options.entries_max)
            raise OptionError("maxEntriesPerTrigger", limit, "no such limit for a batch")
        return BatchReader(options, columns_of(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For a query that goes on."""
        options = parse_options(self.options)
        if options.ending is not None:
            end = options.ending.word
            raise OptionError("endingOffsets", end, "no end for a stream: use Trigger.AvailableNow")
        kind = SharedReader if options.shared else ExclusiveReader
        return kind(options, columns_of(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For a batch."""
        if overwrite:
            raise SinkError(
                "mode overwrite: a stream is only added to; use mode append, with maxlen or minid to"
                " drop old entries, or delete the key first"
            )
        return BatchSink(*self._sink(schema, False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """For a query that goes on."""
        if overwrite:
            raise SinkError("outputMode complete: a stream is only added to; use append or update")
        return StreamSink(*self._sink(schema, True))

    def _sink(self, schema: StructType, is_streaming: bool) -> tuple[SinkOptions, SinkRows]:
        options = parse_sink_options(self.options, schema.names, is_streaming)
        return options, SinkRows(to_arrow_schema(schema, timezone="UTC"), options.stream)


def columns_of(schema: StructType, options: SourceOptions) -> Columns:
    """The columns of a schema of Spark's. Raises: SchemaError."""
    # Spark compares a batch's schema with exactly this one.
    arrow = to_arrow_schema(schema, timezone="UTC")
    return Columns(arrow, options.fail_on_parse_error)
