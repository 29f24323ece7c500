"""Replay: writes entries of a stream, a dead-letter stream or a lake to a stream again.

A replayed entry has the fields of the original, plus `_source_stream` and `_source_id`, which name the
original. The field `_reason`, which a pipeline adds to rejected entries, is left out, so that the entry is
processed like any other. Entries get new ids, in the order of the old ones.

From an archive of penstock, a replay reads the files and types in its manifests. From other Parquet it reads
whatever Spark finds, and values in directory names (`store=001`) are text.

A replay is one write: it appears in the target completely or not at all. A replay with the same name is
written only once, so after a crash the same command can be run again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import PurePath

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, MapType, StructType

from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import PenstockError
from penstock.spark.connection import Servers, StreamName
from penstock.spark.lake.columns import DAY, is_derived, quoted
from penstock.spark.lake.compaction import load_finished
from penstock.spark.lake.files import LakeFiles, literal
from penstock.spark.lake.manifest import INTENTS, Manifest
from penstock.spark.option_reader import OptionReader
from penstock.spark.pipeline.frames import REASON, SOURCE_ID, SOURCE_STREAM
from penstock.spark.place import CONNECTION, parse_place
from penstock.spark.sink.writer import batch_write
from penstock.spark.source.data_source import NAME

STREAM_SCHEMA = "_stream string, _id string, fields array<struct<name:binary,value:binary>>"
_OWN = ("_stream", "_id", "_timestamp", "_corrupt", "_raw", SOURCE_STREAM, SOURCE_ID)
_GUESSES = "spark.sql.sources.partitionColumnTypeInference.enabled"


class NotReplayable(PenstockError):
    """A lake or stream that cannot be replayed."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The origin (a stream or a lake), the target, and the range of ids, both inclusive."""

    stream: str | None
    lake: str | None
    target: str
    first: StreamID = SMALLEST
    last: StreamID = LARGEST


def default_name(replay: Replay, *words: str) -> str:
    """Equal for equal replays. `words` are the bounds as the user typed them: `1h`, not an id."""
    lake = replay.lake and str(PurePath(replay.lake))
    origin = ("stream", replay.stream) if lake is None else ("lake", lake)
    text = json.dumps([*origin, *words, replay.target])
    return f"replay-{sha256(text.encode()).hexdigest()[:16]}"


def frame_of(spark: SparkSession, replay: Replay, connection: Mapping[str, str]) -> DataFrame:
    """The entries in order, as a column `fields` of names and values. Raises: NotReplayable."""
    if replay.lake is None:
        assert replay.stream is not None
        reader = spark.read.format(NAME).schema(STREAM_SCHEMA).options(**connection)
        # As JSON, because a name may contain a comma.
        reader = reader.option("stream", json.dumps([replay.stream]))
        reader = reader.option("startingOffsets", json.dumps({replay.stream: str(replay.first)}))
        reader = reader.option("endingOffsets", json.dumps({replay.stream: str(replay.last)}))
        return reader.load().select(_with_origin(f.col("fields")).alias("fields"))
    return _lake_frame(spark, replay)


def write_replay(frame: DataFrame, replay: Replay, name: str, connection: Mapping[str, str]) -> int:
    """Append all entries, once per name. Returns their number."""
    counted = Observation()
    writer = frame.observe(counted, f.count(f.lit(1)).alias("rows")).write.format(NAME)
    writer = writer.mode("append").options(**connection)
    writer.option("stream", replay.target).option("writeId", name).save()
    return int(counted.get["rows"])


def is_done(connection: Mapping[str, str], replay: Replay, name: str) -> bool:
    """Whether a replay with this name has been written to its target."""
    target = replay.target.encode()
    with Servers(parse_place(OptionReader(connection, CONNECTION))) as servers:
        return bool(servers.ask(StreamName(target), "EXISTS", batch_write(name).record_key(target)))


def kind_of(connection: Mapping[str, str], stream: str) -> str:
    """The type of a key, `none` if it does not exist."""
    key = stream.encode("utf-8", "surrogateescape")
    with Servers(parse_place(OptionReader(connection, CONNECTION))) as servers:
        return servers.type_of(StreamName(key))


def forget(connection: Mapping[str, str], replay: Replay, name: str) -> None:
    """Delete the record of a replay, so that it can be written again."""
    target = replay.target.encode()
    with Servers(parse_place(OptionReader(connection, CONNECTION))) as servers:
        servers.ask(StreamName(target), "DEL", batch_write(name).record_key(target))


