"""Finds the problems of a pipeline before it runs.

    1  the file alone            definition/
    2  types and SQL             Spark analyses each expression over an empty DataFrame of the schema
    3  the lake                  aggregates must not have changed (outputs.py), nor the owner (owner_check.py)
    4  functions and databases   section_check.py
    5  servers and keys          server_check.py

Each step reports all problems it finds, except those that follow from another problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    CalendarIntervalType,
    DataType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from penstock.spark.lake.columns import quoted
from penstock.spark.pipeline.definition.file import Aggregate, Pipeline
from penstock.spark.pipeline.definition.rules import OWN_COLUMNS, PAYLOAD_PROBLEM, rule_problems
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import DURATION_FORM, Problem
from penstock.spark.pipeline.outputs import state_problems
from penstock.spark.pipeline.owner_check import owner_problems
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.defaults import DefaultError, default_value
from penstock.spark.pipeline.rows.lookups import PendingLookups
from penstock.spark.pipeline.section_check import target_problems
from penstock.spark.pipeline.server_check import server_problems
from penstock.spark.pipeline.shape_check import ShapeCheck
from penstock.spark.runtime.causes import cause_of
from penstock.spark.source.schema import EntrySchema, SchemaError

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_REPEATABLE = "a repeated batch must give the same rows, so it must depend on the entry only"
# Spark treats these as constants, with another value in each query.
_CLOCK = re.compile(
    r"\b(now|curdate|localtimestamp|current_(timestamp|date|time|timezone|user|database))\b", re.I
)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`", re.S)


def check_pipeline(
    pipeline: Pipeline, spark: SparkSession, is_offline: bool = False, is_rebuilt: bool = False
) -> list[Problem]:
    """All problems beyond the syntax of the file, by line. For `is_rebuilt` see `state_problems`."""
    problems = rule_problems(pipeline)
    with quiet_analysis():
        found = sql_problems(pipeline, spark)
        if not problems and not found:
            found = state_problems(pipeline, spark, is_rebuilt)
            found += owner_problems(pipeline, spark, is_rebuilt)
            found += target_problems(pipeline, spark, is_offline)
    problems += found
    if not is_offline:
        problems += server_problems(pipeline)
    return sorted(set(problems))


def sql_problems(pipeline: Pipeline, spark: SparkSession) -> list[Problem]:
    """Types, conditions and aggregates that Spark refuses."""
    check = _SqlCheck(pipeline, spark)
    frame = check.columns(check.read())
    check.partitions(frame)
    check.conditions(frame)
    check.keys(frame)
    for at, one in enumerate(pipeline.aggregates):
        check.aggregate(frame, at, one)
    if not check.found and not rule_problems(pipeline):
        check.streaming(frame.schema)
    return check.found


class _SqlCheck:
    """Checks the types and the SQL of one pipeline."""

    def __init__(self, pipeline: Pipeline, spark: SparkSession) -> None:
        self.found: list[Problem] = []
        self._pipeline = pipeline
        self._spark = spark

    def read(self) -> DataFrame:
        """An empty DataFrame of [schema] and [payload].

        An invalid type becomes void, so that SQL can still be checked.
        """
        wanted = self._pipeline.schema.items()
        columns = {
            name: self._type(("schema", name), text)
            for name, text in wanted
            if name.lower() not in OWN_COLUMNS
        }
        self._defaults(columns)
        payload = self._pipeline.payload
        schema = frames.source_schema(columns, None)
        if payload is not None:
            members = [
                StructField(name, self._type(("payload", "schema", name), text))
                for name, text in payload.schema.items()
            ]
            schema.add(payload.field, StructType(members)).add(PAYLOAD_PROBLEM, StringType())
        return self._spark.createDataFrame([], schema)

    def _type(self, path: KeyPath, text: str) -> DataType:
        try:
            kind = frames.parse_type(self._spark, text)
            one = StructType([StructField(str(path[-1]), kind)])
            EntrySchema(to_arrow_schema(one, timezone="UTC"))
        except (PySparkException, SchemaError) as error:
            self._add(path, f"{text!r} is not a type for a column: {cause_of(error)}")
            return NullType()
        return kind

    def _defaults(self, columns: Mapping[str, DataType]) -> None:
        for name, text in self._pipeline.defaults.items():
            if name in columns and not isinstance(columns[name], NullType):
                try:
                    default_value(text, columns[name])
                except DefaultError as error:
                    self._add(("schema", name), f"{name}: {error}")

    def columns(self, frame: DataFrame) -> DataFrame:
        """Check [columns] and the lookups, and add their columns. Each may use those before it."""
        shape = ShapeCheck(self._pipeline, self._spark, self._add)
        lookups = PendingLookups(self._pipeline.lookups, shape.table_of)
        frame = lookups.join_ready(frame)
        for name, sql in self._pipeline.columns.items():
            path = ("columns", name)
            made = F.lit(None)
            try:
                frame.where(F.expr(sql).isNotNull())  # refuses aggregates and generators of rows
                kind = frame.select(F.expr(sql)).schema[0].dataType
                if isinstance(kind, NullType | CalendarIntervalType):
                    self._add(path, f"{name} is {kind.simpleString()}, which no table can hold")
                elif not _is_repeatable(frame, sql):
                    self._add(path, f"{name} may change between evaluations: {_REPEATABLE}")
                else:
                    made = F.expr(sql)
            except PySparkException as error:
                self._add(path, f"{name}: {cause_of(error)}")
            frame = lookups.join_ready(frame.withColumn(name, made))
        return frame

    def partitions(self, frame: DataFrame) -> None:
        """Check that the values of partition columns can name directories."""
        for name in self._pipeline.archive.partition_by:
            if name not in self._pipeline.scalars:
                continue  # `day`, or reported by definition/rules.py
            kind = frame.schema[name].dataType
            if not isinstance(kind, NullType) and not _names_directories(kind):
                what = f"{name} is {kind.simpleString()}, which cannot name a directory"
                self._add(("archive", "partition_by"), what)

    def conditions(self, frame: DataFrame) -> None:
        """Check the conditions: boolean, and without aggregates."""
        for name, sql in self._pipeline.valid.items():
            self._condition(frame, ("valid", name), sql)
        for at, table in enumerate(self._pipeline.tables):
            if table.delete_when:
                self._condition(frame, ("table", at, "delete_when"), table.delete_when)

    def _condition(self, frame: DataFrame, path: KeyPath, sql: str) -> None:
        name = path[-1]
        try:
            kind = frame.select(F.expr(sql)).schema[0].dataType
            if not isinstance(kind, BooleanType):
                self._add(path, f"{name} is {kind.simpleString()}, but must be boolean")
                return
            frame.where(F.expr(sql))
            if not _is_repeatable(frame, sql):
                self._add(path, f"{name} may change between evaluations: {_REPEATABLE}")
        except PySparkException as error:
            self._add(path, f"{name}: {cause_of(error)}")

    def keys(self, frame: DataFrame) -> None:
        """Check the columns of keys."""
        ShapeCheck(self._pipeline, self._spark, self._add).keys(frame)

    def aggregate(self, frame: DataFrame, at: int, one: Aggregate) -> None:
        """Check the durations and the time of an aggregate, then each measure."""
        if one.time not in frame.columns or set(one.group_by) - set(frame.columns):
            return  # reported by definition/rules.py
        path: KeyPath = ("aggregate", at)
        if not (one.window and one.watermark):
            return
        kind = frame.schema[one.time].dataType
        if isinstance(kind, NullType):
            return
        if kind.typeName() != "timestamp":
            self._add(
                (*path, "time"), f"{one.time} is {kind.simpleString()}, but must be timestamp"
            )
            return
        window = F.window(quoted(one.time), one.window)
        for key, act in (
            ("window", lambda: frame.groupBy(window).count()),
            ("watermark", lambda: frame.withWatermark(one.time, one.watermark)),
        ):
            self._duration((*path, key), getattr(one, key), act)
        for name, sql in one.measures.items():
            place = (*path, "measures", name)
            try:
                frame.groupBy(*map(quoted, one.group_by)).agg(F.expr(sql).alias(name))
                if _asks_clock(sql):
                    self._add(place, f"{name} may change between evaluations: {_REPEATABLE}")
            except PySparkException as error:
                self._add(place, f"{name}: {cause_of(error)}")

    def streaming(self, schema: StructType) -> None:
        """Find valid SQL that streaming does not support, such as count(distinct ...)."""
        source = self._spark.readStream.format("rate").load()
        nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
        stream = source.select(*nulls)
        java = self._spark._jvm
        assert java is not None
        checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        mode = java.org.apache.spark.sql.streaming.OutputMode.Append()
        for at, one in enumerate(self._pipeline.aggregates):
            if not (one.window and one.watermark):
                continue  # reported with the file: Spark's text for it would be "should be str, got str"
            try:
                made = frames.aggregate(stream, self._pipeline, one)
                checker.checkForStreaming(made._jdf.queryExecution().analyzed(), mode)
            except PySparkException as error:
                self._add(("aggregate", at, "measures"), cause_of(error))

    def _duration(self, path: KeyPath, text: str, act: Callable[[], object]) -> None:
        try:
            act()
        except PySparkException as error:
            why = "" if "CANNOT_PARSE_INTERVAL" in str(error) else f": {cause_of(error)}"
            self._add(path, f"{path[-1]} is {text!r}, but must be {DURATION_FORM}{why}")

    def _add(self, path: KeyPath, text: str) -> None:
        self.found.append(self._pipeline.problem(path, text))


def _names_directories(kind: DataType) -> bool:
    """Whether values of this type can name directories. Spark would treat binary as text."""
    return isinstance(kind, AtomicType) and not isinstance(kind, BinaryType)


def _is_repeatable(frame: DataFrame, sql: str) -> bool:
    """Whether a condition always gives the same result for the same entry."""
    plan = frame.select(F.expr(sql))._jdf.queryExecution().analyzed()
    return bool(plan.deterministic()) and not _asks_clock(sql)


def _asks_clock(sql: str) -> bool:
    bare = _QUOTED.sub(" ", sql)
    found = _CLOCK.search(bare) or re.search(r"\bunix_timestamp\s*\(\s*\)", bare, re.I)
    return found is not None


@contextmanager
def quiet_analysis() -> Iterator[None]:
    """Turn off the lines that pyspark logs for each refused expression: they are reported as problems."""
    # PySparkLogger, because the first call for a name decides the class of the logger.
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    were = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, were, strict=True):
            logger.disabled = was
