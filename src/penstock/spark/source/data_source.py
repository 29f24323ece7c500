"""The data source "penstock": the class that Spark loads, and helpers to use it.

`PenstockSource` reads the options and returns a reader or writer:

    spark.read          batch_reader.py, or file_reader.py with the option path
    spark.readStream    exclusive_reader.py, or shared_reader.py with mode=shared
    df.write, df.writeStream    spark/sink/writer.py
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

from penstock.spark.option_reader import OptionError
from penstock.spark.runtime.short_errors import short_errors
from penstock.spark.runtime.worker_python import use_driver_python
from penstock.spark.sink.options import SinkOptions, parse_sink_options
from penstock.spark.sink.rows import SinkRows
from penstock.spark.sink.staging import SinkError
from penstock.spark.sink.writer import BatchSink, StreamSink
from penstock.spark.source.batch_reader import BatchReader, FilteringReader
from penstock.spark.source.exclusive_reader import ExclusiveReader
from penstock.spark.source.file_reader import OfflineReader, is_offline, offline_schema
from penstock.spark.source.options import SourceOptions, parse_options
from penstock.spark.source.schema import DEFAULT_SCHEMAS, EntrySchema
from penstock.spark.source.shared_reader import SharedReader

NAME = "penstock"
FILTERS_SETTING = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make the source known to a session, and turn filter push-down on unless the session turns it off.

    On a local master, workers then run the Python of this process.
    """
    use_driver_python(spark)
    if spark.conf.get(FILTERS_SETTING, "true") != "true":
        spark.dataSource.register(PenstockSource)
        return
    spark.conf.set(FILTERS_SETTING, "true")
    spark.dataSource.register(FilteringSource)


def read_stream(spark: SparkSession, **options: Any) -> DataFrame:
    """A streaming DataFrame. `schema` is a DDL string or a StructType; the rest are options of the source."""
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
    """Start a query that appends the rows of a streaming DataFrame to a stream, exactly once.

    `trigger` holds the arguments of DataStreamWriter.trigger, as in {"availableNow": True}. The rest are
    options of the sink.
    """
    register(frame.sparkSession)
    writer = frame.writeStream.format(NAME).option("checkpointLocation", checkpoint)
    if trigger:
        writer = writer.trigger(**trigger)
    if name:
        writer = writer.queryName(name)
    return writer.options(**options).start()


@short_errors
class PenstockSource(DataSource):
    """Reads and writes streams of penstock, Redis and Redis Cluster."""

    _batch_reader: type[BatchReader] = (
        BatchReader  # not public: short_errors wraps public callables
    )

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    def schema(self) -> StructType | str:
        """The columns if the user gives no schema."""
        if is_offline(self.options):
            return offline_schema(self.options)
        return DEFAULT_SCHEMAS[parse_options(self.options).fields_type]

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch."""
        if is_offline(self.options):
            return OfflineReader(self.options, to_arrow_schema(schema, timezone="UTC"))
        options = parse_options(self.options)
        if options.shared:
            allowed = "exclusive for a batch: only a streaming query acknowledges entries"
            raise OptionError("mode", "shared", allowed)
        if options.entries_max is not None:
            limit = str(options.entries_max)
            raise OptionError("maxEntriesPerTrigger", limit, "no such option for a batch")
        return self._batch_reader(options, entry_schema(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a streaming query."""
        options = parse_options(self.options)
        if options.ending is not None:
            end = options.ending.word
            raise OptionError(
                "endingOffsets", end, "no such option for a stream: use trigger(availableNow=True)"
            )
        kind = SharedReader if options.shared else ExclusiveReader
        return kind(options, entry_schema(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of a batch."""
        if overwrite:
            raise SinkError(
                'mode("overwrite"): a stream can only be appended to. Use mode("append"), with maxlen'
                " or minid to drop old entries, or delete the key first"
            )
        return BatchSink(*self._sink(schema, False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """The writer of a streaming query."""
        if overwrite:
            raise SinkError(
                'outputMode("complete"): a stream can only be appended to. Use outputMode("append"); an'
                " aggregation then needs a watermark"
            )
        return StreamSink(*self._sink(schema, True))

    def _sink(self, schema: StructType, is_streaming: bool) -> tuple[SinkOptions, SinkRows]:
        options = parse_sink_options(self.options, schema.names, is_streaming)
        return options, SinkRows(to_arrow_schema(schema, timezone="UTC"), options.stream)


class FilteringSource(PenstockSource):
    """The same source for sessions with filter push-down. In others, Spark refuses its batch reads."""

    _batch_reader = FilteringReader


def entry_schema(schema: StructType, options: SourceOptions) -> EntrySchema:
    """How to turn entries into rows of a Spark schema. Raises: SchemaError."""
    # Spark accepts a batch only if its schema is exactly this one.
    arrow = to_arrow_schema(schema, timezone="UTC")
    return EntrySchema(arrow, options.fail_on_parse_error)
