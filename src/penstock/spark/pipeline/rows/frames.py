"""The DataFrame of each output of a pipeline.

    bronze       every entry: its fields as a map of strings, and raw if a map cannot hold them
    silver       the rows with types that pass all conditions
    reject       all other rows: their raw fields, and the reasons
    aggregates   windows over the rows of silver

`rows_of` makes the rows that silver, reject and the aggregates share: the columns of [schema], the decoded
[payload], the [columns] made of them, and those of lookups. A check calls these functions with an empty
DataFrame, a run with a streaming one. Lookups are joined batch by batch, not in the streaming one, because
their tables change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    _parse_datatype_json_string,
)

from penstock.spark.lake.columns import quoted
from penstock.spark.pipeline.definition.file import Aggregate, Payload, Pipeline
from penstock.spark.pipeline.definition.rules import DUPLICATE, PAYLOAD_PROBLEM
from penstock.spark.pipeline.rows.defaults import with_defaults
from penstock.spark.pipeline.rows.json_payload import decode
from penstock.spark.pipeline.rows.lookups import PendingLookups, TableOf, table_of
from penstock.spark.source.data_source import NAME, read_stream

REASON, SOURCE_STREAM, SOURCE_ID = "_reason", "_source_stream", "_source_id"
_TEXTS = "map<string,string>"
_ENTRY = "array<struct<name:binary,value:binary>>"
_HEAD = (
    StructField("_stream", StringType()),
    StructField("_id", StringType()),
    StructField("_timestamp", TimestampType()),
)
_CORRUPT = StructField("_corrupt", MapType(StringType(), StringType()))
_NAME_BYTES_MAX = 255
# The characters that Spark writes as %XX in the name of a directory.
_ESCAPED, _ESCAPE = r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""", "%00"


def parse_type(spark: SparkSession, text: str) -> DataType:
    """Parse a Spark type. Raises: PySparkException."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    return _parse_datatype_json_string(parser.parseDataType(text).json())


def source_schema(columns: Mapping[str, DataType], payload: Payload | None) -> StructType:
    """What is read: the entry, the columns of [schema], the payload as it is, and `_corrupt`."""
    typed = [StructField(name, kind) for name, kind in columns.items()]
    if payload is not None:
        typed.append(StructField(payload.field, BinaryType()))
    return StructType([*_HEAD, *typed, _CORRUPT])


def rows_of(read: DataFrame, pipeline: Pipeline, members: StructType | None) -> DataFrame:
    """The rows of what was read: with defaults, with the payload decoded into `members`, with [columns].

    Lookups are joined with the tables as they are now.
    """
    rows = with_defaults(read, pipeline.defaults)
    rows = rows if members is None else decoded(rows, pipeline, members)
    return with_columns(rows, pipeline, partial(table_of, read.sparkSession))


def with_columns(rows: DataFrame, pipeline: Pipeline, get: TableOf) -> DataFrame:
    """Add [columns] and the columns of the lookups."""
    lookups = PendingLookups(pipeline.lookups, get)
    rows = lookups.join_ready(rows)
    for name, sql in pipeline.columns.items():
        rows = lookups.join_ready(rows.withColumn(name, F.expr(sql)))
    return rows


def decoded(read: DataFrame, pipeline: Pipeline, members: StructType) -> DataFrame:
    """The payload as a struct, and the reason why it could not be decoded, or null."""
    assert pipeline.payload is not None
    name = pipeline.payload.field
    made = StructType([StructField("value", members), StructField("problem", StringType())])
    arrow = to_arrow_schema(made, timezone="UTC")

    def decode_texts(texts: pa.Array) -> pa.Array:
        columns = decode(texts.to_pylist(), arrow.field("value").type, name)
        return pa.StructArray.from_arrays(list(columns), fields=list(arrow))

    # Spark would otherwise decode a second time to filter the rows.
    make: Any = arrow_udf  # its types do not allow a struct
    decoder = make(decode_texts, made).asNondeterministic()
    kept = [F.col(quoted(one)) for one in read.columns if one != name]
    both = read.select(*kept, decoder(F.col(quoted(name))).alias(PAYLOAD_PROBLEM))
    parts = {
        name: F.col(f"{PAYLOAD_PROBLEM}.value").alias(name),
        PAYLOAD_PROBLEM: F.col(f"{PAYLOAD_PROBLEM}.problem").alias(PAYLOAD_PROBLEM),
    }
    return both.select(
        *(parts.get(one, F.col(quoted(one))) for one in (*read.columns, PAYLOAD_PROBLEM))
    )


def members_of(spark: SparkSession, pipeline: Pipeline) -> StructType | None:
    """The type of the payload, or None without one."""
    if pipeline.payload is None:
        return None
    found = pipeline.payload.schema.items()
    return StructType([StructField(name, parse_type(spark, kind)) for name, kind in found])


def schema_of(spark: SparkSession, pipeline: Pipeline) -> StructType:
    """The schema to read, of a pipeline with valid types."""
    columns = {name: parse_type(spark, kind) for name, kind in pipeline.schema.items()}
    return source_schema(columns, pipeline.payload)


def no_rows(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """An empty DataFrame with the columns of `rows_of`."""
    read = spark.createDataFrame([], schema_of(spark, pipeline))
    made = rows_of(read, pipeline, members_of(spark, pipeline))
    return spark.createDataFrame([], made.schema)


def bronze(frame: DataFrame) -> DataFrame:
    """All entries, untyped: `fields`, and `_raw` if a map cannot hold them (client/raw_fields.py)."""
    return frame.select(*(one.name for one in _HEAD), "fields", "_raw")


def main_rows(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The rows of the stream with the raw fields, for bronze, silver and the rejects.

    Only this query uses the group, because a group can mirror one query only. With lookups, [columns] are
    added in each batch.
    """
    read = read_stream(spark, schema=_with_entry(spark, pipeline), **pipeline.source.options)
    members = members_of(spark, pipeline)
    if not pipeline.lookups:
        return rows_of(read, pipeline, members)
    return read if members is None else decoded(read, pipeline, members)


