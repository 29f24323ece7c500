"""Brings the outputs of a pipeline to the position of their query, before the queries start.

A query may have passed entries that an output does not have: the output is new, or it was missing in the file
for some runs. Such an output first catches up alone. Then it joins, and gets each batch with the others.

    bronze, silver, reject    read the source from their own position to that of `main`
    TABLE                     reads silver in the same way
    NAME.stream               reads the table of the aggregate from its own watermark on
    [[output]]                reads silver or that table (section_joining.py)

An output that has a position needs all entries after it. If some of them were trimmed from the source, the
run is refused, as a query is that has lost entries.

Spark does not store where the first batch of a query starts, and `latest` is another place in each run. So
the start of each query is noted before it runs: a first batch that is killed is repeated from there.

Before `main`, each output was a query of its own, with its own checkpoint LAKE/_checkpoints/OUTPUT. If `main`
has not run yet, the outputs catch up with the one that is furthest, and `main` starts there. joined_state.py
stores which streams have joined.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.stream_id import SMALLEST, parse
from penstock.spark.connection import Servers, StreamName
from penstock.spark.lake.archive import older_checkpoint
from penstock.spark.lake.files import LakeFiles
from penstock.spark.lake.manifest import ArchiveError, Manifest
from penstock.spark.pipeline.definition.file import Pipeline, Source
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, MAIN, SILVER, lake_path
from penstock.spark.pipeline.joined_state import JoinedStates, identity_of
from penstock.spark.pipeline.outputs import (
    STREAM_SUFFIX,
    PipelineOutput,
    PipelineQuery,
    queries_of,
    table_of,
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
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.rows.id_filter import between
from penstock.spark.pipeline.section_joining import SectionJoin
from penstock.spark.pipeline.targets.batches import (
    TableBatch,
    add_to_table,
    append,
    former_queries,
    position_of,
    windows_after,
)
from penstock.spark.pipeline.targets.failed_sql import failed_sql
from penstock.spark.pipeline.targets.output_error import OutputError
from penstock.spark.pipeline.targets.preparing import marked_once
from penstock.spark.pipeline.targets.upserts import silver_rows, upsert
from penstock.spark.replay import archived
from penstock.spark.sink.staging import Write
from penstock.spark.sink.writer import batch_write
from penstock.spark.source.bounds import EARLIEST, LATEST, start_position, streams_of
from penstock.spark.source.offsets import Offset, Position
from penstock.spark.source.options import parse_options
from penstock.spark.source.planning import DataLoss, loss_text, lost_or_none
from penstock.spark.source.stream_state import state_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Joined:
    """The source as each query starts it, and the watermark after which each stream gets windows."""

    pipeline: Pipeline
    sources: Mapping[str, Source]
    watermarks: Mapping[str, int | None]

    def pipeline_of(self, query: PipelineQuery) -> Pipeline:
        """The pipeline with the source of one query."""
        return replace(self.pipeline, source=self.sources[query.name])


def join_outputs(pipeline: Pipeline, spark: SparkSession) -> Joined:
    """Let each output catch up with its query."""
    with Servers(pipeline.source.place) as servers:
        join = _Join(pipeline, spark, servers)
        join.note_missing()
        main, *aggregates = queries_of(pipeline)
        sources = {MAIN: join.main(main)} | {one.name: join.aggregate(one) for one in aggregates}
        watermarks = {name: at for one in aggregates for name, at in join.windows(one)}
        return Joined(pipeline, sources, watermarks)


def note_windows(pipeline: Pipeline, spark: SparkSession) -> None:
    """Note up to which watermark the stream of each aggregate has windows, before its query is replaced."""
    with Servers(pipeline.source.place) as servers:
        join = _Join(pipeline, spark, servers)
        for query in queries_of(pipeline)[1:]:
            join.note_windows(query)


class _Join:
    """Joins the outputs of one pipeline."""

    def __init__(self, pipeline: Pipeline, spark: SparkSession, servers: Servers) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._servers = servers
        self._files = LakeFiles(spark)
        self._states = JoinedStates(self._files, lake_path(pipeline, CHECKPOINTS))
        self._sections = SectionJoin(pipeline, spark, self._states)

    def main(self, query: PipelineQuery) -> Source:
        """Bring the outputs of `main` to one position. Returns the source that starts there."""
        log = self._log(query.checkpoint)
        if not log.is_used:
            self._forget_other_start(query)
        has = {output.name: self._position(query, output) for output in query.outputs}
        for name, position in has.items():
            self._check_checkpoint(log, name, position)
        done = log.batch(log.committed)
        if done is None:
            start = self._start_of_main(log, furthest(has.values()))
            goal = start or {}
        else:
            start, goal = None, ids_of(done.end)
        for output in query.outputs:
            if goal and not has_all(has[output.name], _offset(goal)):
                self._catch_up(query, output, has[output.name], goal)
            if output.section is not None:
                self._sections.note_joined(query, output, goal)
                continue
            state = self._states.read(output.name) if output.stream else {"after": {}}
            if "after" not in state:
                self._states.write(output.name, {"stream": output.stream, "after": goal})
        return self._source_from(start)

    def aggregate(self, query: PipelineQuery) -> Source:
        """The source of an aggregate, which starts with `main` if that is as new."""
        log = self._log(query.checkpoint)
        newest = self._newest(query.outputs[0])
        if newest is not None and newest.query == log.query and newest.batch > log.planned:
            raise older_checkpoint(query.outputs[0].folder, newest.batch, log.planned)
        if log.committed >= 0 or self._pipeline.decides_rows:
            return self._pipeline.source
        noted = self._states.read(query.name)
        if log.is_used or noted.get("starting") == self._starting:
            return self._source_from(noted.get("start"))
        main = self._states.read(MAIN)
        is_new = self._log(lake_path(self._pipeline, CHECKPOINTS, MAIN)).committed < 0
        begins = is_new and main.get("starting") == self._starting
        start = main["start"] if begins else self._chosen_start()
        self._states.write(query.name, {"start": start, "starting": self._starting})
        return self._source_from(start)

    def _check_checkpoint(self, log: Checkpoint, output: str, position: Ids) -> None:
        """Check that an output is not ahead of the last batch that Spark has planned. Raises: ArchiveError.

        After a power cut, or if a backup is restored, Spark would plan that batch again with another end.
        Outputs that store the number of a batch would take it for the one they have.
        """
        planned = log.batch(log.planned)
        ends = {} if planned is None else planned.end.streams
        for name, text in position.items():
            end = ends.get(name)
            if end is not None and end.id < parse(text.encode()):
                raise ArchiveError(
                    f"output {output} has entries of {name} up to {text}, but its query is at {end.id}: the"
                    " checkpoint is older than the lake. Restore the newer checkpoint, or make all outputs"
                    f" again: penstock pipeline reset {self._pipeline.file}"
                )

    @property
    def _starting(self) -> str:
        """What the file says about the start."""
        options = self._pipeline.source.options
        return options.get("startingTimestamp") or options.get("startingOffsets", "")

    def _start_of_main(self, log: Checkpoint, has: dict[str, str]) -> dict[str, str] | None:
        """The position at which the first batch starts, and which the outputs get before it."""
        noted = self._states.read(MAIN)
        if log.is_used:
            return noted.get("start")
        if noted.get("starting") == self._starting:
            return furthest([noted["start"], has])
        start = has or self._chosen_start()
        starting = None if has else self._starting  # of the former layout: `starting` has no effect
        self._states.write(MAIN, {"start": start, "starting": starting})
        return start

    def _forget_other_start(self, query: PipelineQuery) -> None:
        """Forget where the outputs joined if `starting` has changed before `main` had a batch."""
        noted = self._states.read(MAIN).get("starting")
        if noted is None or noted == self._starting:
            return
        for output in query.outputs:
            state = {} if output.folder else self._states.read(output.name)
            if "after" in state:
                self._states.write(output.name, identity_of(state))

    def _chosen_start(self) -> dict[str, str]:
        """The position that `starting` means now. Empty for the earliest entry."""
        options = parse_options(dict(self._pipeline.source.options))
        starting = options.starting or LATEST
        if starting == EARLIEST:
            return {}
        return {
            name: str(start_position(starting, name, stream, state_of(self._servers, stream)).id)
            for name, stream in streams_of(self._servers, options).items()
        }

    def _source_from(self, start: Ids | None) -> Source:
        """The source, for a query that starts after a position. None: Spark knows where it is."""
        if start is None:
            return self._pipeline.source
        options = dict(self._pipeline.source.options)
        parsed = parse_options(options)
        # The source refuses a start for a stream that was removed from the file.
        known = streams_of(self._servers, parsed) if parsed.streams else start
        ids = {name: one for name, one in start.items() if name in known}
        options.pop("startingTimestamp", None)
        options["startingOffsets"] = json.dumps(after(ids)) if ids else "earliest"
        return Source(options)

    def windows(self, query: PipelineQuery) -> list[tuple[str, int | None]]:
        """Let the other outputs of an aggregate catch up with the table."""
        return [(one.name, self._windows(query, one)) for one in query.outputs if not one.folder]

    def note_windows(self, query: PipelineQuery) -> None:
        """Note the positions of an aggregate's other outputs. In the next run they catch up with it."""
        for output in query.outputs:
            if output.section is not None:
                self._leave(output.name, self._sections.watermark(query, output))
            elif not output.folder:
                self._leave(output.name)

    def note_missing(self) -> None:
        """Note the positions of outputs that are not in the file any more."""
        every = [output for query in queries_of(self._pipeline) for output in query.outputs]
        wanted = {MAIN, *(output.name for output in every if not output.folder)}
        for name in self._states.names() - wanted:
            self._leave(name)

    def _position(self, query: PipelineQuery, output: PipelineOutput) -> Ids:
        """The position of an output of `main`."""
        if output.section is not None:
            return self._sections.position(query, output)
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
        if output.table is not None:
            rows = self._silver_or_none(query, has, goal)
            if rows is not None:
                upsert(output.folder, output.table, rows, self._owners(query), _offset(goal))
            return
        if not has and self._pipeline.source.options.get("startingOffsets") != "earliest":
            return  # a new output starts where `main` is
        if output.section is not None:
            rows = self._silver_or_none(query, has, goal)
            if rows is not None:
                self._sections.catch_up(query, output, rows, furthest([has, goal]))
            return
        self._check_trims(query, output, has, goal)
        try:
            self._catch_up_from_source(query, output, has, goal)
        except (PySparkException, Py4JError) as error:
            problem = failed_sql(self._pipeline, error, lambda: self._entries(has, goal))
            if problem is None:
                raise
            raise OutputError(f"output {output.name}: {problem}") from None

    def _catch_up_from_source(
        self, query: PipelineQuery, output: PipelineOutput, has: Ids, goal: Ids
    ) -> None:
        members = frames.members_of(self._spark, self._pipeline)
        rows = frames.rows_of(self._entries(has, goal), self._pipeline, members)
        if output.name == SILVER:
            rows = marked_once(self._pipeline, rows, has, goal)
        if output.stream:
            reset = self._states.read(output.name).get("reset")
            words = json.dumps([output.stream, dict(has), dict(goal), *([reset] if reset else [])])
            name = f"join-{sha256(words.encode()).hexdigest()[:16]}"
            append(self._pipeline, output.stream, frames.rejects(rows, self._pipeline), name)
            return
        archive = table_of(self._pipeline, output).writer(output.partition_by)
        batch = TableBatch(rows, self._owners(query), _offset(goal))
        add_to_table(archive, self._pipeline, output, batch)

    def _silver_or_none(self, query: PipelineQuery, has: Ids, goal: Ids) -> DataFrame | None:
        """The rows of silver after one position up to another. Silver comes first, so it has reached that.

        None in a new pipeline that does not start with the earliest entry.
        """
        silver = next(one for one in query.outputs if one.name == SILVER)
        if self._newest(silver) is None:
            return None
        rows = silver_rows(self._spark, self._pipeline, table_of(self._pipeline, silver))
        return between(rows, has, goal)

    def _check_trims(
        self, query: PipelineQuery, output: PipelineOutput, has: Ids, goal: Ids
    ) -> None:
        """Check that no entry between two positions was trimmed. Raises: DataLoss, with failOnDataLoss.

        Without a count of the entries up to the first position, every trim after it counts.
        """
        options = parse_options(dict(self._pipeline.source.options))
        logs = [self._log(query.checkpoint), self._log(output.former)]
        for name, stream in streams_of(self._servers, options).items():
            if name not in has or has_all(has, _offset({name: goal.get(name, has[name])})):
                continue
            at = parse(has[name].encode())
            counts = (log.added_at(name, at) for log in logs)
            n = next((one for one in counts if one is not None), 0)
            lost = lost_or_none(name, Position(at, n), state_of(self._servers, stream))
            if lost is not None and options.fail_on_data_loss:
                raise DataLoss(f"output {output.name}: {loss_text(lost)}")
            if lost is not None:
                logger.warning("output %s: %s", output.name, lost)

    def _owners(self, query: PipelineQuery) -> list[str]:
        found = [self._log(query.checkpoint).query, *former_queries(self._files, query)]
        return [one for one in found if one is not None]

    def _entries(self, has: Ids, goal: Ids) -> DataFrame:
        """The entries after one position up to another. Streams that the second one lacks have none."""
        options = parse_options(dict(self._pipeline.source.options))
        nothing = dict.fromkeys(streams_of(self._servers, options), str(SMALLEST))
        return frames.stored_entries(self._spark, self._pipeline, after(has), {**nothing, **goal})

    def _section_windows(self, query: PipelineQuery, output: PipelineOutput) -> int | None:
        has_joined, joined_ms = self._sections.joined_at(query, output)
        if has_joined:
            return joined_ms
        has = self._sections.watermark(query, output)
        newest = self._newest(query.outputs[0])
        done = None if newest is None else self._log(query.checkpoint).batch(newest.batch)
        if newest is not None and done is not None:
            table = table_of(self._pipeline, query.outputs[0])
            rows = windows_after(archived(self._spark, table), has).drop("day")
            self._sections.catch_up_windows(query, output, rows, newest.batch)
            has = max(done.watermark_ms, has or 0)
        self._sections.note_windows(query, output, has)
        return has

    def _windows(self, query: PipelineQuery, output: PipelineOutput) -> int | None:
        if output.section is not None:
            return self._section_windows(query, output)
        state = self._states.read(output.name)
        if "after_ms" in state:
            return None if state["after_ms"] is None else int(state["after_ms"])
        former = self._former(output)
        has: int | None = state.get("left_ms", None if former is None else former.watermark_ms)
        log = self._log(query.checkpoint)
        newest = self._newest(query.outputs[0])
        done = None if newest is None else log.batch(newest.batch)
        if newest is not None and done is not None:
            table = table_of(self._pipeline, query.outputs[0])
            rows = windows_after(archived(self._spark, table), has)
            made = rows.drop("day").orderBy("window_start")
            append(self._pipeline, output.stream, made, str(log.query), newest.batch)
            has = max(done.watermark_ms, has or 0)
        self._states.write(output.name, {"stream": output.stream, "after_ms": has})
        return has

    def _leave(self, name: str, recorded_ms: int | None = None) -> None:
        """Note the position of an output. Its database may be ahead, at the watermark `recorded_ms`."""
        state = self._states.read(name)
        if "after" not in state and "after_ms" not in state:
            return
        is_main = "after" in state
        place = state.get("query") or (MAIN if is_main else name.removesuffix(STREAM_SUFFIX))
        checkpoint = lake_path(self._pipeline, CHECKPOINTS, place)
        log = self._log(checkpoint)
        if "stream" in state:
            kept = {"stream": state["stream"]}
            last = self._reached(checkpoint, state["stream"])
        else:
            kept = identity_of(state)
            last = log.batch(log.committed)
        if is_main:
            left = state["after"] if last is None else ids_of(last.end)
            self._states.write(name, {**kept, "left": left})
            return
        known = [state["after_ms"], recorded_ms, None if last is None else last.watermark_ms]
        latest = max((one for one in known if one is not None), default=None)
        self._states.write(name, {**kept, "left_ms": latest})

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
        return table_of(self._pipeline, output).newest_or_none(self._files)

    def _log(self, checkpoint: str) -> Checkpoint:
        return Checkpoint(self._files, checkpoint)


def _offset(ids: Ids) -> Offset:
    return Offset({name: Position(parse(one.encode())) for name, one in ids.items()})