def _lake_frame(spark: SparkSession, replay: Replay) -> DataFrame:
    assert replay.lake is not None
    table, made = _table_of(spark, replay.lake)
    if "_id" not in table.columns:
        raise NotReplayable(f"{replay.lake} has no column _id: it is not the archive of a stream")
    halves = f.split("_id", "-")
    ms, seq = (halves[n].cast("decimal(20,0)") for n in (0, 1))
    kept = table.where(_not_below(ms, seq, replay.first) & _not_above(ms, seq, replay.last))
    rows = kept.orderBy(ms, seq)
    if "_stream" not in table.columns:
        rows = rows.withColumn("_stream", f.lit(PurePath(replay.lake).name))
    if "fields" in table.columns:
        return rows.select(_with_origin(_entries(table)).alias("fields"))
    values = [quoted(name) for name in table.columns if name not in (*_OWN, *made)]
    if not values:
        raise NotReplayable(f"{replay.lake} has no columns except the id")
    return rows.select(
        *values, f.col("_stream").alias(SOURCE_STREAM), f.col("_id").alias(SOURCE_ID)
    )


def _table_of(spark: SparkSession, path: str) -> tuple[DataFrame, list[str]]:
    """The rows of a lake, and the columns that were added when it was written."""
    files = LakeFiles(spark)
    root = files.qualify(path)
    lake = load_finished(files, root)
    try:
        if lake.newest is not None:
            return _archived(spark, root, lake.newest, [file.path for file in lake.files])
        if files.exists(f"{root}/{INTENTS}"):
            raise NotReplayable(f"{path} has no finished batch yet")
        return _found(spark, path)
    except AnalysisException as error:
        raise NotReplayable(f"{path} cannot be read as Parquet: {_first_line(error)}") from error


def archived(spark: SparkSession, path: str) -> DataFrame:
    """The rows of an archive of penstock, by its manifests."""
    return _table_of(spark, path)[0]


def _archived(
    spark: SparkSession, root: str, newest: Manifest, paths: list[str]
) -> tuple[DataFrame, list[str]]:
    """An archive of penstock: only the files and columns in its manifests."""
    schema = StructType.fromJson(dict(newest.schema))
    made = [field.name for field in schema if is_derived(field)]
    if not paths:
        return spark.createDataFrame([], schema), made
    reader = spark.read.schema(schema).option("basePath", root)
    table = reader.parquet(*(literal(f"{root}/{path}") for path in paths))
    return table.select(*map(quoted, schema.names)), made


def _found(spark: SparkSession, path: str) -> tuple[DataFrame, list[str]]:
    """Other Parquet. Values in directory names stay text: Spark would turn 001 into 1."""
    before = spark.conf.get(_GUESSES)
    spark.conf.set(_GUESSES, "false")
    try:
        # Later files may have more columns.
        table = spark.read.option("mergeSchema", "true").parquet(path)
    finally:
        spark.conf.set(_GUESSES, str(before))
    relation = table._jdf.queryExecution().analyzed().collectLeaves().head().relation()
    in_directories = list(relation.partitionSchema().fieldNames())
    return table, [DAY] if DAY in in_directories else []


def _entries(table: DataFrame) -> Column:
    """The column `fields` as names and values, whatever its type. `_raw` has precedence."""
    kind = table.schema["fields"].dataType
    if isinstance(kind, MapType):
        pairs = f.transform(f.map_entries("fields"), lambda one: _field(one["key"], one["value"]))
    elif isinstance(kind, ArrayType):
        pairs = f.transform("fields", lambda one: _field(one["name"], one["value"]))
    else:
        raise NotReplayable(
            f"column fields is {kind.simpleString()}; it must be a map or an array of (name, value)"
        )
    if "_raw" not in table.columns:
        return pairs
    raw = f.transform("_raw", lambda one: _field(one["name"], one["value"]))
    return f.coalesce(raw, pairs)


def _with_origin(fields: Column) -> Column:
    """The fields without `_reason`, and with the stream and id of the original."""
    kept = f.filter(fields, lambda one: one["name"] != f.lit(REASON.encode()))
    first = f.array(
        _field(f.lit(SOURCE_STREAM), f.col("_stream")), _field(f.lit(SOURCE_ID), f.col("_id"))
    )
    has_origin = f.exists(fields, lambda one: one["name"] == f.lit(SOURCE_ID.encode()))
    return f.when(has_origin, kept).otherwise(f.concat(kept, first))


def _field(name: Column, value: Column) -> Column:
    return f.struct(name.cast("binary").alias("name"), value.cast("binary").alias("value"))


def _not_below(ms: Column, seq: Column, first: StreamID) -> Column:
    return (ms > _number(first.ms)) | ((ms == _number(first.ms)) & (seq >= _number(first.seq)))


def _not_above(ms: Column, seq: Column, last: StreamID) -> Column:
    return (ms < _number(last.ms)) | ((ms == _number(last.ms)) & (seq <= _number(last.seq)))


def _number(value: int) -> Column:
    # Each half of an id is an unsigned 64-bit number, which a bigint cannot hold.
    return f.lit(Decimal(value)).cast("decimal(20,0)")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