def stored_entries(
    spark: SparkSession, pipeline: Pipeline, since: Mapping[str, str], until: Mapping[str, str]
) -> DataFrame:
    """The entries of the same rows as a batch, from and up to these ids of each stream, both included.

    Without `since`, they begin where the source of the pipeline does.
    """
    options = dict(pipeline.source.options)
    for name in ("group", "maxEntriesPerTrigger"):
        options.pop(name, None)
    if since:
        options.pop("startingTimestamp", None)
        options["startingOffsets"] = json.dumps(since)
    reader = spark.read.format(NAME).schema(_with_entry(spark, pipeline)).options(**options)
    return reader.option("endingOffsets", json.dumps(until)).load()


def _with_entry(spark: SparkSession, pipeline: Pipeline) -> StructType:
    schema = schema_of(spark, pipeline)
    added = {"fields": _TEXTS, "_raw": _ENTRY}
    kinds = (StructField(name, parse_type(spark, text)) for name, text in added.items())
    return StructType([*schema.fields, *kinds])


def typed(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The rows of the stream, for aggregates."""
    options = {name: value for name, value in pipeline.source.options.items() if name != "group"}
    read = read_stream(spark, schema=schema_of(spark, pipeline), **options)
    return rows_of(read, pipeline, members_of(spark, pipeline))


def silver(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The valid rows, without those that are marked as duplicates."""
    rows = frame.where(_is_valid(pipeline))
    if DUPLICATE in frame.columns:
        rows = rows.where(F.col(DUPLICATE).isNull())
    flags = (lookup.flag for lookup in pipeline.lookups)
    return rows.drop("_corrupt", PAYLOAD_PROBLEM, "fields", "_raw", DUPLICATE, *flags)


def rejects(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The invalid rows: fields, reasons, and the original stream and id."""
    unparsed = F.transform(F.map_keys("_corrupt"), lambda name: F.concat(F.lit("parse:"), name))
    failed = [F.when(~holds, F.lit(name)) for name, holds in _conditions(pipeline).items()]
    undecoded = [] if pipeline.payload is None else [F.col(PAYLOAD_PROBLEM)]
    reasons = F.concat_ws(",", unparsed, *undecoded, *failed)
    # A replayed entry that was rejected before has these fields already: the new ones replace them.
    ours = [F.lit(name.encode()) for name in (REASON, SOURCE_STREAM, SOURCE_ID)]
    fields = F.filter(_unchanged_fields(), lambda pair: ~pair["name"].isin(*ours))
    return frame.where(~_is_valid(pipeline)).select(
        fields.alias("fields"),
        reasons.alias(REASON),
        F.col("_stream").alias(SOURCE_STREAM),
        F.col("_id").alias(SOURCE_ID),
    )


def aggregate(frame: DataFrame, pipeline: Pipeline, one: Aggregate) -> DataFrame:
    """The measures of the valid rows, by window and group."""
    return windows(silver(frame, pipeline), one)


def windows(rows: DataFrame, one: Aggregate) -> DataFrame:
    """The measures of rows of silver, by window and group."""
    groups = [F.col(quoted(name)) for name in one.group_by]
    measures = [F.expr(sql).alias(name) for name, sql in one.measures.items()]
    timed = rows.withWatermark(one.time, one.watermark)
    made = timed.groupBy(F.window(quoted(one.time), one.window), *groups).agg(*measures)
    return made.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        *groups,
        *(F.col(quoted(name)) for name in one.measures),
    )


def with_day(frame: DataFrame) -> DataFrame:
    """Add the partition column of aggregates: the day on which the window starts."""
    return frame.withColumn("day", F.to_date("window_start"))


def _unchanged_fields() -> Column:
    """All fields of an entry, as pairs of bytes."""
    pairs = F.transform(
        F.map_entries("fields"),
        lambda one: F.struct(
            one["key"].cast("binary").alias("name"), one["value"].cast("binary").alias("value")
        ),
    )
    return F.coalesce("_raw", pairs)


def _is_valid(pipeline: Pipeline) -> Column:
    parsed = F.col("_corrupt").isNull()
    if pipeline.payload is not None:
        parsed &= F.col(PAYLOAD_PROBLEM).isNull()
    return reduce(lambda a, b: a & b, _conditions(pipeline).values(), parsed)


def _conditions(pipeline: Pipeline) -> dict[str, Column]:
    """The conditions by name: those of the file, and that partition values can name a directory."""
    made = {name: F.expr(sql) for name, sql in pipeline.valid.items()}
    for name in pipeline.archive.partition_by:
        if name in pipeline.scalars:
            made[f"partition:{name}"] = _names_a_directory(name)
    for lookup in pipeline.lookups:
        if lookup.required:
            made[f"lookup:{lookup.name}"] = F.col(quoted(lookup.flag)).isNotNull()
    return {name: F.coalesce(condition, F.lit(False)) for name, condition in made.items()}


def _names_a_directory(column: str) -> Column:
    """Whether a value can name a directory. If the file system refused the name, every retry would fail.

    Nulls and empty strings are excluded too: Spark writes both to one directory that pandas cannot read.
    """
    head = re.sub(_ESCAPED, _ESCAPE, column) + "="
    text = F.regexp_replace(F.col(quoted(column)).cast("string"), _ESCAPED, _ESCAPE)
    return F.octet_length(text).between(1, _NAME_BYTES_MAX - len(head.encode()))
