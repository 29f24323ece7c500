"""The outputs of a pipeline: each is a streaming query of its own, with a checkpoint of its own.

    output         reads                 writes
    bronze         every entry           LAKE/bronze
    silver         valid rows            LAKE/silver
    reject         all other rows        the stream of [reject]
    NAME           windows of silver     LAKE/gold/NAME, or the aggregate's path
    NAME.stream    the same              the aggregate's stream, if it has one

The checkpoint of an output is LAKE/_checkpoints/OUTPUT. An aggregate keeps state there, and state that was
counted by one rule cannot be gone on with by another. So what an aggregate is lies in its checkpoint, and a
file that says otherwise is refused before anything runs. So is one that does not fit the tables that are
there, and one whose stream has had batches and whose checkpoint is gone.
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

STREAM_SUFFIX = ".stream"  # no name of an aggregate has a point
RULE_FILE = "aggregate.json"


@dataclass(frozen=True, slots=True)
class Output:
    """One of them: rows go to a folder of the lake, or into a stream."""

    name: str
    checkpoint: str
    folder: str = ""
    stream: str = ""
    partition_by: tuple[str, ...] = ()
    aggregate: Aggregate | None = None
    path: KeyPath = ()


def outputs_of(pipeline: Pipeline) -> list[Output]:
    """All outputs; bronze is the first."""
    wanted = pipeline.archive.partition_by
    untyped = tuple(name for name in wanted if name == "day")
    found = [
        _into_lake(pipeline, BRONZE, lake_path(pipeline, BRONZE), untyped),
        _into_lake(pipeline, SILVER, lake_path(pipeline, SILVER), wanted),
    ]
    if pipeline.reject:
        found.append(Output(REJECT, _checkpoint(pipeline, REJECT), stream=pipeline.reject))
    for at, one in enumerate(pipeline.aggregates):
        path = ("aggregate", at)
        place = (_checkpoint(pipeline, one.name), gold_path(pipeline, one))
        found.append(
            Output(one.name, *place, partition_by=("day",), aggregate=one, path=path),
        )
        if one.stream:
            name = one.name + STREAM_SUFFIX
            checkpoint = _checkpoint(pipeline, name)
            found.append(Output(name, checkpoint, stream=one.stream, aggregate=one, path=path))
    return found


def frame_of(spark: SparkSession, pipeline: Pipeline, output: Output) -> DataFrame:
    """The rows of an output, as a stream."""
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
    """What does not fit what earlier runs have left: tables, streams, aggregates that were something else."""
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
                f"output {output.name}: {changes}, and its checkpoint cannot go on so. Undo the change,"
                f" or name the aggregate anew, or delete {output.checkpoint} and {place}: it is then"
                " counted again, from what the source still holds"
            )
            found.append(pipeline.problem(output.path, text))
    return found


def _lake_problems(pipeline: Pipeline, spark: SparkSession, files: LakeFiles) -> list[Problem]:
    """Columns and partitions that are not those of the tables that are there."""
    empty = spark.createDataFrame([], frames.schema_of(spark, pipeline))
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
                text = (
                    f"{output.folder} is partitioned by {was}, and not by {now}: archive elsewhere"
                )
                found.append(pipeline.problem(("archive", "partition_by"), text))
            elif output.name == SILVER:
                made = frames.silver(empty, pipeline)
                fit(with_partitions(made, output.partition_by), newest.schema)
        except ArchiveError as error:
            found.append(pipeline.problem(("archive", "path"), f"{output.folder}: {error}"))
    return found


def _stream_problems(pipeline: Pipeline, files: LakeFiles) -> list[Problem]:
    """Outputs whose checkpoint is gone: a stream would get everything once more."""
    return [
        pipeline.problem(
            output.path or ("reject", "stream"),
            f"output {output.name}: its checkpoint {output.checkpoint} is gone, so {output.stream} would get"
            f" all its entries again. Restore it; or, if that is what you want, delete {_begun(output)}",
        )
        for output in outputs_of(pipeline)
        if output.stream and files.exists(_begun(output)) and not _has_batches(files, output)
    ]


def note_state(pipeline: Pipeline, spark: SparkSession) -> None:
    """Write beside each checkpoint what its aggregate is, and whether a stream has had batches."""
    files = LakeFiles(spark)
    for output in outputs_of(pipeline):
        path = f"{output.checkpoint}/{RULE_FILE}"
        if output.aggregate is not None and not files.exists(path):
            files.write(path, json.dumps(_rule(pipeline, spark, output.aggregate)))
        begun = _begun(output)
        if output.stream and not files.exists(begun) and _has_batches(files, output):
            files.write(begun, json.dumps({"stream": output.stream}))


def _begun(output: Output) -> str:
    return f"{output.checkpoint}.begun.json"


def _has_batches(files: LakeFiles, output: Output) -> bool:
    return bool(files.names(f"{output.checkpoint}/commits"))


def _into_lake(pipeline: Pipeline, name: str, folder: str, partition_by: tuple[str, ...]) -> Output:
    return Output(name, _checkpoint(pipeline, name), folder, partition_by=partition_by)


def _checkpoint(pipeline: Pipeline, name: str) -> str:
    return lake_path(pipeline, CHECKPOINTS, name)


def _rule(pipeline: Pipeline, spark: SparkSession, one: Aggregate) -> dict[str, Any]:
    """What its state depends on; conditions may change, they only say what is counted from now on."""
    empty = spark.createDataFrame([], frames.schema_of(spark, pipeline))
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
        changed.remove("columns")  # it follows from the others
    return "; ".join(f"{name} was {before.get(name)} and is {now[name]}" for name in changed)
