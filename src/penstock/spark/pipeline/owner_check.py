"""Finds lakes that belong to another pipeline, before a run mixes both.

A copied file with another `stream` and the same `path` would continue the checkpoints of the first one. So
the source must have a stream that the lake has read. And each table must have been written by a query whose
checkpoint is in the lake.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from penstock.core.glob import matches
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.manifest import ArchiveError, Manifest
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import BRONZE, sources_of
from penstock.spark.pipeline.definition.toml_table import Problem
from penstock.spark.pipeline.outputs import PipelineOutput, outputs_of, queries_of, table_of
from penstock.spark.pipeline.positions import Checkpoint
from penstock.spark.pipeline.rebuild.swap import Swap

STREAMS_SHOWN = 3


def owner_problems(
    pipeline: Pipeline, spark: SparkSession, is_rebuilt: bool = False
) -> list[Problem]:
    """A lake of another source, and tables of other queries. With `is_rebuilt`, of the tables only bronze."""
    files = LakeFiles(spark)
    if Swap(files, pipeline).is_interrupted:
        return []
    texts = [*_source_problems(pipeline, files), *_table_problems(pipeline, files, is_rebuilt)]
    return [pipeline.problem(("archive", "path"), text) for text in texts]


def _source_problems(pipeline: Pipeline, files: LakeFiles) -> Iterator[str]:
    known = _streams_read(pipeline, files)
    streams, pattern = sources_of(pipeline)
    keys = {key for name in known for key in _keys_of(name)}
    is_own = any(
        matches(_bytes(pattern), _bytes(key)) if pattern else key in streams for key in keys
    )
    if known and not is_own:
        shown = ", ".join(known[:STREAMS_SHOWN])
        yield (
            f"{pipeline.archive.path} is the lake of a pipeline that reads {shown}, and this one reads"
            f" {pattern or ', '.join(streams)}: archive into another directory. If one lake is to have both,"
            " name both in `stream`"
        )


def _streams_read(pipeline: Pipeline, files: LakeFiles) -> list[str]:
    """The streams of the last batch of `main`, or of the query that bronze had before."""
    main = queries_of(pipeline)[0]
    for path in (main.checkpoint, main.outputs[0].former):
        log = Checkpoint(files, path)
        last = log.batch(log.planned)
        if last is not None:
            return list(last.end.streams)
    return []


def _keys_of(name: str) -> list[str]:
    """The keys that a name in an offset may stand for: with several servers, a label is before the key."""
    _, space, key = name.partition(" ")
    return [name, key] if space else [name]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _table_problems(pipeline: Pipeline, files: LakeFiles, is_rebuilt: bool) -> Iterator[str]:
    for output in outputs_of(pipeline):
        newest = _newest_or_none(pipeline, files, output) if output.folder else None
        if newest is None or (is_rebuilt and output.name != BRONZE):
            continue
        owner = Checkpoint(files, output.checkpoint).query
        formers = [
            one.former for one in outputs_of(pipeline) if one.checkpoint == output.checkpoint
        ]
        owners = [owner, *(Checkpoint(files, path).query for path in formers)]
        if newest.query not in owners:
            state = "is missing" if owner is None else f"is that of query {owner}"
            yield (
                f"{output.folder} was written by query {newest.query}, and the checkpoint"
                f" {output.checkpoint} {state}: entries would be archived twice. Restore the old checkpoint,"
                " or archive into another directory"
            )


def _newest_or_none(
    pipeline: Pipeline, files: LakeFiles, output: PipelineOutput
) -> Manifest | None:
    try:
        return table_of(pipeline, output).newest_or_none(files)
    except ArchiveError:
        return None  # reported with the columns
