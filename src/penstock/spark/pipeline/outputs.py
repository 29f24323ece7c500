"""The outputs of a pipeline. Each is a streaming query with its own checkpoint.

    output         reads                 writes
    bronze         every entry           LAKE/bronze
    silver         valid rows            LAKE/silver
    reject         all other rows        the stream of [reject]
    NAME           windows of silver     LAKE/gold/NAME, or the aggregate's path
    NAME.stream    the same              the aggregate's stream, if it has one

The checkpoint of an output is LAKE/_checkpoints/OUTPUT. An aggregate keeps its state there, and existing
state cannot be reused under a different definition. So the definition is stored in the checkpoint, and a file
with another one is refused before anything runs. Also refused: a file that does not match the existing
tables, and a stream that has had batches but has lost its checkpoint.
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
    checkpoint: str
    folder: str = ""
    stream: str = ""
    partition_by: tuple[str, ...] = ()
    aggregate: Aggregate | None = None
    path: KeyPath = ()


def outputs_of(pipeline: Pipeline) -> list[PipelineOutput]:
    """All outputs. bronze is the first."""
    wanted = pipeline.archive.partition_by
    untyped = tuple(name for name in wanted if name == "day")
    found = [
        _into_lake(pipeline, BRONZE, lake_path(pipeline, BRONZE), untyped),
        _into_lake(pipeline, SILVER, lake_path(pipeline, SILVER), wanted),
    ]
    if pipeline.reject:
        found.append(PipelineOutput(REJECT, _checkpoint(pipeline, REJECT), stream=pipeline.reject))
    for at, one in enumerate(pipeline.aggregates):
        path = ("aggregate", at)
        place = (_checkpoint(pipeline, one.name), gold_path(pipeline, one))
        found.append(
            PipelineOutput(one.name, *place, partition_by=("day",), aggregate=one, path=path),
        )
        if one.stream:
            name = one.name + STREAM_SUFFIX
            checkpoint = _checkpoint(pipeline, name)
            found.append(
                PipelineOutput(name, checkpoint, stream=one.stream, aggregate=one, path=path)
            )
    return found


def frame_of(spark: SparkSession, pipeline: Pipeline, output: PipelineOutput) -> DataFrame:
    """The streaming DataFrame of an output."""
    if output.name == BRONZE:
        return frames.bronze(spark, pipeline)
    typed = frames.typed(spark, pipeline, with_entry=output.name == REJECT)
    if output.name == REJECT:
        return frames.rejects(typed, pipeline)
    if output.aggregate is None:
        return frames.silver(typed, pipeline)
    made = frames.aggregate(typed, pipeline, output.aggregate)
    return frames.with_day(made) if output.folder else made


def state_problems(pipeline: Pipeline, spark: SparkSession) -> list[Problem]:
    """Conflicts with the state of earlier runs: tables, streams, changed aggregates."""
    files = LakeFiles(spark)
    found = [
        *_lake_problems(pipeline, spark, files),
        *_stream_problems(pipeline, files),
    ]
    for output in outputs_of(pipeline):
        if output.aggregate is None:
            continue
        try:
            before = json.loads(files.read(f"{output.checkpoint}/{RULE_FILE}"))
        except FileNotFoundError:
            continue
        changes = _changes(before, _rule(pipeline, spark, output.aggregate))
        if changes:
            place = output.folder or f"the stream {output.stream}"
            text = (
                f"output {output.name}: {changes}, so its checkpoint cannot be used. Undo the change,"
                f" or rename the aggregate, or delete {output.checkpoint} and {place}: it is then"
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
        if output.aggregate is not None and not files.exists(path):
            files.write(path, json.dumps(_rule(pipeline, spark, output.aggregate)))
        begun = _begun(output)
        if output.stream and not files.exists(begun) and _has_batches(files, output):
            files.write(begun, json.dumps({"stream": output.stream}))


def _begun(output: PipelineOutput) -> str:
    return f"{output.checkpoint}.begun.json"


def _has_batches(files: LakeFiles, output: PipelineOutput) -> bool:
    return bool(files.names(f"{output.checkpoint}/commits"))


def _into_lake(
    pipeline: Pipeline, name: str, folder: str, partition_by: tuple[str, ...]
) -> PipelineOutput:
    return PipelineOutput(name, _checkpoint(pipeline, name), folder, partition_by=partition_by)


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
