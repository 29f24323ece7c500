"""Lets the outputs of sections [[output]] catch up with their query, as joining.py does for the others.

The position of a table is in its database. The position of a function is that of its query since it joined;
joined_state.py has the position at which it joined, or at which it was removed from the file.

An output catches up with one batch, which has the number of the last batch of the query. The batch is written
only if the database still has the record with which it was planned.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.lake.files import LakeFiles
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.joined_state import JoinedStates, identity_of, ids_of_section
from penstock.spark.pipeline.outputs import PipelineOutput, PipelineQuery
from penstock.spark.pipeline.positions import Checkpoint, Ids, ids_of
from penstock.spark.pipeline.targets.calls import FunctionTarget
from penstock.spark.pipeline.targets.jdbc import JdbcBatch, JdbcTarget, Record
from penstock.spark.pipeline.targets.output_error import OutputError
from penstock.spark.pipeline.targets.sections import WATERMARK, output_id


class SectionJoin:
    """Joins the sections of one pipeline."""

    def __init__(self, pipeline: Pipeline, spark: SparkSession, states: JoinedStates) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._states = states
        self._records: dict[str, Record | None] = {}  # as last seen, by the name of the output

    def position(self, query: PipelineQuery, output: PipelineOutput) -> Ids:
        """The position of an output of silver."""
        state = self._state(query, output)
        record = self._record_or_none(query, output)
        if output.section is not None and output.section.jdbc:
            return {} if record is None else dict(record.position)
        if "after" in state:
            log = self._log(query)
            done = log.batch(log.committed)
            return dict(state["after"]) if done is None else ids_of(done.end)
        return dict(state.get("left", {}))

    def catch_up(
        self, query: PipelineQuery, output: PipelineOutput, rows: DataFrame, goal: Ids
    ) -> None:
        """Write some rows of silver, which end at a position."""
        self._write(query, output, rows, self._log(query).committed, dict(goal))

    def note_joined(self, query: PipelineQuery, output: PipelineOutput, goal: Ids) -> None:
        """Note the position at which an output of silver has joined."""
        state = self._state(query, output)
        if "after" not in state:
            self._states.write(output.name, {**identity_of(state), "after": dict(goal)})

    def watermark(self, query: PipelineQuery, output: PipelineOutput) -> int | None:
        """The watermark up to which an output of an aggregate has the windows."""
        state = self._state(query, output)
        record = self._record_or_none(query, output)
        known = [state.get("left_ms"), None if record is None else record.position[WATERMARK]]
        return max((int(one) for one in known if one is not None), default=None)

    def joined_at(self, query: PipelineQuery, output: PipelineOutput) -> tuple[bool, int | None]:
        """Whether an output of an aggregate has joined, and at which watermark."""
        state = self._state(query, output)
        return "after_ms" in state, state.get("after_ms")

    def catch_up_windows(
        self, query: PipelineQuery, output: PipelineOutput, rows: DataFrame, batch: int
    ) -> None:
        """Write the windows of a table up to a batch."""
        done = self._log(query).batch(batch)
        assert done is not None
        self._write(query, output, rows, batch, {WATERMARK: done.watermark_ms})

    def note_windows(
        self, query: PipelineQuery, output: PipelineOutput, after_ms: int | None
    ) -> None:
        """Note the watermark at which an output of an aggregate has joined."""
        state = self._state(query, output)
        self._states.write(output.name, {**identity_of(state), "after_ms": after_ms})

    def _write(
        self,
        query: PipelineQuery,
        output: PipelineOutput,
        rows: DataFrame,
        batch: int,
        position: dict[str, Any],
    ) -> None:
        section = output.section
        assert section is not None
        if section.call:
            FunctionTarget(self._pipeline, section).write(rows, batch)
            return
        name = output_id(self._state(query, output), query, self._log(query))
        made = JdbcBatch(rows, name, batch, position)

        def is_done(record: Record | None) -> bool:
            if record != self._records[output.name]:
                raise OutputError(f"another run has written to {section.table} in the meantime")
            return record is not None and record.position == position

        JdbcTarget(self._spark, section).write(made, is_done)

    def _record_or_none(self, query: PipelineQuery, output: PipelineOutput) -> Record | None:
        section = output.section
        if section is None or not section.jdbc:
            return None
        name = output_id(self._state(query, output), query, self._log(query))
        found = JdbcTarget(self._spark, section).record_or_none(name)
        self._records[output.name] = found
        return found

    def _state(self, query: PipelineQuery, output: PipelineOutput) -> dict[str, Any]:
        """The state of an output. A new one has a new id, also if the output had another query before."""
        state = self._states.read(output.name)
        if state.get("query") != query.name:
            before = ids_of_section(state)
            state = {"query": query.name, "id": uuid4().hex, "replaced": before}
            self._states.write(output.name, state)
        return state

    def _log(self, query: PipelineQuery) -> Checkpoint:
        return Checkpoint(LakeFiles(self._spark), query.checkpoint)
