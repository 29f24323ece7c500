"""The data source "penstock": what Spark asks for, answered by the other modules.

A batch is batch.py's; a stream is exclusive.py's, or with mode=shared that of shared.py.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.spark.batch import BatchReader
from penstock.spark.exclusive import ExclusiveReader
from penstock.spark.offline_reader import OfflineReader, is_offline, offline_schema
from penstock.spark.option_words import OptionError
from penstock.spark.options import SourceOptions, parse_options
from penstock.spark.schema import DEFAULT_SCHEMAS, Columns
from penstock.spark.shared import SharedReader

NAME = "penstock"


def register(spark: SparkSession) -> None:
    """Make the source known to a session; where the package is installed Spark finds it by itself."""
    spark.dataSource.register(PenstockSource)


def read_stream(spark: SparkSession, **options: Any) -> DataFrame:
    """A streaming DataFrame; `schema` is a DDL text or a StructType, all else are the source's options."""
    register(spark)
    reader = spark.readStream.format(NAME)
    schema = options.pop("schema", None)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.options(**options).load()


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


def columns_of(schema: StructType, options: SourceOptions) -> Columns:
    """The columns of a schema of Spark's. Raises: SchemaError."""
    # Spark compares a batch's schema with exactly this one.
    arrow = to_arrow_schema(schema, timezone="UTC")
    return Columns(arrow, options.fail_on_parse_error)
