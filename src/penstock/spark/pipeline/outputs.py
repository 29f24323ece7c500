"""The outputs of a pipeline, and the streaming queries that write them.

    query    output         holds                 in
    main     bronze         every entry           LAKE/bronze
             silver         valid rows            LAKE/silver
             reject         all other rows        the stream of [reject]
    NAME     NAME           windows of silver     LAKE/gold/NAME, or the aggregate's path
             NAME.stream    the same              the aggregate's stream, if it has one

The checkpoint of a query is LAKE/_checkpoints/QUERY. Before `main`, each output was a query with its own
checkpoint. These stay where they are: they have the positions at which the outputs continue (joining.py).

An aggregate keeps its state in its checkpoint, and existing state cannot be reused under a different
definition. So the definition is stored there, and a file with another one is refused before anything runs.
Also refused: a file that does not match the existing tables, and a stream that has had batches but has lost
its checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.lake.columns import fit, with_partitions
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.manifest import ArchiveError, load_newest_or_none
from penstock.spark.pipeline import frames
from penstock.spark.pipeline.file import Aggregate, Pipeline
from penstock.spark.pipeline.rules import (
    BRONZE,
    CHECKPOINTS,
    MAIN,
    REJECT,
    SILVER,
    gold_path,
    lake_path,
)
from penstock.spark.pipeline.toml_lines import KeyPath
from penstock.spark.pipeline.toml_table import Problem

STREAM_SUFFIX = ".stream"  # the name of an aggregate has no dot
RULE_FILE = "aggregate.json"


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """One output. It writes to a directory of the lake or to a stream."""

    name: str
    checkpoint: str  # of its query
    former: str  # the checkpoint of the query that it had for itself
    folder: str = ""
    stream: str = ""
    partition_by: tuple[str, ...] = ()
    aggregate: Aggregate | None = None
    path: KeyPath = ()


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
    return found


def frame_of(spark: SparkSession, pipeline: Pipeline, query: PipelineQuery) -> DataFrame:
    """The streaming DataFrame of a query."""
    if query.aggregate is None:
        return frames.main_rows(spark, pipeline)
    return frames.aggregate(frames.typed(spark, pipeline), pipeline, query.aggregate)


def state_problems(pipeline: Pipeline, spark: SparkSession) -> list[Problem]:
    """Conflicts with the state of earlier runs: tables, streams, changed aggregates."""
    files = LakeFiles(spark)
    found = [
        *_lake_problems(pipeline, spark, files),
        *_stream_problems(pipeline, files),
    ]
    for output in outputs_of(pipeline):
        if output.aggregate is None or not output.folder:
            continue
        try:
            before = json.loads(files.read(f"{output.checkpoint}/{RULE_FILE}"))
        except FileNotFoundError:
            continue
        changes = _changes(before, _rule(pipeline, spark, output.aggregate))
        if changes:
            text = (
                f"output {output.name}: {changes}, so its checkpoint cannot be used. Undo the change,"
                f" or rename the aggregate, or delete {output.checkpoint} and {output.folder}: it is then"
                " computed again from the entries that the source still has"
            )
            found.append(pipeline.problem(output.path, text))
    return found


def _lake_problems(pipeline: Pipeline, spark: SparkSession, files: LakeFiles) -> list[Problem]:
    """Columns and partitions that differ from those of existing tables."""
    empty = frames.no_rows(spark, pipeline)
    found = []
    for output in outputs_of(pipeline):
        if not output.folder or output.aggregate is not None:
            continue
        try:
            newest = load_newest_or_none(files, files.qualify(output.folder))
            if newest is None:
                continue
            if newest.partition_by != output.partition_by:
                was, now = (
                    ", ".join(one) or "nothing"
                    for one in (newest.partition_by, output.partition_by)
                )
                text = f"{output.folder} is partitioned by {was}, not by {now}: archive elsewhere"
                found.append(pipeline.problem(("archive", "partition_by"), text))
            elif output.name == SILVER:
                made = frames.silver(empty, pipeline)
                fit(with_partitions(made, output.partition_by), newest.schema)
        except ArchiveError as error:
            found.append(pipeline.problem(("archive", "path"), f"{output.folder}: {error}"))
    return found


def _stream_problems(pipeline: Pipeline, files: LakeFiles) -> list[Problem]:
    """Streams whose checkpoint is missing: they would get all entries again."""
    return [
        pipeline.problem(
            output.path or ("reject", "stream"),
            f"output {output.name}: its checkpoint {output.checkpoint} is missing, so {output.stream} would"
            f" get all entries again. Restore it; or, to write them again, delete {_begun(output)}",
        )
        for output in outputs_of(pipeline)
        if output.stream and files.exists(_begun(output)) and not _has_batches(files, output)
    ]


def note_state(pipeline: Pipeline, spark: SparkSession) -> None:
    """Store the definition of each aggregate, and whether a stream has had batches, with the checkpoint."""
    files = LakeFiles(spark)
    for output in outputs_of(pipeline):
        path = f"{output.checkpoint}/{RULE_FILE}"
        if output.aggregate is not None and output.folder and not files.exists(path):
            files.write(path, json.dumps(_rule(pipeline, spark, output.aggregate)))
        begun = _begun(output)
        if output.stream and not files.exists(begun) and _has_batches(files, output):
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


def _rule(pipeline: Pipeline, spark: SparkSession, one: Aggregate) -> dict[str, Any]:
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
