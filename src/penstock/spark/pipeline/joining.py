"""Brings the outputs of a pipeline to the position of their query, before the queries start.

A query may have passed entries that an output does not have: the output is new, or it was missing in the file
for some runs. Such an output first catches up alone. Then it joins, and gets each batch with the others.

    bronze, silver, reject    read the source from their own position to that of `main`
    NAME.stream               reads the table of the aggregate from its own watermark on

Before `main`, each output was a query of its own, with its own checkpoint LAKE/_checkpoints/OUTPUT. If `main`
has not run yet, the outputs catch up with the one that is furthest, and `main` starts there. joined_state.py
stores which streams have joined.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from pyspark.sql import DataFrame, SparkSession

from penstock.core.stream_id import SMALLEST, parse
from penstock.spark.connection import Servers, StreamName
from penstock.spark.lake.archive import ArchiveWriter
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.manifest import Manifest, load_newest_or_none
from penstock.spark.pipeline import frames
from penstock.spark.pipeline.file import Pipeline, Source
from penstock.spark.pipeline.joined_state import JoinedStates
from penstock.spark.pipeline.outputs import (
    STREAM_SUFFIX,
    PipelineOutput,
    PipelineQuery,
    queries_of,
)
from penstock.spark.pipeline.positions import (
    Checkpoint,
    Ids,
    LoggedBatch,
    after,
    furthest,
    has_all,
    ids_of,
)
from penstock.spark.pipeline.rules import CHECKPOINTS, MAIN, REJECT, lake_path
from penstock.spark.pipeline.targets import (
    TableBatch,
    add_to_table,
    append,
    former_queries,
    position_of,
    windows_after,
)
from penstock.spark.replay import archived
from penstock.spark.sink.staging import Write
from penstock.spark.sink.writer import batch_write
from penstock.spark.source.bounds import streams_of
from penstock.spark.source.offsets import Offset, Position
from penstock.spark.source.options import parse_options


@dataclass(frozen=True, slots=True)
class Joined:
    """The pipeline with the start of `main`, and the watermark after which each stream gets windows."""

    pipeline: Pipeline
    watermarks: Mapping[str, int | None]


def join_outputs(pipeline: Pipeline, spark: SparkSession) -> Joined:
    """Let each output catch up with its query."""
    with Servers(pipeline.source.place) as servers:
        join = _Join(pipeline, spark, servers)
        join.note_missing()
        main, *aggregates = queries_of(pipeline)
        starting = join.main(main)
        return Joined(starting, {name: at for one in aggregates for name, at in join.windows(one)})


class _Join:
    """Joins the outputs of one pipeline."""

    def __init__(self, pipeline: Pipeline, spark: SparkSession, servers: Servers) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._servers = servers
        self._files = LakeFiles(spark)
        self._states = JoinedStates(self._files, lake_path(pipeline, CHECKPOINTS))

    def main(self, query: PipelineQuery) -> Pipeline:
        """Bring the outputs of `main` to one position. Returns the pipeline that starts there."""
        log = self._log(query.checkpoint)
        has = {output.name: self._position(query, output) for output in query.outputs}
        done = log.batch(log.committed)
        goal = furthest(has.values()) if done is None else ids_of(done.end)
        if log.is_used and done is None:
            goal = {}  # the first batch runs again, for all outputs
        for output in query.outputs:
            if goal and not has_all(has[output.name], _offset(goal)):
                self._catch_up(query, output, has[output.name], goal)
            state = self._states.read(output.name) if output.stream else {"after": {}}
            if "after" not in state:
                self._states.write(output.name, {"stream": output.stream, "after": goal})
        if log.is_used or not goal:
            return self._pipeline
        options = dict(self._pipeline.source.options)
        options.pop("startingTimestamp", None)
        options["startingOffsets"] = json.dumps(after(goal))
        return replace(self._pipeline, source=Source(options))

    def windows(self, query: PipelineQuery) -> list[tuple[str, int | None]]:
        """Let the stream of an aggregate catch up with the table."""
        return [(one.name, self._windows(query, one)) for one in query.outputs if one.stream]

    def note_missing(self) -> None:
        """Note the positions of streams that are not in the file any more."""
        every = [output for query in queries_of(self._pipeline) for output in query.outputs]
        wanted = {output.name for output in every if output.stream}
        for name in self._states.names() - wanted:
            self._leave(name)

    def _position(self, query: PipelineQuery, output: PipelineOutput) -> Ids:
        """The position of an output of `main`."""
        if output.folder:
            return position_of(self._newest(output), self._log(output.former))
        state = self._states.read(output.name)
        if "after" in state:
            last = self._reached(query.checkpoint, state["stream"])
            return dict(state["after"]) if last is None else ids_of(last.end)
        if "left" in state:
            return dict(state["left"])
        former = self._former(output)
        return {} if former is None else ids_of(former.end)

    def _catch_up(self, query: PipelineQuery, output: PipelineOutput, has: Ids, goal: Ids) -> None:
        if not has and self._pipeline.source.options.get("startingOffsets") != "earliest":
            return  # a new output starts where `main` is
        rows = self._rows(has, goal)
        if output.stream:
            words = json.dumps([output.stream, dict(has), dict(goal)])
            name = f"join-{sha256(words.encode()).hexdigest()[:16]}"
            append(self._pipeline, output.stream, frames.rejects(rows, self._pipeline), name)
            return
        owners = [self._log(query.checkpoint).query, *former_queries(self._files, query)]
        known = [one for one in owners if one is not None]
        archive = ArchiveWriter(output.folder, output.partition_by)
        add_to_table(archive, self._pipeline, output, TableBatch(rows, known, _offset(goal)))

    def _rows(self, has: Ids, goal: Ids) -> DataFrame:
        """The rows after one position up to another. Streams that the second one lacks have none."""
        options = parse_options(dict(self._pipeline.source.options))
        nothing = dict.fromkeys(streams_of(self._servers, options), str(SMALLEST))
        return frames.stored_rows(self._spark, self._pipeline, after(has), {**nothing, **goal})

    def _windows(self, query: PipelineQuery, output: PipelineOutput) -> int | None:
        state = self._states.read(output.name)
        if "after_ms" in state:
            return None if state["after_ms"] is None else int(state["after_ms"])
        former = self._former(output)
        has: int | None = state.get("left_ms", None if former is None else former.watermark_ms)
        log = self._log(query.checkpoint)
        newest = self._newest(query.outputs[0])
        done = None if newest is None else log.batch(newest.batch)
        if newest is not None and done is not None:
            rows = windows_after(archived(self._spark, query.outputs[0].folder), has)
            made = rows.drop("day").orderBy("window_start")
            append(self._pipeline, output.stream, made, str(log.query), newest.batch)
            has = max(done.watermark_ms, has or 0)
        self._states.write(output.name, {"stream": output.stream, "after_ms": has})
        return has

    def _leave(self, name: str) -> None:
        state = self._states.read(name)
        is_reject = name == REJECT
        if ("after" if is_reject else "after_ms") not in state:
            return
        place = MAIN if is_reject else name.removesuffix(STREAM_SUFFIX)
        last = self._reached(lake_path(self._pipeline, CHECKPOINTS, place), state["stream"])
        if is_reject:
            left = state["after"] if last is None else ids_of(last.end)
            self._states.write(name, {"stream": state["stream"], "left": left})
            return
        known = [state["after_ms"], None if last is None else last.watermark_ms]
        latest = max((one for one in known if one is not None), default=None)
        self._states.write(name, {"stream": state["stream"], "left_ms": latest})

    def _reached(self, checkpoint: str, stream: str) -> LoggedBatch | None:
        """The last batch of a query that a stream of it has."""
        log = self._log(checkpoint)
        query = log.query
        if query is None:
            return None
        return log.batch(max(log.committed, self._recorded(batch_write(query), stream)))

    def _former(self, output: PipelineOutput) -> LoggedBatch | None:
        """The last batch of the query that a stream had for itself."""
        log = self._log(output.former)
        query = log.query
        if query is None:
            return None
        return log.batch(max(log.committed, self._recorded(Write(query, 0), output.stream)))

    def _recorded(self, write: Write, stream: str) -> int:
        key = stream.encode("utf-8", "surrogateescape")
        found = self._servers.ask(StreamName(key), "GET", write.record_key(key))
        return -1 if found is None else int(found)

    def _newest(self, output: PipelineOutput) -> Manifest | None:
        return load_newest_or_none(self._files, self._files.qualify(output.folder))

    def _log(self, checkpoint: str) -> Checkpoint:
        return Checkpoint(self._files, checkpoint)


def _offset(ids: Ids) -> Offset:
    return Offset({name: Position(parse(one.encode())) for name, one in ids.items()})
