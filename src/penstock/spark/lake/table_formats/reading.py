"""Reads a table in a table format with Spark: the data files that the newest version of its log names.

Spark needs no package of Delta or Iceberg for it. In Delta the partition columns are only in the log, not in
the files and not always in the names of directories. So each row gets them by the path of its file.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from penstock.spark.lake.columns import data_schema, quoted
from penstock.spark.lake.files import LakeFiles, literal
from penstock.spark.lake.hadoop_files import LOCAL_URL
from penstock.spark.lake.table_formats.table_log import TableFile, TableLog

_FILE = "_penstock_file"


def table_rows(spark: SparkSession, files: LakeFiles, log: TableLog) -> DataFrame | None:
    """The rows of a table, or None if there is no table. Raises: ArchiveError."""
    state = log.load()
    if state is None:
        return None
    schema = StructType.fromJson(dict(state.newest.schema))
    found = log.files(state)
    if not found:
        return spark.createDataFrame([], schema)
    paths = [literal(one.path) for one in found]
    if log.keeps_partitions or not state.newest.partition_by:
        return spark.read.schema(schema).parquet(*paths)
    columns = data_schema(state.newest.schema, state.newest.partition_by)
    rows = spark.read.schema(columns).parquet(*paths)
    values = _values(spark, files, found, [schema[name] for name in state.newest.partition_by])
    url = F.regexp_replace("_metadata.file_path", LOCAL_URL, "file:/")
    joined = rows.withColumn(_FILE, url).join(F.broadcast(values), _FILE)
    return joined.select(*map(quoted, schema.names))


def _values(
    spark: SparkSession,
    files: LakeFiles,
    found: Sequence[TableFile],
    partition_by: Sequence[StructField],
) -> DataFrame:
    """The partition of each file, by its URL."""
    rows = [
        (files.url(one.path), *(one.values[column.name] for column in partition_by))
        for one in found
    ]
    return spark.createDataFrame(
        rows, StructType([StructField(_FILE, StringType()), *partition_by])
    )
