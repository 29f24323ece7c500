"""Replay: writes entries of a stream, a dead-letter stream or a lake to a stream again.

A replayed entry has the fields of the original, plus `_source_stream` and `_source_id`, which name the
original. The field `_reason`, which a pipeline adds to rejected entries, is left out, so that the entry is
processed like any other. Entries get new ids, in the order of the old ones.

From an archive of penstock, a replay reads the files and types in its manifests or its log. From other
Parquet it reads
whatever Spark finds, and values in directory names (`store=001`) are text.

A replay is written in parts (replay_parts.py), one for each run. A part appears in the target completely or
not at all, and is written only once. So after a crash the same command can be run again, and a later run
continues with what has been added since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from hashlib import sha256
from pathlib import PurePath

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, MapType, StructType

from penstock.core.stream_id import LARGEST, SMALLEST, StreamID, parse
from penstock.errors import PenstockError
from penstock.spark.connection import Servers, StreamName
from penstock.spark.lake.columns import DAY, is_derived, quoted
from penstock.spark.lake.compaction import load_finished
from penstock.spark.lake.files import LakeFiles, literal
from penstock.spark.lake.formats import TablePlace, found_log
from penstock.spark.lake.manifest import INTENTS, Manifest
from penstock.spark.lake.table_formats.reading import table_rows
from penstock.spark.lake.table_formats.table_log import TableLog
from penstock.spark.option_reader import OptionReader
from penstock.spark.pipeline.rows.frames import REASON, SOURCE_ID, SOURCE_STREAM
from penstock.spark.place import CONNECTION, parse_place
from penstock.spark.replay_parts import Ends, Part, ReplayParts
from penstock.spark.source.data_source import NAME

STREAM_SCHEMA = "_stream string, _id string, fields array<struct<name:binary,value:binary>>"
# Each half of an id is an unsigned 64-bit number, which a bigint cannot hold.
_HALF = "decimal(20,0)"
_HALVES = ("_ms", "_seq")
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


def frame_of(
    spark: SparkSession, replay: Replay, part: Part, connection: Mapping[str, str]
) -> DataFrame:
    """The entries of a part in order, as a column `fields` or one column per field.

    Raises: NotReplayable.
    """
    if replay.stream is None:
        return _lake_frame(spark, replay, part)
    after, until = part.after.get(replay.stream), part.until[replay.stream]
    first = replay.first if after is None else max(replay.first, after.next())
    reader = spark.read.format(NAME).schema(STREAM_SCHEMA).options(**connection)
    # As JSON, because a name may contain a comma.
    reader = reader.option("stream", json.dumps([replay.stream]))
    reader = reader.option("startingOffsets", json.dumps({replay.stream: str(first)}))
    reader = reader.option("endingOffsets", json.dumps({replay.stream: str(until)}))
    return reader.load().select(_with_origin(f.col("fields")).alias("fields"))


def write_part(
    frame: DataFrame, replay: Replay, name: str, part: Part, connection: Mapping[str, str]
) -> int:
    """Append the entries of a part, once per name and number. Returns their number."""
    counted = Observation()
    writer = frame.observe(counted, f.count(f.lit(1)).alias("rows")).write.format(NAME)
    writer = writer.mode("append").options(**connection).option("stream", replay.target)
    writer.option("writeId", name).option("writeNumber", str(part.number)).save()
    with parts_of(connection, replay, name) as parts:
        parts.finish(part)
    return int(counted.get["rows"])


@contextmanager
def parts_of(connection: Mapping[str, str], replay: Replay, name: str) -> Iterator[ReplayParts]:
    """The parts of a replay, on the server of its target."""
    with Servers(parse_place(OptionReader(connection, CONNECTION))) as servers:
        yield ReplayParts(servers, name, replay.target)


def next_part(
    replay: Replay,
    name: str,
    origin: Mapping[str, str],
    target: Mapping[str, str],
    spark: SparkSession | None = None,
) -> Part | None:
    """The part to write now; None if there is nothing new. A lake needs a session.

    Raises: EndUnknown, NotReplayable.
    """
    with parts_of(target, replay, name) as parts:
        if spark is not None and replay.stream is None:
            return parts.next(partial(newest_in_lake, spark, replay))
        return parts.next(partial(_newest_in_stream, origin, replay))


def _newest_in_stream(origin: Mapping[str, str], replay: Replay, ends: Ends) -> Ends:
    """The newest id in the range, if it is after the last part."""
    assert replay.stream is not None
    key = replay.stream.encode("utf-8", "surrogateescape")
    with Servers(parse_place(OptionReader(origin, CONNECTION))) as servers:
        bounds = (str(replay.last), str(replay.first))
        found = servers.ask(StreamName(key), "XREVRANGE", key, *bounds, "COUNT", "1")
    return _after({replay.stream: parse(found[0][0])}, ends) if found else {}


def newest_in_lake(spark: SparkSession, replay: Replay, ends: Ends) -> Ends:
    """The newest id of each stream in the lake, of those that have one after the last part."""
    rows, _ = _rows_in_range(spark, replay)
    newest = rows.groupBy("_stream").agg(f.max(f.struct("_ms", "_seq")).alias("newest"))
    found = {
        row["_stream"]: StreamID(int(row["newest"]["_ms"]), int(row["newest"]["_seq"]))
        for row in newest.toLocalIterator()
    }
    return _after(found, ends)


def _after(newest: Ends, ends: Ends) -> Ends:
    return {name: end for name, end in newest.items() if name not in ends or end > ends[name]}


def kind_of(connection: Mapping[str, str], stream: str) -> str:
    """The type of a key, `none` if it does not exist."""
    key = stream.encode("utf-8", "surrogateescape")
    with Servers(parse_place(OptionReader(connection, CONNECTION))) as servers:
        return servers.type_of(StreamName(key))


def _lake_frame(spark: SparkSession, replay: Replay, part: Part) -> DataFrame:
    rows, made = _rows_in_range(spark, replay)
    kept = rows.join(f.broadcast(_bounds(spark, part)), "_stream").where(
        ~_not_above("_ms", "_seq", "_after_ms", "_after_seq")
        & _not_above("_ms", "_seq", "_until_ms", "_until_seq")
    )
    table = kept.orderBy("_ms", "_seq")
    if "fields" in rows.columns:
        return table.select(_with_origin(entries_of(table)).alias("fields"))
    return table.select(
        *_values(rows, made), f.col("_stream").alias(SOURCE_STREAM), f.col("_id").alias(SOURCE_ID)
    )


def _values(rows: DataFrame, made: list[str]) -> list[str]:
    """The columns that become fields."""
    left_out = (*_OWN, *_HALVES, *made)
    return [quoted(name) for name in rows.columns if name not in left_out]


def _rows_in_range(spark: SparkSession, replay: Replay) -> tuple[DataFrame, list[str]]:
    """The rows of the lake in the range of ids, with the halves of their ids, and the derived columns.

    Raises: NotReplayable.
    """
    assert replay.lake is not None
    table, made = _table_of(spark, replay.lake)
    if "_id" not in table.columns:
        raise NotReplayable(f"{replay.lake} has no column _id: it is not the archive of a stream")
    if "fields" not in table.columns and not _values(table, made):
        raise NotReplayable(f"{replay.lake} has no columns except the id")
    halves = f.split("_id", "-")
    rows = table.withColumns({name: halves[at].cast(_HALF) for at, name in enumerate(_HALVES)})
    if "_stream" not in table.columns:
        rows = rows.withColumn("_stream", f.lit(PurePath(replay.lake).name))
    in_range = _not_above(*_halves(replay.first), "_ms", "_seq") & _not_above(
        "_ms", "_seq", *_halves(replay.last)
    )
    return rows.where(in_range), made


def _bounds(spark: SparkSession, part: Part) -> DataFrame:
    """The bounds of a part, a row for each stream. Ids are above -1-0, so that 0-0 can be replayed too."""
    rows = []
    for name, until in part.until.items():
        after = part.after.get(name)
        before = (Decimal(-1), Decimal(0)) if after is None else _decimals(after)
        rows.append((name, *before, *_decimals(until)))
    columns = ("_after_ms", "_after_seq", "_until_ms", "_until_seq")
    return spark.createDataFrame(
        rows, ", ".join(["_stream string", *(f"{one} {_HALF}" for one in columns)])
    )


def _decimals(entry_id: StreamID) -> tuple[Decimal, Decimal]:
    return Decimal(entry_id.ms), Decimal(entry_id.seq)


def _halves(entry_id: StreamID) -> tuple[Column, Column]:
    ms, seq = (f.lit(half).cast(_HALF) for half in _decimals(entry_id))
    return ms, seq


def _table_of(spark: SparkSession, path: str) -> tuple[DataFrame, list[str]]:
    """The rows of a lake, and the columns that were added when it was written."""
    files = LakeFiles(spark)
    root = files.qualify(path)
    log = found_log(files, root)
    if log is not None:
        return _logged(spark, files, path, log)
    lake = load_finished(files, root)
    try:
        if lake.newest is not None:
            return _archived(spark, root, lake.newest, [file.path for file in lake.files])
        if files.exists(f"{root}/{INTENTS}"):
            raise NotReplayable(f"{path} has no finished batch yet")
        return _found(spark, path)
    except AnalysisException as error:
        raise NotReplayable(f"{path} cannot be read as Parquet: {_first_line(error)}") from error


def archived(spark: SparkSession, table: TablePlace) -> DataFrame:
    """The rows of an archive of penstock, by its manifests or its log."""
    files = LakeFiles(spark)
    log = table.log_or_none(files)
    found = _table_of(spark, table.path) if log is None else _logged(spark, files, table.path, log)
    return found[0]


def _logged(
    spark: SparkSession, files: LakeFiles, path: str, log: TableLog
) -> tuple[DataFrame, list[str]]:
    """A Delta or Iceberg table of penstock: the files of its newest version."""
    rows = table_rows(spark, files, log)
    if rows is None:
        raise NotReplayable(f"{path} has no finished batch yet")
    return rows, [field.name for field in rows.schema if is_derived(field)]


def table_of_files(spark: SparkSession, root: str, newest: Manifest, paths: list[str]) -> DataFrame:
    """The rows of some files of an archive, with the columns of its newest manifest."""
    return _archived(spark, root, newest, paths)[0]


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


def entries_of(table: DataFrame) -> Column:
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


def _not_above(
    ms: Column | str, seq: Column | str, last_ms: Column | str, last_seq: Column | str
) -> Column:
    """Whether an id, given by its halves, is at most another one."""
    left, right, last_left, last_right = (
        f.col(one) if isinstance(one, str) else one for one in (ms, seq, last_ms, last_seq)
    )
    return (left < last_left) | ((left == last_left) & (right <= last_right))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
