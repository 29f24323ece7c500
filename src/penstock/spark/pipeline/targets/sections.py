"""Writes batches to the outputs that sections [[output]] define.

The id of an output, and the position at which it joined its query, are in joined_state.py:

    {"query": "main", "id": "6f1c...", "after": {"orders": "1700000000000-0"}}

A table of a database knows its own position (jdbc.py). A function does not: it gets every batch that Spark
runs, so a repeated batch a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from penstock.spark.lake.files import LakeFiles
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, lake_path
from penstock.spark.pipeline.joined_state import JoinedStates
from penstock.spark.pipeline.outputs import PipelineOutput, PipelineQuery
from penstock.spark.pipeline.positions import Checkpoint, LoggedBatch, has_all, ids_of
from penstock.spark.pipeline.targets.calls import FunctionTarget
from penstock.spark.pipeline.targets.jdbc import JdbcBatch, JdbcTarget, Record

WATERMARK = "watermark_ms"


def section_write(
    pipeline: Pipeline,
    query: PipelineQuery,
    output: PipelineOutput,
    rows_of: Callable[[DataFrame], DataFrame],
) -> Callable[[DataFrame, int], int]:
    """The function that writes each batch of a query. `rows_of` makes the rows of the output."""
    section = output.section
    assert section is not None
    if section.call:
        function = FunctionTarget(pipeline, section)
        return lambda frame, batch: function.write(rows_of(frame), batch)

    def write(frame: DataFrame, batch: int) -> int:
        files = LakeFiles(frame.sparkSession)
        log = Checkpoint(files, query.checkpoint)
        now = log.batch(batch)
        assert now is not None
        state = JoinedStates(files, lake_path(pipeline, CHECKPOINTS)).read(output.name)
        name = output_id(state, query, log)
        made = JdbcBatch(rows_of(frame), name, batch, position_after(query, now))

        def is_done(record: Record | None) -> bool:
            if record is None:
                return False
            if query.aggregate is not None:
                return record.batch >= batch
            return has_all(record.position, now.end)

        return JdbcTarget(frame.sparkSession, section).write(made, is_done)

    return write


def output_id(state: Mapping[str, Any], query: PipelineQuery, log: Checkpoint) -> str:
    """The id in the database. Numbers of batches mean something only together with their query."""
    return str(state["id"]) if query.aggregate is None else f"{state['id']}/{log.query}"


def position_after(query: PipelineQuery, batch: LoggedBatch) -> dict[str, Any]:
    """The position after a batch, for the record in a database."""
    return ids_of(batch.end) if query.aggregate is None else {WATERMARK: batch.watermark_ms}
