"""Runs a pipeline in the layout before the query `main`: each output was a query with its own checkpoint."""

from __future__ import annotations

from typing import Any

from penstock.spark.lake.archive import archive_writer
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import BRONZE, REJECT
from penstock.spark.pipeline.outputs import PipelineOutput, outputs_of
from penstock.spark.pipeline.rows import frames
from penstock.spark.source.data_source import NAME


def run_former(pipeline: Pipeline, session: Any, outputs: set[str]) -> None:
    """Run some outputs over all existing entries, as the former version did."""
    for output in outputs_of(pipeline):
        if output.name not in outputs:
            continue
        writer = _frame(session, pipeline, output).writeStream.outputMode("append")
        writer = writer.option("checkpointLocation", output.former).trigger(availableNow=True)
        if output.folder:
            write = archive_writer(output.folder, output.partition_by)
            query = writer.foreachBatch(write).start()
        else:
            options = {**pipeline.source.sink_login, "stream": output.stream}
            query = writer.format(NAME).options(**options).start()
        query.awaitTermination()


def _frame(session: Any, pipeline: Pipeline, output: PipelineOutput) -> Any:
    if output.aggregate is not None:
        typed = frames.typed(session, pipeline)
        made = frames.aggregate(typed, pipeline, output.aggregate)
        return frames.with_day(made) if output.folder else made
    rows = frames.main_rows(session, pipeline)
    if output.name == BRONZE:
        return frames.bronze(rows)
    return (frames.rejects if output.name == REJECT else frames.silver)(rows, pipeline)
