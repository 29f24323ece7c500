"""The outputs of a pipeline, and the streaming queries that write them.

    query    output         holds                 in
    main     bronze         every entry           LAKE/bronze
             silver         valid rows            LAKE/silver
             reject         all other rows        the stream of [reject]
             TABLE          newest row by key     LAKE/tables/TABLE, or the table's path
    NAME     NAME           windows of silver     LAKE/gold/NAME, or the aggregate's path
             NAME.stream    the same              the aggregate's stream, if it has one
    any      a section      the same as silver    a table of a database, or a Python function
             [[output]]     or NAME

The checkpoint of a query is LAKE/_checkpoints/QUERY. Before `main`, each output was a query with its own
checkpoint. These stay where they are: they have the positions at which the outputs continue (joining.py).

An aggregate keeps its state in its checkpoint, and existing state cannot be reused under a different
definition. So the definition is stored there, and a file with another one is refused before anything runs.
Also refused: a file that does not match the existing tables, and a stream that has had batches but has lost
its checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.lake.columns import fit, with_partitions
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.formats import PARQUET, TablePlace, found_format
from penstock.spark.lake.manifest import ArchiveError, Manifest, damaged
from penstock.spark.lake.upsert import Upserts, definition_problem
from penstock.spark.pipeline.changes import column_problems, remedy
from penstock.spark.pipeline.definition.file import Aggregate, Pipeline
from penstock.spark.pipeline.definition.output_section import OutputSection
from penstock.spark.pipeline.definition.rules import (
    BRONZE,
    CHECKPOINTS,
    MAIN,
    REJECT,
    SILVER,
    gold_path,
    lake_path,
    table_path,
)
from penstock.spark.pipeline.definition.shaping import UpsertTable
from penstock.spark.pipeline.definition.toml_lines import KeyPath
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.rebuild.swap import Swap
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.silver_stream import read_silver

STREAM_SUFFIX = ".stream"  # the name of an aggregate has no dot
RULE_FILE = "aggregate.json"


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """One output. It writes to a directory of the lake, to a stream, or where its section says."""

    name: str
    checkpoint: str  # of its query
    former: str  # the checkpoint of the query that it had for itself
    folder: str = ""
    stream: str = ""
    partition_by: tuple[str, ...] = ()
    aggregate: Aggregate | None = None
    table: UpsertTable | None = None
    path: KeyPath = ()
    section: OutputSection | None = None


@dataclass(frozen=True, slots=True)
class PipelineQuery:
    """One streaming query and its outputs."""

    name: str
    checkpoint: str
    outputs: tuple[PipelineOutput, ...]

    @property
    def aggregate(self) -> Aggregate | None:
        return self.outputs[0].aggregate


def queries_of(pipeline: Pipeline) -> list[PipelineQuery]:
    """All queries. `main` is the first."""
    found: dict[str, list[PipelineOutput]] = {}
    for output in outputs_of(pipeline):
        found.setdefault(output.checkpoint, []).append(output)
    return [
        PipelineQuery(path.rpartition("/")[2], path, tuple(outputs))
        for path, outputs in found.items()
    ]


def outputs_of(pipeline: Pipeline) -> list[PipelineOutput]:
    """All outputs. bronze is the first."""
    main = _checkpoint(pipeline, MAIN)
    wanted = pipeline.archive.partition_by
    untyped = tuple(name for name in wanted if name == "day")
    found = [
        _into_lake(pipeline, BRONZE, lake_path(pipeline, BRONZE), untyped),
        _into_lake(pipeline, SILVER, lake_path(pipeline, SILVER), wanted),
    ]
    if pipeline.reject:
        former = _checkpoint(pipeline, REJECT)
        found.append(PipelineOutput(REJECT, main, former, stream=pipeline.reject))
    for at, table in enumerate(pipeline.tables):
        former = _checkpoint(pipeline, table.name)  # there was none
        folder = table_path(pipeline, table)
        found.append(
            PipelineOutput(table.name, main, former, folder, table=table, path=("table", at))
        )
    for at, one in enumerate(pipeline.aggregates):
        path = ("aggregate", at)
        own = _checkpoint(pipeline, one.name)
        found.append(
            PipelineOutput(
                *(one.name, own, own, gold_path(pipeline, one)),
                partition_by=("day",),
                aggregate=one,
                path=path,
            )
        )
        if one.stream:
            name = one.name + STREAM_SUFFIX
            former = _checkpoint(pipeline, name)
            found.append(
                PipelineOutput(name, own, former, stream=one.stream, aggregate=one, path=path)
            )
    return [*found, *_section_outputs(pipeline)]


def _section_outputs(pipeline: Pipeline) -> Iterator[PipelineOutput]:
    aggregates = {one.name: one for one in pipeline.aggregates}
    for at, one in enumerate(pipeline.sections):
        aggregate = None if one.is_of_silver else aggregates[one.source]
        own = _checkpoint(pipeline, MAIN if aggregate is None else aggregate.name)
        path = ("output", at)
        yield PipelineOutput(one.name, own, own, aggregate=aggregate, path=path, section=one)


def frame_of(spark: SparkSession, pipeline: Pipeline, query: PipelineQuery) -> DataFrame:
    """The streaming DataFrame of a query."""
    if query.aggregate is None:
        return frames.main_rows(spark, pipeline)
    if pipeline.decides_rows:
        schema = frames.silver(frames.no_rows(spark, pipeline), pipeline).schema
        limit = pipeline.source.options.get("maxEntriesPerTrigger")
        rows = read_silver(spark, lake_path(pipeline, SILVER), schema, limit)
        return frames.windows(rows, query.aggregate)
    return frames.aggregate(frames.typed(spark, pipeline), pipeline, query.aggregate)


def table_of(pipeline: Pipeline, output: PipelineOutput) -> TablePlace:
    """The table of an output in the lake."""
    archive = pipeline.archive
    return TablePlace(output.folder, archive.format, output.name, archive.path, archive.catalog)


def state_problems(
    pipeline: Pipeline, spark: SparkSession, is_rebuilt: bool = False
) -> list[Problem]:
    """Conflicts with the state of earlier runs: tables, streams, changed aggregates.

    With `is_rebuilt`, only those that remain when silver and the aggregates are computed again.
    """
    files = LakeFiles(spark)
    if Swap(files, pipeline).is_interrupted:
        return []  # the next run finishes it before it checks
    found = [
        *(_rebuild_problems(pipeline) if is_rebuilt else ()),
        *(_format_problems(pipeline, files) or _lake_problems(pipeline, spark, files, is_rebuilt)),
        *_stream_problems(pipeline, files),
    ]
    for output in () if is_rebuilt else outputs_of(pipeline):
        if output.aggregate is None or not output.folder:
            continue
        path = f"{output.checkpoint}/{RULE_FILE}"
        try:
            before = json.loads(files.read(path))
        except FileNotFoundError:
            continue
        except ValueError:
            found.append(pipeline.problem(output.path, str(damaged(path))))
            continue
        changes = _changes(before, rule_of(pipeline, spark, output.aggregate))
        if changes:
            text = (
                f"output {output.name}: {changes}, so its checkpoint cannot be used. Undo the change,"
                f" rename the aggregate, or {remedy(pipeline)}"
            )
            found.append(pipeline.problem(output.path, text))
    return found


def _rebuild_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """What --from-archive cannot compute again."""
    if pipeline.archive.format != PARQUET:
        text = (
            f"--from-archive works with Parquet only, and the tables are {pipeline.archive.format}: replay"
            " bronze into a stream (penstock replay --from-lake), and archive that into another directory"
        )
        yield pipeline.problem(("archive", "format"), text)
    if pipeline.dedup is not None:
        yield pipeline.problem(("dedup",), "--from-archive cannot drop duplicates: remove [dedup]")


def _format_problems(pipeline: Pipeline, files: LakeFiles) -> list[Problem]:
    """Tables that were written in another format."""
    wanted, problems = pipeline.archive.format, []
    for output in outputs_of(pipeline):
        found = found_format(files, files.qualify(output.folder)) if output.folder else None
        if found not in (None, wanted):
            text = (
                f"{output.folder} is in the format {found}, and a table cannot change its format: set"
                f' format = "{found}", or archive into another directory'
            )
            problems.append(pipeline.problem(("archive", "format"), text))
    return problems


def _lake_problems(
    pipeline: Pipeline, spark: SparkSession, files: LakeFiles, is_rebuilt: bool
) -> list[Problem]:
    """Columns and partitions that do not go with those of existing tables."""
    found = []
    for output in outputs_of(pipeline):
        if not output.folder or output.aggregate is not None:
            continue
        if is_rebuilt and output.name == SILVER:
            continue
        try:
            newest = table_of(pipeline, output).newest_or_none(files)
            if newest is None:
                continue
            problem = "" if output.table is None else _table_problem(newest, output.table)
            if problem:
                found.append(pipeline.problem(output.path, f"{output.folder}: {problem}"))
            elif newest.partition_by != output.partition_by:
                was, now = (
                    ", ".join(one) or "nothing"
                    for one in (newest.partition_by, output.partition_by)
                )
                text = f"{output.folder} is partitioned by {was}, not by {now}: archive elsewhere"
                if output.name == SILVER:
                    text += f", or {remedy(pipeline)}"
                found.append(pipeline.problem(("archive", "partition_by"), text))
            elif output.name == SILVER:
                found += column_problems(pipeline, spark, newest)
            elif output.table is not None:
                made = frames.silver(frames.no_rows(spark, pipeline), pipeline)
                fit(with_partitions(made, output.partition_by), newest.schema)
        except ArchiveError as error:
            found.append(pipeline.problem(("archive", "path"), f"{output.folder}: {error}"))
    return found


def _table_problem(newest: Manifest, table: UpsertTable) -> str:
    return definition_problem(newest, Upserts(table.key, buckets=table.buckets))


def _stream_problems(pipeline: Pipeline, files: LakeFiles) -> list[Problem]:
    """Outputs whose checkpoint is missing: they would get all entries again."""
    return [
        pipeline.problem(
            output.path or ("reject", "stream"),
            f"output {output.name}: its checkpoint {output.checkpoint} is missing, so {_goal(output)} would"
            f" get all entries again. Restore it; or, to write them again, delete {_begun(output)}",
        )
        for output in outputs_of(pipeline)
        if not output.folder and files.exists(_begun(output)) and not _has_batches(files, output)
    ]


def _goal(output: PipelineOutput) -> str:
    section = output.section
    return output.stream if section is None else section.table or section.call


def note_state(pipeline: Pipeline, spark: SparkSession) -> None:
    """Store the definition of each aggregate, and which other outputs have had batches."""
    files = LakeFiles(spark)
    for output in outputs_of(pipeline):
        path = f"{output.checkpoint}/{RULE_FILE}"
        if output.aggregate is not None and output.folder and not files.exists(path):
            files.write(path, json.dumps(rule_of(pipeline, spark, output.aggregate)))
        begun = _begun(output)
        if not output.folder and not files.exists(begun) and _has_batches(files, output):
            files.write(begun, json.dumps({"stream": output.stream}))


def _begun(output: PipelineOutput) -> str:
    above = output.checkpoint.rpartition("/")[0]
    return f"{above}/{output.name}.begun.json"


def _has_batches(files: LakeFiles, output: PipelineOutput) -> bool:
    return any(files.names(f"{one}/commits") for one in (output.checkpoint, output.former))


def _into_lake(
    pipeline: Pipeline, name: str, folder: str, partition_by: tuple[str, ...]
) -> PipelineOutput:
    main, former = _checkpoint(pipeline, MAIN), _checkpoint(pipeline, name)
    return PipelineOutput(name, main, former, folder, partition_by=partition_by)


def _checkpoint(pipeline: Pipeline, name: str) -> str:
    return lake_path(pipeline, CHECKPOINTS, name)


def rule_of(pipeline: Pipeline, spark: SparkSession, one: Aggregate) -> dict[str, Any]:
    """The definition that the state depends on. Conditions may change: they affect only new rows."""
    empty = frames.no_rows(spark, pipeline)
    made = frames.aggregate(empty, pipeline, one)
    return {
        "time": one.time,
        "window": one.window,
        "group_by": list(one.group_by),
        "measures": dict(one.measures),
        "columns": made.schema.simpleString(),
    }


def _changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    changed = [name for name in now if before.get(name) != now[name]]
    if len(changed) > 1 and "columns" in changed:
        changed.remove("columns")  # a consequence of the others
    return "; ".join(f"{name} was {before.get(name)} and is {now[name]}" for name in changed)
